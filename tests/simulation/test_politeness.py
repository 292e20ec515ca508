"""Politeness in whole crawls: pauses, Retry-After, and a robots.txt that fails, expires or redirects."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from crawler.demo.pages import Asked, Fault, Hit, Page, Site, first, plain, redirect, unavailable
from crawler.engine.crawl_settings import LimitSettings
from crawler.frontier.politeness import GroupBy, PolitenessSettings
from crawler.frontier.request_settings import RequestSettings
from crawler.robots.response import RobotsSettings
from tests.judge import Manners, most_at_once, violations
from tests.simulation.crawls import Options, crawl, crawl_for, rows, states
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

DONE = "nothing is left in the frontier"
FREE = plain("")
DAY_S = 86_400.0


def small(pages: int = 5) -> Site:
    links = "".join(f"<a href='/{n}'>{n}</a>" for n in range(1, pages))
    return {"/robots.txt": FREE, "/": Page(links)} | {f"/{n}": Page("leaf") for n in range(1, pages)}


START = Page("".join(f"<a href='/{n}'>{n}</a>" for n in range(1, 5)))


def run(
    path: Path, sites: dict[str, Site], seeds: list[str] | None = None, options: Options | None = None
) -> SimulatedWeb:
    """Crawl ``sites`` to the end of the frontier, at a latency of 0.1 s."""

    async def main(clock: VirtualClock) -> SimulatedWeb:
        web = SimulatedWeb(clock, sites, latency_s=0.1)
        ended_by = await crawl(clock, path, web, seeds or [f"http://{host}/" for host in sites], options)
        assert ended_by.startswith(DONE)
        return web

    return run_virtual(main)


def pauses(hits: list[Hit]) -> list[float]:
    return [round(hit.started_at - before.finished_at, 3) for before, hit in pairwise(hits)]


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_delays_its_site_alone(status: int, db_path: Path) -> None:
    busy = Page("busy", status=status, headers=(("Retry-After", "3600"),))
    sites: dict[str, Site] = {"busy.test": {**small(), "/": first(1, busy, then=START)}}
    others = {f"s{n}.test": small() for n in range(5)}
    web = run(db_path, sites | others)
    assert violations(web.log, Manners(delay_s=1.0, tolerance_s=1e-6)) == []
    assert pauses(web.web.hits("busy.test"))[:2] == [1.0, 3600.0]
    assert len(web.web.hits("busy.test")) == 7
    for host in others:
        assert pauses(web.web.hits(host)) == [1.0] * 5, "their time is their own"


def test_retry_after_survives_a_crash(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        sites: dict[str, Site] = {"busy.test": {**small(), "/": first(1, unavailable(3600), then=START)}}
        web = SimulatedWeb(clock, sites)
        for seconds in (2.0, 5.0, 5.0):
            await crawl_for(clock, db_path, web, ["http://busy.test/"], Options(), seconds, crash=True)
        assert await crawl(clock, db_path, web) == DONE
        assert violations(web.log, Manners(delay_s=1.0)) == []
        assert len(web.web.hits("busy.test")) == 7

    run_virtual(main)


def test_errors_slow_a_site_down_and_it_recovers_slowly(db_path: Path) -> None:
    site = {**small(12), "/3": first(3, unavailable(), then=Page("ok"))}
    web = run(db_path, {"a.test": site}, options=Options(fetch=RequestSettings(retries=5)))
    between = pauses(web.web.hits("a.test"))
    assert max(between) >= 20, "the second 503 doubles the ten seconds of the first"
    assert between.count(1.0) >= 6
    assert run_virtual(lambda clock: states(db_path))["http://a.test/3"][0] == "fetched"


def test_a_slow_site_gets_pauses_of_five_times_its_answer_time(db_path: Path) -> None:
    slow = {path: Page(page.body, delay_s=1.9) for path, page in small().items() if isinstance(page, Page)}
    slower = {**small(2), "/": Page("<a href=/1>1</a>", delay_s=19.9)}
    web = run(db_path, {"slow.test": slow, "slower.test": slower})
    assert pauses(web.web.hits("slow.test")) == [10.0] * 5
    assert pauses(web.web.hits("slower.test")) == [1.0, 30.0], "that part is capped"


def test_a_failing_robots_txt_is_requested_at_growing_intervals(db_path: Path) -> None:
    site = {**small(), "/robots.txt": first(4, unavailable(), then=FREE)}
    web = run(db_path, {"down.test": site, "up.test": small()})
    hits = web.web.hits("down.test")
    assert [hit.path for hit in hits[:5]] == ["/robots.txt"] * 5
    assert pauses(hits)[:4] == [60.0, 120.0, 240.0, 480.0]
    assert len(hits) == 10
    assert web.web.hits("up.test")[-1].finished_at < 10
    versions = run_virtual(lambda clock: rows(db_path, "SELECT action FROM robots_versions WHERE site LIKE '%down%'"))
    assert versions == [("defer",), ("parse",)]


@pytest.mark.parametrize("fault", [Fault.RESET, Fault.HANG, Fault.CUT])
def test_a_robots_txt_without_an_answer_is_given_up(fault: Fault, db_path: Path) -> None:
    site = {**small(), "/robots.txt": Page(fault=fault)}
    options = Options(robots=RobotsSettings(give_up_after_s=3 * DAY_S, no_connection_after_s=3 * DAY_S))
    web = run(db_path, {"gone.test": site}, ["http://gone.test/", "http://gone.test/1"], options)
    assert {hit.path for hit in web.log} == {"/robots.txt"}
    assert 3 * DAY_S < web.log[-1].finished_at < 4.2 * DAY_S
    assert max(pauses(web.log)) <= DAY_S + 1
    ended = run_virtual(lambda clock: states(db_path))
    assert {state for state, _ in ended.values()} == {"failed"}
    assert all(reason.startswith("robots: given up") for _, reason in ended.values())


def test_an_expired_robots_txt_is_requested_before_the_next_page(db_path: Path) -> None:
    def robots(asked: Asked) -> Page:
        rule = "" if asked.before < 2 else "Disallow: /2"
        return Page(f"User-agent: *\n{rule}\n", headers=(("Cache-Control", "max-age=600"),))

    site = {**small(30), "/robots.txt": robots}
    options = Options(politeness=PolitenessSettings(delay_s=50.0))
    web = run(db_path, {"a.test": site}, options=options)
    asked_at: float | None = None
    for hit in web.web.hits("a.test"):
        if hit.path == "/robots.txt":
            asked_at = hit.finished_at
        else:
            assert asked_at is not None
            assert hit.started_at < asked_at + 600
    times = [hit.finished_at for hit in web.web.hits("a.test") if hit.path == "/robots.txt"]
    assert len(times) == 3
    closed = [hit for hit in web.web.hits("a.test") if hit.path.startswith("/2") and hit.started_at > times[2]]
    assert closed == []
    ended = run_virtual(lambda clock: states(db_path))
    assert any(reason.startswith("robots: line 2") for _, reason in ended.values())


def test_pages_are_fetched_if_crawl_delay_is_longer_than_robots_txt_is_valid(db_path: Path) -> None:
    robots = Page("User-agent: *\nCrawl-delay: 900", headers=(("Cache-Control", "no-cache"),))
    web = run(db_path, {"a.test": {**small(4), "/robots.txt": robots}})
    assert len([hit for hit in web.log if hit.path != "/robots.txt"]) == 4
    assert len(web.log) <= 8
    assert min(pauses(web.log)) >= 900


@pytest.mark.parametrize("delay_s", [3.0, 30.0])
def test_crawl_delay_holds_from_robots_txt_on(delay_s: float, db_path: Path) -> None:
    site = {**small(), "/robots.txt": plain(f"User-agent: *\nCrawl-delay: {delay_s:g}")}
    web = run(db_path, {"a.test": site})
    assert pauses(web.web.hits("a.test")) == [delay_s] * 5


@pytest.mark.parametrize("delay_s", [5.0, 30.0])
def test_crawl_delay_survives_crashes(delay_s: float, db_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        site = {**small(), "/robots.txt": plain(f"User-agent: *\nCrawl-delay: {delay_s:g}")}
        web = SimulatedWeb(clock, {"a.test": site}, latency_s=0.4)
        for seconds in (0.5 + delay_s, 1.5, 30.6, 31.0, 12.0, 40.0):  # first of all, while the first page is on its way
            await crawl_for(clock, db_path, web, ["http://a.test/"], Options(), seconds, crash=True)
        await crawl(clock, db_path, web)
        assert violations(web.log, Manners(crawl_delay_s={"a.test": delay_s}, tolerance_s=1e-6)) == []

    run_virtual(main)


def test_crawl_delay_holds_while_robots_txt_fails(db_path: Path) -> None:
    robots = Page("User-agent: *\nCrawl-delay: 300", headers=(("Cache-Control", "max-age=1000"),))

    def sometimes(asked: Asked) -> Page:
        return unavailable() if 1 <= asked.before <= 3 else robots

    web = run(db_path, {"a.test": {**small(6), "/robots.txt": sometimes}})
    assert [hit.path for hit in web.log].count("/robots.txt") >= 5
    assert min(pauses(web.log)) >= 300


def test_http_and_https_of_a_host_share_the_pace(db_path: Path) -> None:
    seeds = ["http://a.test/", "https://a.test/", "http://a.test:8080/"]
    web = run(db_path, {"a.test": small()}, seeds)
    assert violations(web.log, Manners(delay_s=1.0, tolerance_s=1e-6)) == []
    assert most_at_once(web.log) == {"a.test": 1}
    assert len(web.log) == 18


def test_hosts_of_a_domain_share_the_pace_if_grouped_by_domain(db_path: Path) -> None:
    politeness = PolitenessSettings(delay_s=1.0, group=GroupBy.DOMAIN)
    sites = {f"h{n}.site.test": small(3) for n in range(4)}
    web = run(db_path, sites, options=Options(politeness=politeness))
    as_one = [Hit("all", h.path, h.started_at, h.finished_at, h.status, h.user_agent) for h in web.log]
    assert [v for v in violations(as_one, Manners(delay_s=1.0, tolerance_s=1e-6)) if v.rule != "robots first"] == []
    assert len(web.log) == 16


@pytest.mark.parametrize("latency_s", [0.05, 0.7, 2.0])
def test_a_robots_txt_redirected_to_a_crawled_host_keeps_its_pace(latency_s: float, db_path: Path) -> None:
    robots = plain("User-agent: *\nCrawl-delay: 4")
    own = [f"/robots{n}.txt" for n in range(8)]
    sites: dict[str, Site] = {"big.test": {**small(25), "/robots.txt": robots, **dict.fromkeys(own, plain(""))}}
    for n, path in enumerate(own):
        sites[f"s{n}.test"] = {**small(3), "/robots.txt": redirect(f"http://big.test{path}")}

    async def main(clock: VirtualClock) -> list[Hit]:
        web = SimulatedWeb(clock, sites, latency_s=latency_s)
        assert await crawl(clock, db_path, web, [f"http://{host}/" for host in sites]) == DONE
        return web.log

    log = run_virtual(main)
    manners = Manners(delay_s=1.0, crawl_delay_s={"big.test": 4.0}, slow_factor=5.0, tolerance_s=1e-5)
    assert violations(log, manners) == []
    assert most_at_once(log)["big.test"] == 1
    big = [hit.path for hit in log if hit.host == "big.test"]
    assert big.count("/robots.txt") == 1
    assert sorted(path for path in big if path in own) == own
    assert not set(own) & set(big[:2]), "a page of big.test comes first"
    assert not set(own) >= set(big[-8:]), "its pages do not starve the targets"
    assert len(big) == 26 + 8
    assert len([hit for hit in log if hit.host != "big.test" and hit.path != "/robots.txt"]) == 8 * 3


def test_robots_txt_redirects_to_an_uncrawled_host_are_paced(db_path: Path) -> None:
    sites: dict[str, Site] = {
        f"s{n}.test": {**small(3), "/robots.txt": redirect(f"http://rules.test/{n}.txt")} for n in range(6)
    }
    rules: Site = {"/robots.txt": FREE, "*": FREE}
    web = run(db_path, {**sites, "rules.test": rules}, [f"http://{host}/" for host in sites])
    assert sorted(hit.path for hit in web.web.hits("rules.test")) == [*(f"/{n}.txt" for n in range(6)), "/robots.txt"]
    assert min(pauses(web.web.hits("rules.test"))) >= 1.0


def test_many_dead_hosts_do_not_delay_a_live_one(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        web = SimulatedWeb(clock, {"a.test": small(20)}, latency_s=0.1)
        seeds = ["http://a.test/", *(f"http://gone{n}.test/" for n in range(50))]
        options = Options(limits=LimitSettings(max_time_s=3600.0))
        ended = await crawl(clock, db_path, web, seeds, options)
        assert ended == "everything left waits until after limits.max_time: 50 queued URLs"
        assert pauses(web.web.hits("a.test")) == [1.0] * 20

    run_virtual(main)
