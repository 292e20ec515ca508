"""No zone, and no address, can starve, aim or empty the crawl: what is left for the healthy sites beside it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from ipaddress import ip_address
from itertools import pairwise
from pathlib import Path
from socket import AddressFamily
from typing import ClassVar
from zlib import crc32

import pytest

from crawler.clock import SystemClock
from crawler.demo.pages import Fault, Hit, Page, Site, plain
from crawler.engine.addresses import Address, Addresses, Places, network_of
from crawler.engine.alarm import Alarm
from crawler.engine.claim_task import ClaimTasks
from crawler.engine.crawl_policy import RobotsPolicy
from crawler.engine.crawl_settings import LimitSettings
from crawler.engine.gate import FetchPermit, Gate, QueueFull
from crawler.engine.lease import Lease
from crawler.engine.limiter import Limiter
from crawler.engine.outbox import Outbox
from crawler.engine.polite_client import PoliteClient
from crawler.engine.robots_messages import RobotsQuestion
from crawler.engine.slots import Slots
from crawler.fetch.name_servers import HostAddresses, NameServers
from crawler.fetch.resolver import Resolver
from crawler.frontier.politeness import Pace, PolitenessSettings
from crawler.model import Failed, FetchResult, Purpose, Reading, Request
from crawler.reasons import ErrorKind, RequestError
from crawler.robots.readings import SiteRules, unread_rules
from crawler.store.protocols import Claim
from crawler.store.sqlite.store import SqliteStore
from crawler.url import host_of, split
from tests.judge import Manners, violations
from tests.reading import ReaderInProcess
from tests.simulation.crawls import Options, crawl_for, rows
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import EPOCH_S, VirtualClock, run_virtual

TARPIT: Site = {"*": Page(fault=Fault.HANG)}


def healthy(pages: int) -> Site:
    """A site whose start page links to all others."""
    links = "".join(f"<a href='/{n}'>{n}</a>" for n in range(1, pages))
    return {"/robots.txt": plain(""), "/": Page(links), **{f"/{n}": Page("x") for n in range(1, pages)}}


def crawled(
    path: Path,
    sites: Mapping[str, Site],
    seconds: float,
    options: Options,
    addresses: Callable[[str], str] = lambda host: "",
    seeds: int | None = None,
    look_up_s: Callable[[str], float] = lambda host: 0.01,
    reader: Callable[[VirtualClock], ReaderInProcess] = lambda clock: ReaderInProcess(),
) -> list[Hit]:
    """The requests of a crawl of all ``sites`` for at most so many seconds. A tarpit is given up after 60 s.

    ``seeds``: only so many of them are seeds.
    """

    async def main(clock: VirtualClock) -> list[Hit]:
        web = SimulatedWeb(clock, sites, latency_s=0.01, addresses=addresses, look_up_s=look_up_s)
        start = [f"http://{host}/" for host in list(sites)[:seeds]]
        await crawl_for(clock, path, web, start, options, seconds, crash=False, reader=reader(clock))
        return web.log

    return run_virtual(main)


def most_at_once(hits: Iterable[Hit]) -> int:
    """The largest number of requests in flight at the same time."""
    ends = sorted(event for hit in hits for event in ((hit.started_at, 1), (hit.finished_at, -1)))
    now = most = 0
    for _, change in ends:
        now += change
        most = max(most, now)
    return most


async def served(waiting: asyncio.Task[None]) -> None:
    """A task that need not wait for any time to pass."""
    for _ in range(3):
        await asyncio.sleep(0)
    assert waiting.done()
    await waiting


# --- large robots.txt -------------------------------------------------------------------------


class SlowReader(ReaderInProcess):
    """A reader in which one robots.txt after the other takes two seconds, and is found too costly."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock
        self._process = asyncio.Lock()
        self.read_at: list[tuple[str, float]] = []
        self.held = self.most_held = 0

    async def read_robots(self, question: RobotsQuestion) -> SiteRules:
        self.held += 1
        self.most_held = max(self.most_held, self.held)
        async with self._process:
            await self._clock.sleep(2.0)
        self.held -= 1
        self.read_at.append((host_of(question.url), self._clock.now()))
        return unread_rules(Reading(question.reading), "a file that is too costly")


@pytest.mark.parametrize("zones", [1, 250])
def test_huge_robots_files_leave_a_healthy_site_whole(zones: int, db_path: Path) -> None:
    """250 hosts have a robots.txt that takes two seconds to read. The healthy site is the last seed.

    A hundred groups are claimed at once.
    """
    huge = plain("User-agent: *\n" + "Disallow: /private\n" * 2_000)
    sites: dict[str, Site] = {f"h{n}.z{n % zones}.test": {"/robots.txt": huge, "/": Page("x")} for n in range(250)}
    sites["whole.test"] = healthy(50)
    readers: list[SlowReader] = []

    def reader(clock: VirtualClock) -> SlowReader:
        readers.append(SlowReader(clock))
        return readers[-1]

    options = Options(limits=LimitSettings(claimed_groups=100), politeness=PolitenessSettings(delay_s=0.1))
    log = crawled(db_path, sites, 20.0, options, reader=reader)
    good = [hit for hit in log if hit.host == "whole.test"]
    assert len(good) == 51
    assert violations(good, Manners(delay_s=0.1)) == []
    asked = Counter((hit.host, hit.path) for hit in log)
    assert max(asked.values()) == 1, "the file waits in the store, and is not requested again"
    assert readers[0].most_held <= 2


