"""Crawl the hostile web, and print what came out: ``python -m tests.hostile [--quick | --only NAME …]``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.hostile import catalogue
from tests.hostile.crawl import MAX_TIME_S, crawl
from tests.hostile.verdict import Verdict, judged, timed


def run(names: Iterable[str], *, quick: bool, folder: Path) -> Verdict:
    """Crawl the chosen behaviours beside the healthy sites, and judge everything but time, if ``quick``."""
    hostile = catalogue.chosen(names, quick=quick)
    crawled = crawl((*hostile, *catalogue.HEALTHY), folder, max_time_s=MAX_TIME_S)
    verdict = judged(crawled, hostile, catalogue.HEALTHY)
    if not quick:
        timed(crawled, catalogue.HEALTHY, MAX_TIME_S, verdict)
    return verdict


def main() -> int:
    """The exit code is 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="behaviours or families")
    parser.add_argument("--quick", action="store_true", help="the short form of CI: some behaviours, nothing timed")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the store and the log in this folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        verdict = run(options.only, quick=options.quick, folder=folder)
    print(table(verdict))
    return int(bool(verdict.whole or any(verdict.wrong.values())))


def table(verdict: Verdict) -> str:
    """The verdict for people: a line for each thing that is wrong, and the figures."""
    lines = []
    for name, wrong in verdict.wrong.items():
        note = f" (not yet: {catalogue.NOT_YET[name]})" if name in catalogue.NOT_YET else ""
        lines += [f"WRONG  {name}{note}: {fault}" for fault in wrong]
    lines += [f"WRONG  {fault}" for fault in verdict.whole]
    good = sum(not wrong for wrong in verdict.wrong.values())
    figures = {"hosts as expected": f"{good} of {len(verdict.wrong)}", **verdict.figures}
    return "\n".join([*lines, *(f"{name:30} {figure}" for name, figure in figures.items())])


if __name__ == "__main__":
    sys.exit(main())
