"""What pages cost that were made to tie up an HTML parser, and how long the event loop stands still for them.

The real command crawls a loopback server: a site of such pages, and beside it one of ordinary pages, alone and together.
Each hostile page must cost less than a second of CPU time and be recorded as what it is.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from crawler.demo.pages import Page, Site, plain
from tests.bench.spend import spend
from tests.bench.table import Row
from tests.web import LoopbackWeb

COUNT = 100_000
MOST_CPU_S, MOST_LAG_S = 1.0, 0.25
ORDINARY = 300


def numbered(template: str, count: int) -> str:
    return "".join(template.replace("#", str(number)) for number in range(count))


HOSTILE = {
    "nested-tags": "<div>" * COUNT,
    "nested-and-closed": "<div>" * COUNT + "</div>" * COUNT,
    "hidden-ends": "<div><!--</div>-->" * COUNT,
    "attributes": f"<p {numbered('a#=1 ', COUNT)}>",
    "tag-names": numbered("<t#>", COUNT),
    "formatting": numbered("<p><font size=#>x", COUNT),
    "tables": "<table><tr><td>" * COUNT,
    "links": numbered("<a href='/other/#'>x</a>", COUNT),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def run(options: argparse.Namespace) -> list[Row]:
    ordinary = {f"/{n}": Page(f"<title>{n}</title><p>words" * 50) for n in range(ORDINARY)}
    hostile = {f"/{name}": Page(body) for name, body in HOSTILE.items()}
    quiet_s, _, _ = _crawl({"good.test": ordinary})
    busy_s, lag_s, notes = _crawl({"good.test": ordinary, "bad.test": hostile})
    page_s = (busy_s - quiet_s) / len(HOSTILE)
    note = "; ".join(f"{name}: {notes[name] or 'read'}" for name in HOSTILE)
    return [
        Row("a hostile page, of 8 kinds", page_s, "CPU-s", must="< 1 s", ok=page_s < MOST_CPU_S, note=note),
        Row("worst lag of the loop meanwhile", 1000 * lag_s, "ms", must="≤ 250 ms", ok=lag_s <= MOST_LAG_S),
    ]


def _crawl(sites: dict[str, dict[str, Page]]) -> tuple[float, float, dict[str, str]]:
    """CPU time in all, the loop's worst lag, and what is noted of each page by its name."""
    served: dict[str, Site] = {host: {"/robots.txt": plain(""), **pages} for host, pages in sites.items()}
    with LoopbackWeb(served) as web, tempfile.TemporaryDirectory() as folder:
        db, seeds = Path(folder, "crawl.db"), Path(folder, "seeds.txt")
        seeds.write_text("".join(f"http://{host}:{web.port}{path}\n" for host, site in sites.items() for path in site))
        command = [sys.executable, "-m", "crawler", "run", "--seeds", seeds, "--db", db, "--delay", "0"]
        command += ["--resolve", web.resolve, "--allow-private", "--no-progress", "--max-depth", "0"]
        spent = spend([str(part) for part in command], Path(folder), Path(folder, "log"))
        with closing(sqlite3.connect(db)) as store:
            notes = {url.rpartition("/")[2]: note for url, note in store.execute("SELECT url, note FROM pages")}
            (lag_s,) = store.execute("SELECT worst_lag_s FROM run").fetchone()
    return spent.cpu_s, lag_s, notes
