"""The gate: which requests it does not send, and what it says about idle connections."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

from crawler.demo.pages import Page, Site, plain, redirect
from crawler.engine.alarm import Alarm
from crawler.engine.body_memory import BodyMemory
from crawler.engine.crawl_settings import LimitSettings
from crawler.engine.gate import FetchPermit, Gate
from crawler.engine.lease import Lease
from crawler.engine.outbox import Outbox
from crawler.fetch.idle_connections import IdleConnections
from crawler.frontier.politeness import Pace, PolitenessSettings
from crawler.model import Failed, Fetched, FetchResult, Purpose, Request
from crawler.reasons import ErrorKind, RequestError, WaitCode, WaitReason
from crawler.store.rows import ClaimLimits, CommitBatch
from crawler.store.sqlite.store import SqliteStore
from tests.simulation.crawls import Options, gate_on, rows, session
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import EPOCH_S, VirtualClock, run_virtual

PAGE = Request("http://a.test/", Purpose.PAGE, 1000)


async def first_request(gate: Gate, host: str) -> None:
    """Enter the group of a host, and request its page."""
    gate.bench.enter(host, Pace())
    await gate.send(Request(f"http://{host}/", Purpose.PAGE, 1000), FetchPermit(1, host))


def test_nothing_is_sent_under_an_expired_robots_copy() -> None:
    async def main(clock: VirtualClock) -> None:
        web = SimulatedWeb(clock, {"a.test": {"/": Page("x")}})
        gate = gate_on(web, clock, Outbox(clock, Alarm()))
        gate.bench.enter("a.test", Pace(next_at=clock.now() + 10))
        assert await gate.send(PAGE, FetchPermit(1, "a.test", valid_until=clock.now() + 10)) is None
        assert web.log == []
        assert await gate.send(PAGE, FetchPermit(1, "a.test", valid_until=clock.now() + 1)) is not None

    run_virtual(main)


def test_a_task_that_gets_a_slot_during_a_pause_sends_nothing() -> None:
    async def main(clock: VirtualClock) -> None:
        web = SimulatedWeb(clock, {"a.test": {"/": Page("x", delay_s=10)}, "b.test": {"/": Page("x")}})
        gate = gate_on(web, clock, Outbox(clock, Alarm()), slots=1)
        waiting = [asyncio.create_task(first_request(gate, host)) for host in ("a.test", "b.test")]
        await clock.sleep(5)
        gate.hold(True)
        await clock.sleep(100)
        assert [hit.host for hit in web.log] == ["a.test"]
        gate.hold(False)
        await asyncio.gather(*waiting)
        assert [hit.host for hit in web.log] == ["a.test", "b.test"]

    run_virtual(main)


def test_requests_wait_for_one_reading_of_orders_without_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(clock: VirtualClock) -> None:
        hosts, asked = ("a.test", "b.test", "c.test"), list[str]()
        web = SimulatedWeb(clock, {host: {"/": Page("x")} for host in hosts})
        gate = gate_on(web, clock, Outbox(clock, Alarm()), slots=12)
        ask = gate.bench.ask
        monkeypatch.setattr(gate.bench, "ask", lambda ticket, *facts: asked.append(ticket.host) or ask(ticket, *facts))
        gate.knows_orders(clock.now() - 1)
        waiting = [asyncio.create_task(first_request(gate, host)) for host in hosts]
        await clock.sleep(5)
        assert (asked, web.log) == ([], [])
        gate.knows_orders(clock.now() + 0.25)
        await asyncio.gather(*waiting)
        assert sorted(asked) == sorted(hit.host for hit in web.log) == [*hosts]

    run_virtual(main)


def test_requests_to_a_crowded_address_are_a_pause_apart_after_a_wait_for_orders() -> None:
    async def main(clock: VirtualClock) -> None:
        hosts = [f"h{number}.test" for number in range(7)]
        sites: dict[str, Site] = {host: {"/": Page("x")} for host in hosts}
        web = SimulatedWeb(clock, sites, addresses=lambda host: "203.0.113.1")
        gate = gate_on(web, clock, Outbox(clock, Alarm()), book=web)

        for host in hosts[:5]:
            await first_request(gate, host)
        late = [asyncio.create_task(first_request(gate, host)) for host in hosts[5:]]
        await clock.sleep(0.5)
        gate.knows_orders(clock.now())
        await clock.sleep(10)
        assert len(web.log) == 5
        gate.knows_orders(clock.now() + 100)
        await asyncio.gather(*late)
        assert all(after.started_at >= before.started_at + 2 for before, after in pairwise(web.log[5:]))

    run_virtual(main)


def test_requests_that_wait_for_a_slot_keep_their_turns_during_a_wait_for_orders() -> None:
    async def main(clock: VirtualClock) -> None:
        hosts = [f"h{number}.test" for number in range(4)]
        web = SimulatedWeb(clock, {host: {"/": Page("x", delay_s=1)} for host in hosts})
        gate = gate_on(web, clock, Outbox(clock, Alarm()), slots=1)
        sending = [asyncio.create_task(first_request(gate, host)) for host in hosts]
        await clock.sleep(0.5)
        gate.knows_orders(clock.now())
        await clock.sleep(5)
        tickets = [gate.bench._groups[host].ticket for host in hosts[1:]]
        assert [ticket is not None and ticket.waits_in is not None for ticket in tickets] == [False, True, True]
        gate.knows_orders(clock.now() + 100)
        await asyncio.gather(*sending)

    run_virtual(main)


def test_a_body_that_waits_for_memory_leaves_a_slot_of_its_own_crawl_to_others() -> None:
    """The tasks of a round share the memory for bodies, and each has a gate."""

    async def main(clock: VirtualClock) -> None:
        memory = BodyMemory(most=1)
        await memory.hold(Request("http://z.test/", Purpose.PAGE, 1, group="z.test"), 1)

        class Large:
            async def fetch(self, request: Request) -> FetchResult:
                await memory.hold(request, 1)
                return Failed(request.url, clock.now(), clock.now(), detail="no answer")

        gate, _ = (gate_on(Large(), clock, Outbox(clock, Alarm()), slots=1, memory=memory) for _ in range(2))
        waiting = []
        for host in ("a.test", "b.test"):
            gate.bench.enter(host, Pace())
            request = Request(f"http://{host}/", Purpose.PAGE, 1)
            waiting.append(asyncio.create_task(gate.send(request, FetchPermit(1, host))))
        await clock.sleep(5)
        assert gate.requests_in_flight == 2
        for host in ("z.test", "a.test"):
            memory.release(host)
        await asyncio.gather(*waiting)

    run_virtual(main)


def test_a_request_that_a_bug_interrupts_is_logged_and_followed_by_a_pause() -> None:
    async def main(clock: VirtualClock) -> None:
        class Buggy:
            async def fetch(self, request: Request) -> FetchResult:
                await clock.sleep(0.2)
                raise ValueError(f"a bug at {request.url}")

        log = Outbox(clock, Alarm())
        gate = gate_on(Buggy(), clock, log)
        gate.bench.enter("a.test", Pace())
        for _ in range(2):
            with pytest.raises(ValueError, match="a bug"):
                await gate.send(PAGE, FetchPermit(1, "a.test"))
            assert gate.requests_in_flight == 0
        assert [(row.started_at - EPOCH_S, row.error) for row in log.next_batch().requests] == [
            (0.0, RequestError(ErrorKind.FAULT, "ValueError")),
            (pytest.approx(2.2), RequestError(ErrorKind.FAULT, "ValueError")),
        ]

    run_virtual(main)


@pytest.mark.parametrize(("stopped_s", "over_s"), [(0.0, 0.1), (20.0, 20.0), (60.0, 5.5)])
def test_a_request_that_outlasts_the_lease_ends_at_its_timeout_in_the_log(
    db_path: Path, stopped_s: float, over_s: float
) -> None:
    async def main(clock: VirtualClock) -> None:
        class Stopped:
            """Sends a request and is stopped with the process."""

            async def fetch(self, request: Request) -> FetchResult:
                started_at = clock.now()
                await clock.sleep(max(0.1, stopped_s))
                return Failed(request.url, started_at, clock.now(), detail="no answer")

        log = Outbox(clock, Alarm())
        store = await SqliteStore.open(db_path, lease_s=30.0)
        lease = Lease(store, clock, 5.0, clock.now)
        lease.begin(clock.now())
        gate = gate_on(Stopped(), clock, log, lease=lease)
        gate.bench.enter("a.test", Pace())
        await gate.send(PAGE, FetchPermit(1, "a.test"))
        assert [row.finished_at - row.started_at for row in log.next_batch().requests] == [pytest.approx(over_s)]
        assert gate.bench.pace("a.test").next_at >= clock.now()
        await store.close()

    run_virtual(main)


def test_nothing_is_sent_after_the_time_of_the_crawl_though_nothing_has_closed_the_gate(db_path: Path) -> None:
    """As after a process was stopped (SIGSTOP) until the time was over."""

    async def main(clock: VirtualClock) -> None:
        web = SimulatedWeb(clock, {"a.test": {"/": Page("x")}})
        store = await SqliteStore.open(db_path)
        lease = Lease(store, clock, 5.0, clock.now, ends_at=clock.now() + 10)
        gate = gate_on(web, clock, Outbox(clock, Alarm()), lease=lease)
        gate.bench.enter("a.test", Pace())
        await gate.send(PAGE, FetchPermit(1, "a.test"))
        await clock.sleep(10)
        late = asyncio.create_task(gate.send(PAGE, FetchPermit(1, "a.test")))
        await clock.sleep(100)
        assert len(web.log) == 1
        gate.close()
        with pytest.raises(asyncio.CancelledError):
            await late
        await store.close()

    run_virtual(main)


@pytest.mark.parametrize("losses", [1, 2])
def test_a_request_lost_to_a_closing_connection_is_logged_and_sent_once_more_after_the_pause(losses: int) -> None:
    async def main(clock: VirtualClock) -> None:
        sent: list[bool] = []

        class Closing:
            async def fetch(self, request: Request) -> FetchResult:
                sent.append(request.fresh)
                started_at = clock.now()
                await clock.sleep(0.25)
                if len(sent) <= losses:
                    return Failed(request.url, started_at, clock.now(), kind=ErrorKind.CLOSING)
                return Fetched(request.url, started_at, clock.now())

        log = Outbox(clock, Alarm())
        gate = gate_on(Closing(), clock, log)
        gate.bench.enter("a.test", Pace(backoff_s=40.0))
        answer = await gate.send(PAGE, FetchPermit(1, "a.test"))
        assert isinstance(answer, Fetched if losses == 1 else Failed)
        assert sent == [False, True], "sent once more, on a new connection"
        rows = log.next_batch().requests
        assert [row.started_at - EPOCH_S for row in rows] == [0.0, 40.25]
        assert [row.error is None for row in rows] == [False, losses == 1]
        assert gate.bench.pace("a.test").backoff_s == (20.0 if losses == 1 else 40.0), "a lost request is no trouble"

    run_virtual(main)


def test_a_lost_request_is_not_sent_again_under_an_expired_robots_copy() -> None:
    async def main(clock: VirtualClock) -> None:
        class Closing:
            async def fetch(self, request: Request) -> FetchResult:
                return Failed(request.url, clock.now(), clock.now(), kind=ErrorKind.CLOSING)

        log = Outbox(clock, Alarm())
        gate = gate_on(Closing(), clock, log)
        gate.bench.enter("a.test", Pace())
        assert await gate.send(PAGE, FetchPermit(1, "a.test", valid_until=clock.now() + 1)) is None
        assert len(log.next_batch().requests) == 1

    run_virtual(main)


class Kept(IdleConnections):
    """Notes what the gate says about idle connections."""

    def __init__(self) -> None:
        self.told: list[tuple[str, float | None]] = []

    def expect(self, group: str, wait_s: float) -> None:
        self.told.append((group, round(wait_s, 3)))

    def close(self, group: str) -> None:
        self.told.append((group, None))


def test_connections_are_kept_for_the_pause_and_closed_when_the_group_is_given_back(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        rules = {"near.test": "", "far.test": "User-agent: *\nCrawl-delay: 30\n"}
        sites: dict[str, Site] = {
            host: {"/robots.txt": plain(text), "/": Page("x"), "/2": Page("y")} for host, text in rules.items()
        }
        web, kept = SimulatedWeb(clock, sites), Kept()
        seeds = [f"http://{host}/{path}" for host in sites for path in ("", "2")]
        async with session(clock, db_path, web, seeds, Options(), connections=kept) as (run, _):
            await run.run()
        near = [wait_s for group, wait_s in kept.told if group == "near.test"]
        far = [wait_s for group, wait_s in kept.told if group == "far.test"]
        assert near == [1.0, 1.0, 1.0], "robots.txt and two pages in one claim"
        assert far == [1.0, None, 30.0, None, 30.0], "given back, since the next request waits for 30 s"

    run_virtual(main)


@pytest.mark.parametrize(("claimed_groups", "closed"), [(2, True), (100, False)])
def test_connections_are_closed_at_the_end_of_a_claim_in_a_crowd(
    claimed_groups: int, closed: bool, db_path: Path
) -> None:
    async def main(clock: VirtualClock) -> None:
        sites: dict[str, Site] = {f"h{n}.test": {"/robots.txt": plain(""), "/": Page("x")} for n in range(20)}
        web, kept = SimulatedWeb(clock, sites), Kept()
        options = Options(limits=LimitSettings(claimed_groups=claimed_groups))
        async with session(clock, db_path, web, [f"http://{h}/" for h in sites], options, connections=kept) as (run, _):
            await run.run()
        assert any(wait_s is None for _, wait_s in kept.told) is closed

    run_virtual(main)


@pytest.mark.parametrize(("delay_s", "latency_s", "held"), [(0.0, 50.0, 10), (5.0, 0.1, 20)])
def test_at_most_half_of_the_claims_are_past_their_pauses(
    delay_s: float, latency_s: float, held: int, db_path: Path
) -> None:
    """20 of 60 groups may be claimed. In the first case, their answers take long; in the second, their pauses."""

    async def main(clock: VirtualClock) -> None:
        hosts = [f"h{n}.test" for n in range(60)]
        site: Site = {"/robots.txt": plain(""), "/": Page("x")}
        web = SimulatedWeb(clock, dict.fromkeys(hosts, site), latency_s=latency_s)
        limits, politeness = LimitSettings(claimed_groups=20, concurrency=8), PolitenessSettings(delay_s=delay_s)
        seeds, most = [f"http://{host}/" for host in hosts], 0
        async with session(clock, db_path, web, seeds, Options(limits=limits, politeness=politeness)) as (run, _):
            running = asyncio.create_task(run.run())
            for _ in range(100):
                await clock.sleep(0.1)
                most = max(most, run.progress.active)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        assert most == held

    run_virtual(main)


def test_a_redirected_robots_txt_request_keeps_the_stored_pace_of_its_host(db_path: Path) -> None:
    sites: dict[str, Site] = {
        "a.test": {"/robots.txt": redirect("http://rules.test/"), "/": Page("x")},
        "rules.test": {"/": plain("")},
    }

    async def main(clock: VirtualClock) -> None:
        web = SimulatedWeb(clock, sites)
        async with session(clock, db_path, web, ["http://a.test/"], Options()) as (run, store):
            await store.pause_after(0.0, {"rules.test": 0.0})  # now the store knows the group
            asked_lately = {"rules.test": Pace(clock.now() + 500, 500.0, 0.0, WaitReason(WaitCode.RETRY_AFTER, "503"))}
            await store.commit(CommitBatch(clock.now(), claim_limits=ClaimLimits(0), paces=asked_lately))
            await run.run()
        hops = web.web.hits("rules.test")
        assert [hop.path for hop in hops] == ["/robots.txt", "/"]
        assert hops[0].started_at >= 500
        assert [hit.path for hit in web.web.hits("a.test")] == ["/robots.txt", "/"], "asked once"

    run_virtual(main)


def test_a_pause_does_not_count_the_lag_of_the_own_loop(db_path: Path) -> None:
    """A host whose answer keeps the loop busy for 12.4 s makes no pause of another host longer."""

    class Blocking(SimulatedWeb):
        async def fetch(self, request: Request) -> FetchResult:
            if request.url == "http://heavy.test/1":
                await quick_is_asked.wait()
                self._clock.loop._now += 12.4
            if not request.url.startswith("http://quick.test"):
                return await super().fetch(request)
            quick_is_asked.set()
            try:
                return await super().fetch(request)
            finally:
                quick_is_asked.clear()

    quick_is_asked = asyncio.Event()

    site: Site = {"/robots.txt": plain(""), "*": Page("x")}
    sites = {"heavy.test": site, "quick.test": site}

    async def main(clock: VirtualClock) -> list[float]:
        web = Blocking(clock, sites, latency_s=0.004)
        seeds = [f"http://heavy.test/{n}" for n in range(2)] + [f"http://quick.test/{n}" for n in range(20)]
        options = Options(politeness=PolitenessSettings(delay_s=0.1, slow_cap_s=1000.0))
        async with session(clock, db_path, web, seeds, options) as (run, _), run.measuring_lag():
            await run.run()
        hits = web.web.hits("quick.test")
        return [after.started_at - before.finished_at for before, after in pairwise(hits)]

    assert max(run_virtual(main)) < 1.0
    logged = asyncio.run(rows(db_path, "SELECT lag_s, finished_at - started_at FROM requests"))
    assert max(lag_s for lag_s, _ in logged) == pytest.approx(12.4, abs=0.1)
    assert all(0 <= lag_s <= took_s for lag_s, took_s in logged)
