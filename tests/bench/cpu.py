"""`cpu`: the cost of a page in `crawler run`, against the floors of its steps, Scrapy, GNU wget and an earlier version.

Each round measures all of them in turn, so the load of the machine affects all alike. They crawl a web of real pages
without pauses between requests. A figure is the least of its rounds, a ratio the median of the ratios of the rounds.
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
from tests.bench.peers import (
    BEFORE,
    OURS,
    SCRAPY,
    WGET,
    Contestant,
    Crawl,
    NotInstalled,
    before,
    compile_modules,
    crawl,
    ours,
    scrapy,
    wget,
)
from tests.bench.table import Row

LEAST_CPU = {SCRAPY: 6.5, WGET: 1.5, BEFORE: 1 / 0.8}
"""CPU time of a peer against ours."""
LEAST_WALL = {SCRAPY: 10.0, WGET: 1.5, BEFORE: 1 / 0.6}
"""Wall time of a peer against ours."""
MOST_OWN_MS = 1.1
"""CPU time of the main process per page, on a machine where version 0.1 takes 2.7 ms in all."""
MOST_PEAK_MB = 180
COMPLETE = 0.99
"""The share of the reference pages that a crawl must have fetched to be compared."""


@dataclass(frozen=True, slots=True)
class Round:
    """One measurement of all floors and crawlers."""

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
    parser.add_argument("--name", help="which web of the folder, if it has several")
    parser.add_argument("--rounds", type=int, default=4, metavar="N", help="[%(default)s]")
    parser.add_argument("--pages", type=int, default=800, metavar="N", help="pages for floors, 0 for all [%(default)s]")
    parser.add_argument(
        "--crawler", default=sys.executable, metavar="PYTHON", help="the interpreter that has `crawler`"
    )
    parser.add_argument("--scrapy", default=sys.executable, metavar="PYTHON", help="the interpreter that has Scrapy")
    parser.add_argument("--before", type=Path, metavar="DIR", help="the sources of an earlier version to compare with")
    parser.add_argument("--no-peers", action="store_true", help="leave out Scrapy and wget")


def run(options: Namespace) -> list[Row]:
    web = realweb.load(options.web, options.name)
    contestants, absent = lineup(web, options)
    urls = sorted(web.reference)
    random.Random(1).shuffle(urls)
    sample = urls[: options.pages or None]
    rounds = []
    with realweb.served(web), tempfile.TemporaryDirectory(prefix="bench-cpu-") as folder:
        for contestant in contestants:
            if contestant.name in (OURS, BEFORE):
                compile_modules(contestant, web, Path(folder, "crawl"))
        for number in range(1, max(1, options.rounds) + 1):
            steps = floors.measure(sample, Path(folder, "floor.db"))
            report(number, f"floors of {len(sample):,} pages", f"{sum(steps.values()):.2f} ms/page")
            crawls = {}
            # The first one after the floors takes up to 8 % more, so each is the first in turn.
            for contestant in contestants[:: 1 if number % 2 else -1]:
                crawls[contestant.name] = crawl(contestant, web, Path(folder, "crawl"))
                report(number, contestant.name, str(crawls[contestant.name]))
            rounds.append(Round(steps, crawls))
    return [*rows(rounds, len(web.reference)), *absent]


def report(number: int, what: str, figures: str) -> None:
    print(f"round {number}: {what}: {figures}", flush=True)


def lineup(web: realweb.Web, options: Namespace) -> tuple[list[Contestant], list[Row]]:
    """The crawlers to compare, and a row for each that is not installed."""
    contestants = [ours(web, options.crawler)]
    if options.before is not None:
        contestants.append(before(web, options.crawler, options.before))
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
    table += [Row("floors: sum", floor_ms, "ms"), against_floors(rounds, floor_ms)]
    table.append(main_process(rounds, pages))
    names = list(rounds[0].crawls)
    for name in names:
        if name != OURS:
            table += against_peer(rounds, pages, name)
    for name in names:
        peak_mb = max(each.crawls[name].peak_mb for each in rounds)  # the largest: the machine must have that much
        row = Row(f"{name}: peak memory", peak_mb, "MB")
        table.append(replace(row, must=f"≤ {MOST_PEAK_MB} MB", ok=peak_mb <= MOST_PEAK_MB) if name == OURS else row)
    return table


def against_floors(rounds: Sequence[Round], floor_ms: float) -> Row:
    mine = [each.crawls[OURS] for each in rounds]
    ratio = statistics.median(each.crawls[OURS].cpu_ms_per_page / each.floor_ms for each in rounds)
    return Row(f"{OURS}: CPU per page", least_ms(mine), "ms", floor=floor_ms, ratio=ratio, note=taken(mine))


def main_process(rounds: Sequence[Round], pages: int) -> Row:
    mine = [each.crawls[OURS] for each in rounds]
    own_ms = min(each.own_ms_per_page for each in mine)
    ok = own_ms <= MOST_OWN_MS and complete(mine, pages)
    return Row(f"{OURS}: CPU per page, main process", own_ms, "ms", must=f"≤ {MOST_OWN_MS:g} ms", ok=ok)


def against_peer(rounds: Sequence[Round], pages: int, name: str) -> list[Row]:
    """The rows that compare CPU time and wall time with those of a peer."""
    mine = [each.crawls[OURS] for each in rounds]
    theirs = [each.crawls[name] for each in rounds]
    comparable = complete(mine, pages) and complete(theirs, pages)

    def row(what: str, figure: Callable[[Crawl], float], unit: str, least: float) -> Row:
        ratio = statistics.median(figure(their) / figure(my) for their, my in zip(theirs, mine, strict=True))
        return Row(
            f"{OURS} and {name}: {what}",
            min(map(figure, mine)),
            unit,
            peer=name,
            peer_figure=min(map(figure, theirs)),
            ratio=ratio,
            must=f"≥ {least:.3g} × ours",
            ok=ratio >= least if comparable else None,
            note=f"{name}: {taken(theirs)}",
        )

    return [
        row("CPU per page", lambda each: each.cpu_ms_per_page, "ms", LEAST_CPU[name]),
        row("wall time", lambda each: each.spent.wall_s, "s", LEAST_WALL[name]),
    ]


def least_ms(crawls: Sequence[Crawl]) -> float:
    return min(each.cpu_ms_per_page for each in crawls)


def complete(crawls: Sequence[Crawl], pages: int) -> bool:
    """Whether all crawls fetched the whole web. A crawl that stops half-way is cheap."""
    return all(len(each.missing) <= (1 - COMPLETE) * pages for each in crawls)


def taken(crawls: Sequence[Crawl]) -> str:
    """The completeness of the round that missed most pages."""
    return max(crawls, key=lambda each: len(each.missing)).completeness()
