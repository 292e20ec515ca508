"""A seed that redirects within its registered domain takes its site with it, also after a restart."""

from __future__ import annotations

from pathlib import Path

from crawler.demo.pages import Page, Site, plain, redirect
from crawler.frontier.scope import ScopeMode, ScopeSettings
from tests.simulation.crawls import Options, crawl, crawl_for, rows, states
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

SEED = "http://example.org/"
ROBOTS: Site = {"/robots.txt": plain("")}
SITES: dict[str, Site] = {
    "example.org": {**ROBOTS, "/": redirect("http://www.example.org/")},
    "www.example.org": {
        **ROBOTS,
        "/": Page("<a href=/a>a</a><a href='http://shop.example.org/'>shop</a>"),
        "/a": Page("<a href=/b>b</a>"),
        "/b": Page("b"),
    },
    "shop.example.org": {**ROBOTS, "/": Page("shop")},
}


def options(*, follows: bool = True) -> Options:
    return Options(scope=ScopeSettings(ScopeMode.HOST, follow_seed_redirects=follows))


def fetched(db_path: Path) -> list[str]:
    ended = run_virtual(lambda clock: states(db_path))
    return sorted(url for url, (state, _) in ended.items() if state == "fetched")


WWW = [f"http://www.example.org/{path}" for path in ("", "a", "b")]


def test_the_host_that_a_seed_leads_to_is_crawled(db_path: Path) -> None:
    run_virtual(lambda clock: crawl(clock, db_path, SimulatedWeb(clock, SITES), [SEED], options()))
    assert fetched(db_path) == WWW
    (seed,) = run_virtual(lambda clock: rows(db_path, "SELECT url, outcome, leads_to, pages FROM seeds"))
    assert tuple(seed) == (SEED, "fetched", WWW[0], 3)


def test_it_stays_in_scope_after_a_crash(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        web = SimulatedWeb(clock, SITES)
        for _ in range(3):
            await crawl_for(clock, db_path, web, [SEED], options(), 4.0, crash=True)
            await clock.sleep(3600)
        await crawl(clock, db_path, web, [SEED], options())

    run_virtual(main)
    assert fetched(db_path) == WWW


def test_the_seed_stays_if_the_user_says_so_and_the_next_run_may_follow(db_path: Path) -> None:
    run_virtual(lambda clock: crawl(clock, db_path, SimulatedWeb(clock, SITES), [SEED], options(follows=False)))
    assert fetched(db_path) == []
    (seed,) = run_virtual(lambda clock: rows(db_path, "SELECT outcome, leads_to FROM seeds"))
    assert tuple(seed) == ("left_scope", WWW[0])
