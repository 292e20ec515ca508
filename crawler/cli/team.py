"""Several worker processes on one crawl: started, watched over, replaced where they die, and ended together.

This process crawls nothing. It has begun the run (and has the lock, where the store is a file, which its workers keep
it with them: it is free again when the last of them has ended), shows what all of them do, and passes on signals.
"""

from __future__ import annotations

import asyncio
import json
import math
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from crawler.cli.worker import Part
from crawler.clock import SystemClock
from crawler.config import Settings
from crawler.errors import StoreError, UsageError
from crawler.frontier.politeness import Pace
from crawler.loops.budget import Budget
from crawler.loops.progress import Progress
from crawler.model import State
from crawler.store.location import is_url
from crawler.store.sqlite import SqlStore

_DEATHS_BORNE = 5  # one after the other, of workers that had brought nothing
_LINE_BYTES = 1 << 20


@dataclass(slots=True)
class _Worker:
    number: int
    process: asyncio.subprocess.Process
    report: dict[str, Any] | None = None


@dataclass(slots=True)
class Team:
    """The workers of one command; see :class:`crawler.display.Watched`."""

    settings: Settings
    store: SqlStore
    clock: SystemClock
    tell: Callable[[str], None]
    started_at: float = 0.0
    _workers: dict[int, _Worker] = field(default_factory=dict)
    _past: list[dict[str, Any]] = field(default_factory=list)  # the last reports of those that have ended
    _codes: list[int] = field(default_factory=list)
    _stopping: str | None = None
    _deaths: int = 0

    @property
    def progress(self) -> Progress:
        """Of all workers together, those that have died included."""
        alive = [worker.report for worker in self._workers.values() if worker.report is not None]
        at_rest = [report | {"active": 0} for report in self._past]
        total = Progress.sum_of(self.started_at, [*alive, *at_rest])
        if self._workers:
            total.idle_for = Progress.sum_of(0.0, alive).idle_for
        return total

    @property
    def budget(self) -> Budget:
        """What this command may still take, as far as it knows."""
        limit = self.settings.crawl.max_pages
        return Budget() if limit is None else Budget(max(0, limit - self.progress.ends[State.FETCHED]))

    @property
    def stopped(self) -> bool:
        return self._stopping is not None

    def slowest(self) -> tuple[str, Pace] | None:
        return None  # each worker knows its own

    def stop(self, why: str) -> None:
        """Have all workers end in order. May be called twice."""
        self._stopping = self._stopping or why
        for worker in self._workers.values():
            if worker.process.stdin is not None:
                worker.process.stdin.close()

    async def run(self) -> str:
        """Until all have ended; why they did. Raises :class:`StoreError` where the store failed them."""
        self.started_at = self.clock.now()
        await asyncio.gather(*(self._fill(number) for number in range(1, self.settings.team.workers + 1)))
        if self._stopping is not None:
            return self._stopping
        for code, error in ((StoreError.exit_code, StoreError), (UsageError.exit_code, UsageError)):
            if code in self._codes:
                raise error("no worker could go on, as said above; what was committed is kept")
        if any(self._codes):
            raise RuntimeError("workers died one after the other")
        # Who came last may have found nothing to do: what counts is what those that did the work say.
        ended = [report for report in self._past if report["ended_by"]]
        return str(max(ended, key=lambda report: report["requests"])["ended_by"]) if ended else ""

    async def _fill(self, number: int) -> None:
        """See that one place among the workers is taken, until its crawl has ended."""
        while self._stopping is None:
            worker = await self._start(number)
            code = await self._accompany(worker)
            del self._workers[number]
            if worker.report is not None:
                self._past.append(worker.report)
            if code in (0, StoreError.exit_code, UsageError.exit_code):
                self._codes.append(code)
                return
            await self._bury(worker, code)
            self._deaths = 0 if worker.report is not None and worker.report["ends"] else self._deaths + 1
            if self._deaths > _DEATHS_BORNE:
                self._codes.append(code)
                return

    async def _start(self, number: int) -> _Worker:
        shared = self.settings.crawl.concurrency / self.settings.team.workers
        crawl = replace(self.settings.crawl, concurrency=max(1, math.ceil(shared)))
        part = Part(
            replace(self.settings, crawl=crawl),
            self.store.run_id,
            self.clock,
            locked=not is_url(self.settings.output.db),
        )
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "crawler.cli.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LINE_BYTES,
            pass_fds=self.store.lock_fds(),
        )  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(part.packed())
        worker = self._workers[number] = _Worker(number, process)
        return worker

    async def _accompany(self, worker: _Worker) -> int:
        """Take in what a worker reports, until it ends; its exit code."""
        assert worker.process.stdout is not None
        while line := await worker.process.stdout.readline():
            worker.report = json.loads(line)
        return await worker.process.wait()

    async def _bury(self, worker: _Worker, code: int) -> None:
        """Tell of a worker that died, and release at once what it held."""
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"failed with exit code {code}"
        self.tell(f"worker {worker.number} (process {worker.process.pid}) {how}; another one takes its place")
        if worker.report is not None:
            await self.store.bury(worker.report["worker"], how, self.clock.now())
