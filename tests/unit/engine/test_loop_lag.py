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
        async with background_task(lag.measure(progress)):
            await asyncio.sleep(0.07)
            began = clock.now()
            block(clock, 12.4)
            ended = clock.now() + 0.004
            before = lag.within(began, ended)
            assert before == pytest.approx(12.4, abs=0.05), "the loop does not know yet that it is late"
            await asyncio.sleep(0.004)
            assert lag.within(began, clock.now()) == pytest.approx(12.4, abs=0.05)
            assert progress.worst_lag_s == pytest.approx(12.4, abs=0.05)
            await asyncio.sleep(1)
            assert lag.within(began, began + 1.0) <= 1.0, "no more than the period"
            assert lag.within(ended + 0.5, clock.now()) == 0.0, "the lag was before the period"

    run_virtual(main)


def test_a_period_without_a_measurement_has_the_lag_measured_last() -> None:
    async def main(clock: VirtualClock) -> None:
        lag = LoopLag(clock)
        assert lag.within(clock.now(), clock.now() + 5) == 0.0, "nothing was measured"
        async with background_task(lag.measure(Progress(clock.now()))):
            await asyncio.sleep(0.04)
            block(clock, 0.013)  # two milliseconds later than the measurement is due, with the resolution of a timer
            await asyncio.sleep(0.001)
            at = clock.now()
            assert lag.within(at, at + 0.005) == pytest.approx(0.002, abs=1e-5)
            assert lag.within(at, at + 0.001) == pytest.approx(0.001, abs=1e-5), "no more than the period"
            await asyncio.sleep(0.2)
            assert lag.within(clock.now() - 0.01, clock.now()) == 0.0, "since then the loop was in time"

    run_virtual(main)


def test_the_measurements_of_a_period_add_up() -> None:
    async def main(clock: VirtualClock) -> None:
        lag = LoopLag(clock)
        async with background_task(lag.measure(Progress(clock.now()))):
            began = clock.now()
            for _ in range(3):
                await asyncio.sleep(0.2)
                block(clock, 1.0)
            await asyncio.sleep(0.2)
            assert lag.within(began, clock.now()) == pytest.approx(3.0, abs=0.2)
            assert lag.within(began, clock.now()) <= 3.0

    run_virtual(main)
