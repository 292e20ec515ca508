"""One process that works on rounds: ``python -m crawler.rounds.worker DATASET [ROUND]``.

It claims one task after the other, and crawls some of them at the same time over the same connections and parsers. Any
number of these processes, on any machines that reach the dataset, work on a round together.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import secrets
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Coroutine, Iterator
from contextlib import aclosing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import IO, NoReturn

import click
import msgspec

from crawler.cli.logs import set_up_logging
from crawler.cli.output import tell
from crawler.cli.shared import CONTEXT, STOPPED, collect_garbage_seldom, run_async
from crawler.cli.shared import main as run_command
from crawler.clock import Clock, SystemClock, boot_s
from crawler.dataset.clock import StorageClock
from crawler.dataset.objects import Objects
from crawler.dataset.records import Dataset, Plan, Task, begins_at
from crawler.engine.gate import FetcherSide
from crawler.engine.lease import Lease
from crawler.engine.progress import Progress
from crawler.engine.tasks import background_task, required_task
from crawler.errors import CrawlerError, StoreError, UsageError
from crawler.fetch import open_files
from crawler.formatting import many
from crawler.inspect.unknown_hosts import first_wait
from crawler.reasons import EndCode, RunEnd
from crawler.rounds.task import BucketTask, RoundWork
from crawler.session.crawl_session import fetcher_side
from crawler.session.hooks import hooks_of
from crawler.settings.log_records import LogFormat, LogLevel
from crawler.store.location import shown

_LOG = logging.getLogger("crawler.rounds")
_LOOK_FOR_ROUND_EVERY_S = 1.0
#: How often tasks say that they write their results, and what they wait for, in seconds.
_SAY_EVERY_S = 2.0
#: How often requests are written ahead, in seconds. A lost task takes the log of this time with it.
AHEAD_EVERY_S = 5.0
#: If every task that runs waits for longer, this is told, and told again after some time; in seconds.
_LONG_WAIT_S = 10.0
_NOTE_EVERY_S = 600.0
#: If the log cannot be written for so long, in seconds, the tasks end in order.
_LOG_LATE_S = 60.0


class Worker:
    """Claims and runs tasks of a round, ``buckets`` or all, until none is left or the deadline is over.

    Invariant: a failure of the storage, or of the disk, ends the one task that it concerns.
    """

    def __init__(
        self,
        dataset: Dataset,
        plan: Plan,
        side: FetcherSide,
        clock: Clock,
        folder: Path,
        buckets: Collection[int] | None = None,
    ) -> None:
        chosen = [task for task in plan.tasks if buckets is None or task.bucket in buckets]
        self._tasks: Iterator[Task] = iter(chosen)
        settings = dataset.settings
        most = settings.rounds.at_once * settings.workers.count
        self._at_once = min(settings.rounds.at_once, len(chosen))
        share = min(most, len(plan.tasks))  # of all processes that the runner starts on this machine
        hooks, name = hooks_of(settings.hooks), f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._work = RoundWork(dataset, plan, side, clock, hooks, folder, name, share)
        self._running = set[BucketTask]()
        self._end: RunEnd | None = None
        self._requests = 0  # that were written ahead
        self._log_written_at = clock.now()
        self._noted_at = -_NOTE_EVERY_S

    async def run(self) -> None:
        """Work on the round."""
        async with (
            required_task(self._every(_SAY_EVERY_S, self._note_wait)),
            required_task(self._every(_SAY_EVERY_S, self._say_writing)),
            required_task(self._every(AHEAD_EVERY_S, self._write_log_ahead)),
        ):
            await asyncio.gather(*(self._run_tasks() for _ in range(self._at_once)))

    async def _run_tasks(self) -> None:
        number, dataset = self._work.plan.round, self._work.dataset
        for task in self._tasks:
            if self._end is not None or not self._work.side.lease.may_send():
                return
            try:
                is_own = await asyncio.to_thread(dataset.claim, number, task.bucket, self._work.name)
            except CrawlerError as error:
                tell(f"bucket {task.bucket}: not begun: {error}")
                continue
            if not is_own:
                continue
            running = BucketTask(self._work, task)
            self._running.add(running)
            if self._end is not None:  # it came while the task was claimed
                running.stop(self._end)
            try:
                await running.run()
            except (CrawlerError, OSError) as error:
                tell(f"bucket {task.bucket}: this task is lost, and a later round does its work: {error}")
            finally:
                self._running.discard(running)
                await asyncio.to_thread(running.remove_files)

    def stop(self, end: RunEnd) -> None:
        """Claim nothing more, and end the tasks that run; they write their results.

        Called again, it gives their requests in flight no more time.
        """
        for task in self._running:
            task.stop(end)
        self._end = self._end or end

    async def _every(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        """Do ``work`` every so many seconds. Each kind of work has a task, so slow storage delays that kind only."""
        while True:
            await self._work.clock.sleep(seconds)
            await work()

    async def _say_writing(self) -> None:
        for task in list(self._running):
            with suppress(StoreError):  # said again soon
                await task.say_writing()

    async def _note_wait(self) -> None:
        """Tell what is waited for, if every task that runs waits for long, and it was not told lately."""
        waits = [task.waits for task in self._running]
        known, now = [wait for wait in waits if wait is not None], self._work.clock.now()
        if not known or len(known) < len(waits) or now - self._noted_at < _NOTE_EVERY_S:
            return
        first = min(known, key=lambda wait: wait.until)
        if now + _LONG_WAIT_S < first.until < self._work.plan.deadline:
            waiting = first_wait(first, self._work.dataset.settings.robots, now)
            tell(f"round {self._work.plan.round}: {many(len(waits), 'bucket')} in work: everything left {waiting}")
            self._noted_at = now

    async def _write_log_ahead(self) -> None:
        """Write the requests since the last time: if a task is lost, they are its log.

        If that fails, it is tried again with the next ones. When it has failed for a minute, nothing more is sent.
        """
        rows = {}
        for task in list(self._running):
            try:
                rows[task] = await task.ahead()
            except StoreError as error:  # its store fails: the task will find out
                _LOG.info("the log of a task cannot be read: %s", error)
        content = msgspec.json.Encoder().encode_lines(list(chain.from_iterable(rows.values())))
        if content:
            sent = self._requests + sum(map(len, rows.values()))
            key = f"rounds/{self._work.plan.round:06}/ahead/{self._work.name}-{sent:09}.jsonl"
            try:
                await asyncio.to_thread(self._work.dataset.objects.put, key, content)
            except StoreError as error:
                if self._work.clock.now() - self._log_written_at > _LOG_LATE_S and self._end is None:
                    tell(f"the log of requests cannot be written: {error}")
                    self.stop(RunEnd(EndCode.STORE_FAILED, str(error)))
                return
            self._requests = sent
        self._log_written_at = self._work.clock.now()
        for task, found in rows.items():
            task.written_ahead(found)


async def _work_on(
    dataset: Dataset, rounds: AsyncGenerator[int, None], clock: SystemClock, buckets: Collection[int] | None = None
) -> int:
    """Work on these rounds, each until no task is left; returns the exit code."""
    settings = dataset.settings
    lease = Lease(None, clock, settings.fetch.total_timeout_s, ends_at=-math.inf)
    async with (
        fetcher_side(settings, clock, hooks_of(settings.hooks), lease) as side,
        background_task(side.lag.measure(Progress(clock.now()))),
        aclosing(rounds) as numbers,
    ):
        async for number in numbers:
            plan = await asyncio.to_thread(dataset.plan, number)
            if plan is None:
                raise UsageError(f"{shown(dataset.objects.location)}: round {number} has no plan")
            began = boot_s()  # before the clock is read: a process that is stopped in between has an earlier deadline
            lease.end_at(began + plan.deadline - clock.now())
            with tempfile.TemporaryDirectory(prefix="crawler-rounds-") as folder:
                worker = Worker(dataset, plan, side, clock, Path(folder), buckets)
                with _stopped_by_signals(worker) as stopped_by:
                    await worker.run()
            if stopped_by:
                return STOPPED
    return 0


@contextmanager
def _stopped_by_signals(worker: Worker) -> Iterator[list[str]]:
    """Let SIGINT and SIGTERM stop the worker while inside; yields the names of those that came."""
    loop, came = asyncio.get_running_loop(), list[str]()

    def stop(name: str) -> None:
        if not came and name == "SIGINT":  # from a terminal; the process above says so itself
            tell("SIGINT: the tasks end, and write their results")
        worker.stop(RunEnd(EndCode.SIGNAL, name))
        came.append(name)

    signals = (signal.SIGINT, signal.SIGTERM)
    with suppress(RuntimeError, ValueError):  # not in the main thread: the executor of Spark ends this process itself
        for each in signals:
            loop.add_signal_handler(each, stop, each.name)
    try:
        yield came
    finally:
        with suppress(ValueError):  # of uvloop, as above
            for each in signals:
                loop.remove_signal_handler(each)


async def _one(number: int) -> AsyncGenerator[int, None]:
    yield number


async def _named_by_driver(clock: SystemClock, ended: IO[bytes]) -> AsyncGenerator[int, None]:
    """The rounds that a driver on this machine names on the standard input, until its end.

    A line has the number of a round, and by how much the clock of the driver is ahead of :func:`crawler.clock.boot_s`:
    ``clock`` follows it. When the work on the round is over, its number is written to ``ended``.
    """
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        number, ahead_s = line.split()
        read_at = boot_s()
        clock.follow(now := read_at + float(ahead_s), now, read_at)
        yield int(number)
        with suppress(OSError):  # the driver was killed
            ended.write(number + b"\n")


async def _begun(dataset: Dataset, clock: StorageClock) -> AsyncGenerator[int, None]:
    """Each round, from the one that is under way, until the crawl is over."""
    number, joined = max(1, len(await asyncio.to_thread(dataset.manifests))), 0
    while True:
        if (ended := await asyncio.to_thread(dataset.manifest, number)) is not None:
            if begins_at(ended.buckets) is None:
                tell("the crawl is over")
                return
            number += 1
        elif joined < number and await asyncio.to_thread(dataset.plan, number) is not None:
            tell(f"round {number}: this process works on it")
            await asyncio.to_thread(clock.look)
            yield number
            joined = number
        else:
            await clock.sleep(_LOOK_FOR_ROUND_EVERY_S)


def work(location: str, number: int | None = None, buckets: Collection[int] | None = None) -> int:
    """Work on a round of a dataset, or on each that begins, until no task is left; returns the exit code."""
    dataset = Dataset(Objects(location))
    clock = StorageClock(dataset.objects)
    rounds = _begun(dataset, clock) if number is None else _one(number)
    return _run(_work_on(dataset, rounds, clock, buckets))


def _work_for_driver(location: str) -> int:
    clock = SystemClock()
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0) as ended:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a function of the user prints ends no round
        return _run(_work_on(Dataset(Objects(location)), _named_by_driver(clock, ended), clock))


def _run(work: Coroutine[None, None, int]) -> int:
    open_files.raise_limit()
    collect_garbage_seldom()
    return run_async(work)


@click.command(context_settings=CONTEXT)
@click.argument("location", metavar="DATASET")
@click.argument("number", metavar="[ROUND]", type=click.IntRange(min=1), required=False)
@click.option("--for-driver", is_flag=True, hidden=True)  # work on the rounds that it names on the standard input
def command(location: str, number: int | None, for_driver: bool) -> int:
    """Work on the rounds of a DATASET that `crawler rounds` drives: a folder, or s3://bucket/prefix.

    Any number of these processes may come and go, on any machines that reach the dataset. With the number of a ROUND,
    one works on that until no task is left. Without it, it joins each round until the crawl is over.
    """
    set_up_logging(LogLevel.WARNING, LogFormat.TEXT)
    return _work_for_driver(location) if for_driver else work(location, number)


def main() -> NoReturn:
    """Run the command."""
    run_command(command, "python -m crawler.rounds.worker")


if __name__ == "__main__":
    main()
