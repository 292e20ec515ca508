"""Domains of a rank list: the other addresses of a domain are tried until one of them answers in HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

import pytest

from crawler.demo.pages import Fault, Page, Site, plain
from crawler.frontier.domain_addresses import addresses
from crawler.frontier.sample_design import Method, SampleSettings
from crawler.frontier.scope import ScopeMode, ScopeSettings
from crawler.inspect.why import explain, explanation_rows
from crawler.model import Failed, FetchResult, Request
from crawler.reasons import ErrorKind
from crawler.robots.response import RobotsSettings
from crawler.sampling.plan import sample_plan
from crawler.settings.seeds import Seeds
from crawler.settings.settings import Settings
from crawler.store.sqlite.store import SqliteStore
from crawler.url import split
from tests.simulation.crawls import Options, crawl, crawl_for, rows, states
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

HOUR_S = 3600.0
FIRST, PLAIN, WWW, PLAIN_WWW = ORDER = (
    "https://d.test/",
    "http://d.test/",
    "https://www.d.test/",
    "http://www.d.test/",
)
OPEN: Site = {"/robots.txt": plain(""), "/": Page("x")}
HOSTS = {"d.test": OPEN, "www.d.test": OPEN}
BRIEF = replace(Options(), robots=RobotsSettings(give_up_after_s=HOUR_S))


class WebByScheme(SimulatedWeb):
    """A web in which some addresses give no answer in HTTP: ``silent`` has their failures by the site.

    Those in ``back_s`` answer after so many virtual seconds. ``asked`` has the URLs in the order of the requests.
    """

    def __init__(
        self,
        clock: VirtualClock,
        silent: Mapping[str, ErrorKind],
        sites: Mapping[str, Site] = HOSTS,
        back_s: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__(clock, sites, unknown=ErrorKind.DNS_NO_NAME)
        self.asked: list[str] = []
        self._silent, self._back_s, self._clock = silent, back_s or {}, clock
        self._begun_at = clock.now()

    async def fetch(self, request: Request) -> FetchResult:
        self.asked.append(request.url)
        address, now = split(request.url).site + "/", self._clock.now
        kind = self._silent.get(address)
        if kind is None or now() >= self._begun_at + self._back_s.get(address, inf):
            return await super().fetch(request)
        started_at = now()
        await asyncio.sleep(1.0)
        return Failed(request.url, started_at, now(), kind=kind, detail=f"simulated {kind.value}")


def crawled(
    db_path: Path,
    silent: Mapping[str, ErrorKind],
    sites: Mapping[str, Site] = HOSTS,
    back_s: Mapping[str, float] | None = None,
    options: Options = BRIEF,
) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """The states of the URLs after the crawl of the domain, and the URLs that were requested."""

    async def main(clock: VirtualClock) -> list[str]:
        web = WebByScheme(clock, silent, sites, back_s)
        await crawl(clock, db_path, web, [FIRST], options, domains={FIRST})
        return web.asked

    asked = run_virtual(main)
    return run_virtual(lambda clock: states(db_path)), asked


@pytest.mark.parametrize("kind", [ErrorKind.CONNECT, ErrorKind.TLS, ErrorKind.CERTIFICATE, ErrorKind.TIMEOUT])
def test_a_domain_without_tls_is_asked_by_http_at_once(db_path: Path, kind: ErrorKind) -> None:
    ended, asked = crawled(db_path, {FIRST: kind})
    assert ended == {
        FIRST: ("excluded", f"no answer: simulated {kind.value}; {PLAIN} is tried instead"),
        PLAIN: ("fetched", "200"),
    }
    assert asked == [f"{FIRST}robots.txt", f"{PLAIN}robots.txt", PLAIN]


@pytest.mark.parametrize("answering", range(1, 4))
def test_the_addresses_are_tried_in_their_order_once_each(db_path: Path, answering: int) -> None:
    ended, asked = crawled(db_path, dict.fromkeys(ORDER[:answering], ErrorKind.CONNECT))
    assert asked == [*(f"{url}robots.txt" for url in ORDER[: answering + 1]), ORDER[answering]]
    assert [ended[url][0] for url in ORDER[: answering + 1]] == ["excluded"] * answering + ["fetched"]
    assert run_virtual(
        lambda clock: rows(db_path, "SELECT url, target FROM urls WHERE reason_code = 'other_address' ORDER BY url")
    ) == sorted(pairwise(ORDER[: answering + 1]))


@pytest.mark.parametrize(
    ("robots", "state", "reason"),
    [
        (Page("", 403), "excluded", "robots: 403 for /robots.txt forbids the whole site"),
        (plain("User-agent: *\nDisallow: /"), "excluded", "robots: line 2, Disallow: /"),
        (Page("", 503), "failed", "robots: given up, no usable answer for /robots.txt (503)"),
        (Page("", 302, (("Location", "https://elsewhere.test/x"),)), "failed", ""),
    ],
)
def test_any_answer_in_http_is_the_answer_of_the_domain(db_path: Path, robots: Page, state: str, reason: str) -> None:
    ended, asked = crawled(db_path, {}, {**HOSTS, "d.test": {"/robots.txt": robots, "/": Page("x")}})
    assert list(ended) == [FIRST]
    assert ended[FIRST][0] == state
    assert ended[FIRST][1].startswith(reason)
    assert {split(url).site for url in asked} <= {"https://d.test", "https://elsewhere.test"}


def test_a_page_without_an_answer_changes_no_address(db_path: Path) -> None:
    ended, _ = crawled(db_path, {}, {**HOSTS, "d.test": {"/robots.txt": plain(""), "/": Page(fault=Fault.RESET)}})
    assert list(ended) == [FIRST]
    assert ended[FIRST][0] == "failed"


def test_a_silent_domain_ends_with_its_first_address(db_path: Path) -> None:
    ended, asked = crawled(db_path, dict.fromkeys(ORDER, ErrorKind.CONNECT))
    assert ended[FIRST] == ("failed", "robots: given up, no usable answer for /robots.txt (connect)")
    assert {ended[url][0] for url in ORDER[1:]} == {"excluded"}
    assert asked[:8] == [f"{url}robots.txt" for url in ORDER] * 2
    assert {url: asked.count(f"{url}robots.txt") for url in ORDER[1:]} == dict.fromkeys(ORDER[1:], 4)


def test_a_domain_that_does_not_exist_fails_as_any_seed(db_path: Path) -> None:
    ended, _ = crawled(db_path, {}, {})
    assert ended[FIRST] == ("failed", "no such host: d.test")
    assert {ended[url][0] for url in ORDER[1:]} == {"excluded"}


def test_addresses_that_may_not_be_connected_to_are_tried_once(db_path: Path) -> None:
    ended, asked = crawled(db_path, dict.fromkeys(ORDER, ErrorKind.ADDRESS))
    assert asked == [f"{url}robots.txt" for url in ORDER]
    assert ended[FIRST] == ("excluded", "address: simulated address")


def test_a_site_without_tls_that_is_away_for_minutes_is_found(db_path: Path) -> None:
    silent = dict.fromkeys(ORDER, ErrorKind.CONNECT)
    ended, asked = crawled(db_path, silent, back_s={PLAIN: 100.0, PLAIN_WWW: 100.0})
    assert [url for url, (state, _) in ended.items() if state == "fetched"] == [PLAIN]
    assert asked.count(f"{PLAIN}robots.txt") == 2


def test_a_redirect_to_the_address_that_was_given_up_leads_back_to_it(db_path: Path) -> None:
    to_tls = {"d.test": {"/robots.txt": plain(""), "/": Page("", 301, (("Location", FIRST),))}}

    class Redirecting(WebByScheme):
        async def fetch(self, request: Request) -> FetchResult:
            if request.url == FIRST:
                self.web.sites["d.test"]["/"] = Page("x")  # type: ignore[index]
            return await super().fetch(request)

    async def main(clock: VirtualClock) -> list[str]:
        web = Redirecting(clock, {FIRST: ErrorKind.TIMEOUT}, to_tls, {FIRST: 30.0})
        await crawl(clock, db_path, web, [FIRST], BRIEF, domains={FIRST})
        return web.asked

    asked = run_virtual(main)
    ended = run_virtual(lambda clock: states(db_path))
    assert ended == {FIRST: ("fetched", "200"), PLAIN: ("redirected", f"301 to {FIRST}")}
    assert asked == [f"{FIRST}robots.txt", f"{PLAIN}robots.txt", PLAIN, f"{FIRST}robots.txt", FIRST]


def test_a_seed_with_a_scheme_keeps_its_scheme(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> set[str]:
        web = WebByScheme(clock, {FIRST: ErrorKind.CONNECT})
        await crawl(clock, db_path, web, [FIRST], BRIEF)
        return set(web.asked)

    assert run_virtual(main) == {f"{FIRST}robots.txt"}


@pytest.mark.parametrize("mode", list(ScopeMode))
def test_every_scope_admits_the_addresses_of_the_domain(db_path: Path, mode: ScopeMode) -> None:
    options = replace(BRIEF, scope=ScopeSettings(mode))
    ended, _ = crawled(db_path, dict.fromkeys(ORDER[:3], ErrorKind.CONNECT), options=options)
    assert ended[PLAIN_WWW] == ("fetched", "200")


def test_an_address_out_of_scope_is_passed_over(db_path: Path) -> None:
    options = replace(BRIEF, scope=ScopeSettings(ScopeMode.ANY, exclude=("^http://d",)))
    ended, _ = crawled(db_path, dict.fromkeys(ORDER[:2], ErrorKind.CONNECT), options=options)
    assert sorted(ended) == sorted([FIRST, WWW])
    assert ended[WWW] == ("fetched", "200")


@pytest.mark.parametrize("crash", [False, True])
def test_the_same_list_goes_on_where_the_crawl_was_killed(db_path: Path, crash: bool) -> None:
    """After the crash, an address that was given up is not tried again, and the next is not forgotten."""

    async def main(clock: VirtualClock) -> Sequence[str]:
        web = WebByScheme(clock, dict.fromkeys(ORDER[:2], ErrorKind.CONNECT))
        for seconds in range(1, 40):
            if await crawl_for(clock, db_path, web, [FIRST], BRIEF, seconds, crash=crash, domains={FIRST}):
                break
        return web.asked

    asked = run_virtual(main)
    ended = run_virtual(lambda clock: states(db_path))
    assert [ended[url][0] for url in ORDER[:3]] == ["excluded", "excluded", "fetched"]
    assert list(dict.fromkeys(asked)) == [*(f"{url}robots.txt" for url in ORDER[:3]), WWW]


def test_the_pause_of_the_group_is_kept_between_the_addresses(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> list[float]:
        await crawl(clock, db_path, WebByScheme(clock, {FIRST: ErrorKind.CONNECT}), [FIRST], BRIEF, domains={FIRST})
        found = await rows(db_path, "SELECT started_at, finished_at FROM requests ORDER BY started_at")
        return [later[0] - earlier[1] for earlier, later in pairwise(found)]

    assert min(run_virtual(main)) >= 1.0


def test_no_address_leads_in_a_circle_while_the_domain_is_tried_again(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> list[dict[str, Any]]:
        web = WebByScheme(clock, dict.fromkeys(ORDER, ErrorKind.CONNECT))
        await crawl_for(clock, db_path, web, [FIRST], BRIEF, 40.0, crash=False, domains={FIRST})
        store = await SqliteStore.open(db_path, read_only=True)
        try:
            assert await store.seeds() == [FIRST], "a domain is one seed"
            return [await explain(store, url, now=clock.now()) for url in ORDER]
        finally:
            await store.close()

    known = run_virtual(main)
    assert [each["chain"] for each in known] == [list(ORDER[: place + 1]) for place in range(4)]
    told_of = [explanation_rows(each, "crawl.db") for each in known]
    assert not [line for lines in told_of for line in lines if "circle" in str(line)]
    assert not [label for label, *_ in told_of[0] if label in ("found by", "leads to")]


def test_the_requests_are_within_the_plan_of_a_sample(db_path: Path) -> None:
    """Domains that answer at each of their addresses, and one with two addresses only."""
    hosts = [f"{name}.test" for name in ("first", "second", "third", "fourth")]
    urls = [*(f"https://{host}/" for host in hosts), "https://www.fifth.test/"]
    sites = {host: OPEN for name in hosts for host in (name, f"www.{name}")} | {"www.fifth.test": OPEN}
    places = {url: place for place, url in enumerate(urls[:4])} | {urls[4]: 1}
    silent = {each: ErrorKind.CONNECT for url in urls for each in addresses(url)[: places[url]]}
    settings = replace(Settings(), sample=SampleSettings(size=5, method=Method.STRATIFIED))
    planned = sample_plan(settings, Seeds(urls, dict.fromkeys(urls, ""), frozenset(urls)), None)
    least, most = planned["least_requests"], planned["most_requests"]
    assert (least, most) == (5 * 3, 4 * 6 + 4)

    compared = replace(BRIEF, discovery=replace(BRIEF.discovery, soft_404=True))  # as a crawl with a sample does

    async def main(clock: VirtualClock) -> list[str]:
        web = WebByScheme(clock, silent, sites)
        await crawl(clock, db_path, web, urls, compared, domains=set(urls))
        return web.asked

    asked = run_virtual(main)
    assert len(asked) == sum(place + 3 for place in places.values())
    assert least < len(asked) <= most
