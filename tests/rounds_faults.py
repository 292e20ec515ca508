"""Inject faults into crawls in rounds: ``python -m tests.rounds_faults --faults N --seed S``.

Each kind of fault happens N times, on virtual time, at a random call of the storage, so also between claim, results,
store and manifest (``tests/simulation/rounds.py``). ``python -m tests.rounds --fault`` disturbs real processes.

* ``task``: a worker dies, as by ``kill -9``; another one goes on with the round.
* ``driver``: the driver dies; another one goes on with the dataset while the workers go on with the round.
* ``failing``: calls of a worker's storage fail again and again.
* ``twice``: the storage carries out a conditional PUT, and then answers the repeated one that the object exists.
* ``slow``: calls take up to half a round, before the storage carries them out or before its answer comes.

In the end the dataset must equal the store of an undisturbed plain crawl. The web's own log must show no overlap, no
shortened pause, Crawl-delay or Retry-After, and no more than ``per_address`` requests at once to an address. The hosts
of the web ask for pauses that are longer than a round, and share three addresses. An answer that came in the last 0.1 s
before its worker died may be unknown, as in a plain crawl: only the usual pause follows it for certain.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from crawler.dataset.objects import Objects
from crawler.dataset.records import Dataset
from crawler.demo.pages import Hit, Page, Site, plain, unavailable
from crawler.errors import StoreError
from crawler.reasons import EndCode
from tests import judge
from tests.e2e.test_rounds import differences, of_content
from tests.simulation.crawls import Options, crawl
from tests.simulation.rounds import LENGTH_S, SETTINGS, Crawler, Fault, Killed, Storage, hosts_of_buckets
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

HOSTS, PAGES = 6, 4
UNKNOWN_S = 0.1
CRAWL_DELAY_S, RETRY_AFTER_S = 1.5 * LENGTH_S, int(2.5 * LENGTH_S)
#: About as many calls as one worker, or the driver, makes in a crawl.
_CALLS = {"task": 120, "driver": 250, "failing": 120}


def web_of(seed: int) -> tuple[dict[str, Site], list[str]]:
    """A web of hosts in different buckets that link to one another, and its seeds."""
    chance, hosts = random.Random(seed), hosts_of_buckets(HOSTS)
    urls = [f"http://{host}/p{page}" for host in hosts for page in range(PAGES)]
    sites: dict[str, Site] = {}
    for number, host in enumerate(hosts):
        delay = f"Crawl-delay: {CRAWL_DELAY_S:g}\n" if number % 3 == 1 else ""
        site: dict[str, Page] = {"/robots.txt": plain(f"User-agent: *\n{delay}Disallow: /closed/\n")}
        for page in range(PAGES):
            targets = [*chance.sample(urls, 3), f"http://{host}/p{(page + 1) % PAGES}", f"http://{host}/closed/{page}"]
            site[f"/p{page}"] = Page(
                f"<title>{host} {page}</title>" + "".join(f"<a href={url}>x</a>" for url in targets)
            )
        if number % 3 == 2:
            site["/p2"] = unavailable(RETRY_AFTER_S)
        sites[host] = site
    return sites, [urls[0]]


def address_of(host: str) -> str:
    """The address of a host: each is shared by two hosts in different buckets."""
    return f"192.0.2.{1 + hosts_of_buckets(HOSTS).index(host) // 2}"


def simulated(clock: VirtualClock, sites: dict[str, Site]) -> SimulatedWeb:
    return SimulatedWeb(clock, sites, latency_s=0.3, addresses=address_of, user_agent="PoliteCrawler/1")


def impolite(log: list[Hit], deaths: list[float]) -> list[str]:
    """The violations in the log of the web. ``deaths`` are the times at which a worker died."""
    hosts = hosts_of_buckets(HOSTS)
    delays = {host: CRAWL_DELAY_S for number, host in enumerate(hosts) if number % 3 == 1}
    usual = judge.Manners(1.0, forbidden=lambda _, path: path.startswith("/closed/"))
    known = [hit for hit in log if not any(0 <= death - hit.finished_at < UNKNOWN_S for death in deaths)]
    wrong = [*judge.violations([replace(hit, retry_after_s=None) for hit in log], usual)]
    heard = [hit if hit in known else replace(hit, retry_after_s=None) for hit in log]
    wrong += [*judge.pauses(known, judge.Manners(crawl_delay_s=delays)), *judge.retry_after(heard, usual)]
    by_address = judge.most_at_once([replace(hit, host=address_of(hit.host)) for hit in log])
    return [
        *map(str, wrong),
        *(f"{most} requests at once to {address}" for address, most in by_address.items() if most > 2),
    ]


def at_call(number: int, then: Callable[[str, str], None]) -> Fault:
    """A fault that happens from the call of this number on."""
    left = number

    def fault(name: str, key: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            then(name, key)

    return fault


def dies(name: str, key: str) -> None:
    raise Killed


def failing(chance: random.Random, share: float, met: list[str]) -> Fault:
    def fault(name: str, key: str) -> None:
        if chance.random() < share:
            met.append(f"{name} {key}")
            raise StoreError("the storage fails")

    return fault


def faults_of(kind: str, chance: random.Random, met: list[str]) -> list[Fault]:
    """The faults of the workers of one crawl, in the order in which they are started."""
    if kind == "task":
        return [at_call(chance.randrange(_CALLS[kind]), dies) for _ in range(4)]
    if kind == "failing":
        return [at_call(chance.randrange(20), failing(chance, 0.04, met)) for _ in range(12)]
    return []


class Slow:
    """In place of ``asyncio.to_thread``, by which all calls of the storage are made: some of them take long."""

    met = 0

    def __init__(self, chance: random.Random) -> None:
        self._chance, self._made = chance, asyncio.to_thread

    async def __call__(self, *call: Any, **named: Any) -> Any:
        before, after = self._pause_s(), self._pause_s()
        await asyncio.sleep(before)
        result = await self._made(*call, **named)
        await asyncio.sleep(after)
        return result

    def _pause_s(self) -> float:
        if self._chance.random() > 0.05:
            return 0.0
        Slow.met += 1
        return self._chance.uniform(0, LENGTH_S / 2)


class Twice(Storage):
    """A storage that carries out each conditional PUT, and answers a second one."""

    met = 0

    def create(self, key: str, content: bytes) -> bool:
        made = self._objects.create(key, content)
        Twice.met += 1
        again = self._objects.create(key, content)
        assert made == again
        return again


def disturbed(kind: str, seed: int, folder: Path) -> tuple[int, list[str]]:
    """A crawl with faults of a kind; returns how many happened, and the differences in the end."""
    sites, seeds = web_of(seed)
    whole = folder / "whole.db"
    options = Options(politeness=SETTINGS.politeness, identity=SETTINGS.identity)

    async def plainly(clock: VirtualClock) -> None:
        await crawl(clock, whole, simulated(clock, sites), seeds, options)

    run_virtual(plainly)
    chance, met = random.Random(f"{kind} {seed}"), list[str]()

    async def in_rounds(clock: VirtualClock) -> tuple[int, list[str]]:
        web = simulated(clock, sites)
        crawler = Crawler(clock, web, folder)
        crawler.make(seeds)
        crawler.faults = faults_of(kind, chance, met)
        Twice.met = Slow.met = happened = 0
        if kind == "twice":
            crawler.storage = Twice
        if kind == "driver":
            for _ in range(4):
                happened += await driver_killed(crawler, chance.randrange(_CALLS[kind]))
        with mock.patch("asyncio.to_thread", Slow(chance)) if kind == "slow" else nullcontext():
            end = await crawler.crawl()
        happened += len(crawler.deaths) + len(met) + Twice.met + Slow.met
        wrong = [] if end.code is EndCode.DONE else [f"ended: {end.sentence}"]
        return happened, wrong + impolite(web.log, crawler.deaths)

    happened, wrong = run_virtual(in_rounds)
    return happened, wrong + of_content(differences(folder / "data", whole))


async def driver_killed(crawler: Crawler, calls: int) -> int:
    """Run a driver that dies at a call of its storage. The workers of its round go on. Returns whether it died."""

    class Outlives(Crawler):
        async def run(self, dataset: Dataset, plan: object) -> None:
            work = asyncio.ensure_future(crawler.run(Dataset(Objects(crawler.location)), plan))  # type: ignore[arg-type]
            orphans.append(work)
            await asyncio.wait([work], timeout=crawler.chance.uniform(0, LENGTH_S))
            if not work.done() and crawler.chance.random() < 0.5:
                raise Killed
            await work

    orphans: list[asyncio.Future[None]] = []
    try:
        await Outlives(crawler.clock, crawler.web, crawler.folder).crawl(at_call(calls, dies))
    except Killed:
        return 1
    return 0


KINDS = ("task", "driver", "failing", "twice", "slow")


def main(arguments: list[str] | None = None) -> int:
    """Run crawls with faults of each kind. Returns 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.rounds_faults", description=__doc__)
    parser.add_argument("--faults", type=int, default=50, help="how many of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=KINDS, action="append", help="only these")
    asked = parser.parse_args(arguments)
    failed = False
    for kind in asked.kind or KINDS:
        faults, crawls, seed = 0, 0, asked.seed
        while faults < asked.faults:
            with tempfile.TemporaryDirectory() as folder:
                happened, wrong = disturbed(kind, seed, Path(folder))
            faults, crawls, failed = faults + happened, crawls + 1, failed or bool(wrong)
            for line in wrong[:20]:
                print(f"web {seed}, {kind}: {line}", flush=True)
            seed += 1
            print(f"{faults} × {kind} in {crawls} crawls", flush=True)
    print("something was wrong" if failed else "each as if undisturbed")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
