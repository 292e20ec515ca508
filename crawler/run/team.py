"""Several worker processes on one crawl: started, watched, replaced if they die, and ended together.

This process does not crawl. It has begun the run, shows what all workers do, and passes on signals: each worker is in a
process group of its own, which Ctrl-C and Ctrl-Z of a terminal do not reach. If the store is a file, this process has
locked it. The workers receive the lock with their assignments, so it is free again when the last of them has ended.
"""

from __future__ import annotations

import asyncio
import json
import math
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from crawler.cli.logs import show_forwarded
from crawler.cli.shared import STOPPED
from crawler.clock import SystemClock, boot_s
from crawler.engine.progress import Progress
from crawler.engine.shutdown import stop_at
from crawler.engine.tasks import background_task
from crawler.errors import CrawlerError, Setting, StoreError, UsageError
from crawler.frontier.politeness import Pace
from crawler.reasons import EndCode, RunEnd
from crawler.run.worker import Assignment
from crawler.run.worker_process import WorkerProcess, spawn
from crawler.settings.settings import Settings

if TYPE_CHECKING:
    from crawler.store.sections import Store

_MAX_WORKERS = 256
_MAX_DEATHS = 5  # one after the other, of workers that had finished nothing
_LINE_BYTES = 1 << 20


def require_shares(settings: Settings) -> None:
    """Raise :class:`UsageError` for more workers than can share the requests in flight."""
    workers, concurrency = settings.workers.count, settings.limits.concurrency
    if workers > concurrency:
        raise UsageError(
            Setting("workers.count", workers),
            f": {concurrency} requests in flight are too few for them, for each worker needs one; start fewer workers, "
            "or raise ",
            Setting("limits.concurrency"),
        )
    if workers > _MAX_WORKERS:
        raise UsageError(
            f"each worker is a process, and more than one a processor do not help; give {_MAX_WORKERS} at most",
            key="workers.count",
            value=workers,
        )


def _share(whole: int, slot: int, count: int) -> int:
    """The share of one of ``count`` workers in ``whole`` requests in flight, at least 1."""
    share, more = divmod(whole, count)
    return max(1, share + (slot < more))


class _Worker(msgspec.Struct):
    process: WorkerProcess
    report: dict[str, Any] | None = None
    code: int = 0

    @property
    def name(self) -> str:
        """The name of this worker in messages: its number, once it has one, and its process."""
        number = "" if self.report is None else f" {self.report['worker']}"
        return f"worker{number} (process {self.process.pid})"


