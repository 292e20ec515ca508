"""One process that works on a round: ``python -m crawler.rounds.worker DATASET ROUND``.

It claims one task after the other, and crawls some of them at the same time over the same connections and parsers. Any
number of these processes, on any machines that reach the dataset, work on a round together.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import signal
import socket
import sys
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

from crawler.cli.logs import set_up_logging
from crawler.cli.output import tell
from crawler.cli.shared import STOPPED, collect_garbage_seldom, run_async
from crawler.clock import SystemClock, boot_s
from crawler.engine.assembly import FetcherSide
from crawler.engine.lease import Lease
from crawler.engine.loop_lag import loop_lag_measured
from crawler.engine.progress import Progress
from crawler.engine.tasks import required_task
from crawler.errors import CrawlerError, UsageError
from crawler.fetch import open_files
from crawler.reasons import EndCode, RunEnd
from crawler.rounds.dataset import Dataset, Plan, Task
from crawler.rounds.objects import Objects
from crawler.rounds.task import BucketTask
from crawler.session.crawl_session import fetcher_side
from crawler.session.hooks import hooks_of
from crawler.settings.log_records import LogFormat, LogLevel

_LOG = logging.getLogger("crawler.rounds")
_LOOK_EVERY_S = 0.25
#: How often requests are written ahead, in seconds. A lost task takes the requests of this time with it.
AHEAD_EVERY_S = 2.0


class Worker:
    """Claims and runs tasks of a round, ``buckets`` or all, until none is left or the deadline is over."""

    def __init__(self, dataset: Dataset, plan: Plan, buckets: Collection[int] | None = None) -> None:
        began = boot_s()  # before the clock is read: a process that is stopped in between has an earlier deadline
        self._clock = SystemClock()
        self._ends_at = began + plan.deadline - self._clock.now()
        self._dataset = dataset
        self._plan = plan
        self._name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        chosen = [task for task in plan.tasks if buckets is None or task.bucket in buckets]
        self._tasks: Iterator[Task] = iter(chosen)
        self._running = set[BucketTask]()
        self._end: RunEnd | None = None
        self._segments = 0

    async def run(self) -> None:
        """Work on the round. Raises :class:`CrawlerError` if the storage fails."""
        settings = self._dataset.settings
        lease = Lease(None, self._clock, settings.fetch.total_timeout_s, ends_at=self._ends_at)
        hooks = hooks_of(settings.hooks)
        with tempfile.TemporaryDirectory(prefix="crawler-rounds-") as folder:
            async with (
                fetcher_side(settings, self._clock, hooks, lease) as side,
                loop_lag_measured(side.lag, Progress(self._clock.now())),
                required_task(self._look_after()),
            ):
                slots = range(settings.rounds.at_once)
                await asyncio.gather(*(self._run_tasks(side, Path(folder)) for _ in slots))

    async def _run_tasks(self, side: FetcherSide, folder: Path) -> None:
        hooks = hooks_of(self._dataset.settings.hooks)
        for task in self._tasks:
            if self._end is not None or boot_s() >= self._ends_at:
                return
            try:
                is_own = await asyncio.to_thread(self._dataset.claim, self._plan.round, task.bucket, self._name)
            except CrawlerError as error:
                tell(f"bucket {task.bucket}: not begun: {error}")
                continue
            if not is_own:
                continue
            running = BucketTask(self._dataset, self._plan, task, side, self._clock, hooks, folder)
            self._running.add(running)
            if self._end is not None:  # it came while the task was claimed
                running.stop(self._end)
            try:
                await running.run()
            except CrawlerError as error:
                tell(f"bucket {task.bucket}: this task is lost, and a later round does its work: {error}")
            finally:
                self._running.discard(running)
                await asyncio.to_thread(running.remove_files)

    def stop(self, end: RunEnd) -> None:
        """Claim nothing more, and end the tasks that run; they write their results."""
        self._end = end
        for task in self._running:
            task.stop(end)

    async def _look_after(self) -> None:
        """Stop tasks in time, and write requests ahead."""
        written_at = boot_s()
        while True:
            await self._clock.sleep(_LOOK_EVERY_S)
            for task in self._running:
                task.stop_if_over()
            if boot_s() - written_at >= AHEAD_EVERY_S:
                written_at = boot_s()
                await self._write_ahead()
                for task in list(self._running):
                    await task.say_writing()

    async def _write_ahead(self) -> None:
        """Write the requests since the last time, with the pauses that follow: another task must know them.

        If this one is lost, they are its log, and its pauses that outlast the round.
        """
        rows = [row for task in list(self._running) for row in await task.ahead()]
        if rows:
            self._segments += 1
            key = f"rounds/{self._plan.round:06}/ahead/{self._name}-{self._segments:06}.jsonl"
            content = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
            await asyncio.to_thread(self._dataset.objects.put, key, content)


def work(location: str, number: int, buckets: Collection[int] | None = None) -> int:
    """Work on a round of a dataset until no task is left; returns the exit code."""
    dataset = Dataset(Objects(location))
    plan = dataset.plan(number)
    if plan is None:
        raise UsageError(f"{location}: round {number} has no plan")

    async def run() -> int:
        worker, codes = Worker(dataset, plan, buckets), list[int]()

        def stop(name: str) -> None:
            worker.stop(RunEnd(EndCode.SIGNAL, name))
            codes.append(STOPPED)

        for each in (signal.SIGINT, signal.SIGTERM):
            try:
                asyncio.get_running_loop().add_signal_handler(each, stop, each.name)
            except (RuntimeError, ValueError):
                break  # not in the main thread: the executor of Spark ends this process itself
        await worker.run()
        return codes[0] if codes else 0

    open_files.raise_limit()
    collect_garbage_seldom()
    return run_async(run())


def main() -> int:
    """Run the command; errors of the user and of the storage are one line."""
    _, location, number = sys.argv
    set_up_logging(LogLevel.WARNING, LogFormat.TEXT)
    try:
        return work(location, int(number))
    except CrawlerError as error:
        tell(f"crawler: {error}")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
