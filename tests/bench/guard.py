"""What pages cost that were made to tie up an HTML parser, and how long the event loop stands still for them.

The real command crawls a loopback server: ordinary pages, and beside them one page of each kind in turn.
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
from crawler.page.guard import FREE_BYTES, MAX_REOPENED, MAX_TAGS
from tests.bench.spend import spend
from tests.bench.table import Row
from tests.web import LoopbackWeb

COUNT = 100_000
LETTERS = "abcdefghijklmnopqrstuvwxyz"
THREE_LETTERS = [a + b + c for a in LETTERS for b in LETTERS for c in LETTERS]
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
    "long-links": f"<base href='/{'b' * 370}/'>" + numbered("<a href=%41#>x</a>", COUNT),
    # Just below what is read without a child:
    "light-nesting": "<div>" * MAX_TAGS,
    "light-attributes": f"<p {' '.join(THREE_LETTERS)[: FREE_BYTES - 4]}>",
    "light-formatting": "<p>" + numbered("<i a#>", 450) + "<p>x" * (MAX_REOPENED // 500 - 460),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def run(options: argparse.Namespace) -> list[Row]:
    quiet_s, _, _ = _crawl({})
    found = {name: _crawl({f"/{name}": Page(body)}) for name, body in HOSTILE.items()}
    costs_s = {name: cpu_s - quiet_s for name, (cpu_s, _, _) in found.items()}
    lags_s = {name: lag_s for name, (_, lag_s, _) in found.items()}
    dearest, slowest = (max(figures, key=lambda name: figures[name]) for figures in (costs_s, lags_s))
    notes = "; ".join(f"{name}: {notes.get(name) or 'read'}" for name, (_, _, notes) in found.items())
    return [
        Row(f"the dearest of {len(HOSTILE)} hostile pages ({dearest})", costs_s[dearest], "CPU-s", must="< 1 s",
            ok=costs_s[dearest] < MOST_CPU_S, note=notes),
        Row(f"worst lag of the loop meanwhile ({slowest})", 1000 * lags_s[slowest], "ms", must="≤ 250 ms",
            ok=lags_s[slowest] <= MOST_LAG_S),
    ]  # fmt: skip


def _crawl(hostile: Site) -> tuple[float, float, dict[str, str]]:
    """CPU time in all, the loop's worst lag, and what is noted of each page by its name."""
    ordinary = {f"/{n}": Page(f"<title>{n}</title><p>words" * 50) for n in range(ORDINARY)}
    sites: dict[str, Site] = {"good.test": ordinary, "bad.test": hostile}
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