class Team:
    """The workers of one command; the live display shows it as :class:`crawler.run.live_display.Watched`."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        clock: SystemClock,
        tell: Callable[[str], None],
        forks: list[WorkerProcess],
    ) -> None:
        """``forks`` are workers that wait for their assignments. Others are started when they are needed."""
        self._settings = settings
        self._store = store
        self._clock = clock
        self._tell = tell
        self._forks = forks
        self._started_at = clock.now()
        self._ends_at = boot_s() + (math.inf if settings.limits.max_time_s is None else settings.limits.max_time_s)
        self._workers: dict[int, _Worker] = {}  # by slot
        self._dead: list[_Worker] = []  # those that were replaced
        self._ended: list[_Worker] = []
        self._reported: set[str] = set()
        self._stopping: RunEnd | None = None
        self._deaths = 0  # one after the other
        self._given_up = False

    @property
    def progress(self) -> Progress:
        """The progress of all workers together, those that have died included."""
        alive = [worker.report for worker in self._workers.values() if worker.report is not None]
        at_rest = [worker.report | {"active": 0} for worker in self._dead + self._ended if worker.report]
        total = Progress.sum_of(self._started_at, [*alive, *at_rest])
        if self._workers:
            total.idle_for = Progress.sum_of(0.0, alive).idle_for
        return total

    @property
    def stopped(self) -> bool:
        """Whether the crawl was ordered to end, and did not come to its end by itself."""
        return self._stopping is not None or self.cut_short

    @property
    def cut_short(self) -> bool:
        """Whether the operator or a signal ended each worker, and not by this process."""
        return self._stopping is None and all(worker.code in (STOPPED, -signal.SIGTERM) for worker in self._ended)

    @property
    def away_s(self) -> float | None:
        """How long the process that has waited longest has waited for the database, in seconds."""
        reports = [worker.report for worker in self._workers.values() if worker.report is not None]
        waits = [self._store.away_s, *(report["away_s"] for report in reports)]
        return max((away_s for away_s in waits if away_s is not None), default=None)

    def slowest(self) -> tuple[str, Pace] | None:
        """``None``: each worker knows its own groups."""
        return None

    def stop(self, why: RunEnd) -> None:
        """Let all workers end in order: they wait for ``why`` on their standard input. Only the first reason counts."""
        if self._stopping is not None:
            return
        self._stopping = why
        for worker in self._workers.values():
            with suppress(OSError):  # it has ended
                worker.process.above.sendall(json.dumps(why.as_json()).encode() + b"\n")

    def end_grace(self) -> None:
        """Let all workers cancel their requests in flight: the end of their input says so after a stop."""
        for worker in self._workers.values():
            worker.process.above.close()

    def give_up(self) -> None:
        """Kill all workers. What they had not committed is still queued."""
        self._given_up = True
        self._store.give_up()
        for worker in self._workers.values():
            worker.process.send_signal(signal.SIGKILL)

    async def run(self) -> RunEnd:
        """Run workers until all have ended; return why they did.

        Raises :class:`StoreError` or :class:`UsageError` if that ended the workers, and :class:`CrawlerError` if too
        many of them died.
        """
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTSTP, self._suspend)
        slots = [asyncio.create_task(self._fill(slot)) for slot in range(self._settings.workers.count)]
        try:
            async with background_task(self._stop_in_time()):
                await asyncio.gather(*slots)
        except BaseException:
            self.stop(RunEnd(EndCode.FAILURE))
            await asyncio.gather(*slots, return_exceptions=True)
            raise
        finally:
            loop.remove_signal_handler(signal.SIGTSTP)
        return self._stopping or self._end()

    async def _stop_in_time(self) -> None:
        if (limit_s := self._settings.limits.max_time_s) is not None:
            await stop_at(self._started_at + limit_s, self.stop, self._clock)

    def _end(self) -> RunEnd:
        codes = {worker.code for worker in self._ended}
        for error in (StoreError, UsageError):
            if error.exit_code in codes:
                raise error("no worker could go on, as said above; what was committed is kept")
        if codes - {0, STOPPED, -signal.SIGTERM}:
            raise CrawlerError("workers died one after the other, as said above; what was committed is kept")
        # A worker that came late may have found nothing to do: the one with the most requests knows the reason.
        ended = [
            worker.report
            for worker in self._ended
            if worker.report and worker.report["end"] and (worker.code == 0 or self.cut_short)
        ]
        if not ended:
            return RunEnd(EndCode.STOPPED)
        return RunEnd.from_json(max(ended, key=lambda report: report["requests"])["end"])

    async def _fill(self, slot: int) -> None:
        """Keep one worker running, and replace it if it dies, until its crawl has ended."""
        while self._stopping is None:
            worker = self._workers[slot] = self._start(slot)
            await self._accompany(worker)
            del self._workers[slot]
            is_dead = worker.code not in (0, STOPPED, -signal.SIGTERM, StoreError.exit_code, UsageError.exit_code)
            if is_dead:
                self._deaths = 0 if worker.report is not None and worker.report["ends"] else self._deaths + 1
            is_replaced = is_dead and self._stopping is None and self._deaths <= _MAX_DEATHS
            (self._dead if is_replaced else self._ended).append(worker)
            if is_dead and not self._given_up:
                await self._report_death(worker, is_replaced=is_replaced)
            if not is_replaced:
                return

    def _start(self, slot: int) -> _Worker:
        limits, politeness, count = self._settings.limits, self._settings.politeness, self._settings.workers.count
        # This process ends the crawl after --max-time: a replacement would count it from its own start.
        limits = replace(limits, concurrency=_share(limits.concurrency, slot, count), max_time_s=None)
        politeness = replace(politeness, per_address=_share(politeness.per_address, slot, count), workers=count)
        settings = replace(self._settings, limits=limits, politeness=politeness)
        assignment = Assignment(settings, self._store.run_id, self._clock, self._ends_at)
        try:
            process = self._forks.pop() if self._forks else spawn()
        except OSError as error:
            raise UsageError(
                f"no process for another worker ({error.strerror}); lower ", Setting("workers.count")
            ) from None
        with suppress(BrokenPipeError):  # it is dead already: its exit code shows why
            assignment.send(process.above, self._store.lock_fds())
        return _Worker(process)

    async def _accompany(self, worker: _Worker) -> None:
        """Read the reports of a worker until it ends."""
        reader = asyncio.StreamReader(limit=_LINE_BYTES)
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), worker.process.reports
        )
        while (line := await reader.readline()).endswith(b"\n"):  # the last line of a worker that is killed may be cut
            news = json.loads(line)
            if "failed" in news:
                self._tell_once(news["failed"])
            elif "log" in news:
                show_forwarded(news["log"])
            else:
                worker.report = news
        worker.code = await asyncio.to_thread(worker.process.wait)
        worker.process.above.close()

    def _tell_once(self, failure: str) -> None:
        """Print a failure once: it mostly ends all workers."""
        if failure not in self._reported:
            self._reported.add(failure)
            self._tell(failure)

    async def _report_death(self, worker: _Worker, *, is_replaced: bool) -> None:
        """Print that a worker died, and release the groups that it held."""
        code = worker.code
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"failed with exit code {code}"
        self._tell(f"{worker.name} {how}" + ("; another one takes its place" if is_replaced else ""))
        if worker.report is not None:
            with suppress(StoreError):  # the groups are released when the lease ends
                end = RunEnd(EndCode.KILLED) if code < 0 else RunEnd(EndCode.DIED, how)
                await self._store.end_worker(worker.report["worker"], end, self._clock.now())

    def _suspend(self) -> None:
        """Stop this process and its workers, as Ctrl-Z asks, until it is continued."""
        loop = asyncio.get_running_loop()
        for worker in self._workers.values():
            worker.process.send_signal(signal.SIGSTOP)
        loop.remove_signal_handler(signal.SIGTSTP)
        signal.raise_signal(signal.SIGTSTP)
        loop.add_signal_handler(signal.SIGTSTP, self._suspend)
        for worker in self._workers.values():
            worker.process.send_signal(signal.SIGCONT)
