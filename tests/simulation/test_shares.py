"""Which site gets how many requests, and when, beside hosts that would take everything the crawl has.

Each test crawls a web of silent, slow or very many hosts beside healthy sites, and judges by the log of that web. A
crawl has 16 slots and 200 claims here (:data:`SMALL`), so that few hosts could take all of them.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from zlib import crc32

import pytest

from crawler.demo.pages import Fault, Hit, Page, Site, plain
from crawler.engine.crawl_policy import RobotsPolicy
from crawler.engine.crawl_settings import LimitSettings
from crawler.engine.lease import Lease
from crawler.engine.messages import Question, T
from crawler.engine.polite_client import PoliteClient
from crawler.fetch.name_servers import HostAddresses
from crawler.fetch.resolver import Resolver
from crawler.frontier.politeness import PolitenessSettings
from crawler.model import Failed, Fetched, FetchResult, PageFacts, Purpose, Request
from crawler.reasons import ErrorKind
from crawler.store.rows import CommitBatch, CommitResult
from crawler.store.sqlite.store import SqliteStore
from crawler.url import host_of
from tests.judge import Manners, violations
from tests.reading import ReaderInProcess
from tests.simulation.crawls import Options, crawl_for, rows
from tests.simulation.web import SimulatedWeb, healthy
from tests.virtual_time import EPOCH_S, VirtualClock, run_virtual

SMALL = LimitSettings(concurrency=16, claimed_groups=200)
#: The slots that one registered domain may hold.
QUARTER = 4
#: The seconds between two requests to a host, the time of an answer, and that after which a tarpit is given up.
PAUSE_S, LATENCY_S, GIVEN_UP_S = 0.1, 0.01, 60.0

TARPIT: Site = {"*": Page(fault=Fault.HANG)}
ONE_PAGE: Site = {"/robots.txt": plain(""), "/": Page("x")}
#: A site whose every page links to two others, and whose pages take as long as its pause.
ENDLESS: Site = {"/robots.txt": plain(""), "*": Page("<a href='/1'>1</a><a href='/2'>2</a>", delay_s=0.09)}
#: The address of many hosts, and that of others.
SHARED, OTHER = "203.0.113.1", "203.0.113.2"


def undisturbed_s(requests: int) -> float:
    """The time that so many requests to one site take if nothing else holds them up, and a second more."""
    return requests * (PAUSE_S + LATENCY_S) + 1.0


def own_address(host: str) -> str:
    """An address of its own for each host."""
    number = crc32(host.encode())
    return f"198.18.{number // 256 % 256}.{number % 256}"


def pauses(delay_s: float = PAUSE_S, **others: object) -> PolitenessSettings:
    return replace(PolitenessSettings(), delay_s=delay_s, **others)


def crawled(
    path: Path,
    sites: Mapping[str, Site],
    seconds: float,
    *,
    politeness: PolitenessSettings | None = None,
    limits: LimitSettings = SMALL,
    seeds: int | None = None,
    addresses: Callable[[str], str] = lambda host: "",
    look_up_s: Callable[[str], float] = lambda host: 0.01,
    reader: Callable[[VirtualClock], ReaderInProcess] = lambda clock: ReaderInProcess(),
    fetcher: type[SimulatedWeb] = SimulatedWeb,
) -> list[Hit]:
    """The requests of a crawl of all ``sites`` for at most so many seconds, ordered by their starts.

    ``seeds``: only so many of the sites are seeds. A host without an address (the default) has no limit by address.
    """

    async def main(clock: VirtualClock) -> list[Hit]:
        web = fetcher(clock, sites, latency_s=LATENCY_S, timeout_s=GIVEN_UP_S, addresses=addresses, look_up_s=look_up_s)
        start = [f"http://{host}/" for host in list(sites)[:seeds]]
        options = Options(limits=limits, politeness=politeness or pauses())
        await crawl_for(clock, path, web, start, options, seconds, crash=False, reader=reader(clock))
        return sorted(web.log, key=lambda hit: hit.started_at)

    return run_virtual(main)


def of(log: Iterable[Hit], word: str) -> list[Hit]:
    """The requests to the hosts whose names have ``word`` in them."""
    return [hit for hit in log if word in hit.host]


def most_at_once(hits: Iterable[Hit]) -> int:
    """The largest number of requests in flight at the same time."""
    ends = sorted(event for hit in hits for event in ((hit.started_at, 1), (hit.finished_at, -1)))
    now = most = 0
    for _, change in ends:
        now += change
        most = max(most, now)
    return most


def last_end(hits: Iterable[Hit]) -> float:
    return max(hit.finished_at for hit in hits)


def shortest_pause(hits: list[Hit]) -> float:
    """The shortest time between two starts, rounded to a microsecond."""
    return round(min(after.started_at - before.started_at for before, after in pairwise(hits)), 6)


def waits_for(path: Path, code: str) -> list[str]:
    """What the sites whose wait has this code wait for, in the words of the store."""
    sql = "SELECT DISTINCT waits_for FROM sites WHERE wait_code = ?"
    return [words for (words,) in run_virtual(lambda clock: rows(path, sql, [code]))]


# --- slots ------------------------------------------------------------------------------------


@pytest.mark.parametrize("zones", [1, 2, 4, 8])
def test_tarpits_leave_slots_for_a_healthy_site(zones: int, db_path: Path) -> None:
    """``zones`` domains that take all they can hold as many slots each, and leave 3 of ``zones`` + 3 free."""
    sites = {f"h{n}.zone{n % zones}.test": TARPIT for n in range(75)} | {"good.test": healthy(20)}
    log = crawled(db_path, sites, 20.0)
    good, tarpits = of(log, "good"), of(log, "zone")
    assert len(good) == 21
    assert last_end(good) < undisturbed_s(21)
    assert violations(good, Manners(delay_s=PAUSE_S)) == []
    held = [most_at_once(of(tarpits, f"zone{zone}.test")) for zone in range(zones)]
    assert 1 <= min(held) <= max(held) <= min(held) + 1 <= QUARTER + 1
    assert most_at_once(tarpits) <= SMALL.concurrency * zones / (zones + 3) + 1


def test_domains_take_turns_however_many_hosts_they_have(db_path: Path) -> None:
    """Of 30 hosts of a domain, 16 wait for the only slot whenever that of a site with one host is free again."""
    sites = {f"n{n}.many.test": ENDLESS for n in range(30)} | {"one.test": healthy(20)}
    log = crawled(db_path, sites, 20.0, politeness=pauses(0.0), limits=LimitSettings(concurrency=1))
    places = [place for place, hit in enumerate(log) if hit.host == "one.test"]
    assert len(places) == 21
    assert places[-1] < 5 * 21, "about each third request, where each 17th would be its share by hosts"


def test_silent_domains_leave_slots_to_a_site_that_answers(db_path: Path) -> None:
    sites = {"good.test": healthy(20)} | {f"silent{n}.test": TARPIT for n in range(75)}
    log = crawled(db_path, sites, 10.0)
    assert len(of(log, "good")) == 21
    assert last_end(of(log, "good")) < undisturbed_s(21)
    assert most_at_once(of(log, "silent")) == SMALL.concurrency * 3 // 4, "they are asked as far as that goes"


def test_a_site_found_late_passes_the_domains_that_have_never_answered(db_path: Path) -> None:
    found: Site = {"/robots.txt": plain(""), "/": Page("<a href='http://late.test/'>late</a>", delay_s=900.0)}
    sites = {"found.test": found} | {f"silent{n}.test": TARPIT for n in range(75)} | {"late.test": healthy(20)}
    log = crawled(db_path, sites, 1_000.0, seeds=len(sites) - 1)
    late, silent = of(log, "late"), of(log, "silent")
    assert len(late) == 21
    assert last_end(late) - late[0].started_at < undisturbed_s(21)
    assert len({hit.host for hit in silent}) == 75
    assert most_at_once(hit for hit in silent if hit.started_at > 500) == SMALL.concurrency // 2


def test_domains_that_fall_silent_leave_slots_to_one_that_is_proven(db_path: Path) -> None:
    """20 domains answer two requests each and then no more, while a healthy site is crawled."""
    start = Page("<a href='/x'>x</a>", delay_s=1.0)
    halting: Site = {"/robots.txt": plain(""), "/": start, "/x": Page(fault=Fault.HANG)}
    sites = {"good.test": healthy(50)} | {f"halting{n}.test": halting for n in range(20)}
    log = crawled(db_path, sites, 30.0)
    assert len(of(log, "good")) == 51
    assert last_end(of(log, "good")) < undisturbed_s(51)
    silent = most_at_once(hit for hit in log if hit.path == "/x")
    assert silent == SMALL.concurrency * 7 // 8, "they are asked as far as that goes"


# --- answers that take long to read ------------------------------------------------------------


class SlowReader(ReaderInProcess):
    """A reader that reads one answer of the hosts ``heavy…`` after the other, each for two seconds."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock
        self._process = asyncio.Lock()
        self.held = self.most_held = 0

    async def _take_long(self) -> None:
        self.held += 1
        self.most_held = max(self.most_held, self.held)
        async with self._process:
            await self._clock.sleep(2.0)
        self.held -= 1

    async def read(self, document: Fetched, *, is_alone: bool = False, shingles: bool = False) -> PageFacts:
        if host_of(document.url).startswith("heavy"):
            await self._take_long()
        return await super().read(document, is_alone=is_alone, shingles=shingles)

    async def ask(self, question: Question[T], *, is_alone: bool = False) -> T:
        await self._take_long()
        return question.unread("a file that is too costly")


