"""Attacks of one zone with many hosts on a crawl, each beside one healthy site: ``--scenario NAME``.

The healthy site has 50 pages and a pause of 0.1 s, so alone it takes about 6 s.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from crawler.demo.pages import Hit
from tests import judge
from tests.hostile.attacks import SCENARIOS
from tests.hostile.behaviour import FORBIDDEN
from tests.hostile.catalogue import HEALTHY
from tests.hostile.crawl import DELAY_S, STOPS_WITHIN_S, crawl
from tests.hostile.healthy import PAGES

MOST_S = 15.0
MOST_LAG_S = 1.0
MOST_BYTES = 500_000_000
#: A parser process takes up to 256 MB.
MOST_BYTES_BESIDE_LARGE_PAGES = 1_000_000_000
#: Requests for robots.txt that a healthy site may get.
MOST_ROBOTS = 3
#: Requests at once to one zone: a quarter of the slots. (``politeness.per_address`` does not hold for loopback.)
MOST_AT_ONCE = 16
MAX_TIME_S = 40.0
#: In these, the healthy site is the first seed: a site that was never asked waits behind those that were not either.
VICTIM_FIRST = frozenset({"domains", "links"})

#: The pause of the healthy site, and else the defaults of the crawler.
_CONFIG = """
[politeness]
delay = {delay_s}
[fetch]
allow_private = {allow_private}
resolve = {resolve}
"""


@dataclass(frozen=True, slots=True)
class Stood:
    """A line of the table: the figures of one scenario, and what was wrong."""

    name: str
    what: str
    pages: int
    took_s: float
    lag_s: float
    peak_bytes: int
    run_s: float
    attacker: str
    wrong: Sequence[str]

    def __str__(self) -> str:
        figures = f"{self.pages} of {PAGES} pages, the last after {self.took_s:.0f} s; lag {self.lag_s:.1f} s"
        figures += f", {self.peak_bytes / 1e6:.0f} MB; {self.attacker}"
        figures += f"; the run took {self.run_s:.0f} s"
        return "\n".join(
            [f"{self.name}: {self.what}", f"    {figures}", *(f"    WRONG  {fault}" for fault in self.wrong)]
        )


def run(name: str, folder: Path) -> Stood:
    """Crawl a scenario beside the healthy site, and judge it."""
    attackers, victim = SCENARIOS[name], HEALTHY[0]
    hosts = (victim, *attackers) if name in VICTIM_FIRST else (*attackers, victim)
    crawled = crawl(hosts, folder, MAX_TIME_S, allow_private=True, config=_CONFIG)
    mine = [hit for hit in crawled.log if hit.host == victim.host]
    pages = [hit for hit in mine if hit.path in victim.ends]
    took_s = max((hit.finished_at for hit in pages), default=crawled.started_at) - crawled.started_at
    with closing(sqlite3.connect(crawled.db)) as store:
        (lag_s,) = store.execute("SELECT worst_lag_s FROM runs").fetchone()
    theirs = [hit for hit in crawled.log if hit.host != victim.host]
    run_s = crawled.spent.wall_s
    most_bytes = MOST_BYTES_BESIDE_LARGE_PAGES if name == "links" else MOST_BYTES
    checks = {
        f"only {len(pages)} of the healthy site's {PAGES} pages came": len(pages) < PAGES,
        f"the healthy site took {took_s:.0f} s, at most {MOST_S:.0f} s expected": took_s > MOST_S,
        f"the event loop was held up for {lag_s or 0:.1f} s": (lag_s or 0) > MOST_LAG_S,
        f"more than {most_bytes / 1e6:.0f} MB at once": crawled.spent.peak_bytes > most_bytes,
        f"the run took {run_s:.0f} s, with --max-time {MAX_TIME_S:.0f}": run_s > MAX_TIME_S + STOPS_WITHIN_S,
        f"the command ended with {crawled.spent.code}": crawled.spent.code != 0,
        "a forbidden page was requested": any(hit.path == FORBIDDEN for hit in mine),
    }
    wrong = [fault for fault, holds in checks.items() if holds]
    robots = sum(hit.path == "/robots.txt" for hit in mine)
    if robots > MOST_ROBOTS:
        wrong.append(f"{robots} requests for the healthy site's robots.txt")
    at_once = _at_once(theirs)
    if name == "wildcard" and at_once > MOST_AT_ONCE:
        wrong.append(f"{at_once} requests at once to one zone")
    manners = judge.Manners(DELAY_S)
    wrong += [str(found) for rule in (judge.overlaps, judge.pauses) for found in rule(mine, manners)][:3]
    attacker = f"{len(theirs):,} requests at the attackers, {at_once} at once"
    what = attackers[0].what
    return Stood(name, what, len(pages), took_s, lag_s or 0, crawled.spent.peak_bytes, run_s, attacker, wrong)


def _at_once(hits: Sequence[Hit]) -> int:
    """The most requests at once over all hosts."""
    steps = sorted([(hit.started_at, 1) for hit in hits] + [(hit.finished_at, -1) for hit in hits])
    under_way = most = 0
    for _, step in steps:
        under_way += step
        most = max(most, under_way)
    return most
