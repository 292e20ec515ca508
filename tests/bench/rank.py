"""Measure the time and the memory of ``crawler rank`` on a large store.

The URLs of the store are pages of sites of equal size. Four of five links lead to pages of the same site, most of them
to its first pages; the other links lead to a few sites. One page in fifty is a duplicate with another canonical URL.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np

from crawler.rank.link_graph import read_graph
from crawler.rank.pagerank import pagerank
from crawler.store.keys import site_of
from crawler.store.sqlite.store import SqliteStore
from tests.bench import stores
from tests.bench.table import Row
from tests.spend import spend

OWN_SITE = 0.8
DUPLICATES = 50
ANCHOR = "a text that says of what it is"  # as long as the anchors of real pages
MOST_S, MOST_GB = 60, 2.0
_AT_ONCE = 20_000
_SPARE = 1.06  # more links than needed, because some links of a page are drawn twice


def add_options(parser: argparse.ArgumentParser) -> None:
    stores.add_options(parser)
    parser.add_argument("--pages", type=int, default=1_000_000, help="[%(default)s]")
    parser.add_argument("--links", type=int, default=30_000_000, help="about [%(default)s]")
    parser.add_argument("--sites", type=int, default=1_000, help="[%(default)s]")


def run(options: argparse.Namespace) -> list[Row]:
    store = _kept(options.stores, options.pages, options.links, options.sites)
    output = store.with_suffix(".out")
    command = [sys.executable, "-m", "crawler", "rank", "--db", str(store), "--json"]
    spent = spend(command, Path.cwd(), output)
    if spent.code:
        raise RuntimeError(output.read_text())
    ranked = json.loads(output.read_text())
    shape = f"{ranked['pages']:,} pages, {ranked['links']:,} links, {ranked['sites']:,} sites"
    gigabytes = spent.peak_bytes / 1e9
    note = f"CPU time {spent.cpu_s:.1f} s; the store has {store.stat().st_size / 1e9:.1f} GB"
    return [
        Row(f"{shape}: rank", spent.wall_s, "s", must=f"< {MOST_S} s", ok=spent.wall_s < MOST_S, note=note),
        Row("peak memory", gigabytes, "GB", must=f"< {MOST_GB:g} GB", ok=gigabytes < MOST_GB),
        Row("of it PageRank", asyncio.run(_pagerank_s(store)), "s"),
    ]


async def _pagerank_s(path: Path) -> float:
    store = await SqliteStore.open(path, read_only=True)
    try:
        graph = await read_graph(store)
    finally:
        await store.close()
    began_at = time.monotonic()
    pagerank(graph.in_links)
    return time.monotonic() - began_at


def _kept(folder: Path, pages: int, links: int, sites: int) -> Path:
    """The store with this shape, which is made if the folder has none yet."""

    def make(half: Path) -> None:
        stores.copy(stores.kept(folder, [pages // sites] * sites), folder, half.name)
        with closing(sqlite3.connect(half)) as db:
            db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -262144;")
            _link(db, links)

    return stores.made_once(folder / f"rank-{sites}-sites-{pages}-pages-{links}-links.db", make)


def _link(db: sqlite3.Connection, links: int) -> None:
    chance = np.random.default_rng(7)
    db.execute("UPDATE url SET state = 'fetched'")
    db.execute("DELETE FROM frontier")
    ids = np.array([row[0] for row in db.execute("SELECT id FROM url ORDER BY id")])
    sites = np.array([site_of(number) for number in ids.tolist()])
    first, last = np.searchsorted(sites, sites), np.searchsorted(sites, sites, side="right")
    copies = np.arange(1, len(ids), DUPLICATES)
    originals = np.maximum(first[copies], copies - 1)
    db.executemany(
        "UPDATE url SET target = ? WHERE id = ?", zip(ids[originals].tolist(), ids[copies].tolist(), strict=True)
    )
    each = round(links * _SPARE / len(ids))
    for start in range(0, len(ids), _AT_ONCE):
        source = np.repeat(np.arange(start, min(start + _AT_ONCE, len(ids))), each)
        place = chance.random(len(source)) ** 2  # the first of a site, and of all, most often
        near = first[source] + place * (last - first)[source]
        target = np.where(chance.random(len(source)) < OWN_SITE, near, place * len(ids)).astype(np.int64)
        rows = np.unique(np.stack([ids[source], ids[target]], axis=1), axis=0).tolist()
        db.executemany(f"INSERT OR IGNORE INTO link VALUES (?, ?, '{ANCHOR}', '', 1)", rows)
        db.commit()
