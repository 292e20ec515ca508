"""Measures the search for near-duplicates in a large store: what it finds, its time and its memory.

The pages of a site share a template: navigation and footer in elements that say so, a menu that no element marks, or
texts around the own text within the main element. The own texts are drawn from a made-up vocabulary. One page in nine
has a copy on another site in which some words are replaced, left out or put in.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sqlite3
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.bench import stores
from tests.bench.stores import StoredPage
from tests.bench.table import Row
from tests.spend import Spent, spend
from tests.unit.duplicates.planted import TEMPLATES, edited, random_text, similarity

_SITES, _WORDS, _PAIR_EVERY, _ALIKE = 200, (60, 120, 240), 9, 0.85
_KINDS = list(TEMPLATES.values())
_LEAST_RECALL, _MOST_MB = 0.95, 250


def add_options(parser: argparse.ArgumentParser) -> None:
    stores.add_options(parser)
    parser.add_argument("--pages", type=int, default=100_000, metavar="N", help="pages of the store [100000]")


def run(options: argparse.Namespace) -> list[Row]:
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
