"""A robots.txt that redirects to another site: what is requested there, at which pace, and how often."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import pytest

from crawler.audit.checks import Violation
from crawler.audit.run_audit import run_audit
from crawler.demo.pages import Page, Site, first, plain, redirect
from crawler.engine import robots_cache
from crawler.engine.crawl_policy import RobotsPolicy
from crawler.engine.crawl_settings import LimitSettings
from crawler.engine.lease import Lease
from crawler.engine.permission import Closed
from crawler.engine.polite_client import PoliteClient
from crawler.frontier.politeness import PolitenessSettings
from crawler.model import Fetched, FetchResult, Purpose, Redirected, Request, RobotsAction, State
from crawler.reasons import EndCode, RunEnd
from crawler.robots.response import RobotsSettings
from crawler.settings.loading import settings_from
from crawler.store.sqlite.store import SqliteStore
from tests.reading import ReaderInProcess
from tests.simulation.crawls import Options, crawl_for, rows, session, states
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

ONE = "site = 'http://a.test'"
SITES: dict[str, Site] = {
    "a.test": {"/robots.txt": redirect("http://www.test/robots.txt"), "/": Page("x")},
    "www.test": {"/robots.txt": plain("User-agent: *\nDisallow: /x\n"), "/": Page("x")},
}


def hold(db_path: Path, group: str, *, held: bool) -> None:
    """Another worker claims a group, or releases it."""
    with sqlite3.connect(db_path) as db:
        db.execute(
            "INSERT OR IGNORE INTO worker (id, run_id, host, pid, started_at, seen_at) VALUES (99, 1, '', 1, 0, 0)"
        )
        db.execute("INSERT INTO politeness_group (name) VALUES (?) ON CONFLICT DO NOTHING", (group,))
        db.execute("UPDATE politeness_group SET claimed_by = ? WHERE name = ?", (99 if held else None, group))


def test_a_robots_txt_on_a_site_of_another_worker_is_requested_less_and_less(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> list[float]:
        web = SimulatedWeb(clock, SITES)
        async with session(clock, db_path, web, ["http://a.test/"], Options()) as (run, store):
            hold(db_path, "www.test", held=True)
            task = asyncio.create_task(run.run())
            await clock.sleep(3600)
            asked = [hit.started_at for hit in web.web.hits("a.test")]
            hold(db_path, "www.test", held=False)
            assert str(await task) == "nothing is left in the frontier"
            await store.end_run(RunEnd(EndCode.DONE), clock.now())
        return asked

    asked = run_virtual(main)
    pauses = [after - before for before, after in pairwise(asked)]
    assert [round(pause / 60) for pause in pauses] == [11, 12, 14, 18]
    assert asyncio.run(states(db_path))["http://a.test/"] == ("fetched", "200")
    notes = asyncio.run(rows(db_path, "SELECT note FROM robots_answers WHERE action = ?", [RobotsAction.DEFER]))
    assert set(notes) == {("it redirects in a circle, or to a URL that was not requested in time",)}
    assert asyncio.run(violations(db_path, RobotsSettings())) == []


def test_an_earlier_robots_copy_stays_in_force_if_configured(db_path: Path) -> None:
    robots = RobotsSettings(stale_if_error=True)
    rules = replace(plain("User-agent: *\nDisallow: /x\n"), headers=(("Cache-Control", "max-age=300"),))
    links = Page("".join(f"<a href='/{number}'>n</a>" for number in range(200)))
    options = Options(robots=robots, politeness=PolitenessSettings(delay_s=3.0))
    sites: dict[str, Site] = {
        "a.test": {**SITES["a.test"], "/": links, "*": Page("x")},
        "www.test": {"/robots.txt": rules},
    }

    async def main(clock: VirtualClock) -> None:
        async with session(clock, db_path, SimulatedWeb(clock, sites), ["http://a.test/"], options) as (run, store):
            task = asyncio.create_task(run.run())
            await clock.sleep(60)
            hold(db_path, "www.test", held=True)
            await clock.sleep(4000)
            hold(db_path, "www.test", held=False)
            assert str(await task) == "nothing is left in the frontier"
            await store.end_run(RunEnd(EndCode.DONE), clock.now())

    run_virtual(main)
    copies = asyncio.run(rows(db_path, f"SELECT action, failures FROM robots_answers WHERE {ONE} ORDER BY robots_copy"))
    assert copies[:3] == [("parse", 0), ("parse", 1), ("parse", 2)]
    assert asyncio.run(violations(db_path, robots)) == []


async def violations(db_path: Path, robots: RobotsSettings) -> list[Violation]:
    """The violations that the audit finds."""
    settings = settings_from(
        {
            "identity.contact": "who@example.org",
            "politeness.delay": 1,
            "robots.stale_if_error": robots.stale_if_error,
        },
        source="test",
    )
    with sqlite3.connect(db_path) as db:
        db.execute("UPDATE run SET settings = ?", (json.dumps(asdict(settings)),))
    store = await SqliteStore.open(db_path, read_only=True)
    try:
        return (await run_audit(store, 0.0)).violations
    finally:
        await store.close()


def test_an_auxiliary_run_reports_that_nothing_can_be_requested_now(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        options = Options()
        policy = RobotsPolicy(options.robots, "SimulatedBot")
        store = await SqliteStore.open(db_path)
        try:
            await store.start_run({"auxiliary_run": "rup"}, clock.now())
            hold(db_path, "www.test", held=True)
            lease = Lease(store, clock, 60.0)
            web = SimulatedWeb(clock, SITES)
            client = PoliteClient(store, web, clock, options.politeness, policy, lease, web, ReaderInProcess())
            said = await client.send(Request("http://a.test/rupinfo.txt", Purpose.RUP, 1000))
        finally:
            await store.close()
        assert isinstance(said, Closed)
        assert "http://a.test/robots.txt could not be fetched" in said.why

    run_virtual(main)


def test_an_auxiliary_run_obeys_a_robots_txt_that_is_elsewhere(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> SimulatedWeb:
        options, robots = Options(), RobotsPolicy(RobotsSettings(), "SimulatedBot")
        store = await SqliteStore.open(db_path)
        try:
            await store.start_run({"auxiliary_run": "rup"}, clock.now())
            sites: dict[str, Site] = {
                "a.test": {"/robots.txt": redirect("http://www.test/rules"), "/rupinfo.txt": plain("x")},
                "www.test": {"/robots.txt": plain(""), "/rules": plain("")},
            }
            web, lease = SimulatedWeb(clock, sites), Lease(store, clock, 60.0)
            request = Request("http://a.test/rupinfo.txt", Purpose.RUP, 1000, any_type=True)
            client = PoliteClient(store, web, clock, options.politeness, robots, lease, web, ReaderInProcess())
            assert isinstance(await client.send(request), Fetched)
        finally:
            await store.close()
        return web

    hits = [(hit.host, hit.path) for hit in run_virtual(main).log]
    assert hits == [
        ("a.test", "/robots.txt"),
        ("www.test", "/robots.txt"),
        ("www.test", "/rules"),
        ("a.test", "/rupinfo.txt"),
    ]


# --- what a redirect may reach ----------------------------------------------------------------


def crawled(
    db_path: Path,
    sites: dict[str, Site],
    seeds: list[str],
    seconds: float = 7200.0,
    robots: RobotsSettings = RobotsSettings(),  # noqa: B008 - frozen
    delay_s: float = 1.0,
) -> SimulatedWeb:
    """The web after a crawl from ``seeds``, to its end or for ``seconds``. The audit finds no violation in its log."""

    async def main(clock: VirtualClock) -> SimulatedWeb:
        web = SimulatedWeb(clock, sites)
        options = Options(robots=robots, politeness=PolitenessSettings(delay_s=delay_s))
        await crawl_for(clock, db_path, web, seeds, options, seconds, crash=False)
        return web

    web = run_virtual(main)
    assert asyncio.run(violations(db_path, robots)) == []
    return web


def paths(web: SimulatedWeb, host: str) -> list[str]:
    return [hit.path for hit in web.web.hits(host)]


CLOSED = plain("User-agent: *\nDisallow: /private/\n")


@pytest.mark.parametrize("is_crawled", [True, False])
def test_a_path_that_the_target_forbids_is_not_requested(db_path: Path, is_crawled: bool) -> None:
    sites: dict[str, Site] = {
        "a.test": {"/robots.txt": redirect("http://healthy.test/private/delete?id=1"), "/": Page("x")},
        "healthy.test": {"/robots.txt": CLOSED, "/": Page("x"), "/private/delete?id=1": plain("")},
    }
    seeds = ["http://a.test/", *(["http://healthy.test/"] if is_crawled else [])]
    web = crawled(db_path, sites, seeds)
    assert set(paths(web, "healthy.test")) == {"/robots.txt", *(["/"] if is_crawled else [])}
    assert set(paths(web, "a.test")) == {"/robots.txt"}, "no answer is no permission"
    assert asyncio.run(states(db_path))["http://a.test/"][0] == "queued"
    (note,) = asyncio.run(rows(db_path, f"SELECT DISTINCT note FROM robots_answers WHERE {ONE}"))
    assert note == (
        "http://healthy.test/robots.txt forbids /private/delete (line 2, Disallow: /private/): it is not requested",
    )


@pytest.mark.parametrize("status", [503, 403])
def test_a_path_is_not_requested_if_the_target_has_no_robots_txt_that_allows_it(db_path: Path, status: int) -> None:
    sites: dict[str, Site] = {
        "a.test": {"/robots.txt": redirect("http://b.test/rules"), "/": Page("x")},
        "b.test": {"/robots.txt": Page(status=status), "/rules": plain("")},
    }
    web = crawled(db_path, sites, ["http://a.test/"])
    assert set(paths(web, "b.test")) == {"/robots.txt"}
    assert set(paths(web, "a.test")) == {"/robots.txt"}


@pytest.mark.parametrize("stale_if_error", [False, True])
def test_a_target_without_a_usable_answer_gives_none_until_the_site_is_given_up(
    db_path: Path, *, stale_if_error: bool
) -> None:
    robots = RobotsSettings(stale_if_error=stale_if_error, give_up_after_s=3600.0)
    web = crawled(db_path, {"a.test": SITES["a.test"]}, ["http://a.test/"], 86_400.0, robots)
    assert set(paths(web, "a.test")) == {"/robots.txt"}
    assert asyncio.run(states(db_path))["http://a.test/"][0] == "failed"
    answers = asyncio.run(rows(db_path, f"SELECT action FROM robots_answers WHERE {ONE} ORDER BY robots_copy"))
    assert answers[-1] == (RobotsAction.GIVEN_UP,)


def test_the_own_copy_stays_in_force_if_the_target_of_a_later_redirect_gives_no_usable_answer(db_path: Path) -> None:
    rules = replace(plain("User-agent: *\nDisallow: /x\n"), headers=(("Cache-Control", "max-age=300"),))
    links = Page("".join(f"<a href='/{n}'>n</a>" for n in range(200)))
    moved = redirect("http://www.test/robots.txt")
    sites: dict[str, Site] = {"a.test": {"/robots.txt": first(1, rules, moved), "/": links, "*": Page("x")}}
    web = crawled(db_path, sites, ["http://a.test/"], 86_400.0, RobotsSettings(stale_if_error=True), delay_s=3.0)
    assert len(paths(web, "a.test")) > 200
    copies = asyncio.run(rows(db_path, f"SELECT action, failures FROM robots_answers WHERE {ONE} ORDER BY robots_copy"))
    assert copies[:3] == [("parse", 0), ("parse", 1), ("parse", 2)]


def test_a_path_that_the_target_allows_is_the_robots_txt(db_path: Path) -> None:
    sites: dict[str, Site] = {
        "a.test": {"/robots.txt": redirect("http://b.test/rules"), "/": Page("x"), "/x": Page("x")},
        "b.test": {"/robots.txt": CLOSED, "/rules": plain("User-agent: *\nDisallow: /x\n")},
    }
    web = crawled(db_path, sites, ["http://a.test/", "http://a.test/x"])
    assert paths(web, "b.test") == ["/robots.txt", "/rules"]
    assert paths(web, "a.test") == ["/robots.txt", "/"]


@pytest.mark.parametrize("target", [{}, {"/robots.txt": plain("User-agent: *\nDisallow: /x\n")}])
def test_a_target_is_asked_once_for_all_sites_that_redirect_to_it(db_path: Path, target: Site) -> None:
    sites: dict[str, Site] = {
        f"s{n}.test": {"/robots.txt": redirect("http://b.test/robots.txt"), "/": Page("x"), "/x": Page("x")}
        for n in range(40)
    }
    seeds = [f"http://{host}/{path}" for host in sites for path in ("", "x")]
    web = crawled(db_path, {**sites, "b.test": target}, seeds)
    assert paths(web, "b.test") == ["/robots.txt"]
    fetched = {hit.host for hit in web.log if hit.path == "/"}
    assert fetched == set(sites)
    assert {hit.host for hit in web.log if hit.path == "/x"} == (set() if target else set(sites))


@pytest.mark.parametrize(("hosts", "body"), [(40, ""), (500, "User-agent: *\nDisallow: /x\n")])
def test_a_path_is_requested_once_for_all_sites_that_redirect_to_it(db_path: Path, hosts: int, body: str) -> None:
    sites: dict[str, Site] = {
        f"s{n}.test": {"/robots.txt": redirect("http://b.test/rules"), "/": Page("x"), "/x": Page("x")}
        for n in range(hosts)
    }
    seeds = [f"http://{host}/{path}" for host in sites for path in ("", "x")]
    web = crawled(db_path, {**sites, "b.test": {"/robots.txt": CLOSED, "/rules": plain(body)}}, seeds)
    assert paths(web, "b.test") == ["/robots.txt", "/rules"]
    assert {hit.host for hit in web.log if hit.path == "/"} == set(sites)
    assert {hit.host for hit in web.log if hit.path == "/x"} == (set() if body else set(sites))


def test_a_site_that_begins_to_wait_during_the_request_is_stored_after_the_site_that_it_was_made_for(
    db_path: Path,
) -> None:
    there = redirect("http://b.test/rules")
    sites: dict[str, Site] = {
        "a.test": {"/robots.txt": replace(there, delay_s=4.0), "/": Page("x")},  # the lower number, and the later wait
        "c.test": {"/robots.txt": there, "/": Page("x")},
        "b.test": {"/robots.txt": plain(""), "/rules": replace(plain(""), delay_s=9.0)},
    }
    web = crawled(db_path, sites, ["http://a.test/", "http://c.test/"])
    assert [hit.path for hit in web.web.hits("b.test")] == ["/robots.txt", "/rules"]
    stored = asyncio.run(
        rows(db_path, "SELECT site FROM robots_answers WHERE answered_by LIKE '%/rules' ORDER BY robots_copy")
    )
    assert stored == [("http://c.test",), ("http://a.test",)]


def test_the_site_that_a_request_is_made_for_waits_until_the_answer_has_come(
    db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(robots_cache, "PATIENCE_S", 8.0)
    there = redirect("http://b.test/rules")
    sites: dict[str, Site] = {
        "a.test": {"/robots.txt": there, "/": Page("x")},  # would wait no longer when the answer comes
        "c.test": {"/robots.txt": replace(there, delay_s=4.0), "/": Page("x")},
        "b.test": {"/robots.txt": plain(""), "/rules": replace(plain(""), delay_s=6.5)},
    }
    web = crawled(db_path, sites, ["http://a.test/", "http://c.test/"], seconds=60.0)
    assert paths(web, "b.test") == ["/robots.txt", "/rules"]
    assert {hit.host for hit in web.log if hit.path == "/"} == {"a.test", "c.test"}


def test_a_path_is_requested_again_when_its_copy_has_run_out(db_path: Path) -> None:
    rules = replace(plain(""), headers=(("Cache-Control", "max-age=300"),))
    sites: dict[str, Site] = {
        f"s{n}.test": {"/robots.txt": redirect("http://b.test/rules"), "/": healthy(100)["/"], "*": Page("x")}
        for n in range(6)
    }
    sites["b.test"] = {"/robots.txt": replace(plain(""), headers=rules.headers), "/rules": rules}
    web = crawled(db_path, sites, [f"http://{host}/" for host in sites if host != "b.test"], 1_700.0, delay_s=10.0)
    asked = [hit.started_at for hit in web.web.hits("b.test") if hit.path == "/rules"]
    assert 3 <= len(asked) <= 6
    assert min(after - before for before, after in pairwise(asked)) > 300
    assert all(len(paths(web, f"s{n}.test")) > 100 for n in range(6))


def test_a_path_that_does_not_answer_is_requested_once_before_the_next_attempt(db_path: Path) -> None:
    sites: dict[str, Site] = {
        f"s{n}.test": {"/robots.txt": redirect("http://b.test/rules"), "/": Page("x")} for n in range(40)
    }
    sites["b.test"] = {"/robots.txt": CLOSED, "/rules": Page(status=500)}
    web = crawled(db_path, sites, [f"http://s{n}.test/" for n in range(40)], 55.0)
    assert paths(web, "b.test") == ["/robots.txt", "/rules"]
    assert {hit.path for hit in web.log} == {"/robots.txt", "/rules"}


def test_the_redirect_to_https_asks_each_site_once(db_path: Path) -> None:
    """Both sites are of one group and one claim, in either order."""
    site: Site = {"/robots.txt": CLOSED, "*": Page("x")}
    secure: dict[str, Site] = {"a.test": site}

    class Upgrading(SimulatedWeb):
        async def fetch(self, request: Request) -> FetchResult:
            if request.url == "http://a.test/robots.txt":
                now = self._clock.now()
                return Redirected(request.url, now, now, (), 0, 301, "https://a.test/robots.txt")
            return await super().fetch(request)

    async def main(clock: VirtualClock) -> SimulatedWeb:
        web = Upgrading(clock, secure)
        seeds = ["http://a.test/1", "https://a.test/2", "http://a.test/private/3", "https://a.test/private/4"]
        await crawl_for(clock, db_path, web, seeds, Options(), 60.0, crash=False)
        return web

    assert sorted(paths(run_virtual(main), "a.test")) == ["/1", "/2", "/robots.txt"]
    assert asyncio.run(violations(db_path, RobotsSettings())) == []


def test_redirects_over_several_sites_and_in_a_circle(db_path: Path) -> None:
    chain: dict[str, Site] = {
        f"c{n}.test": {"/robots.txt": redirect(f"http://c{n + 1}.test/robots.txt"), "/": Page("x")} for n in range(13)
    }
    chain["c13.test"] = {"/robots.txt": plain("")}
    circle: dict[str, Site] = {
        "a.test": {"/robots.txt": redirect("http://b.test/robots.txt"), "/": Page("x")},
        "b.test": {"/robots.txt": redirect("http://a.test/robots.txt"), "/": Page("x")},
    }
    web = crawled(db_path, {**chain, **circle}, ["http://c0.test/", "http://a.test/", "http://b.test/"], 50.0)
    assert {hit.host for hit in web.log} == {"a.test", "b.test", *(f"c{n}.test" for n in range(11))}
    assert {hit.path for hit in web.log} == {"/robots.txt"}
    assert len(web.log) <= 11 + 4
    web = crawled(db_path.with_name("other.db"), chain, ["http://c5.test/"], 50.0)
    assert {hit.host for hit in web.log if hit.path == "/"} == {"c5.test"}


def test_two_sites_that_redirect_to_each_other_do_not_wait(db_path: Path) -> None:
    circle: dict[str, Site] = {
        f"{a}.test": {"/robots.txt": redirect(f"http://{b}.test/robots.txt"), "/": Page("x")} for a, b in ("ab", "ba")
    }
    crawled(db_path, circle, [f"http://{host}/" for host in circle], 20.0)
    answers = asyncio.run(rows(db_path, "SELECT DISTINCT site, action FROM robots_answers ORDER BY site"))
    assert answers == [(f"http://{host}", RobotsAction.DEFER) for host in circle]


def test_a_kill_between_two_hops_loses_nothing(db_path: Path) -> None:
    """a.test waits for b.test, and b.test for c.test, whose answer is on its way."""
    sites: dict[str, Site] = {
        "a.test": {"/robots.txt": redirect("http://b.test/robots.txt"), "/": Page("x")},
        "b.test": {"/robots.txt": redirect("http://c.test/robots.txt")},
        "c.test": {"/robots.txt": replace(plain(""), delay_s=9.0)},
    }

    async def main(clock: VirtualClock) -> SimulatedWeb:
        web = SimulatedWeb(clock, sites)
        await crawl_for(clock, db_path, web, ["http://a.test/"], Options(), 6.0, crash=True)
        assert [hit.host for hit in web.log] == ["a.test", "b.test", "c.test"]
        await crawl_for(clock, db_path, web, [], Options(), 60.0, crash=False)
        return web

    web = run_virtual(main)
    assert paths(web, "a.test") == ["/robots.txt", "/robots.txt", "/"]
    assert asyncio.run(states(db_path)) == {"http://a.test/": ("fetched", "200")}
    assert asyncio.run(violations(db_path, RobotsSettings())) == []


def test_the_pause_of_a_site_does_not_prolong_the_copy_of_another_site(db_path: Path) -> None:
    """The copy of www.test is 298 s old when a.test is found, and runs out in the 100 s before the page of a.test."""
    rules = plain("User-agent: *\nCrawl-delay: 100\n")
    sites: dict[str, Site] = {
        "a.test": {"/robots.txt": redirect("http://www.test/robots.txt"), "/": Page("x")},
        "www.test": {
            "/robots.txt": replace(rules, headers=(("Cache-Control", "max-age=350"),)),
            "/": Page("<a href='/1'>x</a>"),
            "/1": Page("<a href='http://a.test/'>x</a>", delay_s=98.0),
        },
    }
    web = crawled(db_path, sites, ["http://www.test/"])
    (page,) = [hit for hit in web.log if (hit.host, hit.path) == ("a.test", "/")]
    asked = [hit for hit in web.log if hit.path == "/robots.txt" and hit.finished_at < page.started_at]
    asked_there = [hit.finished_at for hit in asked if hit.host == "www.test"]
    assert page.started_at < asked_there[-1] + 350
    assert len(asked_there) == 2
    assert paths(web, "a.test") == ["/robots.txt", "/robots.txt", "/"], "asked again after the pause"


# --- what waits for another group gives its claim back ----------------------------------------


def healthy(pages: int) -> Site:
    links = "".join(f"<a href='/{n}'>n</a>" for n in range(1, pages))
    return {"/robots.txt": CLOSED, "/": Page(links), "*": Page("x")}


def test_sites_that_redirect_to_a_host_with_a_crawl_delay_of_a_year_hold_nothing(db_path: Path) -> None:
    """The rules of the target are a path, so each of these sites needs a request there, a year after the other."""
    sites: dict[str, Site] = {
        f"s{n}.test": {"/robots.txt": redirect("http://slow.test/rules"), "/": Page("x")} for n in range(300)
    }
    sites["slow.test"] = {"/robots.txt": plain("User-agent: *\nCrawl-delay: 31536000\n"), "/rules": plain("")}
    sites["healthy.test"] = healthy(50)
    held = fetched = 0

    async def main(clock: VirtualClock) -> SimulatedWeb:
        nonlocal held, fetched
        web = SimulatedWeb(clock, sites)
        options = Options(limits=LimitSettings(claimed_groups=100))
        seeds = [f"http://{host}/" for host in sites if host != "slow.test"]
        async with session(clock, db_path, web, seeds, options) as (run, store):
            task = asyncio.create_task(run.run())
            await clock.sleep(70)
            held = run.progress.active
            fetched = (await store.counts()).states[State.FETCHED]
            run.stop(RunEnd(EndCode.CALLER))
            await task
        return web

    web = run_virtual(main)
    assert len(paths(web, "healthy.test")) == 51
    assert paths(web, "slow.test") == ["/robots.txt"]
    assert held == 0, "no claim waits for a year"
    assert fetched == 50


def test_sites_that_redirect_to_a_crawled_host_do_not_stand_before_its_pages(db_path: Path) -> None:
    sites: dict[str, Site] = {
        f"s{n}.test": {"/robots.txt": redirect(f"http://healthy.test/{'robots.txt' if n % 2 else 'rules'}")}
        for n in range(200)
    }
    sites["healthy.test"] = {**healthy(50), "/rules": plain("")}
    web = crawled(db_path, sites, [f"http://{host}/" for host in sites], 58.0)
    asked = web.web.hits("healthy.test")[:52]
    own = ["/robots.txt", "/", *(f"/{n}" for n in range(1, 50))]
    assert sorted(hit.path for hit in asked) == sorted([*own, "/rules"]), "one request serves all of them"
    assert asked[1].path == "/"
    assert asked[-1].started_at < 57, "at its own pace"


def test_a_site_that_redirects_on_itself_and_asks_to_wait_gives_its_claim_back(db_path: Path) -> None:
    later = replace(redirect("/rules"), headers=(("Location", "/rules"), ("Retry-After", "3600")))
    sites: dict[str, Site] = {"a.test": {"/robots.txt": later, "/rules": plain(""), "/": Page("x")}}

    async def main(clock: VirtualClock) -> int:
        async with session(clock, db_path, SimulatedWeb(clock, sites), ["http://a.test/"], Options()) as (run, _):
            task = asyncio.create_task(run.run())
            await clock.sleep(30)
            held = run.progress.active
            run.stop(RunEnd(EndCode.CALLER))
            await task
        return held

    assert run_virtual(main) == 0
