"""Crawl the hostile web, and print what came out: ``python -m tests.hostile``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

from tests.hostile import catalogue, scenarios, shared_hosting
from tests.hostile.attacks import SCENARIOS
from tests.hostile.behaviour import Crawl
from tests.hostile.crawl import MAX_TIME_S, crawl
from tests.hostile.mail import read_mails
from tests.hostile.rup_run import attack, register
from tests.hostile.verdict import Verdict, judge_times, judged, stretches, table, wrong_ones

#: Seconds for a crawl of hosts that want to be left alone for a year.
_ENDLESS_S = 12.0
#: How many healthy sites are beside the hostile ones. Without --allow-private, no site of ours can be reached.
_HEALTHY = {Crawl.MAIN: len(catalogue.HEALTHY), Crawl.ENDLESS: 2, Crawl.GUARDED: 0}
#: What is attacked beside the crawl.
_PARTS = {"rup": register, "clients": attack, "mail": read_mails}


def run(names: Iterable[str], *, quick: bool, folder: Path) -> Verdict:
    """Crawl the chosen behaviours beside the healthy sites, and judge everything; if ``quick``, everything but time."""
    chosen = catalogue.chosen(names, quick=quick)
    whole = Verdict()
    if not quick:
        for name in set(names or _PARTS) & _PARTS.keys():
            own_folder = folder / name
            own_folder.mkdir(parents=True)
            whole.wrong |= dict(_PARTS[name](own_folder))
    for kind in (Crawl.MAIN, Crawl.ENDLESS, Crawl.GUARDED):
        hostile = [one for one in chosen if one.crawl is kind]
        if not hostile:
            continue
        healthy = (catalogue.SMALL if quick else catalogue.HEALTHY)[: _HEALTHY[kind]]
        own_folder = folder / kind.value
        own_folder.mkdir(parents=True)
        max_time_s = _ENDLESS_S if kind is Crawl.ENDLESS else MAX_TIME_S
        timed = kind is Crawl.MAIN and not quick
        crawled = crawl(
            (*hostile, *healthy), own_folder, max_time_s, allow_private=kind is not Crawl.GUARDED, timed=timed
        )
        verdict = judged(crawled, hostile, healthy, kind, quick=quick)
        if timed:
            judge_times(crawled, healthy, max_time_s, _alone(folder), verdict)
        for name, wrong in verdict.wrong.items():
            whole.wrong[name] = [*whole.wrong.get(name, ()), *wrong]
        whole.whole |= {f"{kind.value} crawl: {subject}": wrong for subject, wrong in verdict.whole.items()}
        whole.figures |= {f"{kind.value} crawl: {name}": figure for name, figure in verdict.figures.items()}
    return whole


def _alone(folder: Path) -> float:
    """How many times as long as its pauses a healthy site takes now without hostile ones beside it, in the median."""
    own_folder = folder / "alone"
    own_folder.mkdir()
    return median(
        stretches(crawl(catalogue.HEALTHY, own_folder, MAX_TIME_S, allow_private=True).log, catalogue.HEALTHY)
    )


def main() -> int:
    """The exit code is 1 if anything is wrong (:func:`wrong_ones`)."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="behaviours or families")
    parser.add_argument("--quick", action="store_true", help="the short form of CI: some behaviours, nothing timed")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="a new folder for the stores and logs, which are kept"
    )
    parser.add_argument(
        "--scenario", nargs="+", metavar="NAME", choices=("all", *SCENARIOS),
        help=f"attacks of a zone on one healthy site: all, or {', '.join(SCENARIOS)}",
    )  # fmt: skip
    parser.add_argument(
        "--shared-hosting", nargs="*", type=int, metavar="N", choices=tuple(shared_hosting.MOST_STRETCH),
        help="healthy sites beside so many addresses of 80 names (32, 500); root does it in a network namespace",
    )  # fmt: skip
    parser.add_argument("--virtual-time", action="store_true", help="shared hosting without a network namespace")
    parser.add_argument("--workers", type=int, default=1, help="of it, on one PostgreSQL [%(default)s]")
    options = parser.parse_args()
    if options.shared_hosting is not None:
        numbers = options.shared_hosting or shared_hosting.MOST_STRETCH
        if os.geteuid() == 0 and not options.virtual_time:
            return max(shared_hosting.run_in_namespace(number, options.workers) for number in numbers)
        return _beside_addresses(numbers)
    if options.scenario:
        return _scenarios(options.scenario)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        verdict = run(options.only, quick=options.quick, folder=folder)
    print(table(verdict))
    return int(bool(wrong_ones(verdict)))


def _beside_addresses(numbers: Iterable[int]) -> int:
    wrong = False
    for number in numbers:
        with tempfile.TemporaryDirectory() as folder:
            stood = shared_hosting.run(number, Path(folder))
        print(stood, flush=True)
        wrong = wrong or bool(stood.wrong)
    return int(wrong)


def _scenarios(names: Sequence[str]) -> int:
    wrong = False
    for name in SCENARIOS if "all" in names else names:
        with tempfile.TemporaryDirectory() as folder:
            stood = scenarios.run(name, Path(folder))
        print(stood, flush=True)
        wrong = wrong or bool(stood.wrong)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
