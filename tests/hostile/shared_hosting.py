"""Healthy sites beside ordinary shared hosting: ``python -m tests.hostile --shared-hosting``.

300 healthy sites have an address each. Beside them, some addresses serve 80 names each, every name of a domain of its
own. Nothing is hostile, but a crawl that lets the crowded addresses hold its claims stops asking the healthy sites.

Root crawls by ``crawler run`` in a network namespace with a DNS server and an HTTP server
(:mod:`tests.hostile.shared_hosting_server`), also with several workers on one PostgreSQL database. Other users, and
``--virtual-time``, crawl on virtual time.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from unittest import mock

from crawler.demo.pages import Hit, Site
from crawler.formatting import many
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
    workers: int = 1
    look_ups: int | None = None  # of one name, at most

    def __str__(self) -> str:
        figures = f"the healthy sites took {self.took_s:.1f} s, alone {self.alone_s:.1f} s"
        figures += f"; {self.use:.0%} of what the crowded addresses allow; {self.requests:,} requests"
        figures += f", {self.idle:,} claims in vain"
        figures += "" if self.look_ups is None else f", {self.look_ups} look-ups of a name at most"
        where = "on virtual time" if self.look_ups is None else f"in a namespace, {many(self.workers, 'worker')}"
        return "\n".join(
            [
                f"{self.addresses} × {NAMES} names, {where}",
                f"    {figures}",
                *(f"    WRONG  {fault}" for fault in self.wrong),
            ]
        )


def run(addresses: int, folder: Path) -> Stood:
    """Crawl the healthy sites alone and beside the names on virtual time, and judge the log of the web."""
    alone, _ = _crawled(folder / "alone.db", healthy_sites(), partial(address_of, addresses=addresses))
    log, claims = _crawled(folder / "beside.db", all_sites(addresses), partial(address_of, addresses=addresses))
    asked = Counter(hit.host for hit in log)
    idle = sum(max(0, claimed - asked[group] - 1) for group, claimed in claims.items())
    return judged(addresses, alone, log, idle)


def run_in_namespace(addresses: int, workers: int) -> int:
    """As :func:`run`, by the command in a network namespace of its own. Only root may make one. Prints the result."""
    inside = ["unshare", "--net", "--mount", sys.executable, "-m", "tests.hostile.shared_hosting_server"]
    return subprocess.run([*inside, str(addresses), str(workers)], check=False).returncode


def judged(
    addresses: int,
    alone: Sequence[Hit],
    log: Sequence[Hit],
    idle: int,
    *,
    workers: int = 1,
    look_ups: int | None = None,
) -> Stood:
    """What the log of the web says. Several workers may ask an address so many times as often.

    The times of a real web are those at which its server read the requests: they may be a little closer.
    """
    is_real = look_ups is not None
    alone_s, took_s = _end(alone), _end([hit for hit in log if hit.host.startswith("good")])
    crowded: dict[str, list[Hit]] = defaultdict(list)
    for hit in log:
        if not hit.host.startswith("good"):
            crowded[address_of(hit.host, addresses)].append(hit)
    use = sum(map(len, crowded.values())) / (workers * addresses * LOOK_S / DELAY_S)
    paced = [after.started_at - before.started_at for hits in crowded.values() for before, after in pairwise(hits[8:])]
    turns = max(max(Counter(hit.host for hit in hits).values()) for hits in crowded.values())
    checks = {
        f"{idle} claims led to no request, beside the first of each name": idle > MOST_IDLE * len(log),
        f"{took_s / alone_s:.2f} times as long as alone": took_s > MOST_STRETCH[addresses] * alone_s,
        f"only {use:.0%} of what the crowded addresses allow": use < LEAST_USE,
        f"two requests to an address within {min(paced):.3f} s": workers == 1
        and min(paced) < DELAY_S - (0.2 if is_real else 1e-6),
        f"a name had {turns} turns before others of its address had one": turns > 2 * workers,
        f"a name was looked up {look_ups} times within its TTL": (look_ups or 0) > workers,
    }
    wrong = [fault for fault, holds in checks.items() if holds]
    return Stood(addresses, alone_s, took_s, use, len(log), idle, wrong, workers, look_ups)


def healthy_sites() -> dict[str, Site]:
    return {f"good{n}.test": healthy(PAGES) for n in range(SITES)}


def all_sites(addresses: int) -> dict[str, Site]:
    """The names at the crowded addresses, and behind them the healthy sites."""
    return {f"n{n}.zone{n}.test": healthy(4) for n in range(addresses * NAMES)} | healthy_sites()


def address_of(host: str, addresses: int) -> str:
    """The address of a host beside so many crowded ones."""
    if host.startswith("good"):
        number = int(host.removeprefix("good").removesuffix(".test"))
        return f"10.1.{number // 250}.{number % 250 + 1}"
    number = int(host[1 : host.index(".")]) % addresses
    return f"10.2.{number // 250}.{number % 250 + 1}"


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
