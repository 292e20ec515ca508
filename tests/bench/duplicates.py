"""Measures the search for near-duplicates in a large store: what it finds, its time and its memory.

The pages of a site share a template: navigation and footer in elements that say so, a menu that no element marks, or
texts around the own text within the main element. The own texts are drawn from a made-up vocabulary. One page in nine
has a copy on another site in which some words are replaced, left out or put in.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import random
import shutil
import sqlite3
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from crawler.store.bodies import compress
from crawler.store.keys import url_number
from crawler.store.sql.schema import schema
from crawler.store.sqlite.store import SqliteStore
from tests.bench.spend import Spent, spend
from tests.bench.table import Row
from tests.unit.duplicates.planted import TEMPLATES, edited, random_text, similarity

_SITES, _WORDS, _PAIR_EVERY, _ALIKE = 200, (60, 120, 240), 9, 0.85
_KINDS = list(TEMPLATES.values())
_LEAST_RECALL, _MOST_MB = 0.95, 250
_AT = 1_750_000_000.0


def add_options(parser: argparse.ArgumentParser) -> None:
    default = Path(tempfile.gettempdir()) / "crawler-bench-stores"
    parser.add_argument("--stores", type=Path, default=default, metavar="DIR", help=f"keep the store here [{default}]")
    parser.add_argument("--pages", type=int, default=100_000, metavar="N", help="pages of the store [100000]")


def run(options: argparse.Namespace) -> list[Row]:
    kept = _kept(options.stores, options.pages)
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


def _kept(folder: Path, pages: int) -> Path:
    """The store with this number of pages, which is made if the folder has none yet."""
    shape = hashlib.sha256(repr((pages, schema("sqlite"))).encode()).hexdigest()[:8]
    path = folder / f"duplicates-{pages}-{shape}.db"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        half = path.with_suffix(".half")
        half.unlink(missing_ok=True)
        asyncio.run(_empty(half))
        _make(half, pages)
        half.rename(path)
    return path


async def _empty(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.close()


def _make(path: Path, pages: int) -> None:
    db = sqlite3.connect(path)
    db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
    db.execute(
        "INSERT INTO politeness_group (id, name, next_at, pause_s, wait_code, waits_for) "
        "VALUES (1, 'all', 0, 1, 'delay', 'delay')"
    )
    db.executemany(
        "INSERT INTO site (id, name, host, registered_domain, group_id) VALUES (?1, ?2, ?3, ?3, 1)",
        [(n + 1, f"http://s{n}.test", f"s{n}.test") for n in range(_SITES)],
    )
    for number, (site, name, html) in enumerate(_pages(pages), 1):
        data, url_id = html.encode(), url_number(site + 1, name)
        digest = hashlib.sha256(data).digest()
        db.execute("INSERT INTO body (id, sha256, data) VALUES (?, ?, ?)", (number, digest, compress(data)))
        db.execute("INSERT INTO url (id, path, state, depth) VALUES (?, ?, 'fetched', 1)", (url_id, name))
        db.execute(
            "INSERT INTO page (url_id, status, content_type, fetched_at, title, noindex, nofollow, body_id, "
            "body_bytes) VALUES (?, 200, 'text/html', ?, '', 0, 0, ?, ?)",
            (url_id, _AT, number, len(data)),
        )
    db.commit()
    db.close()


def _pages(pages: int) -> Iterator[tuple[int, str, str]]:
    """Site, path and HTML of each page. The path of a copy ends with its similarity to the original."""
    chance = random.Random(7)
    made = n = 0
    while made < pages:
        site, text = n % _SITES, random_text(chance, chance.choice(_WORDS))
        kind = _KINDS[site % len(_KINDS)]
        yield site, f"/{n}", kind(f"Page {n}", " ".join(text))
        made, n = made + 1, n + 1
        if n % _PAIR_EVERY == 0 and made < pages:
            other = edited(chance, text, chance.randint(1, len(text) // 30))
            copy_name = f"/{n - 1}-copy-{similarity(text, other):.3f}"
            yield (site + len(_KINDS)) % _SITES, copy_name, kind(f"Page {n - 1}", f"{' '.join(other)}<!-- copy -->")
            made += 1
