"""Runners of the tasks of a round. A task may be run by several of them: it is claimed once.

To run a round otherwise (Kubernetes Jobs, Slurm, Ray), start ``python -m crawler.rounds.worker DATASET ROUND`` on as
many machines as wanted, and wait until all have ended.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from crawler.clock import SystemClock, boot_s
from crawler.dataset.records import Dataset, Plan
from crawler.errors import require
from crawler.settings.settings import RunnerName


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


class Processes:
    """Processes of this machine, ``workers.count`` of them. They have the ``clock`` of the driver."""

    def __init__(self, clock: SystemClock) -> None:
        self._clock = clock
        self._processes: list[asyncio.subprocess.Process] = []
        self._is_stopped = False

    async def run(self, dataset: Dataset, plan: Plan) -> None:
        """Start the processes, and again after one has died, as long as they claim tasks and tasks are left."""
        place = dataset.objects.location
        ahead_s = self._clock.now() - boot_s()
        command = (sys.executable, "-m", "crawler.rounds.worker", place, str(plan.round), repr(ahead_s))
        claimed = -1
        while not self._is_stopped:
            before, claimed = claimed, len(await asyncio.to_thread(dataset.claimed, plan.round))
            count = min(dataset.settings.workers.count, len(plan.tasks) - claimed)
            if count == 0 or claimed == before or not any(await self._run_processes(command, count)):
                return

    async def _run_processes(self, command: Sequence[str], count: int) -> list[int]:
        """Start processes and wait for them; returns their exit codes."""
        self._processes = []
        try:
            for _ in range(count):
                self._processes.append(await asyncio.create_subprocess_exec(*command, start_new_session=True))
            if self._is_stopped:  # it came while they were started
                self.stop()
            return list(await asyncio.gather(*(process.wait() for process in self._processes)))
        finally:
            for process in self._processes:
                with suppress(ProcessLookupError):
                    process.kill()
            await asyncio.gather(*(process.wait() for process in self._processes))

    def stop(self) -> None:
        """Tell the processes to end. They are not in the process group that a terminal interrupts."""
        self._is_stopped = True
        for process in self._processes:
            with suppress(ProcessLookupError):
                process.terminate()


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


def _work_in_executor(location: str, number: int, buckets: Iterable[int]) -> Iterator[int]:
    from crawler.rounds.worker import work

    yield work(location, number, set(buckets))


RUNNERS: dict[RunnerName, Callable[[SystemClock], Runner]] = {RunnerName.PROCESSES: Processes, RunnerName.SPARK: Spark}
