"""Random webs crawled to the end: completely, politely, and with the same result after stops and crashes."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from crawler.demo.pages import Handler, Hit, Page, Site, plain, redirect
from crawler.engine.crawl_settings import LimitSettings
from crawler.frontier.politeness import PolitenessSettings
from tests.judge import Manners, most_at_once, violations
from tests.simulation.crawls import Found, Jittery, Options, crawl, crawl_for, look, rows
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual
from tests.web import RandomWeb, random_web

DONE = "nothing is left in the frontier"
MANNERS = Manners(
    delay_s=1.0,
    slow_factor=5.0,
    forbidden=lambda host, path: path.startswith("/closed/"),
    agent="SimulatedBot",
    tolerance_s=1e-6,
)


def found_in(web: RandomWeb, path: Path, latency_seed: int) -> tuple[Found, list[Hit]]:
    async def main(clock: VirtualClock) -> tuple[Found, list[Hit]]:
        served = SimulatedWeb(clock, web.sites)
        assert await crawl(clock, path, Jittery(served, clock, latency_seed), web.seeds) == DONE
        return await look(path), served.log

    return run_virtual(main)


@pytest.mark.parametrize("seed", range(4))
def test_a_random_web_is_crawled_completely_and_politely(seed: int, db_path: Path) -> None:
    web = random_web(seed, hosts=25, pages_per_host=8, across=0.4)
    found, log = found_in(web, db_path, seed)
    assert violations(log, MANNERS) == []
    assert set(most_at_once(log).values()) == {1}
    assert {(url, depth) for url, state, depth in found.urls if state == "fetched"} == set(web.depths.items())
    assert {url for url, state, _ in found.urls if state == "excluded"} == web.forbidden
    assert {(s, t) for s, t, _, _ in found.links} == {(s, t) for s in web.depths for t in web.links[s]}
    asked = [(hit.host, hit.path) for hit in log]
    assert len(asked) == len(set(asked)) == len(web.depths) + 25, "every page and robots.txt once"


def test_what_is_found_does_not_depend_on_latencies(tmp_path: Path) -> None:
    web = random_web(7, hosts=6, pages_per_host=12, across=0.4)
    first, *others = (found_in(web, tmp_path / f"{seed}.db", seed)[0] for seed in range(5))
    assert all(other == first for other in others)


def test_the_store_logs_every_request_as_the_server_saw_it(db_path: Path) -> None:
    web = random_web(3, hosts=5, pages_per_host=6)

    async def main(clock: VirtualClock) -> None:
        served = SimulatedWeb(clock, web.sites)
        await crawl(clock, db_path, served, web.seeds)
        begun = clock.now() - clock.loop.time()
        stored = await rows(db_path, "SELECT url, started_at, finished_at, status FROM requests")
        seen = [(f"http://{h.host}{h.path}", h.started_at, h.finished_at, h.status) for h in served.log]
        assert sorted((u, round(s - begun, 3), round(f - begun, 3), c) for u, s, f, c in stored) == sorted(
            (u, round(s, 3), round(f, 3), c) for u, s, f, c in seen
        )
        allowed = await rows(
            db_path,
            "SELECT count(*) FROM requests q JOIN robots_versions v ON v.robots_copy = q.robots_copy"
            " WHERE q.started_at BETWEEN v.valid_from AND v.valid_until AND q.purpose = 'page'",
        )
        assert allowed == [(len(web.depths),)], "every page was asked for under a robots.txt then in force"

    run_virtual(main)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[RandomWeb, Found]:
    """A web with redirects, and what a crawl without a stop finds there."""
    web = random_web(11, hosts=5, pages_per_host=10, across=0.4)
    web = replace(web, sites=_with_moved_pages(web.sites))
    return web, found_in(web, tmp_path_factory.mktemp("whole") / "crawl.db", 0)[0]


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(n, marks=pytest.mark.long) for n in range(4, 12))])
def test_stops_and_crashes_lose_nothing_and_repeat_nothing(
    seed: int, crash: bool, uninterrupted: tuple[RandomWeb, Found], db_path: Path
) -> None:
    web, whole_crawl = uninterrupted
    chance = random.Random(seed)

    async def main(clock: VirtualClock) -> tuple[Found, list[Hit], int]:
        served = SimulatedWeb(clock, web.sites, latency_s=0.3)
        runs = 1
        while not await crawl_for(clock, db_path, served, web.seeds, Options(), chance.uniform(0.1, 5), crash=crash):
            runs += 1
        return await look(db_path), served.log, runs

    found, log, runs = run_virtual(main)
    assert runs > 3
    assert found == whole_crawl
    assert violations(log, MANNERS) == []
    assert len([hit for hit in log if hit.status == 0]) < 5 * runs
    whole = [(hit.host, hit.path) for hit in log if hit.status != 0 and hit.path != "/robots.txt"]
    assert crash or len(whole) == len(set(whole)), "after a stop nothing is asked for twice"


def _with_moved_pages(sites: dict[str, Site]) -> dict[str, Site]:
    """Some pages redirect to others, so redirects are under way at the stops, too."""
    moved: dict[str, Site] = {}
    for host, site in sites.items():
        paths = [path for path in site if path.endswith(".html") and "/closed/" not in path]
        moved[host] = {**site, paths[0]: redirect(paths[1]), paths[2]: redirect("/")}
    return moved


def test_a_stop_waits_for_requests_in_flight_and_sends_no_others(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        slow = {"/robots.txt": plain(""), "/": Page("<a href=/x>x</a>", delay_s=5.0), "/x": Page("x")}
        served = SimulatedWeb(clock, {"a.test": slow, "b.test": slow}, latency_s=0.0)
        seeds = ["http://a.test/", "http://b.test/"]
        await crawl_for(clock, db_path, served, seeds, Options(), 3.0, crash=False)
        assert [(hit.path, hit.status) for hit in served.log if hit.path != "/robots.txt"] == [("/", 200)] * 2
        assert await rows(db_path, "SELECT state, count(*) FROM urls GROUP BY 1 ORDER BY 1") == [
            ("fetched", 2),
            ("queued", 2),
        ]
        assert clock.loop.time() < 7

    run_virtual(main)


SIZES = (1, 3, 10, 40, 150)


def _chain_site(pages: int) -> Site:
    site: dict[str, Page | Handler] = {"/robots.txt": plain("")}
    for n in range(pages):
        links = f"<a href='/{2 * n + 1}'>l</a> <a href='/{2 * n + 2}'>r</a>"
        site["/" if n == 0 else f"/{n}"] = Page(links if 2 * n + 2 < pages else "<p>leaf")
    return site


def _full(site: Site, pages: int) -> Site:
    """The same site with its missing leaves: every link has a target."""
    return {**{f"/{n}": Page("<p>leaf") for n in range(1, pages)}, **site}


def polite_finish_ratio(path: Path, sizes: tuple[int, ...], copies: int) -> float:
    """The time a crawl of sites of these sizes takes, over what politeness makes its largest site take."""
    sites = {f"s{n}-{c}.test": _full(_chain_site(n), n) for n in sizes for c in range(copies)}
    latency_s, delay_s = 0.1, 1.0

    async def main(clock: VirtualClock) -> float:
        served = SimulatedWeb(clock, sites, latency_s=latency_s)
        options = Options(politeness=PolitenessSettings(delay_s=delay_s))
        assert await crawl(clock, path, served, [f"http://{host}/" for host in sites], options) == DONE
        assert violations(served.log, replace(MANNERS, slow_factor=5.0)) == []
        requests = max(len(served.web.hits(host)) for host in sites)
        last = max(hit.finished_at for hit in served.log)
        return last / (requests * latency_s + (requests - 1) * delay_s)

    return run_virtual(main)


def test_a_crawl_takes_as_long_as_its_largest_site(db_path: Path) -> None:
    ratio = polite_finish_ratio(db_path, SIZES, copies=4)
    assert ratio + 1e-9 >= 1.0
    assert ratio < 1.02


def test_a_site_of_5000_urls_does_not_delay_the_others(db_path: Path) -> None:
    links = "".join(f"<a href='/{n}'>p</a>" for n in range(5000))
    large: Site = {"/robots.txt": plain(""), "/": Page(links), "*": Page("leaf")}
    small = {f"s{n}.test": _full(_chain_site(9), 9) for n in range(30)}

    async def main(clock: VirtualClock) -> None:
        served = SimulatedWeb(clock, {"large.test": large, **small}, latency_s=0.1)
        seeds = ["http://large.test/", *(f"http://{host}/" for host in small)]
        options = Options(limits=LimitSettings(max_time_s=60.0))
        await crawl(clock, db_path, served, seeds, options)
        for host in small:
            hits = served.web.hits(host)
            assert hits[-1].finished_at < 1.05 * (len(hits) * 0.1 + (len(hits) - 1) * 1.0)
        assert len(served.web.hits("large.test")) == 55, "60 s at a request each 1.1 s"

    run_virtual(main)


def test_more_sites_than_slots_share_the_slots(db_path: Path) -> None:
    sites = {f"s{n}.test": _full(_chain_site(5), 5) for n in range(40)}

    async def main(clock: VirtualClock) -> None:
        served = SimulatedWeb(clock, sites, latency_s=0.5)
        options = Options(limits=LimitSettings(concurrency=3))
        await crawl(clock, db_path, served, [f"http://{host}/" for host in sites], options)
        steps = sorted([(h.started_at, 1) for h in served.log] + [(h.finished_at, -1) for h in served.log])
        under_way = most = 0
        for _, step in steps:
            under_way += step
            most = max(most, under_way)
        assert most == 3
        assert len(served.log) == 40 * 6
        assert clock.loop.time() < 1.1 * 40 * 6 * 0.5 / 3

    run_virtual(main)


def test_few_claims_at_a_time_reach_every_site(db_path: Path) -> None:
    sites = {f"s{n}.test": _full(_chain_site(15), 15) for n in range(12)}

    async def main(clock: VirtualClock) -> None:
        served = SimulatedWeb(clock, sites)
        options = Options(limits=LimitSettings(claimed_groups=2))
        assert await crawl(clock, db_path, served, [f"http://{host}/" for host in sites], options) == DONE
        assert len(served.log) == 12 * 16

    run_virtual(main)
