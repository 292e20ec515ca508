"""Measures the processor time of a search in a large store, with the facets that the search page shows.

The store has pages of words drawn by Zipf's law from a made-up vocabulary, 200 sites, and ten links a page. The
questions have rare words, words of the middle, words that nearly all pages have, and the ways to combine them. The time
of a question is the least of several: the store is in memory then, and other processes disturb least.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sqlite3
import time
from collections.abc import Iterator
from itertools import accumulate
from math import ceil
from pathlib import Path

from crawler.search.build_index import build_index
from crawler.search.results import Filters, search
from crawler.store.sqlite.store import SqliteStore
from crawler.texts.reader import TextReader
from tests.bench import stores
from tests.bench.stores import StoredPage
from tests.bench.table import Row

_SITES, _WORDS_A_PAGE, _VOCABULARY, _LINKS = 200, 400, 60_000, 10
_TARGET_S = 0.05
_AT = 1_750_000_000.0
_ROUNDS = 3
_LANGUAGES = ("en", "de", "fr", "")


def add_options(parser: argparse.ArgumentParser) -> None:
    stores.add_options(parser)
    parser.add_argument("--pages", type=int, default=100_000, metavar="N", help="pages of the store [100000]")


def run(options: argparse.Namespace) -> list[Row]:
    name = f"search-{options.pages}-{stores.digest(options.pages)}.db"
    path = stores.made_once(options.stores / name, lambda path: _make(path, options.pages))
    return asyncio.run(_measure(path))


async def _measure(path: Path) -> list[Row]:
    rows = []
    await _index(path)
    store = await SqliteStore.open(path, read_only=True)
    try:
        for name, (questions, filters) in _questions().items():
            times = sorted([await _cpu_s(store, str(path), words, filters) for words in questions])
            median, p95 = times[len(times) // 2], times[ceil(0.95 * len(times)) - 1]
            must = f"≤ {_TARGET_S * 1000:.0f} ms"
            rows.append(Row(f"{name}, median of {len(times)}", median * 1000, "ms"))
            rows.append(Row(f"{name}, 95th percentile", p95 * 1000, "ms", must=must, ok=p95 <= _TARGET_S))
    finally:
        await store.close()
    return rows


async def _index(path: Path) -> None:
    """Build the index, or bring it up to date with the version that is measured."""
    store = await SqliteStore.open(path)
    try:
        async with TextReader() as reader:
            await build_index(str(path), store, reader)
    finally:
        await store.close()


async def _cpu_s(store: SqliteStore, db: str, words: str, filters: Filters) -> float:
    times = []
    for _ in range(_ROUNDS):
        start = time.process_time()
        await search(store, db, words, now=_AT, filters=filters, facets=True)
        times.append(time.process_time() - start)
    return min(times)


def _questions() -> dict[str, tuple[list[str], Filters]]:
    """Words by their place in the vocabulary, the most frequent first, and filters."""
    chance = random.Random(3)
    word, every = _word, Filters()
    pairs = [f"{word(n)} {word(n + 1)}" for n in range(20)]
    some_percent = [" ".join(word(chance.randrange(50, 1500)) for _ in range(3)) for _ in range(20)]
    return {
        "one word on 0.1 % of the pages": ([word(chance.randrange(15_000, 25_000)) for _ in range(20)], every),
        "one word on some percent": ([word(chance.randrange(300, 1500)) for _ in range(20)], every),
        "three words on some percent": (some_percent, every),
        "one word on half of the pages": ([word(n) for n in range(40, 60)], every),
        "one word on nearly all pages": ([word(n) for n in range(20)], every),
        "two words on nearly all pages": (pairs, every),
        "three words on nearly all pages": ([f"{pair} {word(30)}" for pair in pairs], every),
        "two such words as a phrase": ([f'"{pair}"' for pair in pairs], every),
        "one such word and one on 0.1 %": ([f"{word(n)} {word(20_000 + n)}" for n in range(20)], every),
        "one such word without another": ([f"{word(n)} -{word(n + 20)}" for n in range(20)], every),
        "two such words, one site": (pairs, Filters(site="s7.test")),
        "two such words, one language": (pairs, Filters(language="de")),
        "a prefix of three letters": ([f"{word(n)[:3]}*" for n in range(20)], every),
        "a prefix of two letters": ([f"{word(n)[:2]}*" for n in range(20)], every),
        "one word spelled wrong": ([f"{word(20_000 + n)[:-1]}x" for n in range(20)], every),
        "one word spelled wrong, one known": ([f"{word(n)} {word(20_000 + n)[:-1]}x" for n in range(20)], every),
    }


def _word(n: int) -> str:
    """The word of this number, made of syllables."""
    made, n = "", n + 30
    while n:
        n, k = divmod(n, 30)
        made += "bdklmn"[k // 5] + "aeiou"[k % 5]
    return made


def _make(path: Path, pages: int) -> None:
    stores.make_fetched(path, _SITES, _pages(pages))
    db = sqlite3.connect(path)
    made = db.execute("SELECT url_id, title FROM page ORDER BY body_id").fetchall()
    for n, (source, title) in enumerate(made):
        chance = random.Random(n)
        links = {made[int(pages * chance.random() ** 3)][0] for _ in range(_LINKS)}
        rows = [(source, target, title) for target in links]
        db.executemany("INSERT INTO link (source, target, anchor, rel, follow) VALUES (?, ?, ?, '', 1)", rows)
    db.commit()
    db.close()


def _pages(pages: int) -> Iterator[StoredPage]:
    chance = random.Random(7)
    words = [_word(n) for n in range(_VOCABULARY)]
    weights = list(accumulate(1 / (n + 20) for n in range(_VOCABULARY)))
    for n in range(pages):
        said = chance.choices(words, cum_weights=weights, k=_WORDS_A_PAGE)
        title = " ".join(said[:4])
        parts = [said[k : k + 80] for k in range(0, len(said), 80)]
        sections = "".join(f'<h2 id="s{k}">{" ".join(p[:3])}</h2><p>{" ".join(p)}</p>' for k, p in enumerate(parts))
        language = _LANGUAGES[n % len(_LANGUAGES)]
        html = f'<!doctype html><html lang="{language}"><title>{title}</title><main>{sections}</main></html>'
        yield StoredPage(n % _SITES, f"/{n}", html, title, depth=n % 7, fetched_at=_AT - 3600 * (n % 5000))
