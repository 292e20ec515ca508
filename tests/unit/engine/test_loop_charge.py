"""The wait of a domain whose answers took much of the event loop."""

from __future__ import annotations

import asyncio

import pytest

from crawler.demo.pages import Page
from crawler.engine.alarm import Alarm
from crawler.engine.gate import FetchPermit, GivenBack
from crawler.engine.outbox import Outbox
from crawler.engine.workbench import FREE_LOOP_S, WAIT_PER_LOOP_SECOND
from crawler.frontier.politeness import Pace
from crawler.model import FetchResult, Purpose, Request
from crawler.reasons import WaitCode, WaitReason
from tests.records import replace
from tests.simulation.crawls import gate_on
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

LOOP_S = 0.055  # the domain then waits for a second: at the gate
LONG_LOOP_S = 0.505  # it waits for ten seconds: in the store


class Costly(SimulatedWeb):
    """A web in which the answers of the domain ``tiny.test`` take much of the event loop."""

    loop_s = LOOP_S

    async def fetch(self, request: Request) -> FetchResult:
        result = await super().fetch(request)
        return replace(result, loop_s=self.loop_s if "tiny.test" in request.url else FREE_LOOP_S)


def test_the_hosts_of_a_domain_wait_together_and_other_domains_do_not() -> None:
    async def main(clock: VirtualClock) -> None:
        page = {"/": Page("x")}
        hosts = ("a.tiny.test", "b.tiny.test", "c.test", "d.c.test")
        web = Costly(clock, dict.fromkeys(hosts, page))
        gate = gate_on(web, clock, Outbox(clock, Alarm()))
        times = {}
        for host in hosts:
            gate.bench.enter(host, Pace())
            began = clock.now()
            await gate.send(Request(f"http://{host}/", Purpose.PAGE, 1000), FetchPermit(1, host))
            times[host] = clock.now() - began
        wait_s = times["b.tiny.test"] - times["a.tiny.test"]
        assert abs(wait_s - WAIT_PER_LOOP_SECOND * (LOOP_S - FREE_LOOP_S)) < 0.01
        assert abs(times["d.c.test"] - times["c.test"]) < 0.01

    run_virtual(main)


def test_a_request_that_waits_for_its_domain_can_be_cancelled() -> None:
    async def main(clock: VirtualClock) -> None:
        web = Costly(clock, {"a.tiny.test": {"/": Page("x")}, "b.tiny.test": {"/": Page("x")}})
        gate = gate_on(web, clock, Outbox(clock, Alarm()))
        for host in ("a.tiny.test", "b.tiny.test"):
            gate.bench.enter(host, Pace())
        await gate.send(Request("http://a.tiny.test/", Purpose.PAGE, 1000), FetchPermit(1, "a.tiny.test"))
        waits = asyncio.create_task(
            gate.send(Request("http://b.tiny.test/", Purpose.PAGE, 1000), FetchPermit(1, "b.tiny.test"))
        )
        await asyncio.sleep(0)
        gate.close()
        await asyncio.wait([waits])
        assert waits.cancelled()
        assert len(web.log) == 1

    run_virtual(main)


def test_a_group_of_a_domain_that_waits_for_long_goes_back_to_the_store() -> None:
    async def main(clock: VirtualClock) -> None:
        web = Costly(clock, {host: {"/": Page("x")} for host in ("a.tiny.test", "b.tiny.test")})
        web.loop_s = LONG_LOOP_S
        gate = gate_on(web, clock, Outbox(clock, Alarm()))
        for host in ("a.tiny.test", "b.tiny.test"):
            gate.bench.enter(host, Pace())
        await gate.send(Request("http://a.tiny.test/", Purpose.PAGE, 1000), FetchPermit(1, "a.tiny.test"))
        until = clock.now() + WAIT_PER_LOOP_SECOND * (LONG_LOOP_S - FREE_LOOP_S)
        with pytest.raises(GivenBack):
            await gate.send(Request("http://b.tiny.test/", Purpose.PAGE, 1000), FetchPermit(1, "b.tiny.test"))
        pace = gate.leave("b.tiny.test")
        assert pace.next_at == pytest.approx(until)
        assert pace.waits_for == WaitReason(WaitCode.LOOP, "tiny.test")
        assert len(web.log) == 1

    run_virtual(main)