# --- slots ------------------------------------------------------------------------------------


@pytest.mark.parametrize("zones", [1, 8])
def test_tarpits_leave_slots_for_a_healthy_site(zones: int, db_path: Path) -> None:
    sites = {f"h{n}.zone{n % zones}.test": TARPIT for n in range(300)} | {"good.test": healthy(50)}
    options = Options(politeness=PolitenessSettings(delay_s=0.1))
    log = crawled(db_path, sites, 30.0, options)
    good = [hit for hit in log if hit.host == "good.test"]
    assert sum(hit.path != "/robots.txt" for hit in good) == 50
    assert max(hit.finished_at for hit in good) < 6.5, "51 requests at a pause of 0.1 s"
    assert violations(good, Manners(delay_s=0.1)) == []
    for zone in range(zones):
        tarpits = [hit for hit in log if hit.host.endswith(f"zone{zone}.test")]
        assert 1 <= most_at_once(tarpits) <= LimitSettings().concurrency // 4


@pytest.mark.parametrize(("slots", "each"), [(1, 1), (3, 1), (4, 1), (8, 2), (64, 16), (100, 25), (1000, 250)])
def test_a_domain_alone_holds_a_quarter_of_the_slots(slots: int, each: int) -> None:
    shared = Slots(slots, SystemClock())
    assert sum(shared.take("a.test") for _ in range(slots)) == each


@pytest.mark.parametrize("domains", [2, 4, 20, 63])
def test_domains_that_take_all_they_can_leave_slots_free(domains: int) -> None:
    shared, held = Slots(64, SystemClock()), Counter[str]()
    for name in (*(f"{n}.test" for n in range(domains)), "new.test"):
        for _ in range(4):
            shared.learn(name, 0.1)
    for _ in range(64):
        held.update(name for n in range(domains) if shared.take(name := f"{n}.test"))
    assert len(held) == domains
    assert max(held.values()) - min(held.values()) <= 1
    assert 64 - held.total() >= 64 * 3 // (domains + 3) - 1
    assert shared.take("new.test")


async def test_answers_that_are_being_read_count_as_slots() -> None:
    shared = Slots(8, SystemClock())
    with shared.reading("a.test"), shared.reading("a.test"):
        assert not shared.take("a.test"), "it has its quarter in work"
        assert shared.take("b.test")
        waiting = asyncio.create_task(shared.wait("a.test"))
        await asyncio.sleep(0)
        assert not waiting.done()
    await served(waiting)


async def test_domains_that_wait_take_turns_and_a_cancelled_wait_takes_nothing() -> None:
    shared, served = Slots(1, SystemClock()), list[str]()
    assert shared.take("busy.test")

    async def wait(domain: str, name: str) -> None:
        await shared.wait(domain)
        served.append(name)
        shared.release(domain)

    tasks = [asyncio.create_task(wait("many.test", f"many {n}")) for n in range(3)]
    tasks.append(asyncio.create_task(wait("one.test", "one")))
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.sleep(0)
    shared.release("busy.test")
    tasks[2].cancel()  # it has been given no slot yet
    await asyncio.gather(*tasks, return_exceptions=True)
    assert served == ["many 0", "one"]
    assert shared.take("busy.test"), "every slot was given back"


async def test_a_slot_is_not_given_to_a_wait_that_was_just_cancelled() -> None:
    shared = Slots(1, SystemClock())
    assert shared.take("busy.test")
    first, second = (asyncio.create_task(shared.wait(f"{n}.test")) for n in range(2))
    await asyncio.sleep(0)
    first.cancel()
    shared.release("busy.test")
    await served(second)
    shared.release("1.test")
    assert shared.take("busy.test")


async def test_a_slot_given_to_a_wait_that_is_then_cancelled_goes_to_the_next() -> None:
    shared = Slots(1, SystemClock())
    assert shared.take("busy.test")
    first, second = (asyncio.create_task(shared.wait(f"{n}.test")) for n in range(2))
    await asyncio.sleep(0)
    shared.release("busy.test")
    first.cancel()
    await served(second)
    assert first.cancelled()


async def test_a_slot_that_is_given_is_booked_even_if_the_clock_is_set_back_meanwhile() -> None:
    class SetBack(SystemClock):
        at, step_s = 100.0, 0.0

        def now(self) -> float:
            self.at -= self.step_s
            return self.at + self.step_s

    address = Addresses(PolitenessSettings(), None).at(SHARED, "b.test", 0.0)
    assert address is not None
    address.next_at = 100.0
    clock = SetBack()
    shared = Slots(1, clock)
    assert shared.take("busy.test")
    waiting = asyncio.create_task(shared.wait("b.test", address))
    await asyncio.sleep(0)
    clock.step_s = 1.0
    shared.release("busy.test")
    await served(waiting)
    assert address.in_flight == 1
    assert not shared.take("c.test"), "the slot is taken"


