"""The wait of a domain whose answers took much of the event loop."""

from __future__ import annotations

from crawler.demo.pages import Page
from crawler.engine.alarm import Alarm
from crawler.engine.gate import FetchPermit
from crawler.engine.outbox import Outbox
from crawler.engine.workbench import FREE_LOOP_S, WAIT_PER_LOOP_SECOND
from crawler.frontier.politeness import Pace
from crawler.model import FetchResult, Purpose, Request
from tests.records import replace
from tests.simulation.crawls import gate_on
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

LOOP_S = 0.055  # the domain then waits for a second


class Costly(SimulatedWeb):
    """A web in which the answers of the domain ``tiny.test`` take much of the event loop."""

    async def fetch(self, request: Request) -> FetchResult:
        result = await super().fetch(request)
        return replace(result, loop_s=LOOP_S if "tiny.test" in request.url else FREE_LOOP_S)


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
