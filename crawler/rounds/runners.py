"""Runners of the tasks of a round. A task may be run by several of them: it is claimed once.

To run rounds otherwise (Kubernetes Jobs, Slurm, Ray), start ``python -m crawler.rounds.worker DATASET [ROUND]`` on as
many machines as wanted, and wait until all have ended.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from crawler.clock import SystemClock, boot_s
from crawler.dataset.records import Dataset, Plan
from crawler.errors import require
from crawler.settings.settings import RunnerName

#: How long the end of a crawl waits for processes that have no work, in seconds.
_END_WITHIN_S = 5.0


class Runner(Protocol):
    """Runs the tasks of a round."""

    async def run(self, dataset: Dataset, plan: Plan) -> None:
        """Return when no process of this runner works on the round any more. Tasks may be left.

        The driver cancels it when the round does not wait for its tasks any more: then its processes are killed.
        """
        ...

    def stop(self) -> None:
        """Let the tasks that run end in order, and start no others; called again, without their requests in flight."""
        ...

    async def close(self) -> None:
        """The crawl is over: no task runs."""
        ...


class Processes:
    """Processes of this machine, ``workers.count`` of them, which go from round to round. They follow ``clock``."""

    def __init__(self, clock: SystemClock) -> None:
        self._clock = clock
        self._processes: list[asyncio.subprocess.Process] = []
        self._is_stopped = False

    async def run(self, dataset: Dataset, plan: Plan) -> None:
        """Name the round to processes, and to new ones if one has died, while they claim tasks and some are left."""
        claimed = -1
        while not self._is_stopped:
            before, claimed = claimed, len(await asyncio.to_thread(dataset.claimed, plan.round))
            count = min(dataset.settings.workers.count, len(plan.tasks) - claimed)
            if count == 0 or claimed == before:
                return
            try:
                if await self._work(dataset.objects.location, plan.round, count):
                    return
            except BaseException:
                await self._kill()
                raise

    async def _work(self, location: str, number: int, count: int) -> bool:
        """Let so many processes work on a round; returns whether all of them have come to its end."""
        command = (sys.executable, "-m", "crawler.rounds.worker", location, "--for-driver")
        pipe = asyncio.subprocess.PIPE
        while len(self._processes) < count:
            self._processes.append(
                await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, start_new_session=True)
            )
        if self._is_stopped:  # it came while they were started
            self.stop()
        order = f"{number} {self._clock.now() - boot_s()!r}\n".encode()
        ended = await asyncio.gather(*(_obey(process, order) for process in self._processes[:count]))
        dead = [process for process, has_ended in zip(self._processes, ended, strict=False) if not has_ended]
        self._processes = [process for process in self._processes if process not in dead]
        return not any([await process.wait() for process in dead])

    def stop(self) -> None:
        """Tell the processes to end. They are not in the process group that a terminal interrupts."""
        self._is_stopped = True
        for process in self._processes:
            with suppress(ProcessLookupError):
                process.terminate()

    async def close(self) -> None:
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_WITHIN_S):
                await asyncio.gather(*(process.wait() for process in self._processes))
        await self._kill()

    async def _kill(self) -> None:
        for process in self._processes:
            with suppress(ProcessLookupError):
                process.kill()
        await asyncio.gather(*(process.wait() for process in self._processes))
        self._processes = []


async def _obey(process: asyncio.subprocess.Process, order: bytes) -> bool:
    """Give a process an order, and wait until it was carried out; returns false if the process has ended before."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(order)
    return bool(await process.stdout.readline())


class Spark:
    """Executors of Apache Spark. ``spark-submit`` and its configuration decide where they run."""

    def __init__(self, clock: SystemClock) -> None:
        """Start Spark, which takes half a minute, before the first round begins."""
        sql = require("spark", "this runner", "pyspark.sql")
        self._context: Any = sql.SparkSession.builder.appName("crawler rounds").getOrCreate().sparkContext

    async def run(self, dataset: Dataset, plan: Plan) -> None:
        """Run a job with the tasks divided among the executors. If it fails, its tasks are lost, or left."""
        try:
            await asyncio.to_thread(self._run, dataset, plan)
        finally:
            self.stop()

    def _run(self, dataset: Dataset, plan: Plan) -> None:
        share = partial(_work_in_executor, dataset.objects.location, plan.round)
        buckets = [task.bucket for task in plan.tasks]
        tasks = self._context.parallelize(buckets, min(len(buckets), self._context.defaultParallelism))
        failed = require("spark", "this runner", "py4j.protocol").Py4JError
        with suppress(failed):  # Spark has logged it; the next round does what was lost
            tasks.mapPartitions(share).collect()

    def stop(self) -> None:
        """Cancel the job: its tasks are lost, and a later round does their work."""
        self._context.cancelAllJobs()

    async def close(self) -> None:
        """Stop Spark: else it starts executors anew while this process ends, and logs a failure of each."""
        await asyncio.to_thread(self._context.stop)


def _work_in_executor(location: str, number: int, buckets: Iterable[int]) -> Iterator[int]:
    from crawler.rounds.worker import work

    yield work(location, number, set(buckets))


RUNNERS: dict[RunnerName, Callable[[SystemClock], Runner]] = {RunnerName.PROCESSES: Processes, RunnerName.SPARK: Spark}