# --- slots of domains that never answer -------------------------------------------------------


def test_silent_domains_leave_slots_to_a_site_that_answers(db_path: Path) -> None:
    sites = {"good.test": healthy(50)} | {f"silent{n}.test": TARPIT for n in range(300)}
    log = crawled(db_path, sites, 30.0, Options(politeness=PolitenessSettings(delay_s=0.1)))
    good = [hit for hit in log if hit.host == "good.test"]
    assert len(good) == 51
    assert max(hit.finished_at for hit in good) < 6.5, "51 requests at a pause of 0.1 s"
    assert most_at_once(hit for hit in log if hit.host != "good.test") == 48, "they are asked as far as that goes"


def test_a_site_found_late_passes_the_domains_that_have_never_answered(db_path: Path) -> None:
    found: Site = {"/robots.txt": plain(""), "/": Page("<a href='http://late.test/'>late</a>", delay_s=900.0)}
    sites = {"found.test": found} | {f"silent{n}.test": TARPIT for n in range(300)} | {"late.test": healthy(50)}
    log = crawled(db_path, sites, 1_000.0, Options(politeness=PolitenessSettings(delay_s=0.1)), seeds=len(sites) - 1)
    late = [hit for hit in log if hit.host == "late.test"]
    assert len(late) == 51
    assert max(hit.finished_at for hit in late) - min(hit.started_at for hit in late) < 6.5
    silent = [hit for hit in log if hit.host.startswith("silent")]
    assert len({hit.host for hit in silent}) == 300
    assert most_at_once(hit for hit in silent if hit.started_at > 500) == 32


def test_domains_that_fall_silent_leave_slots_to_one_that_is_proven(db_path: Path) -> None:
    """64 domains answer two requests each and then no more, while a healthy site is crawled."""
    start = Page("<a href='/x'>x</a>", delay_s=1.0)
    halting: Site = {"/robots.txt": plain(""), "/": start, "/x": Page(fault=Fault.HANG)}
    sites = {"good.test": healthy(50)} | {f"halting{n}.test": halting for n in range(64)}
    log = crawled(db_path, sites, 30.0, Options(politeness=PolitenessSettings(delay_s=0.1)))
    good = [hit for hit in log if hit.host == "good.test"]
    assert len(good) == 51
    assert max(hit.finished_at for hit in good) < 6.5, "51 requests at a pause of 0.1 s"
    assert most_at_once(hit for hit in log if hit.path == "/x") == 56, "they are asked as far as that goes"


def test_kinds_of_domains_share_the_slots() -> None:
    clock = _Set(100.0)
    shared = Slots(8, clock)
    for _ in range(4):
        shared.learn("quick.test", 0.1)
    for name in "abcdefgh":
        shared.learn(f"{name}.test", 30.0)
    assert sum(shared.take(f"{name}.test") for name in "abcdefgh") == 4, "slow ones hold half of them"
    assert sum(shared.take(f"new{n}.test") for n in range(8)) == 2, "with new ones three quarters"
    shared.learn("h.test", 0.1)
    assert not shared.take("h.test"), "one answer in time makes no quick domain of a slow one"
    assert shared.take("quick.test")
    clock.time += 20 * 30.0
    assert shared.take("h.test"), "but some time does"
    assert not shared.take("quick2.test"), "no slot is left"
    shared.learn("a.test", 0.1)
    shared.release("b.test")
    assert shared.take("new7.test"), "the slot of a domain counts as one of its kind"


async def test_a_domain_that_is_quick_by_now_waits_no_longer_among_the_slow_ones() -> None:
    shared = Slots(4, SystemClock())
    for name in "abc":
        shared.learn(f"{name}.test", 30.0)
    assert shared.take("a.test")
    assert shared.take("b.test")
    waiting = asyncio.create_task(shared.wait("new.test"))
    await served(waiting)
    waiting = asyncio.create_task(shared.wait("other.test"))
    await asyncio.sleep(0)
    assert not waiting.done(), "the last slot is not for new ones"
    shared.learn("other.test", 0.1)
    await served(waiting)


# --- claims -----------------------------------------------------------------------------------


def test_a_domain_of_ten_thousand_names_leaves_claims_for_healthy_sites(db_path: Path) -> None:
    wild: Site = {"/robots.txt": plain(""), "*": Page("<a href='/1'>1</a><a href='/2'>2</a>", delay_s=0.09)}
    sites = {f"n{n}.wild.test": wild for n in range(10_000)} | {f"good{n}.test": healthy(10) for n in range(20)}
    log = crawled(db_path, sites, 4.0, Options(politeness=PolitenessSettings(delay_s=0.1)))
    good = [hit for hit in log if hit.host.startswith("good")]
    assert sum(hit.path != "/robots.txt" for hit in good) == 200
    assert max(hit.finished_at for hit in good) < 1.5, "11 requests to each site at a pause of 0.1 s"


