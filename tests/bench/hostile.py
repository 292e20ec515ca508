"""Measures the cost of pages that are made to tie up an HTML parser, and how long they block the event loop.

The real command crawls a loopback server with ordinary pages and one hostile page, of each kind in turn. A hostile page
must cost less than a second of CPU time and block the loop for at most 0.1 s.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from crawler.demo.pages import Page, Site, plain
from tests.bench.table import Row
from tests.hostile.pages import HOSTILE
from tests.spend import spend
from tests.web import LoopbackWeb

MOST_CPU_S, MOST_LAG_S = 1.0, 0.1
ORDINARY = 300


def add_options(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def run(options: argparse.Namespace) -> list[Row]:
    quiet_s, _, _ = _crawl({})
    found = {
        name: _crawl({f"/{name}": Page(body) if isinstance(body, str) else body}) for name, body in HOSTILE.items()
    }
    costs_s = {name: cpu_s - quiet_s for name, (cpu_s, _, _) in found.items()}
    lags_s = {name: lag_s for name, (_, lag_s, _) in found.items()}
    dearest, slowest = (max(figures, key=lambda name: figures[name]) for figures in (costs_s, lags_s))
    notes = "; ".join(f"{name}: {notes.get(name) or 'read'}" for name, (_, _, notes) in found.items())
    return [
        Row(f"the dearest of {len(HOSTILE)} hostile pages ({dearest})", costs_s[dearest], "CPU-s", must="< 1 s",
            ok=costs_s[dearest] < MOST_CPU_S, note=notes),
        Row(f"worst lag of the loop meanwhile ({slowest})", 1000 * lags_s[slowest], "ms", must="≤ 100 ms",
            ok=lags_s[slowest] <= MOST_LAG_S),
    ]  # fmt: skip


def _crawl(hostile: Site) -> tuple[float, float, dict[str, str]]:
    """The total CPU time, the worst lag of the loop, and the note on each page by its name."""
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
