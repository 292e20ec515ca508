"""Going on after a stop or a crash, also with other options. No site may starve or hang."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from crawler.demo.pages import Page, Site, plain, redirect, unavailable
from crawler.frontier.politeness import GroupBy, PolitenessSettings
from crawler.frontier.request_settings import RequestSettings
from crawler.frontier.scope import ScopeMode, ScopeSettings
from crawler.model import Failed, FetchResult, Request
from crawler.reasons import ErrorKind
from crawler.robots.response import RobotsSettings
from tests.simulation.crawls import Options, crawl, crawl_for, rows, states
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

DAY_S = 86_400.0


def linking(*targets: str, robots: str = "") -> Site:
    return {
        "/robots.txt": plain(robots),
        "/": Page("".join(f"<a href='{t}'>x</a>" for t in targets)),
        "*": Page("leaf"),
    }


def paced(delay_s: float, **more: object) -> Options:
    return replace(Options(politeness=PolitenessSettings(delay_s=delay_s)), **more)


def test_a_narrower_scope_excludes_queued_urls_without_a_request(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> tuple[str, list[str], list[tuple[object, ...]]]:
        web = SimulatedWeb(clock, {"down.test": {"/robots.txt": Page(status=500)}, "up.test": linking("/a")})
        seeds = ["http://down.test/x", "http://up.test/"]
        await crawl_for(clock, db_path, web, seeds, paced(1), 30, crash=False)
        asked = len(web.web.hits("down.test"))
        narrower = paced(1, scope=ScopeSettings(ScopeMode.ANY, exclude=(r"down\.test",)))
        ended_by = await crawl(clock, db_path, web, (), narrower)
        urls = await rows(db_path, "SELECT state, reason FROM urls WHERE site = 'http://down.test'")
        return ended_by, [hit.path for hit in web.web.hits("down.test")[asked:]], urls

    ended_by, asked, urls = run_virtual(main)
    assert asked == []
    assert ended_by == "nothing is left in the frontier: no URL was queued under the options of this run"
    assert urls == [("excluded", r"pattern: matches scope.exclude ('down.test')")]


def test_a_longer_delay_holds_from_the_first_request_of_the_next_run(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> list[float]:
        web = SimulatedWeb(clock, {"a.test": linking(*(f"/{n}" for n in range(20)))})
        await crawl_for(clock, db_path, web, ["http://a.test/"], paced(0.1), 1.0, crash=False)
        before = len(web.log)
        await crawl_for(clock, db_path, web, (), paced(50), 200, crash=False)
        return [web.log[before].started_at - web.log[before - 1].finished_at]

    (pause_s,) = run_virtual(main)
    assert pause_s >= 50


def test_a_pause_survives_a_crash_and_another_grouping(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> float:
        site = linking(*(f"/{n}" for n in range(20)))
        web = SimulatedWeb(clock, {"x.a.test": site})
        await crawl_for(clock, db_path, web, ["http://x.a.test/"], paced(30), 65, crash=True)
        before = len(web.log)
        by_domain = Options(politeness=PolitenessSettings(delay_s=30, group=GroupBy.DOMAIN))
        await crawl_for(clock, db_path, web, (), by_domain, 100, crash=False)
        return web.log[before].started_at - web.log[before - 1].finished_at

    assert run_virtual(main) >= 30


def test_a_crash_during_a_redirected_robots_txt_request_keeps_the_pause_of_its_host(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> float:
        sites = {
            "a.test": {"/robots.txt": redirect("http://b.test/robots.txt"), "*": Page("leaf")},
            "b.test": {"/robots.txt": Page("", delay_s=1.0, content_type="text/plain"), "*": Page("leaf")},
        }
        web = SimulatedWeb(clock, sites)
        await crawl_for(clock, db_path, web, ["http://a.test/"], paced(5), 0.7, crash=True)
        crashed_at, before = asyncio.get_running_loop().time(), len(web.web.hits("b.test"))
        await crawl(clock, db_path, web, ["http://b.test/"], paced(5))
        return web.web.hits("b.test")[before].started_at - crashed_at

    assert run_virtual(main) >= 5


def test_two_sites_of_one_host_take_turns_under_a_long_pause(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> list[tuple[object, ...]]:
        robots = "User-agent: *\nCrawl-delay: 20"
        web = SimulatedWeb(clock, {"a.test": linking(*(f"/{n}" for n in range(500)), robots=robots)})
        seeds = ["http://a.test/", "https://a.test/"]
        await crawl_for(clock, db_path, web, seeds, paced(1), 4_000, crash=False)
        return await rows(db_path, "SELECT site, count(*) FROM requests GROUP BY site ORDER BY site")

    (_, plain_requests), (_, tls_requests) = run_virtual(main)
    assert abs(plain_requests - tls_requests) <= 0.2 * (plain_requests + tls_requests)


def test_a_name_with_a_final_dot_is_the_same_server(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> list[tuple[object, ...]]:
        site = linking("http://a.test./c", "/d")
        web = SimulatedWeb(clock, {"a.test": site, "a.test.": site})
        await crawl(clock, db_path, web, ["http://a.test/"], paced(3))
        return await rows(db_path, "SELECT started_at, finished_at FROM requests ORDER BY started_at")

    requests = run_virtual(main)
    assert len(requests) >= 4
    assert all(after[0] - before[1] >= 3 for before, after in pairwise(requests))


def test_a_site_that_always_asks_to_retry_in_two_days_is_given_up(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> tuple[str, list[tuple[object, ...]]]:
        web = SimulatedWeb(clock, {"a.test": {"/robots.txt": unavailable(2 * DAY_S), "*": Page("leaf")}})
        options = paced(1, robots=RobotsSettings(give_up_after_s=10 * DAY_S))
        ended_by = await asyncio.wait_for(crawl(clock, db_path, web, ["http://a.test/"], options), 60 * DAY_S)
        return ended_by, await rows(db_path, "SELECT state, reason LIKE 'robots: given up%' FROM urls")

    assert run_virtual(main) == ("nothing is left in the frontier", [("failed", 1)])


def test_a_stop_keeps_answered_requests(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> tuple[int, int]:
        sites = {f"h{n}.test": linking("/a", "/b") for n in range(20)}
        web = SimulatedWeb(clock, sites, latency_s=dict.fromkeys(sites, 3.0))
        options = Options(politeness=PolitenessSettings(delay_s=1, slow_factor=0))
        await crawl_for(clock, db_path, web, [f"http://{host}/" for host in sites], options, 8.5, crash=False)
        answered = [hit for hit in web.log if hit.path != "/robots.txt" and hit.status == 200]
        (row,) = await rows(db_path, "SELECT count(*) FROM pages")
        return len(answered), int(str(row[0]))

    answered, kept = run_virtual(main)
    assert answered == kept > 0


class Guarded(SimulatedWeb):
    """A fetcher that refuses every address, or looks up no name, until it is opened."""

    closed: ErrorKind | None = None

    async def fetch(self, request: Request) -> FetchResult:
        if self.closed is None:
            return await super().fetch(request)
        now = self._clock.now()
        return Failed(request.url, now, now, kind=self.closed, detail="127.0.0.1 is a loopback address")


@pytest.mark.parametrize(
    ("closed", "allowed", "first_end"),
    [
        (
            ErrorKind.ADDRESS,
            RequestSettings(allow_private=True),
            "nothing is left in the frontier: every seed was left out: address: 127.0.0.1 is a loopback address",
        ),
        (ErrorKind.CERTIFICATE, RequestSettings(ca_file="ca.pem"), "nothing is left in the frontier"),
        (ErrorKind.CERTIFICATE, RequestSettings(verify_off=("a.test",)), "nothing is left in the frontier"),
        (ErrorKind.DNS, RequestSettings(resolve=(("a.test", "127.0.0.1"),)), None),
    ],
)
def test_changed_options_retry_urls_without_a_permitted_address(
    closed: ErrorKind, allowed: RequestSettings, first_end: str | None, db_path: Path
) -> None:
    async def main(clock: VirtualClock) -> None:
        web = Guarded(clock, {"a.test": linking("/1")})
        web.closed = closed
        seeds = ["http://a.test/"]
        if first_end is None:
            await crawl_for(clock, db_path, web, seeds, Options(), 40, crash=False)
        else:
            assert await crawl(clock, db_path, web, seeds, Options()) == first_end
        web.closed, began = None, clock.now()
        assert await crawl(clock, db_path, web, seeds, Options(fetch=allowed)) == "nothing is left in the frontier"
        assert {state for state, _ in (await states(db_path)).values()} == {"fetched"}
        assert clock.now() - began < 60, "nor is a robots.txt's retry waited for, minutes later"

    run_virtual(main)


def test_a_bad_certificate_fails_at_once_and_is_not_asked_about_for_a_month(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        web = Guarded(clock, {"a.test": linking("/1")})
        web.closed, began = ErrorKind.CERTIFICATE, clock.now()
        await crawl(clock, db_path, web, ["http://a.test/", "http://a.test/2"])
        assert clock.now() - began < 60
        assert await rows(db_path, "SELECT DISTINCT state, reason_code FROM urls") == [("failed", "certificate")]
        assert await rows(db_path, "SELECT url, error_kind FROM requests") == [
            ("http://a.test/robots.txt", "certificate")
        ]

    run_virtual(main)


def test_a_run_with_nothing_to_do_says_so(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> list[str]:
        web = SimulatedWeb(clock, {"a.test": linking()})
        return [await crawl(clock, db_path, web, ["http://a.test/"]) for _ in range(2)]

    assert run_virtual(main) == [
        "nothing is left in the frontier",
        "nothing is left in the frontier: no URL was queued under the options of this run",
    ]
