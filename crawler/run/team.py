"""Several worker processes on one crawl: started, watched over, replaced where they die, and ended together.

This process crawls nothing. It has begun the run (and has the lock, where the store is a file, which its workers keep
with them: it is free again when the last of them has ended), shows what all of them do, and passes on signals: each
worker is in a process group of its own, where no terminal's Ctrl-C or Ctrl-Z reaches it.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from crawler.cli.logs import show_forwarded
from crawler.cli.shared import STOPPED
from crawler.clock import SystemClock
from crawler.engine.page_budget import Budget
from crawler.engine.progress import Progress
from crawler.errors import CrawlerError, Setting, StoreError, UsageError
from crawler.frontier.politeness import Pace
from crawler.reasons import EndCode, RunEnd
from crawler.run.worker import Part
from crawler.settings.settings import Settings
from crawler.store.sql.store import SqlStore

_MOST_WORKERS = 256
_DEATHS_BORNE = 5  # one after the other, of workers that had brought nothing
_LINE_BYTES = 1 << 20


def require_shares(settings: Settings) -> None:
    """Raise :class:`UsageError` for more workers than there is work to share among them."""
    workers, concurrency = settings.team.workers, settings.crawl.concurrency
    if workers > concurrency:
        raise UsageError(
            Setting("workers.count", workers),
            f": {concurrency} requests in flight are too few for them, for each worker needs one; start fewer workers, "
            "or raise ",
            Setting("limits.concurrency"),
        )
    if workers > _MOST_WORKERS:
        raise UsageError(
            f"each worker is a process, and more than one a processor do not help; give {_MOST_WORKERS} at most",
            key="workers.count",
            value=workers,
        )


@dataclass(slots=True)
class _Worker:
    process: subprocess.Popen[bytes]
    report: dict[str, Any] | None = None
    code: int = 0

    @property
    def name(self) -> str:
        """As the store has it, where it came so far."""
        number = "" if self.report is None else f" {self.report['worker']}"
        return f"worker{number} (process {self.process.pid})"


def _dismiss(process: subprocess.Popen[bytes], why: RunEnd) -> None:
    """Have a worker end in order, by the word that it waits for on its standard input."""
    assert process.stdin is not None
    if not process.stdin.closed:
        with suppress(BrokenPipeError), process.stdin:
            process.stdin.write(json.dumps(why.as_json()).encode())


@dataclass(slots=True)
class Team:
    """The workers of one command; see :class:`crawler.run.live_display.Watched`."""

    settings: Settings
    store: SqlStore
    clock: SystemClock
    tell: Callable[[str], None]
    started_at: float = 0.0
    _workers: dict[int, _Worker] = field(default_factory=dict)
    _dead: list[_Worker] = field(default_factory=list)  # and replaced
    _ended: list[_Worker] = field(default_factory=list)
    _told: set[str] = field(default_factory=set)
    _stopping: RunEnd | None = None
    _deaths: int = 0
    _given_up: bool = False

    @property
    def progress(self) -> Progress:
        """Of all workers together, those that have died included."""
        alive = [worker.report for worker in self._workers.values() if worker.report is not None]
        at_rest = [worker.report | {"active": 0} for worker in self._dead + self._ended if worker.report]
        total = Progress.sum_of(self.started_at, [*alive, *at_rest])
        if self._workers:
            total.idle_for = Progress.sum_of(0.0, alive).idle_for
        return total

    @property
    def budget(self) -> Budget:
        """What this command may still take, as far as it knows."""
        limit = self.settings.crawl.max_pages
        return Budget() if limit is None else Budget(max(0, limit - self.progress.pages))

    @property
    def stopped(self) -> bool:
        """Whether the crawl was told to end, by whomever, rather than came to its end."""
        return self._stopping is not None or self.cut_short

    @property
    def cut_short(self) -> bool:
        """Whether each worker was told to end, and not by us: by the operator, or by a signal of its own."""
        return self._stopping is None and all(worker.code in (STOPPED, -signal.SIGTERM) for worker in self._ended)

    @property
    def away_s(self) -> float | None:
        """As the worker has it that has waited longest, or this process."""
        reports = [worker.report for worker in self._workers.values() if worker.report is not None]
        waits = [self.store.away_s, *(report["away_s"] for report in reports)]
        return max((away_s for away_s in waits if away_s is not None), default=None)

    def slowest(self) -> tuple[str, Pace] | None:
        return None  # each worker knows its own

    def stop(self, why: RunEnd) -> None:
        """Have all workers end in order. May be called twice."""
        self._stopping = self._stopping or why
        for worker in self._workers.values():
            _dismiss(worker.process, self._stopping)

    def give_up(self) -> None:
        """End all workers at once; what they had not committed is still queued."""
        self._given_up = True
        self.store.give_up()
        for worker in self._workers.values():
            worker.process.kill()

    async def run(self) -> RunEnd:
        """Until all have ended; why they did. Raises :class:`StoreError` where the store failed them."""
        self.started_at = self.clock.now()
        loop, limit_s = asyncio.get_running_loop(), self.settings.crawl.max_time_s
        timer = None if limit_s is None else loop.call_later(limit_s, self.stop, RunEnd(EndCode.MAX_TIME))
        loop.add_signal_handler(signal.SIGTSTP, self._suspend)
        places = [asyncio.create_task(self._fill(place)) for place in range(self.settings.team.workers)]
        try:
            await asyncio.gather(*places)
        except BaseException:
            self.stop(RunEnd(EndCode.FAILURE))
            await asyncio.gather(*places, return_exceptions=True)
            raise
        finally:
            loop.remove_signal_handler(signal.SIGTSTP)
            if timer is not None:
                timer.cancel()
        return self._stopping or self._end()

    def _end(self) -> RunEnd:
        codes = {worker.code for worker in self._ended}
        for error in (StoreError, UsageError):
            if error.exit_code in codes:
                raise error("no worker could go on, as said above; what was committed is kept")
        if codes - {0, STOPPED, -signal.SIGTERM}:
            raise CrawlerError("workers died one after the other, as said above; what was committed is kept")
        # Who came last may have found nothing to do: what counts is what those that did the work say.
        ended = [
            worker.report
            for worker in self._ended
            if worker.report and worker.report["end"] and (worker.code == 0 or self.cut_short)
        ]
        if not ended:
            return RunEnd(EndCode.STOPPED)
        return RunEnd.from_json(max(ended, key=lambda report: report["requests"])["end"])

    async def _fill(self, place: int) -> None:
        """See that one place among the workers is taken, until its crawl has ended."""
        while self._stopping is None:
            worker = self._workers[place] = self._start(place)
            await self._accompany(worker)
            del self._workers[place]
            is_dead = worker.code not in (0, STOPPED, -signal.SIGTERM, StoreError.exit_code, UsageError.exit_code)
            if is_dead:
                self._deaths = 0 if worker.report is not None and worker.report["ends"] else self._deaths + 1
            is_replaced = is_dead and self._stopping is None and self._deaths <= _DEATHS_BORNE
            (self._dead if is_replaced else self._ended).append(worker)
            if is_dead and not self._given_up:
                await self._bury(worker, is_replaced=is_replaced)
            if not is_replaced:
                return

    def _start(self, place: int) -> _Worker:
        share, more = divmod(self.settings.crawl.concurrency, self.settings.team.workers)
        # How long the crawl may take is known here: who takes another's place would count from its own beginning.
        crawl = replace(self.settings.crawl, concurrency=share + (place < more), max_time_s=None)
        part = Part(replace(self.settings, crawl=crawl), self.store.run_id, self.clock)
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "crawler.run.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=self.store.lock_fds(),
                process_group=0,
            )
        except OSError as error:
            raise UsageError(
                f"no process for another worker ({error.strerror}); lower ", Setting("workers.count")
            ) from None
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # it is dead already: its exit code tells
            part.send(process.stdin)
        return _Worker(process)

    async def _accompany(self, worker: _Worker) -> None:
        """Take in what a worker reports, until it ends."""
        reader = asyncio.StreamReader(limit=_LINE_BYTES)
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), worker.process.stdout
        )
        while (line := await reader.readline()).endswith(b"\n"):  # the last one of a worker that is killed may not
            news = json.loads(line)
            if "failed" in news:
                self._tell_once(news["failed"])
            elif "log" in news:
                show_forwarded(news["log"])
            else:
                worker.report = news
        worker.code = await asyncio.to_thread(worker.process.wait)

    def _tell_once(self, failure: str) -> None:
        """What fails one worker fails all of them, mostly."""
        if failure not in self._told:
            self._told.add(failure)
            self.tell(failure)

    async def _bury(self, worker: _Worker, *, is_replaced: bool) -> None:
        """Tell of a worker that died, and release at once what it held."""
        code = worker.code
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"failed with exit code {code}"
        self.tell(f"{worker.name} {how}" + ("; another one takes its place" if is_replaced else ""))
        if worker.report is not None:
            with suppress(StoreError):  # its lease runs out
                await self.store.bury(worker.report["worker"], "killed" if code < 0 else how, self.clock.now())

    def _suspend(self) -> None:
        """Stop as Ctrl-Z asks, and the workers with us, until we are continued."""
        loop = asyncio.get_running_loop()
        for worker in self._workers.values():
            worker.process.send_signal(signal.SIGSTOP)
        loop.remove_signal_handler(signal.SIGTSTP)
        signal.raise_signal(signal.SIGTSTP)
        loop.add_signal_handler(signal.SIGTSTP, self._suspend)
        for worker in self._workers.values():
            worker.process.send_signal(signal.SIGCONT)
