"""Time limits on a loop that is late."""

from __future__ import annotations

import asyncio

import pytest

from crawler.engine.loop_lag import LoopLag
from crawler.engine.progress import Progress
from crawler.engine.tasks import background_task
from crawler.fetch.connection import Connection, LagNow, Transfer, no_lag
from crawler.fetch.connector import time_limit
from crawler.model import Purpose, Request
from tests.virtual_time import VirtualClock, run_virtual


def test_a_limit_ends_what_takes_longer() -> None:
    async def main(clock: VirtualClock) -> None:
        began = clock.loop.time()
        with pytest.raises(TimeoutError):
            async with time_limit(10.0, no_lag):
                await asyncio.sleep(1000)
        assert clock.loop.time() - began == pytest.approx(10.0)
        async with time_limit(10.0, no_lag):
            await asyncio.sleep(9)
        await asyncio.sleep(100)  # no timer is left

    run_virtual(main)


def test_a_blocked_loop_does_not_use_up_a_limit() -> None:
    async def main(clock: VirtualClock) -> None:
        lag = LoopLag(clock)
        async with background_task(lag.measure(Progress(clock.now()))):
            began = clock.loop.time()
            async with time_limit(10.0, lag.now_s):
                await asyncio.sleep(1.0)
                clock.loop._now += 12.4
                await asyncio.sleep(5.0)
            assert clock.loop.time() - began == pytest.approx(18.4)

            async def too_slow() -> None:
                async with time_limit(10.0, lag.now_s):
                    clock.loop._now += 12.4
                    await asyncio.sleep(30.0)  # longer than the limit and the lag: one extension only

            with pytest.raises(TimeoutError):
                await too_slow()

    run_virtual(main)


def begun(clock: VirtualClock, lag_now_s: LagNow = no_lag) -> Connection:
    """A connection on which a request was sent."""
    connection = Connection(clock.loop, lag_now_s)
    with Transfer(Request("http://a.test/", Purpose.PAGE, 1)):
        connection.set_response_params(read_timeout=30.0)
    connection.start_timeout()
    return connection


@pytest.mark.parametrize("lag_s", [0.0, 12.4])
def test_a_blocked_loop_is_no_silence_of_a_server(lag_s: float) -> None:
    """The wait for data is longer by the lag, once."""

    async def main(clock: VirtualClock) -> None:
        connection = begun(clock, lambda: lag_s)
        await asyncio.sleep(29.0 + lag_s)
        assert connection.exception() is None
        await asyncio.sleep(2.0)
        assert isinstance(connection.exception(), TimeoutError)

    run_virtual(main)


def test_the_wait_for_data_begins_anew_with_each_piece() -> None:
    """One timer serves all pieces of an answer."""

    async def main(clock: VirtualClock) -> None:
        connection = begun(clock)
        for _ in range(2):
            await asyncio.sleep(20.0)
            connection.start_timeout()  # as for each piece
        await asyncio.sleep(29.0)
        assert connection.exception() is None
        await asyncio.sleep(2.0)
        assert isinstance(connection.exception(), TimeoutError)

    run_virtual(main)
