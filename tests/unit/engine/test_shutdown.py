"""A shutdown closes the gate and wakes the loop; the first reason counts."""

from __future__ import annotations

import asyncio

import pytest

from crawler.demo.pages import Page
from crawler.engine.alarm import Alarm
from crawler.engine.gate import FetchPermit
from crawler.engine.outbox import Outbox
from crawler.engine.shutdown import Shutdown, stop_at
from crawler.frontier.politeness import Pace
from crawler.model import Fetched, Purpose, Request
from crawler.reasons import EndCode, RunEnd
from tests.simulation.crawls import gate_on
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

PAGE = Request("http://a.test/", Purpose.PAGE, 1000)
PERMIT = FetchPermit(1, "a.test")


def test_a_request_in_flight_ends_and_one_that_waits_is_cancelled() -> None:
    async def main(clock: VirtualClock) -> None:
        web, alarm = SimulatedWeb(clock, {"a.test": {"/": Page("x", delay_s=3)}}), Alarm()
        gate = gate_on(web, clock, Outbox(clock, alarm))
        shutdown = Shutdown(gate, alarm)
        gate.bench.enter("a.test", Pace())
        gate.bench.enter("b.test", Pace(next_at=clock.now() + 100))
        sent = asyncio.create_task(gate.send(PAGE, PERMIT))
        waits = asyncio.create_task(gate.send(Request("http://b.test/", Purpose.PAGE, 1000), FetchPermit(2, "b.test")))
        await clock.sleep(1)
        shutdown.request(RunEnd(EndCode.SIGNAL, "SIGINT"))
        assert await alarm.wait(0)
        assert isinstance(await sent, Fetched)
        with pytest.raises(asyncio.CancelledError):
            await waits
        with pytest.raises(asyncio.CancelledError):
            await gate.send(PAGE, PERMIT)
        assert len(web.log) == 1

    run_virtual(main)


def test_the_first_reason_and_the_first_failure_count() -> None:
    async def main(clock: VirtualClock) -> None:
        alarm = Alarm()
        gate = gate_on(SimulatedWeb(clock, {}), clock, Outbox(clock, alarm))
        shutdown = Shutdown(gate, alarm)
        assert not shutdown.requested
        shutdown.raise_failure()
        shutdown.request(RunEnd(EndCode.OPERATOR))
        shutdown.request(RunEnd(EndCode.CALLER))
        shutdown.fail(ValueError("first"))
        shutdown.fail(ValueError("second"))
        assert shutdown.end == RunEnd(EndCode.OPERATOR)
        with pytest.raises(ValueError, match="first"):
            shutdown.raise_failure()

    run_virtual(main)


def test_a_lost_lease_is_no_stop() -> None:
    async def main(clock: VirtualClock) -> None:
        alarm = Alarm()
        gate = gate_on(SimulatedWeb(clock, {}), clock, Outbox(clock, alarm))
        shutdown = Shutdown(gate, alarm)
        shutdown.lose_lease()
        assert (shutdown.lease_lost, shutdown.requested, await alarm.wait(0)) == (True, False, True)

    run_virtual(main)


def test_the_stop_at_a_time_comes_at_that_time() -> None:
    async def main(clock: VirtualClock) -> None:
        alarm = Alarm()
        gate = gate_on(SimulatedWeb(clock, {}), clock, Outbox(clock, alarm))
        shutdown = Shutdown(gate, alarm)
        began = clock.now()
        await stop_at(began + 200, shutdown.request, clock)
        assert clock.now() == pytest.approx(began + 200)
        assert shutdown.end == RunEnd(EndCode.MAX_TIME)

    run_virtual(main)


def test_an_alarm_loses_no_ring_and_is_used_up_by_one_wait() -> None:
    async def main(clock: VirtualClock) -> None:
        alarm = Alarm()
        assert not await alarm.wait(1)
        alarm.ring()
        alarm.ring()
        assert [await alarm.wait(-1), await alarm.wait(-1)] == [True, False]
        alarm.request_commit()
        assert await alarm.wait(None)
        assert alarm.is_urgent
        alarm.begin_commit()
        assert not alarm.is_urgent

    run_virtual(main)
