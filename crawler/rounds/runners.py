"""Runners of the tasks of a round. A task may be run by several of them: it is claimed once.

To run a round otherwise (Kubernetes Jobs, Slurm, Ray), start ``python -m crawler.rounds.worker DATASET ROUND`` on as
many machines as wanted, and wait until all have ended.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from crawler.clock import SystemClock, boot_s
from crawler.dataset.records import Dataset, Plan, Writers
from crawler.errors import StoreError, require
from crawler.settings.settings import RunnerName

_LOOK_EVERY_S = 1.0
_VAIN = 3  # starts of all processes in which no task was claimed


class Runner(Protocol):
    """Runs the tasks of a round."""

    async def run(self, dataset: Dataset, plan: Plan) -> None:
        """Return when no process of this runner works on the round any more. Tasks may be left."""
        ...

    def stop(self) -> None:
        """Let the tasks that run end in order, and start no others; called again, without their requests in flight."""
        ...


class Processes:
    """Processes of this machine, ``workers.count`` of them."""

    def __init__(self) -> None:
        self._processes: list[asyncio.subprocess.Process] = []
        self._is_stopped = False

    async def run(self, dataset: Dataset, plan: Plan) -> None:
        """Start the processes, and once more after one has died, as long as tasks are left.

        Raises :class:`StoreError` if they die again and again without having claimed a task.
        """
        began, now = boot_s(), SystemClock().now()
        ends_at, to_boot = began + plan.deadline - now, began - now
        vain, claimed = 0, -1
        while (left := len(plan.tasks) - len(dataset.claimed(plan.round))) and not self._is_stopped:
            vain = vain + 1 if claimed == len(plan.tasks) - left else 0
            claimed = len(plan.tasks) - left
            if vain >= _VAIN:
                raise StoreError(f"the workers of round {plan.round} end without a task: see their messages above")
            command = (sys.executable, "-m", "crawler.rounds.worker", dataset.objects.location, str(plan.round))
            count = min(dataset.settings.workers.count, left)
            self._processes = []
            for _ in range(count):
                self._processes.append(await asyncio.create_subprocess_exec(*command, start_new_session=True))
            if self._is_stopped:  # it came while they were started
                self.stop()
            codes = await self._ended(dataset, plan, to_boot)
            if not any(codes) or boot_s() >= ends_at:
                return

    async def _ended(self, dataset: Dataset, plan: Plan, to_boot: float) -> list[int]:
        """The exit codes of the processes. One that the round does not wait for any more is killed: it is lost.

        ``to_boot`` added to a time of the plan is that of ``boot_s``.
        """
        waits = [asyncio.create_task(process.wait()) for process in self._processes]
        _, waiting = await asyncio.wait(waits, timeout=max(0.0, plan.quiet_at + to_boot - boot_s()))
        writers = Writers(dataset, plan.round)
        while waiting:
            are_writing = await asyncio.to_thread(writers.are_at_work, boot_s())
            if not are_writing:
                break
            _, waiting = await asyncio.wait(waits, timeout=_LOOK_EVERY_S)
        for process in self._processes:
            with suppress(ProcessLookupError):
                process.kill()
        return list(await asyncio.gather(*waits))

    def stop(self) -> None:
        """Tell the processes to end. They are not in the process group that a terminal interrupts."""
        self._is_stopped = True
        for process in self._processes:
            with suppress(ProcessLookupError):
                process.terminate()


class Spark:
    """Executors of Apache Spark. ``spark-submit`` and its configuration decide where they run."""

    def __init__(self) -> None:
        """Start Spark, which takes half a minute, before the first round begins."""
        sql = require("spark", "this runner", "pyspark.sql")
        self._context: Any = sql.SparkSession.builder.appName("crawler rounds").getOrCreate().sparkContext

    async def run(self, dataset: Dataset, plan: Plan) -> None:
        """Run a job with the tasks divided among the executors. If it fails, its tasks are lost, or left."""
        await asyncio.to_thread(self._run, dataset, plan)

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


RUNNERS: dict[RunnerName, type[Runner]] = {RunnerName.PROCESSES: Processes, RunnerName.SPARK: Spark}
