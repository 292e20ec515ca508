"""The lag of the event loop: how much of a request it was."""

from __future__ import annotations

import asyncio

import pytest

from crawler.engine.loop_lag import LoopLag
from crawler.engine.progress import Progress
from crawler.engine.tasks import background_task
from tests.virtual_time import VirtualClock, run_virtual


def block(clock: VirtualClock, seconds: float) -> None:
    """Keep the loop busy, as a long computation does."""
    clock.loop._now += seconds


def test_a_blocked_loop_is_no_slowness_of_a_server() -> None:
    async def main(clock: VirtualClock) -> None:
        lag, progress = LoopLag(clock), Progress(clock.now())
        assert lag.in_answer(clock.now() - 5, clock.now()) == 0.0, "nothing was measured"
        async with background_task(lag.measure(progress)):
            await asyncio.sleep(0.07)
            began = clock.now()
            block(clock, 12.4)
            ended = clock.now()
            assert lag.in_answer(began, ended) == pytest.approx(12.4, abs=0.05), (
                "the loop does not know that it is late"
            )
            await asyncio.sleep(0.004)
            assert lag.in_answer(began, ended) == pytest.approx(12.4, abs=0.05)
            assert lag.in_answer(ended - 1.0, ended) == pytest.approx(1.0), "no more than the answer took"
            assert progress.worst_lag_s == pytest.approx(12.4, abs=0.05)
            await asyncio.sleep(1)
            assert lag.in_answer(began, clock.now()) == 0.0, "the answer came when the loop was in time again"

    run_virtual(main)


def test_lag_before_the_end_of_an_answer_does_not_count() -> None:
    """While the loop is busy, the server works: a slow server stays slow for a busy crawler."""

    async def main(clock: VirtualClock) -> None:
        lag = LoopLag(clock)
        async with background_task(lag.measure(Progress(clock.now()))):
            began = clock.now()
            for _ in range(30):
                block(clock, 0.1)  # rounds of 0.1 s without a pause
                await asyncio.sleep(0)
            assert clock.now() - began == pytest.approx(3.0, abs=0.1)
            assert lag.in_answer(began, clock.now()) <= 0.4, "a few rounds, not all"

    run_virtual(main)
