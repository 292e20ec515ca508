"""Healthy sites beside ordinary shared hosting, on virtual time: ``python -m tests.hostile --shared-hosting``.

300 healthy sites have an address each. Beside them, some addresses serve 80 names each, every name of a domain of its
own. Nothing is hostile, but a crawl that lets the crowded addresses hold its claims stops asking the healthy sites.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from unittest import mock

from crawler.demo.pages import Hit, Site
from crawler.frontier.politeness import PolitenessSettings
from crawler.store.rows import CommitBatch, CommitResult
from crawler.store.sqlite.store import SqliteStore
from tests.simulation.crawls import Options, crawl_for
from tests.simulation.web import SimulatedWeb, healthy
from tests.virtual_time import VirtualClock, run_virtual

SITES, PAGES = 300, 6
NAMES = 80  # at each crowded address
DELAY_S, LATENCY_S = 1.0, 0.05
#: The time in which the crawl sends what it can, in seconds. The names have work for longer.
LOOK_S = 40.0
#: For a number of crowded addresses, how many times as long as alone the healthy sites may take.
MOST_STRETCH = {32: 1.1, 500: 1.3}
LEAST_USE = 0.9
#: Claims that lead to no request, for each request; the first claim of a name, which learns its address, is apart.
MOST_IDLE = 0.05


@dataclass(frozen=True, slots=True)
class Stood:
    """What became of the healthy sites beside so many crowded addresses, and what was wrong."""

    addresses: int
    alone_s: float
    took_s: float
    use: float  # of the requests that the pauses of the crowded addresses allow
    requests: int
    idle: int  # claims of names that were known to share an address, and that led to no request
    wrong: Sequence[str]

    def __str__(self) -> str:
        figures = f"the healthy sites took {self.took_s:.1f} s, alone {self.alone_s:.1f} s"
        figures += f"; {self.use:.0%} of what the crowded addresses allow; {self.requests:,} requests"
        figures += f", {self.idle:,} claims in vain"
        return "\n".join(
            [f"{self.addresses} × {NAMES} names", f"    {figures}", *(f"    WRONG  {fault}" for fault in self.wrong)]
        )


def run(addresses: int, folder: Path) -> Stood:
    """Crawl the healthy sites alone and beside the names, and judge the log of the web."""
    alone_s = _end(_crawled(folder / "alone.db", _healthy(), _own_address)[0])
    sites = {**{f"n{n}.zone{n}.test": healthy(4) for n in range(addresses * NAMES)}, **_healthy()}

    def address(host: str) -> str:
        if host.startswith("good"):
            return _own_address(host)
        number = int(host[1 : host.index(".")]) % addresses
        return f"203.0.{number // 250}.{number % 250}"

    log, claims = _crawled(folder / "beside.db", sites, address)
    took_s = _end([hit for hit in log if hit.host.startswith("good")])
    crowded: dict[str, list[Hit]] = defaultdict(list)
    for hit in log:
        if not hit.host.startswith("good"):
            crowded[address(hit.host)].append(hit)
    use = sum(map(len, crowded.values())) / (addresses * LOOK_S / DELAY_S)
    paced = [after.started_at - before.started_at for hits in crowded.values() for before, after in pairwise(hits[8:])]
    turns = max(max(Counter(hit.host for hit in hits).values()) for hits in crowded.values())
    asked = Counter(hit.host for hit in log)
    idle = sum(max(0, claimed - asked[group] - 1) for group, claimed in claims.items())
    checks = {
        f"{idle} claims led to no request, beside the first of each name": idle > MOST_IDLE * len(log),
        f"{took_s / alone_s:.2f} times as long as alone": took_s > MOST_STRETCH[addresses] * alone_s,
        f"only {use:.0%} of what the crowded addresses allow": use < LEAST_USE,
        f"two requests to an address within {min(paced):.3f} s": min(paced) < DELAY_S - 1e-6,
        f"a name had {turns} turns before others of its address had one": turns > 2,
    }
    wrong = [fault for fault, holds in checks.items() if holds]
    return Stood(addresses, alone_s, took_s, use, len(log), idle, wrong)


def _healthy() -> dict[str, Site]:
    return {f"good{n}.test": healthy(PAGES) for n in range(SITES)}


def _own_address(host: str) -> str:
    number = int(host.removeprefix("good").removesuffix(".test"))
    return f"198.18.{number // 250}.{number % 250}"


def _crawled(path: Path, sites: Mapping[str, Site], address: Callable[[str], str]) -> tuple[list[Hit], Counter[str]]:
    """The requests of a crawl of :data:`LOOK_S`, by their starts, and how often each group was claimed."""
    claims, commit = Counter[str](), SqliteStore.commit

    async def counted(store: SqliteStore, batch: CommitBatch) -> CommitResult:
        result = await commit(store, batch)
        claims.update(claim.group for claim in result.claims)
        return result

    async def main(clock: VirtualClock) -> list[Hit]:
        web = SimulatedWeb(clock, sites, latency_s=LATENCY_S, addresses=address)
        options = Options(politeness=replace(PolitenessSettings(), delay_s=DELAY_S))
        await crawl_for(clock, path, web, [f"http://{host}/" for host in sites], options, LOOK_S, crash=False)
        return sorted(web.log, key=lambda hit: hit.started_at)

    with mock.patch.object(SqliteStore, "commit", counted):
        log = run_virtual(main)
    return log, claims


def _end(hits: Sequence[Hit]) -> float:
    """When 95 % of the requests were answered, in seconds after the first began."""
    ends = sorted(hit.finished_at for hit in hits)
    return ends[int(len(ends) * 0.95)] - min(hit.started_at for hit in hits)
