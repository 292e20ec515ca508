"""Crawls in rounds on virtual time, over the simulated web: the driver, the plan, workers and tasks are the real ones.

A :class:`Crawler` is one process of the runner. It may be killed at any call of its storage, as by ``kill -9``.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from crawler.dataset.objects import Objects
from crawler.dataset.records import Dataset, Head, Plan, make
from crawler.engine.gate import FetcherSide
from crawler.engine.lease import Lease
from crawler.engine.loop_lag import LoopLag
from crawler.engine.parser_pool import ReadingOptions
from crawler.frontier.buckets import bucket_of
from crawler.frontier.politeness import PolitenessSettings
from crawler.frontier.request_settings import RequestSettings
from crawler.frontier.scope import ScopeMode, ScopeSettings
from crawler.reasons import EndCode, RunEnd
from crawler.rounds.driver import Driver
from crawler.rounds.worker import Worker
from crawler.settings.settings import Identity, RoundSettings, Settings
from crawler.settings.stored import to_record
from tests.reading import ReaderInProcess
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock

LENGTH_S = 60.0
SETTINGS = Settings(
    identity=Identity(contact="you@example.org"),
    scope=ScopeSettings(ScopeMode.ANY),
    politeness=PolitenessSettings(delay_s=1.0, slow_factor=0.0),
    fetch=RequestSettings(total_timeout_s=5.0),
    rounds=RoundSettings(buckets=8, length_s=LENGTH_S),
)


#: Called before each call of a storage, with its name and the key. It raises what is to happen.
Fault = Callable[[str, str], None]


class Killed(BaseException):
    """The process has died."""


class Storage:
    """Objects through which a fault comes to one process: ``fault`` is called before each call, with its name."""

    def __init__(self, objects: Objects, fault: Fault) -> None:
        self._objects = objects
        self._fault = fault

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._objects, name)
        if name not in ("get", "fetch", "put", "create", "keys", "delete"):
            return found

        def call(first: Any, *more: Any) -> Any:
            self._fault(name, first if isinstance(first, str) else "")
            return found(first, *more)

        return call


class Crawler:
    """Runs the tasks of rounds in this process. ``faults`` gives the fault of each process, in order; then none."""

    def __init__(self, clock: VirtualClock, web: SimulatedWeb, folder: Path) -> None:
        self.clock = clock
        self.web = web
        self.folder = folder
        self.location = str(folder / "data")
        self.faults: list[Fault] = []
        self.storage = Storage
        self.chance = random.Random(1)
        self.deaths: list[float] = []  # of workers, by the clock of the loop
        self.said: list[str] = []
        self._workers = 0
        self._worker: Worker | None = None

    def make(self, seeds: list[str], settings: Settings = SETTINGS) -> Dataset:
        """The new dataset of a crawl."""
        head = Head(settings.rounds.buckets, to_record(settings), seeds, [])
        return make(Objects(self.location, may_make=True), head)

    async def crawl(self, fault: Fault | None = None) -> RunEnd:
        """Go on with the crawl until it ends, with a driver that may have a fault."""
        dataset = Dataset(Objects(self.location))
        if fault is not None:
            dataset.objects = Storage(dataset.objects, fault)  # type: ignore[assignment]
        return await Driver(dataset, self, self.clock, self.said.append).run()

    async def run(self, dataset: Dataset, plan: Plan) -> None:
        """See :class:`crawler.rounds.runners.Runner`. A process that was killed is replaced."""
        while len(plan.tasks) > len(dataset.claimed(plan.round)) and self.clock.now() < plan.deadline:
            try:
                await self.work(plan)
            except Killed:
                self.deaths.append(self.clock.loop.time())
            else:
                return

    async def work(self, plan: Plan) -> None:
        """One process that works on a round. Raises :class:`Killed`."""
        dataset = Dataset(Objects(self.location))
        if self.faults or self.storage is not Storage:
            fault = self.faults.pop(0) if self.faults else lambda name, key: None
            dataset.objects = self.storage(dataset.objects, fault)  # type: ignore[assignment]
        settings = dataset.settings
        lease = Lease(None, self.clock, settings.fetch.total_timeout_s, self.clock.now, ends_at=plan.deadline)
        reader = ReaderInProcess(ReadingOptions(settings.identity.agent, settings.robots.reading, False))
        side = FetcherSide(fetcher=self.web, reader=reader, lease=lease, lag=LoopLag(self.clock), book=self.web)
        self._workers += 1
        folder = self.folder / f"worker-{self._workers}"
        folder.mkdir()
        before = asyncio.all_tasks()
        try:
            self._worker = Worker(dataset, plan, side, self.clock, folder)
            await self._worker.run()
        except Killed:
            for task in (left := asyncio.all_tasks() - before):
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            raise

    def stop(self) -> None:
        """See :class:`crawler.rounds.runners.Runner`."""
        if self._worker is not None:
            self._worker.stop(RunEnd(EndCode.SIGNAL, "SIGTERM"))


def killed_at(name: str, key: str) -> Fault:
    """A fault: the process dies before the call ``name`` of an object whose key contains ``key``, and stays dead."""
    is_dead = False

    def fault(called: str, of: str) -> None:
        nonlocal is_dead
        is_dead = is_dead or (called == name and key in of)
        if is_dead:
            raise Killed

    return fault


@cache
def hosts_of_buckets(count: int, buckets: int = SETTINGS.rounds.buckets) -> list[str]:
    """Hosts of so many different buckets."""
    found: dict[int, str] = {}
    for number in range(1000):
        host = f"h{number}.test"
        found.setdefault(bucket_of(f"http://{host}", buckets), host)
    return list(found.values())[:count]