@pytest.fixture
def claims(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The times of all claims, in virtual seconds."""
    times, start = list[float](), ClaimTasks.start

    def start_and_note(tasks: ClaimTasks, claim: Claim) -> None:
        times.append(asyncio.get_running_loop().time())
        start(tasks, claim)

    monkeypatch.setattr(ClaimTasks, "start", start_and_note)
    return times


@pytest.mark.parametrize("zones", [4, 5, 22])
def test_silent_hosts_of_a_few_domains_leave_claims(zones: int, db_path: Path, claims: list[float]) -> None:
    sites = {f"h{n}.zone{n % zones}.test": TARPIT for n in range(2_200)} | {"good.test": healthy(50)}
    log = crawled(db_path, sites, 20.0, Options(politeness=PolitenessSettings(delay_s=0.1)))
    good = [hit for hit in log if hit.host == "good.test"]
    assert len(good) == 51
    assert max(hit.finished_at for hit in good) < 6.5, "51 requests at a pause of 0.1 s"
    in_second = Counter(map(int, claims))
    assert max(in_second[second] for second in range(1, 20)) < 2_000, "each group comes back at most once a second"
    assert max(in_second[second] for second in range(15, 20)) < 200, "and more and more seldom"


def test_a_domain_whose_silent_hosts_are_given_up_is_asked_as_fast_as_before(db_path: Path) -> None:
    ready: Site = {"/robots.txt": plain(""), "/": Page("x", delay_s=0.09)}
    sites = {f"h{n}.zone.test": TARPIT if n < 16 else ready for n in range(1_000)}
    log = crawled(db_path, sites, 1_200.0, Options(politeness=PolitenessSettings(delay_s=0.1)))
    assert len({hit.host for hit in log if hit.path == "/"}) == 984


def test_a_domain_of_many_hosts_uses_all_the_slots_that_it_may_have(db_path: Path) -> None:
    ready: Site = {"/robots.txt": plain(""), "*": Page("<a href='/1'>1</a><a href='/2'>2</a>", delay_s=0.09)}
    sites = {f"n{n}.many.test": ready for n in range(4_000)}
    log = crawled(db_path, sites, 6.0, Options(politeness=PolitenessSettings(delay_s=0.1)))
    held_s = sum(hit.finished_at - hit.started_at for hit in log if 1 <= hit.started_at < 5)
    assert held_s > 0.97 * 4 * LimitSettings().concurrency // 4


# --- the pace of a domain ---------------------------------------------------------------------


def many_addresses(host: str) -> str:
    """An address of its own for each host ``n1.…``, ``n2.…``."""
    number = int(host.partition(".")[0][1:])
    return f"198.18.{number // 256}.{number % 256}"


def test_a_domain_with_very_many_hosts_gets_the_pace_of_as_many_as_it_may_have_slots(db_path: Path) -> None:
    sites = {f"n{n}.many.test": {"/robots.txt": plain(""), "*": Page("x")} for n in range(400)}
    options = Options(politeness=PolitenessSettings(delay_s=2.0))
    log = crawled(db_path, sites, 60.0, options, many_addresses)
    assert least_between(starts(log)) >= 2.0 / 16
    assert len(log) > 0.97 * 60 * 8, "and no less"
    waits = run_virtual(lambda clock: rows(db_path, "SELECT DISTINCT waits_for FROM sites WHERE wait_code = 'domain'"))
    assert waits == [("other hosts of many.test",)]


def test_the_hosts_of_a_small_domain_keep_their_own_pace(db_path: Path) -> None:
    sites = {f"n{n}.few.test": healthy(10) for n in range(8)}
    log = crawled(db_path, sites, 60.0, Options(politeness=PolitenessSettings(delay_s=2.0)), many_addresses)
    assert len(log) == 8 * 11
    assert max(hit.finished_at for hit in log) < 10 * 2.1 + 8 * 0.125 + 1


@pytest.mark.parametrize(
    "politeness",
    [PolitenessSettings(delay_s=2.0, large_hosts=("198.18.0.0/16",)), PolitenessSettings(delay_s=0.0, slow_factor=0.0)],
)
def test_the_pace_of_a_domain_exempts_large_hosts_and_is_zero_without_a_pause(
    politeness: PolitenessSettings, db_path: Path
) -> None:
    sites = {f"n{n}.many.test": {"/robots.txt": plain(""), "*": Page("x")} for n in range(400)}
    log = crawled(db_path, sites, 30.0, Options(politeness=politeness), many_addresses)
    assert len(log) == 800, "all of it, which would take 100 s at 8 requests a second"


async def test_sixteen_requests_of_a_domain_may_wait() -> None:
    shared = Slots(1, SystemClock())
    assert shared.take("busy.test")
    waiting = [asyncio.create_task(shared.wait("many.test")) for _ in range(16)]
    await asyncio.sleep(0)
    full = shared.full("many.test")
    assert full is not None
    assert shared.full("one.test") is None
    waiting.pop().cancel()
    await asyncio.sleep(0)
    assert shared.full("many.test") is None
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


def test_bookings_follow_the_turns_that_were_measured() -> None:
    loop = asyncio.new_event_loop()
    try:
        limiter, waiters = Limiter("a.test", 4, pause_s=0.1), [loop.create_future() for _ in range(5)]
        for waiter in waiters[:4]:
            limiter.join(waiter, "a.test", 100.0)
        assert limiter.turn_s(100.0) == 0.1, "nothing is known yet"
        assert limiter.turn_s(102.0) == 0.5, "four have waited for two seconds"
        limiter.leave(waiters[0], 102.8)
        limiter.join(waiters[4], "a.test", 102.8)
        assert round(limiter.turn_s(102.8), 6) == 0.7
        assert limiter.turn_s(200.0) == 1.0, "at most: whoever answers at last should not have to wait for long"
        first, second = (limiter.book("a.test", 200.0) for _ in range(2))
        assert (first, second) == (202.5, 203.0), "behind four others, two a turn"
        assert limiter.book("b.test", 200.0) == 203.5, (
            "of two domains that take turns, behind the bookings of the first"
        )
        far = [limiter.book("a.test", 200.0) for _ in range(100)]
        assert all(200.0 <= at < 260.0 for at in far), "the turns may get shorter, so no group stays away for long"
        assert len(set(far)) > 50, "but they do not come back together"
    finally:
        loop.close()


# --- addresses --------------------------------------------------------------------------------

SHARED, OTHER = "203.0.113.1", "203.0.113.2"


def starts(hits: Iterable[Hit]) -> list[float]:
    return sorted(hit.started_at for hit in hits)


def least_between(times: list[float]) -> float:
    """The shortest time between two starts, rounded to a microsecond."""
    return round(min(after - before for before, after in pairwise(times)), 6)


@pytest.mark.parametrize("zones", [1, 80])
def test_eighty_names_at_one_address_are_asked_as_one_server(zones: int, db_path: Path) -> None:
    slow: Site = {"/robots.txt": replace(plain(""), delay_s=0.5), "/": Page("x", delay_s=0.5)}
    sites = {f"n{n}.zone{n % zones}.test": slow for n in range(80)}
    log = crawled(db_path, sites, 200.0, Options(politeness=PolitenessSettings(delay_s=1.0)), lambda host: SHARED)
    assert len(log) == 160, "the crawl is over"
    assert most_at_once(log) <= 2
    assert least_between(starts(log)[8:]) >= 1.0, "when more than four of its names are known"
    assert max(hit.finished_at for hit in log) < 175, "as fast as one request a second permits"


def test_few_names_at_one_address_have_no_common_pause(db_path: Path) -> None:
    sites = {f"n{n}.test": healthy(5) for n in range(4)}
    log = crawled(db_path, sites, 60.0, Options(politeness=PolitenessSettings(delay_s=1.0)), lambda host: SHARED)
    assert len(log) == 4 * 6
    assert max(hit.finished_at for hit in log) < 6
    assert most_at_once(log) == 2


def test_a_large_host_has_no_limit(db_path: Path) -> None:
    sites = {f"n{n}.test": healthy(5) for n in range(20)}
    politeness = PolitenessSettings(delay_s=1.0, large_hosts=("203.0.113.0/24",))
    log = crawled(db_path, sites, 60.0, Options(politeness=politeness), lambda host: SHARED)
    assert len(log) == 20 * 6
    assert max(hit.finished_at for hit in log) < 6
    assert most_at_once(log) == 20


def test_ten_thousand_names_at_one_address_leave_room_for_healthy_sites(db_path: Path) -> None:
    wild: Site = {"/robots.txt": plain(""), "*": Page("<a href='/1'>1</a><a href='/2'>2</a>")}
    sites = {f"n{n}.wild.test": wild for n in range(10_000)} | {f"good{n}.test": healthy(10) for n in range(20)}
    options = Options(politeness=PolitenessSettings(delay_s=0.1))
    log = crawled(db_path, sites, 4.0, options, lambda host: SHARED if "wild" in host else "")
    good = [hit for hit in log if hit.host.startswith("good")]
    wild_hits = [hit for hit in log if "wild" in hit.host]
    assert sum(hit.path != "/robots.txt" for hit in good) == 200
    assert max(hit.finished_at for hit in good) < 1.5, "11 requests to each site at a pause of 0.1 s"
    assert least_between(starts(wild_hits)[8:]) >= 0.1
    assert len(wild_hits) >= 35, "and the many names are asked at their pace"


def test_names_pointed_at_the_address_of_a_healthy_site_leave_it_every_third_turn(db_path: Path) -> None:
    wild: Site = {"/robots.txt": plain(""), "*": Page("x")}
    sites = {f"n{n}.wild.test": wild for n in range(1_000)} | {"good.test": healthy(50)}
    options = Options(politeness=PolitenessSettings(delay_s=0.1))
    log = crawled(db_path, sites, 30.0, options, lambda host: SHARED)
    good = [hit for hit in log if hit.host == "good.test"]
    assert len(good) == 51
    assert max(hit.finished_at for hit in good) < 3 * 51 * 0.1 + 1
    assert least_between(starts(log)[8:]) >= 0.1
    waits = run_virtual(lambda clock: rows(db_path, "SELECT DISTINCT waits_for FROM sites WHERE wait_code = 'address'"))
    assert waits == [(f"other hosts at {SHARED}",)]


def test_tarpits_at_one_address_hold_two_slots(db_path: Path) -> None:
    sites = {f"h{n}.zone{n}.test": TARPIT for n in range(200)} | {"good.test": healthy(50)}
    options = Options(politeness=PolitenessSettings(delay_s=0.1))
    log = crawled(db_path, sites, 30.0, options, lambda host: OTHER if host == "good.test" else SHARED)
    assert max(hit.finished_at for hit in log if hit.host == "good.test") < 6.5
    assert most_at_once(hit for hit in log if hit.host != "good.test") == 2


@pytest.mark.parametrize("domains", [1, 400])
def test_slow_look_ups_hold_no_slot_of_other_sites(domains: int, db_path: Path) -> None:
    """Each look-up of 400 names takes 15 s. Healthy sites are asked at their pace meanwhile, the slow ones later."""
    sites = {f"n{n}.slow{n % domains}.test": healthy(2) for n in range(400)}
    sites |= {f"good{n}.test": healthy(20) for n in range(10)}
    options = Options(politeness=PolitenessSettings(delay_s=0.1))
    log = crawled(
        db_path, sites, 120.0, options, addresses_by_name, look_up_s=lambda host: 15.0 if "slow" in host else 0.05
    )
    good = [hit for hit in log if hit.host.startswith("good")]
    assert len(good) == 10 * 21
    assert max(hit.finished_at for hit in good) < 21 * 0.11 + 2.5, "they may wait for one turn of look-ups"
    assert len(log) - len(good) == 400 * 3, "all slow sites were asked in the end"


def addresses_by_name(host: str) -> str:
    """An address of its own for each host."""
    return str(ip_address(0x0B000000 + crc32(host.encode()) % 0x1000000))


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
    ],
)
def test_of_ipv6_the_first_64_bits_are_one_server(text: str, network: str) -> None:
    assert network_of(text) == network


def test_what_an_address_is_exempt_from() -> None:
    addresses = Addresses(PolitenessSettings(large_hosts=("192.0.2.7", "2001:db8::/32", "2001:db9::1")), None)
    exempt = ("", "127.0.0.1", "127.1.2.3", "::1", "192.0.2.7", "2001:db8:7::1", "2001:db9::1")
    assert [addresses.at(text, "a.test", 0.0) for text in exempt] == [None] * len(exempt)
    one, same = (addresses.at(text, "a.test", 0.0) for text in ("2001:dba::1", "2001:dba::2"))
    assert one is same is not None


async def test_further_addresses_of_a_host_need_a_place_too() -> None:
    class Book:
        preferred: ClassVar[list[str]] = []

        def is_limited(self, host: str) -> bool:
            return True

        def cached(self, host: str) -> str | None:
            return SHARED

        def extend(self, host: str) -> bool:
            return True

        def look_ups(self) -> str:
            return "{}"

        async def look_up(self, host: str) -> str:
            return SHARED

        def prefer(self, host: str, address: str) -> None:
            self.preferred.append(address)

    addresses, clock = Addresses(PolitenessSettings(per_address=1), Book()), SystemClock()
    first, other = (addresses.at(text, "a.test", clock.now()) for text in (SHARED, OTHER))
    assert first is not None
    assert other is not None
    one, two = (Places(addresses, clock, f"{name}.test", f"{name}.test", first) for name in "ab")
    assert [one.may_connect(text) for text in (SHARED, OTHER, OTHER)] == [True] * 3
    assert one.may_connect("127.0.0.1"), "without a limit"
    assert not two.may_connect(OTHER), "the first request is there"
    Slots(1, clock).release_places(one.taken)
    assert two.may_connect(OTHER)
    assert Book.preferred == [OTHER, OTHER]


class ManyHomed:
    """A fetcher and address book of hosts with several addresses, tried in their order; those in ``dead`` refuse."""

    def __init__(self, clock: VirtualClock, addresses: Sequence[str], dead: Collection[str] = (), takes_s: float = 5.0):
        self.log: list[tuple[str, str, float]] = []  # host, address, start
        self._clock = clock
        self._addresses = tuple(addresses)
        self._orders: dict[str, tuple[str, ...]] = {}
        self._dead = dead
        self._takes_s = takes_s

    def is_limited(self, host: str) -> bool:
        return True

    def cached(self, host: str) -> str | None:
        return next(iter(self._orders.get(host, self._addresses)), "")

    def extend(self, host: str) -> bool:
        return True

    def look_ups(self) -> str:
        return "{}"

    async def look_up(self, host: str) -> str:
        raise AssertionError("the addresses are known")

    def prefer(self, host: str, address: str) -> None:
        others = [text for text in self._orders.get(host, self._addresses) if text != address]
        self._orders[host] = (address, *others)

    async def fetch(self, request: Request) -> FetchResult:
        host, started_at, full = host_of(request.url), self._clock.now(), False
        assert request.may_connect is not None
        for address in self._orders.get(host, self._addresses) or (SHARED,):  # without an address: known meanwhile
            if not request.may_connect(address):
                full = True
            elif address not in self._dead:
                self.log.append((host, address, started_at - EPOCH_S))
                await self._clock.sleep(self._takes_s)
                return Failed(request.url, started_at, self._clock.now(), kind=ErrorKind.HTTP, status=404)
        return Failed(request.url, started_at, self._clock.now(), kind=ErrorKind.CONNECT, unsent=full)


async def send_to_each(web: ManyHomed, clock: VirtualClock, hosts: int, politeness: PolitenessSettings) -> Outbox:
    """Send one request to each of so many hosts at once, until all have ended. Returns the outbox of the gate."""
    outbox = Outbox(clock, Alarm())
    gate = Gate(web, clock, politeness, 64, outbox, book=web)
    names = [f"n{n}.test" for n in range(hosts)]
    for name in names:
        gate.enter(name, Pace())
    requests = [Request(f"http://{name}/", Purpose.PAGE, 1000) for name in names]
    permits = [FetchPermit(n, name) for n, name in enumerate(names)]
    await asyncio.gather(*map(gate.send, requests, permits))
    return outbox


@pytest.mark.parametrize("first", [("127.0.0.1",), ("192.0.2.7",), ()])
def test_no_first_address_takes_the_limit_from_the_others(first: tuple[str, ...]) -> None:
    """Loopback, an address in ``large_hosts``, and a look-up that failed."""

    async def main(clock: VirtualClock) -> None:
        web = ManyHomed(clock, (*first, SHARED) if first else (), dead=first)
        politeness = PolitenessSettings(delay_s=1.0, large_hosts=("192.0.2.7",))
        await send_to_each(web, clock, 12, politeness)
        hits = [Hit(host, "/", start, start + 5.0, 404, "", None) for host, _, start in web.log]
        assert len(hits) == 12
        assert most_at_once(hits) <= 2
        assert least_between(starts(hits)[4:]) >= 1.0

    run_virtual(main)


def test_a_request_waits_for_the_second_address_if_the_first_does_not_answer() -> None:
    async def main(clock: VirtualClock) -> None:
        web = ManyHomed(clock, (SHARED, OTHER), dead={SHARED})
        outbox = await send_to_each(web, clock, 4, PolitenessSettings(delay_s=1.0, per_address=1))
        assert [start for _, _, start in web.log] == [0.0, 5.0, 10.0, 15.0]
        errors = [row.error for row in outbox.take().requests]
        assert errors == [RequestError(ErrorKind.HTTP, "")] * 4, "our own limit is no failure of the server"

    run_virtual(main)


def test_a_request_fails_if_none_of_the_addresses_that_it_waited_for_answers() -> None:
    async def main(clock: VirtualClock) -> None:
        web = ManyHomed(clock, (SHARED, OTHER), dead={SHARED, OTHER})
        outbox = await send_to_each(web, clock, 12, PolitenessSettings(delay_s=1.0))
        requests = outbox.take().requests
        assert [row.error for row in requests] == [RequestError(ErrorKind.CONNECT, "")] * 12
        assert max(row.finished_at for row in requests) - EPOCH_S < 40

    run_virtual(main)


def test_requests_outside_a_crawl_are_counted_by_address_too(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        options = Options(politeness=PolitenessSettings(delay_s=1.0))
        sites = {f"n{n}.test": {"/robots.txt": plain(""), "/": Page("x")} for n in range(8)}
        web = SimulatedWeb(clock, sites, addresses=lambda host: SHARED)
        policy = RobotsPolicy(options.robots, "SimulatedBot", options.politeness.group)
        store = await SqliteStore.open(db_path)
        try:
            await store.start_run({"auxiliary_run": "rup"}, clock.now())
            lease = Lease(store, clock, 60.0)
            client = PoliteClient(store, web, clock, options.politeness, policy, lease, web, ReaderInProcess())
            for name in sites:
                await client.send(Request(f"http://{name}/", Purpose.RUP, 1000))
        finally:
            await store.close()
        assert len(web.log) == 16
        assert least_between(starts(web.log)[8:]) >= 1.0, "when more than four of its names are known"

    run_virtual(main)


def test_a_group_whose_address_is_busy_is_given_back_with_all_its_urls(
    db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy, send = {"/1", "/3"}, Gate.send

    async def send_later(gate: Gate, request: Request, permit: FetchPermit) -> FetchResult | None:
        path = split(request.url).path
        if path in busy:
            busy.remove(path)
            raise QueueFull("other hosts", 0.0)
        return await send(gate, request, permit)

    undisturbed = crawled(db_path, {"a.test": healthy(6)}, 60.0, Options())
    monkeypatch.setattr(Gate, "send", send_later)
    log = crawled(db_path.with_name("busy.db"), {"a.test": healthy(6)}, 60.0, Options())
    assert not busy
    assert [hit.path for hit in log] == [hit.path for hit in undisturbed], "none is passed over"


class _Set(SystemClock):
    """A clock that shows the time that it is set to."""

    def __init__(self, time: float) -> None:
        super().__init__()
        self.time = time

    def now(self) -> float:
        return self.time


class _Ticking(SystemClock):
    """A clock that shows a later time at each look."""

    def __init__(self, time: float) -> None:
        super().__init__()
        self.time = time

    def now(self) -> float:
        self.time += 0.0002
        return self.time


async def test_a_pause_that_ends_while_a_request_joins_the_queue_is_not_missed() -> None:
    clock = _Ticking(100.0)
    slots, address = Slots(4, clock, delay_s=1.0), Address("192.0.2.1", 64, 1.0, limit=2)
    assert slots.take("a.test", address)  # the next one may start at 101.0002
    slots.release("a.test", address)
    clock.time = 100.9999
    assert not slots.take("a.test", address)
    waiting = asyncio.create_task(slots.wait("a.test", address))
    for _ in range(3):
        await asyncio.sleep(0)
    assert waiting.done(), "nothing is in flight, so nothing else would serve it"


async def test_a_timer_that_comes_early_is_set_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, timers = _Ticking(100.0), list[Callable[[], None]]()

    def call_later(delay_s: float, call: Callable[..., None], *args: object) -> object:
        timers.append(partial(call, *args))
        return timers

    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", call_later)
    slots, address = Slots(4, clock, delay_s=1.0), Address("192.0.2.1", 64, 1.0, limit=2)
    assert slots.take("a.test", address)  # the next one may start at 101.0002
    slots.release("a.test", address)
    clock.time = 100.5
    waiting = asyncio.create_task(slots.wait("a.test", address))
    await asyncio.sleep(0)
    clock.time = 100.9999
    timers.pop()()
    assert len(timers) == 1, "it has looked at 101.0001"
    clock.time = 102.0
    timers.pop()()
    await waiting


async def test_the_gate_forgets_groups_that_it_gave_back() -> None:
    class Silent:
        async def fetch(self, request: Request) -> FetchResult:
            return await asyncio.Event().wait() or Failed("", 0, 0, kind=ErrorKind.TIMEOUT)

    class NoLog:
        def add_request(self, *args: object) -> None:
            raise AssertionError("nothing is answered")

    gate = Gate(Silent(), SystemClock(), PolitenessSettings(), 4, NoLog())

    async def ask(host: str) -> None:
        gate.enter(host, Pace())
        try:
            await gate.send(Request(f"http://{host}/robots.txt", Purpose.ROBOTS, max_bytes=9), FetchPermit(1, host))
        finally:
            gate.leave(host)

    waiting = [asyncio.create_task(ask(f"h{n}.a.test")) for n in range(17)]
    await asyncio.sleep(0)
    for n in range(17, 40):
        with pytest.raises(QueueFull):
            await ask(f"h{n}.a.test")
    assert len(gate._groups) == 17
    for task in waiting:
        task.cancel()
    with pytest.raises(AssertionError):
        await asyncio.gather(*waiting)
    await asyncio.gather(*waiting, return_exceptions=True)


def test_a_queue_longer_than_the_time_of_an_answer_is_served_at_its_pace() -> None:
    """Sixty hosts at one address, whose turns are 2 s apart: most wait for longer than the 60 s of their answers."""

    class Web:
        """A fetcher that looks a name up when it connects."""

        def __init__(self, clock: VirtualClock) -> None:
            self.clock = clock
            self.sent = 0

        async def fetch(self, request: Request) -> FetchResult:
            self.sent += 1
            await book.resolve(host_of(request.url))
            now = self.clock.now()
            return Failed(request.url, now, now, kind=ErrorKind.HTTP, status=404)

    class System(NameServers):
        async def addresses(self, host: str, family: AddressFamily = AddressFamily.AF_UNSPEC) -> HostAddresses:
            return HostAddresses((SHARED,), 60.0)

    async def main(clock: VirtualClock) -> int:
        nonlocal book
        book, web = Resolver((), system=System()), Web(clock)
        gate = Gate(web, clock, PolitenessSettings(delay_s=2.0), 64, Outbox(clock, Alarm()), book=book)

        async def ask(name: str) -> None:
            gate.enter(name, Pace())
            while True:
                await gate.send(Request(f"http://{name}/", Purpose.PAGE, 1000), FetchPermit(1, name))

        tasks = [asyncio.create_task(ask(f"n{n}.d{n}.test")) for n in range(60)]
        await clock.sleep(600.0)
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results), results
        await book.close()
        return web.sent

    book: Resolver
    assert run_virtual(main) >= 300, "a turn each 2 s"