@pytest.mark.parametrize("zones", [1, 50])
@pytest.mark.parametrize("what", ["robots.txt", "pages"])
def test_answers_that_take_long_to_read_leave_a_healthy_site_whole(what: str, zones: int, db_path: Path) -> None:
    """The reader has few answers at a time. The healthy site is the last seed."""
    huge = plain("User-agent: *\n" + "Disallow: /private\n" * 2_000) if what == "robots.txt" else plain("")
    sites = {f"heavy{n}.z{n % zones}.test": {"/robots.txt": huge, "/": Page("x")} for n in range(50)}
    readers: list[SlowReader] = []

    def reader(clock: VirtualClock) -> SlowReader:
        readers.append(SlowReader(clock))
        return readers[-1]

    log = crawled(db_path, {**sites, "whole.test": healthy(20)}, 10.0, reader=reader)
    good = of(log, "whole")
    assert len(good) == 21
    assert last_end(good) < undisturbed_s(21)
    assert violations(good, Manners(delay_s=PAUSE_S)) == []
    assert max(Counter((hit.host, hit.path) for hit in log).values()) == 1, (
        "an answer that waits is not asked for again"
    )
    most = {"robots.txt": 2, "pages": SMALL.concurrency // 3 + 1 if zones == 1 else 50}
    assert 1 < readers[0].most_held <= most[what]


# --- claims -----------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["", SHARED])
def test_a_domain_of_very_many_names_leaves_claims_for_healthy_sites(address: str, db_path: Path) -> None:
    """Its names are twice the groups that may be claimed. They have no address with a limit, or one in common."""
    sites = {f"n{n}.wild.test": ENDLESS for n in range(400)} | {f"good{n}.test": healthy(10) for n in range(5)}
    log = crawled(db_path, sites, 4.0, addresses=lambda host: address if "wild" in host else "")
    good, wild = of(log, "good"), of(log, "wild")
    assert len(good) == 5 * 11
    assert last_end(good) < 1.5, "11 requests to each site at a pause of 0.1 s"
    if address:
        assert shortest_pause(wild[8:]) >= PAUSE_S, "when more than four of its names are known"
        assert len(wild) >= 35, "and the many names are asked at their pace"


@pytest.fixture
def claims(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """How many groups were claimed in each second of virtual time."""
    in_second, commit = Counter[int](), SqliteStore.commit

    async def commit_and_count(store: SqliteStore, batch: CommitBatch) -> CommitResult:
        result = await commit(store, batch)
        in_second[int(asyncio.get_running_loop().time())] += len(result.claims)
        return result

    monkeypatch.setattr(SqliteStore, "commit", commit_and_count)
    return in_second


@pytest.mark.parametrize("zones", [5, 22])
def test_silent_hosts_of_a_few_domains_leave_claims(zones: int, db_path: Path, claims: Counter[int]) -> None:
    """16 requests of a domain wait in the crawl, and its other hosts in the store."""
    hosts, limits = 50 * zones, LimitSettings(concurrency=16, claimed_groups=40 * zones)
    sites = {f"h{n}.zone{n % zones}.test": TARPIT for n in range(hosts)} | {"good.test": healthy(20)}
    log = crawled(db_path, sites, 20.0, limits=limits)
    assert len(of(log, "good")) == 21
    assert last_end(of(log, "good")) < undisturbed_s(21)
    assert max(claims[second] for second in range(1, 20)) < hosts, "each group comes back at most once a second"
    assert max(claims[second] for second in range(15, 20)) < hosts / 10, "and more and more seldom"


def test_a_domain_whose_silent_hosts_are_given_up_is_asked_as_fast_as_before(db_path: Path) -> None:
    ready: Site = {"/robots.txt": plain(""), "/": Page("x", delay_s=0.09)}
    sites = {f"h{n}.zone.test": TARPIT if n < QUARTER else ready for n in range(120)}
    log = crawled(db_path, sites, 200.0)
    assert len({hit.host for hit in log if hit.path == "/"}) == 120 - QUARTER


# --- the pace of a domain ---------------------------------------------------------------------


def test_a_domain_with_very_many_hosts_gets_the_pace_of_as_many_as_it_may_have_slots(db_path: Path) -> None:
    sites = {f"n{n}.many.test": ENDLESS for n in range(100)}
    log = crawled(db_path, sites, 60.0, politeness=pauses(2.0), addresses=own_address)
    assert shortest_pause(log) >= 2.0 / QUARTER
    assert len(log) > 0.97 * 60 / (2.0 / QUARTER), "and no less"
    assert waits_for(db_path, "domain") == ["other hosts of many.test"]


def test_the_hosts_of_a_small_domain_keep_their_own_pace(db_path: Path) -> None:
    sites = {f"n{n}.few.test": healthy(10) for n in range(QUARTER)}
    log = crawled(db_path, sites, 60.0, politeness=pauses(2.0), addresses=own_address)
    assert len(log) == QUARTER * 11
    assert last_end(log) < 10 * 2.1 + QUARTER * 0.5 + 1


@pytest.mark.parametrize("politeness", [pauses(2.0, large_hosts=("198.18.0.0/16",)), pauses(0.0, slow_factor=0.0)])
def test_the_pace_of_a_domain_exempts_large_hosts_and_is_zero_without_a_pause(
    politeness: PolitenessSettings, db_path: Path
) -> None:
    sites = {f"n{n}.many.test": ONE_PAGE for n in range(100)}
    log = crawled(db_path, sites, 30.0, politeness=politeness, addresses=own_address)
    assert len(log) == 200, "all of it, which would take 100 s at two requests a second"


# --- addresses --------------------------------------------------------------------------------


@pytest.mark.parametrize("zones", [1, 20])
def test_twenty_names_at_one_address_are_asked_as_one_server(zones: int, db_path: Path) -> None:
    slow: Site = {"/robots.txt": replace(plain(""), delay_s=0.5), "/": Page("x", delay_s=0.5)}
    sites = {f"n{n}.zone{n % zones}.test": slow for n in range(20)}
    log = crawled(db_path, sites, 60.0, politeness=pauses(1.0), addresses=lambda host: SHARED)
    assert len(log) == 40, "the crawl is over"
    assert most_at_once(log) <= 2
    assert shortest_pause(log[8:]) >= 1.0, "when more than four of its names are known"
    assert last_end(log) < 44, "as fast as one request a second permits"


def test_names_pointed_at_the_address_of_a_healthy_site_leave_it_every_third_turn(
    tmp_path: Path, db_path: Path
) -> None:
    alone = crawled(tmp_path / "alone.db", {"good.test": healthy(50)}, 20.0)
    sites = {f"n{n}.wild.test": ONE_PAGE for n in range(150)} | {"good.test": healthy(50)}
    log = crawled(db_path, sites, 20.0, addresses=lambda host: SHARED)
    good = of(log, "good")
    assert [hit.path for hit in good] == [hit.path for hit in alone], "none is passed over"
    assert last_end(good) < 3 * 51 * PAUSE_S + 1
    assert shortest_pause(log[8:]) >= PAUSE_S
    assert waits_for(db_path, "address") == [f"other hosts at {SHARED}"]


def test_names_at_crowded_addresses_hold_no_claims_of_other_sites(db_path: Path) -> None:
    """Shared hosting: 320 names of as many domains at four addresses, and 200 groups claimed at once."""
    sites = {f"n{n}.zone{n}.test": healthy(3) for n in range(320)} | {f"good{n}.test": healthy(6) for n in range(20)}

    def address(host: str) -> str:
        return own_address(host) if "good" in host else f"203.0.113.{int(host[1 : host.index('.')]) % 4}"

    log = crawled(db_path, sites, 60.0, politeness=pauses(1.0), addresses=address)
    good = of(log, "good")
    assert len(good) == 20 * 7
    assert last_end(good) < 1.3 * 7.5, "7 requests to each, a second apart"
    for shared in ([hit for hit in log if address(hit.host) == f"203.0.113.{number}"] for number in range(4)):
        assert shortest_pause(shared[8:]) >= 1.0
        assert len(shared) >= 0.9 * 60, "the address is asked at its pace"
        assert max(Counter(hit.host for hit in shared).values()) <= 2, "its names take turns"


def test_requests_outside_a_crawl_are_counted_by_address_too(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> list[Hit]:
        options = Options(politeness=pauses(1.0))
        sites = {f"n{n}.test": ONE_PAGE for n in range(8)}
        web = SimulatedWeb(clock, sites, addresses=lambda host: SHARED)
        policy = RobotsPolicy(options.robots, "SimulatedBot")
        store = await SqliteStore.open(db_path)
        try:
            await store.start_run({"auxiliary_run": "rup"}, clock.now())
            lease = Lease(store, clock, 60.0)
            client = PoliteClient(store, web, clock, options.politeness, policy, lease, web, ReaderInProcess())
            for name in sites:
                await client.send(Request(f"http://{name}/", Purpose.RUP, 1000))
        finally:
            await store.close()
        return web.log

    log = run_virtual(main)
    assert len(log) == 16
    assert shortest_pause(log[8:]) >= 1.0, "when more than four of its names are known"


# --- hosts with several addresses --------------------------------------------------------------


class ManyHomed(SimulatedWeb):
    """A web whose hosts have several addresses, which are tried in turn. Those in ``dead`` refuse.

    ``log`` has a request for each connection; the address is in place of the user agent.
    """

    known: tuple[str, ...] = (SHARED, OTHER)
    dead: frozenset[str] = frozenset()

    def __init__(self, clock: VirtualClock, sites: Mapping[str, Site], **options: object) -> None:
        super().__init__(clock, sites, **options)  # type: ignore[arg-type]
        self._refused: dict[str, set[str]] = defaultdict(set)

    def is_limited(self, host: str) -> bool:
        return True

    def cached(self, host: str) -> str | None:
        known = (self.known or (SHARED,)) if self._refused[host] else self.known
        return next((text for text in known if text not in self._refused[host]), "")

    def refused(self, host: str, address: str) -> bool:
        self._refused[host].add(address)
        if self._refused[host].issuperset(self.known or (SHARED,)):
            self._refused[host].clear()
            return False
        return True

    async def fetch(self, request: Request) -> FetchResult:
        now, address = self._clock.now(), request.address
        assert address is not None
        if not address or address in self.dead:  # without an address: it is known meanwhile
            return Failed(request.url, now, now, kind=ErrorKind.CONNECT, unsent=True)
        answer = await super().fetch(request)
        self.log[-1] = replace(self.log[-1], user_agent=address)
        return answer


def homed(*addresses: str, dead: Iterable[str] = ()) -> type[ManyHomed]:
    """A web whose hosts all have these addresses."""
    return type("Homed", (ManyHomed,), {"known": addresses, "dead": frozenset(dead)})


SLOW_PAGE: Site = {"/robots.txt": plain(""), "/": Page("x", delay_s=5.0)}


@pytest.mark.parametrize("first", [("127.0.0.1",), ("192.0.2.7",), ()])
def test_no_first_address_takes_the_limit_from_the_others(first: tuple[str, ...], db_path: Path) -> None:
    """Loopback, an address in ``large_hosts``, and a look-up that failed."""
    sites = {f"n{n}.test": SLOW_PAGE for n in range(12)}
    web = homed(*first, SHARED, dead=first) if first else homed()
    log = crawled(db_path, sites, 120.0, politeness=pauses(1.0, large_hosts=("192.0.2.7",)), fetcher=web)
    assert len(log) == 24
    assert {hit.user_agent for hit in log} == {SHARED}
    assert most_at_once(log) <= 2
    assert shortest_pause(log[8:]) >= 1.0


def test_a_request_waits_for_the_second_address_if_the_first_does_not_answer(db_path: Path) -> None:
    sites = {f"n{n}.test": SLOW_PAGE for n in range(4)}
    web = homed(SHARED, OTHER, dead=[SHARED])
    log = crawled(db_path, sites, 60.0, politeness=pauses(1.0, per_address=1), fetcher=web)
    assert [hit.user_agent for hit in log] == [OTHER] * 8
    assert most_at_once(log) == 1
    assert last_end(log) < 22, "one after the other, as the limit of the address permits"
    logged = run_virtual(lambda clock: rows(db_path, "SELECT DISTINCT error_kind FROM requests"))
    assert logged == [(None,)], "our own limit is no failure of the server"


def test_a_request_fails_if_none_of_the_addresses_that_it_waited_for_answers(db_path: Path) -> None:
    sites = {f"n{n}.test": SLOW_PAGE for n in range(12)}
    log = crawled(db_path, sites, 40.0, politeness=pauses(1.0), fetcher=homed(SHARED, OTHER, dead=[SHARED, OTHER]))
    assert log == []
    logged = run_virtual(lambda clock: rows(db_path, "SELECT url, error_kind, finished_at FROM requests"))
    assert {kind for _, kind, _ in logged} == {"connect"}
    assert len({url for url, _, _ in logged}) == 12
    assert max(ended_at for _, _, ended_at in logged) < EPOCH_S + 40, "each address is tried once a second"


# --- look-ups of names -------------------------------------------------------------------------


@pytest.mark.parametrize("domains", [1, 100])
def test_slow_look_ups_hold_no_slot_of_other_sites(domains: int, db_path: Path) -> None:
    """Each look-up of 100 names takes 15 s. Healthy sites are asked at their pace meanwhile, the slow ones later."""
    sites = {f"n{n}.slow{n % domains}.test": ONE_PAGE for n in range(100)}
    sites |= {f"good{n}.test": healthy(20) for n in range(3)}
    log = crawled(db_path, sites, 60.0, addresses=own_address, look_up_s=lambda host: 15.0 if "slow" in host else 0.05)
    good = of(log, "good")
    assert len(good) == 3 * 21
    assert last_end(good) < undisturbed_s(21) + 2.0, "they may wait for one turn of look-ups"
    assert len(log) - len(good) == 100 * 2, "all slow sites were asked in the end"


class Resolving(SimulatedWeb):
    """A web whose names are all at one address, and are looked up by the crawler's own resolver."""

    asked: Counter[str]
    #: How long the name servers take for a host, in seconds.
    takes_s = staticmethod(lambda host: 3.0 if int(host[1 : host.index(".")]) % 4 == 0 else 0.05)

    def __init__(self, clock: VirtualClock, sites: Mapping[str, Site], **options: object) -> None:
        super().__init__(clock, sites, **options)  # type: ignore[arg-type]
        self._resolver = Resolver((), system=self)  # type: ignore[arg-type]
        self.cached, self.is_limited = self._resolver.cached, self._resolver.is_limited  # type: ignore[method-assign]

    async def look_up(self, host: str) -> str:
        return await self._resolver.look_up(host)

    async def addresses(self, host: str) -> HostAddresses:
        type(self).asked[host] += 1
        await asyncio.sleep(self.takes_s(host))
        return HostAddresses((SHARED,), 300.0)


def test_a_name_is_looked_up_once_for_as_long_as_its_address_holds(db_path: Path) -> None:
    """However often its group is given back: behind other names at its address, or because the look-up is slow."""
    sites = {f"n{n}.zone{n}.test": healthy(3) for n in range(40)}
    web = type("Counting", (Resolving,), {"asked": Counter[str]()})
    log = crawled(db_path, sites, 200.0, politeness=pauses(1.0), fetcher=web)
    assert len(log) == 40 * 4, "each site is crawled"
    assert last_end(log) < 40 * 4 + 10, "at the pace of the address"
    assert web.asked == dict.fromkeys(sites, 1)
