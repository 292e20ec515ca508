"""`cpu`: what a page costs `crawler run`, against the floors of its steps and against Scrapy and GNU wget.

All are measured in turn, round by round, on a web of real pages with no pause between requests: the machine's moods
then strike all alike. A figure is the least of its rounds, a ratio the median of the rounds' ratios.
"""

from __future__ import annotations

import math
import os
import random
import statistics
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tests.bench import floors, realweb
from tests.bench.peers import OURS, SCRAPY, WGET, Contestant, Crawl, NotInstalled, crawl, ours, scrapy, wget
from tests.bench.table import Row

MOST_FLOORS = 1.6
"""CPU time of ours against the floors' sum."""
LEAST_OF = {SCRAPY: 9.0, WGET: 2.4}
"""CPU time of a peer against ours."""
MOST_PEAK_MB = 150
COMPLETE = 0.99
"""The share of the reference a crawl must have taken to be compared."""


@dataclass(frozen=True, slots=True)
class Round:
    """One turn of everything."""

    floors: Mapping[str, float]
    """ms per page by step."""
    crawls: Mapping[str, Crawl]
    """By contestant; those that are not installed are absent."""

    @property
    def floor_ms(self) -> float:
        return sum(self.floors.values())


def add_options(parser: ArgumentParser) -> None:
    web = Path(os.environ.get("REALWEB", "realweb-data"))
    parser.add_argument(
        "--web", type=Path, default=web, metavar="DIR", help="the web's folder [$REALWEB or %(default)s]"
    )
    parser.add_argument("--name", help="which web of the folder, where it has several")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="[%(default)s]")
    parser.add_argument("--pages", type=int, default=800, metavar="N", help="pages for floors, 0 for all [%(default)s]")
    parser.add_argument(
        "--crawler", default=sys.executable, metavar="PYTHON", help="the interpreter that has `crawler`"
    )
    parser.add_argument("--scrapy", default=sys.executable, metavar="PYTHON", help="the interpreter that has Scrapy")
    parser.add_argument("--no-peers", action="store_true", help="leave out Scrapy and wget")


def run(options: Namespace) -> list[Row]:
    web = realweb.load(options.web, options.name)
    contestants, absent = lineup(web, options)
    urls = sorted(web.reference)
    random.Random(1).shuffle(urls)
    sample = urls[: options.pages or None]
    rounds = []
    with realweb.served(web), tempfile.TemporaryDirectory(prefix="bench-cpu-") as folder:
        for number in range(1, max(1, options.rounds) + 1):
            steps = floors.measure(sample, Path(folder, "floor.db"))
            report(number, f"floors of {len(sample):,} pages", f"{sum(steps.values()):.2f} ms/page")
            crawls = {}
            for contestant in contestants:
                crawls[contestant.name] = crawl(contestant, web, Path(folder, "crawl"))
                report(number, contestant.name, str(crawls[contestant.name]))
            rounds.append(Round(steps, crawls))
    return [*rows(rounds, len(web.reference)), *absent]


def report(number: int, what: str, figures: str) -> None:
    print(f"round {number}: {what}: {figures}", flush=True)


def lineup(web: realweb.Web, options: Namespace) -> tuple[list[Contestant], list[Row]]:
    """Who takes part, and a row for each who cannot."""
    contestants = [ours(web, options.crawler)]
    absent = []
    peers: dict[str, Callable[[realweb.Web], Contestant]] = (
        {} if options.no_peers else {SCRAPY: partial(scrapy, python=options.scrapy), WGET: wget}
    )
    for name, peer in peers.items():
        try:
            contestants.append(peer(web))
        except NotInstalled as lack:
            absent.append(Row(f"{name}: CPU per page", math.nan, "ms", note=str(lack)))
    return contestants, absent


def rows(rounds: Sequence[Round], pages: int) -> list[Row]:
    """The table of all rounds on a web of `pages` pages."""
    steps = rounds[0].floors
    table = [Row(step, min(each.floors[step] for each in rounds), "ms") for step in steps]
    floor_ms = min(each.floor_ms for each in rounds)
    table += [Row("floors: sum", floor_ms, "ms"), against_floors(rounds, pages, floor_ms)]
    names = list(rounds[0].crawls)
    table += [against_peer(rounds, pages, name) for name in names if name != OURS]
    for name in names:
        peak_mb = max(each.crawls[name].peak_mb for each in rounds)  # not the least: what the machine must have
        row = Row(f"{name}: peak memory", peak_mb, "MB")
        table.append(replace(row, must=f"≤ {MOST_PEAK_MB} MB", ok=peak_mb <= MOST_PEAK_MB) if name == OURS else row)
    return table


def against_floors(rounds: Sequence[Round], pages: int, floor_ms: float) -> Row:
    mine = [each.crawls[OURS] for each in rounds]
    ratio = statistics.median(each.crawls[OURS].cpu_ms_per_page / each.floor_ms for each in rounds)
    return Row(
        f"{OURS}: CPU per page",
        least_ms(mine),
        "ms",
        floor=floor_ms,
        ratio=ratio,
        must=f"≤ {MOST_FLOORS:g} × floors",
        ok=ratio <= MOST_FLOORS and complete(mine, pages),
        note=taken(mine),
    )


def against_peer(rounds: Sequence[Round], pages: int, name: str) -> Row:
    mine = [each.crawls[OURS] for each in rounds]
    theirs = [each.crawls[name] for each in rounds]
    costs = zip(theirs, mine, strict=True)
    ratio = statistics.median(their.cpu_ms_per_page / my.cpu_ms_per_page for their, my in costs)
    comparable = complete(mine, pages) and complete(theirs, pages)
    return Row(
        f"{OURS} and {name}",
        least_ms(mine),
        "ms",
        peer=name,
        peer_figure=least_ms(theirs),
        ratio=ratio,
        must=f"≥ {LEAST_OF[name]:g} × ours",
        ok=ratio >= LEAST_OF[name] if comparable else None,
        note=f"{name}: {taken(theirs)}",
    )


def least_ms(crawls: Sequence[Crawl]) -> float:
    return min(each.cpu_ms_per_page for each in crawls)


def complete(crawls: Sequence[Crawl], pages: int) -> bool:
    """Whether all of them took the web: one that stops half way is cheap."""
    return all(len(each.missing) <= (1 - COMPLETE) * pages for each in crawls)


def taken(crawls: Sequence[Crawl]) -> str:
    """How complete the round was that missed most."""
    return max(crawls, key=lambda each: len(each.missing)).completeness()
