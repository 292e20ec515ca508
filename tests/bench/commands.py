"""Measure the CPU time of commands that send nothing, and of the start of each process of a crawl.

The store is that of ``crawler demo``. A figure is the median of some runs, and the first run, which may have to compile
modules, does not count.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from tests.bench.table import Row
from tests.command import ROOT, crawler

MOST_S = 0.25


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=10, help="runs of each command [%(default)s]")


def run(options: argparse.Namespace) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder, "demo.db")
        assert crawler("demo", "--db", db).code == 0
        with closing(sqlite3.connect(db)) as store:
            ((url,),) = store.execute("SELECT url FROM pages LIMIT 1")
        crawler("index", "--db", db)
        commands = (
            ["--version"],
            ["--help"],
            ["run", "--help"],
            ["settings", "--db", str(db)],
            ["status", "--db", str(db)],
            ["why", url, "--db", str(db)],
            ["search", "library", "--db", str(db)],
            ["export", "jsonl", "out.jsonl", "--db", str(db)],
            ["index", "--db", str(db)],
            ["audit", "--db", str(db)],
        )
        rows = []
        for command in commands:
            spent_s = _median_s(["-m", "crawler", *command], Path(folder), options.runs)
            name = " ".join(word for word in command[:2] if word not in ("--db", "library") and "." not in word)
            rows.append(Row(f"crawler {name}", spent_s, "s", must=f"≤ {MOST_S} s", ok=spent_s <= MOST_S))
        # Each ends when it finds its standard input closed.
        for name, module in (("a worker", "crawler.run.worker"), ("a parser process", "crawler.engine.parser_process")):
            rows.append(Row(f"start of {name}", _median_s(["-m", module], Path(folder), options.runs), "s"))
        return rows


def _median_s(arguments: list[str], folder: Path, runs: int) -> float:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    spent_s = []
    for _ in range(runs + 1):
        before = os.times()
        subprocess.run(
            [sys.executable, *arguments],
            cwd=folder,
            env=environment | {"PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        after = os.times()
        user_s, system_s = after.children_user - before.children_user, after.children_system - before.children_system
        spent_s.append(user_s + system_s)
    return statistics.median(spent_s[1:])
