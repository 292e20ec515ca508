"""Measure how many changes a budget of revisits finds under the crawler's policy and under others.

Every page of a simulated web changes at random (a Poisson process), each at its own rate, from once an hour to never.
The real crawler, store and rules visit the pages on virtual time, in a run every two hours. Only the function that
orders the pages is replaced. A change counts as found if a visit comes before the next change. The age of a copy is the
time since the first change after its visit; the mean age is taken over all pages and the whole time.
"""

from __future__ import annotations

import argparse
import math
import random
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from unittest import mock

from crawler.demo.pages import Asked, Page, plain
from crawler.frontier.politeness import PolitenessSettings
from crawler.frontier.revisit import Habits, RevisitSettings
from tests.bench.table import Row
from tests.simulation.crawls import Options, crawl
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import EPOCH_S, VirtualClock, run_virtual

HOUR_S, DAY_S = 3_600.0, 86_400.0
#: The number of pages in a hundred by their rate of change. The other pages never change.
RATES = {1 / HOUR_S: 4, 1 / DAY_S: 8, 1 / (7 * DAY_S): 18}
EVERY_S = 2 * HOUR_S
SEED = "http://web.test/"

#: The urgency of a page, from the statistics of its changes and the seconds since it was seen.
Urgency = Callable[[Habits, float], float]


def _fresher(habits: Habits, since_s: float) -> float:
    """The gain in freshness by one more visit, at the estimated rate (Cho and Garcia-Molina, 2003)."""
    rate = habits.rate_per_s
    return (1 - math.exp(-rate * since_s) * (1 + rate * since_s)) / rate


POLICIES: Mapping[str, Urgency | None] = {
    "ours: likeliest to have changed": None,
    "uniform": lambda habits, since_s: since_s,
    "in proportion to the estimated rates": lambda habits, since_s: habits.rate_per_s * since_s,
    "for freshness, at the estimated rates": _fresher,
}
PEERS = ("uniform", "in proportion to the estimated rates")


@dataclass(frozen=True, slots=True)
class World:
    """A web, and for how many days it is crawled. If ``dated``, its pages have a ``Last-Modified``."""

    pages: int
    days: int
    per_day: int
    seed: int
    dated: bool

    def changes(self) -> list[list[float]]:
        """The times at which each page changes, in seconds from the beginning. The same seed gives the same times."""
        chance = random.Random(self.seed)
        rates = [rate for rate, n in RATES.items() for _ in range(self.pages * n // 100)]
        rates += [0.0] * (self.pages - len(rates))
        chance.shuffle(rates)
        return [self._of_page(rate, chance) for rate in rates]

    def _of_page(self, rate: float, chance: random.Random) -> list[float]:
        times, at = list[float](), 0.0
        while rate and (at := at + chance.expovariate(rate)) < self.days * DAY_S:
            times.append(at)
        return times


@dataclass(frozen=True, slots=True)
class Score:
    """The share of the changes that were found, the mean age of a copy in hours, and the number of visits."""

    found: float
    age_h: float
    visits: int


def play(world: World, urgency: Urgency | None) -> Score:
    """Crawl the web until its last day under one policy."""
    with ExitStack() as changed, tempfile.TemporaryDirectory() as folder:
        if urgency is not None:
            changed.enter_context(mock.patch.object(Habits, "chance", urgency))
            changed.enter_context(mock.patch.object(Habits, "due_s", return_value=0.0))
        return run_virtual(lambda clock: _watch(clock, world, Path(folder) / "crawl.db"))


async def _watch(clock: VirtualClock, world: World, path: Path) -> Score:
    changes = world.changes()
    revisit = RevisitSettings(True, first_s=DAY_S, min_interval_s=HOUR_S / 2, per_day=world.per_day)
    options = Options(revisit=revisit, politeness=PolitenessSettings(delay_s=0.1, slow_factor=0))

    def page(asked: Asked) -> Page:
        number = int(asked.path.removeprefix("/p"))
        past = bisect_right(changes[number], clock.now() - EPOCH_S)
        when = formatdate(EPOCH_S + (changes[number][past - 1] if past else -DAY_S), usegmt=True)
        dated = (("Last-Modified", when),) if world.dated else ()
        return Page(f"<p>{number}: {past}", headers=(("ETag", f'"{past}"'), *dated))

    links = "".join(f"<a href=/p{n}>{n}</a>" for n in range(world.pages))
    site = {"/robots.txt": plain(""), "/": Page(links, headers=(("ETag", '"1"'),)), "*": page}
    web = SimulatedWeb(clock, {"web.test": site}, latency_s=0.01)
    await crawl(clock, path, web, [SEED], options)
    first = len(web.log)
    while clock.now() < EPOCH_S + world.days * DAY_S - EVERY_S:
        await clock.sleep(EVERY_S - (clock.now() - EPOCH_S) % EVERY_S)
        await crawl(clock, path, web, (), options)
    visits: list[list[float]] = [[] for _ in changes]
    for hit in web.log:
        if hit.path.startswith("/p"):
            visits[int(hit.path[2:])].append(hit.finished_at)
    return _score(changes, visits, world.days * DAY_S, len(web.log) - first)


def _score(changes: list[list[float]], visits: list[list[float]], until_s: float, requests: int) -> Score:
    found = total = 0
    age = watched = 0.0
    for times, seen in zip(changes, visits, strict=True):
        after = [at for at in times if at > seen[0]]
        total += len(after)
        watched += until_s - seen[0]
        for last, now in zip(seen, [*seen[1:], until_s], strict=True):
            missed = bisect_right(times, now) - bisect_right(times, last)
            found += bool(missed) and now < until_s
            age += (now - times[bisect_right(times, last)]) ** 2 / 2 if missed else 0.0
    return Score(found / total, age / watched / HOUR_S, requests)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--web-pages", type=int, default=500, help="[%(default)s]")
    parser.add_argument("--days", type=int, default=30, help="[%(default)s]")
    parser.add_argument("--budgets", default="100,300", help="revisits a day  [%(default)s]")
    parser.add_argument("--seed", type=int, default=1, help="[%(default)s]")


def run(options: argparse.Namespace) -> list[Row]:
    rows = []
    for dated in (True, False):
        for per_day in map(int, options.budgets.split(",")):
            world = World(options.web_pages, options.days, per_day, options.seed, dated)
            rows += _rows(world)
    return rows


def _rows(world: World) -> list[Row]:
    scores = {name: play(world, urgency) for name, urgency in POLICIES.items()}
    best = max(PEERS, key=lambda name: scores[name].found)
    title = f"{world.per_day} a day, {'with' if world.dated else 'without'} Last-Modified"
    rows = []
    for name, score in scores.items():
        ours = POLICIES[name] is None
        note = f"mean age {score.age_h:.1f} h, {score.visits:,} requests in {world.days} days for {world.pages} pages"
        must = f"≥ {best}" if ours else ""
        ok = score.found >= scores[best].found if ours else None
        rows.append(Row(f"{title}: {name}", 100 * score.found, "%", must=must, ok=ok, note=note))
    return rows
