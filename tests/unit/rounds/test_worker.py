"""The processes that work on rounds."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from threading import Thread
from typing import Any, cast

import pytest

from crawler.rounds.worker import Worker, _stopped_by_signals, main
from tests.command import here

#: Ends the rounds that it is told, in each of which a function of the user prints.
WORKER = """
from unittest import mock
from crawler.rounds import worker

async def work_on(dataset, rounds, *rest):
    print("the module of the user")
    async for number in rounds:
        print("a function of the user")
    return 0

with mock.patch.multiple(worker, Dataset=str, Objects=str, _work_on=work_on):
    worker._work_for_driver("data")
"""


def test_wrong_arguments_are_one_line() -> None:
    ended = here("data", "abc", run=main)
    assert (ended.code, ended.err.count("\n")) == (2, 1), ended
    assert ended.err.startswith("crawler: Invalid value for '[ROUND]': 'abc' is not a valid integer range.")


def test_the_driver_reads_no_more_than_the_ends_of_rounds() -> None:
    command, rounds = [sys.executable, "-c", WORKER], "1 0.0\n2 0.0\n"
    ended = subprocess.run(command, input=rounds, capture_output=True, text=True, check=True)
    assert ended.stdout == "1\n2\n"
    assert ended.stderr.splitlines() == ["the module of the user", *["a function of the user"] * 2]


def test_a_worker_outside_the_main_thread_ends_its_round_without_handlers_of_signals() -> None:
    uvloop = pytest.importorskip("uvloop")
    ended = list[str]()

    async def work() -> None:
        with _stopped_by_signals(cast(Worker, None)) as stopped_by:
            pass
        ended.append(f"stopped by {stopped_by}")

    def run() -> None:
        runner: Any = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        with runner:
            runner.run(work())

    thread = Thread(target=run)
    thread.start()
    thread.join()
    assert ended == ["stopped by []"]
