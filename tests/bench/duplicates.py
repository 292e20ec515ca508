"""Measures the search for near-duplicates in a large store: what it finds, its time and its memory.

The pages of a site share a template: navigation and footer in elements that say so, a menu that no element marks, or
texts around the own text within the main element. The own texts are drawn from a made-up vocabulary. One page in nine
has a copy on another site in which some words are replaced, left out or put in.

`--realweb DIR` judges the pairs of `duplicate_pairs.txt` in place of that, by similarity alone and as `crawler
duplicates` does.
"""

from __future__ import annotations

import argparse
import math
import random
import shutil
import sqlite3
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import xxhash
from selectolax.lexbor import LexborHTMLParser

from crawler.duplicates.find import are_near_duplicates
from crawler.duplicates.texts import OwnText, Text, template_of, text_of
from crawler.page.main_text import main_text
from crawler.page.shingles import ALIKE, jaccard
from tests.bench import stores
from tests.bench.stores import StoredPage
from tests.bench.table import Row
from tests.spend import Spent, spend
from tests.unit.duplicates.planted import TEMPLATES, edited, random_text, similarity

_SITES, _WORDS, _PAIR_EVERY, _ALIKE = 200, (60, 120, 240), 9, 0.85
_KINDS = list(TEMPLATES.values())
_LEAST_RECALL, _MOST_MB = 0.95, 250
_LABELLED, _SAMPLE = Path(__file__).with_name("duplicate_pairs.txt"), 100


def add_options(parser: argparse.ArgumentParser) -> None:
    stores.add_options(parser)
    parser.add_argument("--pages", type=int, default=100_000, metavar="N", help="pages of the store [100000]")
    parser.add_argument("--realweb", type=Path, metavar="DIR", help="the folder of `python -m tests.bench web`")


def run(options: argparse.Namespace) -> list[Row]:
    if options.realweb:
        return _judge_labelled(options.realweb / "www")
    name = f"duplicates-{options.pages}-{stores.digest(options.pages)}.db"
    kept = stores.made_once(
        options.stores / name, lambda path: stores.make_fetched(path, _SITES, _pages(options.pages))
    )
    store = kept.with_suffix(".work")
    try:
        shutil.copyfile(kept, store)
        first = _find(store)
        planted, found, wrong = _judge(store)
        again = _find(store)
    finally:
        for name in (store, *store.parent.glob(f"{store.name}[.-]*")):
            name.unlink(missing_ok=True)
    recall, megabytes = found / max(planted, 1), max(first.peak_bytes, again.peak_bytes) / 1e6
    return [
        Row(
            f"planted pairs at {_ALIKE} or more: found",
            recall,
            "",
            must=f"≥ {_LEAST_RECALL}",
            ok=recall >= _LEAST_RECALL,
            note=f"{found:,} of {planted:,}",
        ),
        Row("clusters of other pages", wrong, "", must="0", ok=wrong == 0, note="pages that share only a template"),
        Row("time a page", first.cpu_s / options.pages * 1000, "ms", note="processor time"),
        Row("a second call, time a page", again.cpu_s / options.pages * 1000, "ms", note="nothing has changed"),
        Row("peak memory", megabytes, "MB", must=f"≤ {_MOST_MB} MB", ok=megabytes <= _MOST_MB),
    ]


def _judge_labelled(folder: Path) -> list[Row]:
    """Precision and recall on labelled pairs, and on a third of them that no rule was made for."""
    lines = (line.split() for line in _LABELLED.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    pairs = [(one, other, label == "same") for one, other, label, _ in lines]
    templates: dict[tuple[str, str], set[int]] = {}

    def read(name: str) -> OwnText:
        web, host, _ = name.split("/", 2)
        if (web, host) not in templates:
            names = sorted(path for path in (folder / web / host).rglob("*.html") if path.is_file())
            sample = random.Random(1).sample(names, min(_SAMPLE, len(names)))
            templates[web, host] = template_of([_text(path) for path in sample])
        return _text(folder / name).own(templates[web, host])

    found = [(read(one), read(other)) for one, other, _ in pairs]
    similar = [jaccard(one.shingles, other.shingles) >= ALIKE for one, other in found]
    judged = [are_near_duplicates(one, other) for one, other in found]
    rows = []
    for name, among in (("", range(len(pairs))), ("held-out ", [n for n, pair in enumerate(pairs) if _is_held(pair)])):
        for way, taken in (("similarity alone", similar), ("crawler", judged)):
            right = sum(taken[n] and pairs[n][2] for n in among)
            for measure, of in (
                ("precision", sum(taken[n] for n in among)),
                ("recall", sum(pairs[n][2] for n in among)),
            ):
                note = f"{right} of {of}; {len(among)} pairs"
                rows.append(Row(f"{name}pairs, {measure}: {way}", right / of if of else math.nan, "", note=note))
    for (one, other, is_same), taken in zip(pairs, judged, strict=True):
        if taken != is_same:
            print("taken for the same:" if taken else "not found:", one, other)
    return rows


def _is_held(pair: tuple[str, str, bool]) -> bool:
    return xxhash.xxh3_64_intdigest(" ".join(name.partition("/")[2] for name in pair[:2]).encode()) % 3 == 0


def _text(path: Path) -> Text:
    html = path.read_bytes()
    title = LexborHTMLParser(html).css_first("title")
    return text_of(title and title.text(), main_text(html, None, "text/html"))


def _find(store: Path) -> Spent:
    output = store.with_suffix(".work.out")
    spent = spend([sys.executable, "-m", "crawler", "duplicates", "--db", str(store)], Path.cwd(), output, 7200)
    if spent.code:
        raise RuntimeError(output.read_text())
    return spent


def _judge(store: Path) -> tuple[int, int, int]:
    """The planted pairs that are alike enough, how many of them are found, and the clusters that were not planted."""
    db = sqlite3.connect(store)
    copies = db.execute("SELECT path FROM url WHERE path LIKE '%-copy-%'").fetchall()
    alike = {path.split("-")[0] for (path,) in copies if float(path.split("-")[2]) >= _ALIKE}
    clusters = defaultdict[int, list[str]](list)
    for path, cluster in db.execute("SELECT path, cluster_id FROM near_duplicate JOIN url ON id = url_id"):
        clusters[cluster].append(path.split("-")[0])
    db.close()
    pairs = {paths[0] for paths in clusters.values() if len(paths) == 2 and len(set(paths)) == 1}
    return len(alike), len(alike & pairs), len(clusters) - len(pairs)


def _pages(pages: int) -> Iterator[StoredPage]:
    """The path of a copy ends with its similarity to the original."""
    chance = random.Random(7)
    made = n = 0
    while made < pages:
        site, text = n % _SITES, random_text(chance, chance.choice(_WORDS))
        kind = _KINDS[site % len(_KINDS)]
        yield StoredPage(site, f"/{n}", kind(f"Page {n}", " ".join(text)))
        made, n = made + 1, n + 1
        if n % _PAIR_EVERY == 0 and made < pages:
            other = edited(chance, text, chance.randint(1, len(text) // 30))
            copy_name = f"/{n - 1}-copy-{similarity(text, other):.3f}"
            html = kind(f"Page {n - 1}", f"{' '.join(other)}<!-- copy -->")
            yield StoredPage((site + len(_KINDS)) % _SITES, copy_name, html)
            made += 1
