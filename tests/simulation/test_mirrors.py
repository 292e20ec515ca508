"""Mirrors by their ``Host`` lines (``docs/protocols.md``, section 2)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from crawler.demo.pages import Page, Site, first, plain, redirect, unavailable
from crawler.frontier.scope import ScopeMode, ScopeSettings
from crawler.robots.mirrors import Main
from crawler.robots.response import RobotsSettings
from crawler.store.rows import ClaimedSite, Heard
from tests.contract.visits import robots
from tests.simulation.crawls import Options, crawl, crawl_for, rows, session, states
from tests.simulation.test_redirected_robots import violations
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

DONE = "nothing is left in the frontier"


def page(*links: str) -> Page:
    return Page("<!doctype html>" + "".join(f"<a href='{link}'>{link}</a>" for link in links))


def named(host: str, *more: str) -> Page:
    return plain("\n".join(("User-agent: *", *more, f"Host: {host}")))


def site(robots: Page, *paths: str) -> Site:
    return {"/robots.txt": robots, **{path: page() for path in paths}}


def crawled(path: Path, sites: dict[str, Site], *seeds: str, options: Options | None = None) -> SimulatedWeb:
    async def main(clock: VirtualClock) -> SimulatedWeb:
        web = SimulatedWeb(clock, sites)
        assert (await crawl(clock, path, web, seeds, options)).startswith(DONE)
        return web

    return run_virtual(main)


def asked(web: SimulatedWeb, host: str) -> list[str]:
    return sorted(hit.path for hit in web.log if hit.host == host)


def ends(path: Path) -> dict[str, tuple[str, str]]:
    return run_virtual(lambda clock: states(path))


def mirrors(path: Path) -> list[tuple[str, str, str | None]]:
    sql = "SELECT site, main_site, leads_to FROM mirrors ORDER BY site"
    return run_virtual(lambda clock: rows(path, sql))


def test_a_chain_of_mirrors_is_crawled_at_its_end(db_path: Path) -> None:
    sites = {
        "a.site.test": site(named("b.site.test"), "/x", "/y"),
        "b.site.test": site(named("c.site.test"), "/x", "/y"),
        "c.site.test": site(plain(""), "/x", "/y"),
    }
    web = crawled(db_path, sites, "http://a.site.test/x", "http://a.site.test/y", "http://b.site.test/y")
    assert [asked(web, host) for host in sites] == [["/robots.txt"], ["/robots.txt"], ["/robots.txt", "/x", "/y"]]
    end = ends(db_path)
    for host in ("a.site.test", "b.site.test"):
        for path in ("/x", "/y"):
            if f"http://{host}{path}" in end:
                assert end[f"http://{host}{path}"] == ("excluded", "mirror of http://c.site.test (Host, line 2)")
    targets = run_virtual(lambda clock: rows(db_path, "SELECT url, target FROM urls WHERE url LIKE '%a.site.test/x'"))
    assert targets == [("http://a.site.test/x", "http://c.site.test/x")]
    assert mirrors(db_path) == [
        ("http://a.site.test", "http://b.site.test", "http://c.site.test"),
        ("http://b.site.test", "http://c.site.test", "http://c.site.test"),
    ]


@pytest.mark.parametrize("seeds", [("a",), ("a", "b", "c"), ("before", "a")])
def test_every_site_of_a_mirror_cycle_is_excluded_with_that_reason(db_path: Path, seeds: tuple[str, ...]) -> None:
    """Also URLs that were decided on while the cycle was known as a chain."""
    names = {"before": "a", "a": "b", "b": "c", "c": "a"}
    sites = {f"{host}.site.test": site(named(f"{other}.site.test"), "/x") for host, other in names.items()}
    web = crawled(db_path, sites, *(f"http://{host}.site.test/x" for host in seeds))
    assert {hit.path for hit in web.log} == {"/robots.txt"}
    end = ends(db_path)
    assert set(end) >= {f"http://{host}.site.test/x" for host in "abc"}
    for state, reason in end.values():
        assert state == "excluded"
        assert reason.startswith("mirror cycle: http://")
        assert all(f"http://{host}.site.test" in reason for host in "abc")
    assert {leads_to for _, _, leads_to in mirrors(db_path)} == {None}


def test_a_host_line_does_not_widen_the_scope(db_path: Path) -> None:
    sites = {
        "evil.test": site(named("www.victim.example"), "/", "/x"),
        "www.victim.example": site(named("www.victim.example"), "/", "/x"),
    }
    options = Options(scope=ScopeSettings(ScopeMode.DOMAIN))
    web = crawled(db_path, sites, "http://evil.test/", "http://evil.test/x", options=options)
    assert asked(web, "www.victim.example") == []
    assert ends(db_path) == {f"http://evil.test{path}": ("fetched", "200") for path in ("/", "/x")}
    assert contradictions(db_path) == [("http://evil.test", "http://www.victim.example", "refuted", "other_domain")]


def test_a_chain_ends_before_another_domain_that_is_out_of_the_scope(db_path: Path) -> None:
    sites = {
        "a.evil.test": site(named("b.evil.test"), "/x"),
        "b.evil.test": site(named("www.victim.example"), "/x"),
        "www.victim.example": site(named("www.victim.example"), "/x"),
    }
    web = crawled(db_path, sites, "http://a.evil.test/x", options=Options(scope=ScopeSettings(ScopeMode.HOST)))
    assert asked(web, "www.victim.example") == []
    assert ends(db_path) == {
        "http://a.evil.test/x": ("excluded", "mirror of http://b.evil.test (Host, line 2)"),
        "http://b.evil.test/x": ("fetched", "200"),
    }


def test_a_host_line_changes_nothing_for_the_site_that_it_names(db_path: Path) -> None:
    """A site that says "Host: main" gets no more requests; main is crawled under its own robots.txt and name."""
    sites = {
        "copy.test": site(named("main.test"), "/", "/open", "/closed"),
        "main.test": {
            "/": page("/open", "http://copy.test/only-here"),
            "/open": page(),
            "/robots.txt": plain("User-agent: *\nDisallow: /closed\nHost: main.test"),
        },
    }
    web = crawled(db_path, sites, "http://main.test/", "http://copy.test/open", "http://copy.test/closed")
    assert asked(web, "copy.test") == ["/robots.txt"]
    assert asked(web, "main.test") == ["/", "/only-here", "/open", "/robots.txt"]
    end = ends(db_path)
    assert end["http://main.test/closed"] == ("excluded", "robots: line 2, Disallow: /closed (draft1996)")
    assert end["http://main.test/only-here"] == ("failed", "status 404")
    assert "http://main.test" not in {mirror for mirror, _, _ in mirrors(db_path)}


# --- a main site that is none (docs/protocols.md, section 2, amended) ---


def contradictions(path: Path) -> list[tuple[str, str, str, str | None]]:
    sql = "SELECT site, main_site, evidence, contradiction FROM mirrors ORDER BY site"
    return run_virtual(lambda clock: rows(path, sql))


def test_a_main_host_that_redirects_to_its_mirror_is_none(db_path: Path) -> None:
    """http://shop names http://www.shop, which redirects back: the shop is crawled, also by the next run."""
    shop: Site = {"/robots.txt": named("www.shop.test"), "/": page("/a", "/b"), "/a": page(), "/b": page()}
    back: Site = {"/robots.txt": named("www.shop.test")}
    back |= {path: redirect(f"http://shop.test{path}") for path in ("/", "/a", "/b", "/later")}
    sites = {"shop.test": shop | {"/later": page()}, "www.shop.test": back}
    web = crawled(db_path, sites, "http://shop.test/")
    assert asked(web, "shop.test") == ["/", "/a", "/b", "/robots.txt"]
    assert asked(web, "www.shop.test") == ["/", "/robots.txt"]
    assert ends(db_path) == {
        **{f"http://shop.test{path}": ("fetched", "200") for path in ("/", "/a", "/b")},
        "http://www.shop.test/": ("redirected", "302 to http://shop.test/"),
    }
    expected = [("http://shop.test", "http://www.shop.test", "refuted", "redirects")]
    assert contradictions(db_path) == expected
    web = crawled(db_path, sites, "http://shop.test/later")
    assert (asked(web, "shop.test"), asked(web, "www.shop.test")) == (["/later"], [])
    assert contradictions(db_path) == expected
    assert asyncio.run(violations(db_path, RobotsSettings())) == []


def test_a_contradiction_outlives_the_copy_of_robots_txt(db_path: Path) -> None:
    shop = again(named("www.shop.test"), named("www.shop.test"))
    back: Site = {"/robots.txt": plain(""), "/x": redirect("http://shop.test/x")}
    sites = {
        "shop.test": shop,
        "www.shop.test": back,
        "hub.test": {"/": first(1, unavailable(7200), page("http://shop.test/later"))},
    }
    web = crawled(db_path, sites, "http://shop.test/x", "http://hub.test/")
    assert asked(web, "shop.test") == ["/later", "/robots.txt", "/robots.txt", "/x"]
    assert asked(web, "www.shop.test") == ["/robots.txt", "/x"]


def test_a_contradiction_ends_when_the_mirror_names_another_host(db_path: Path) -> None:
    shop = again(named("www.shop.test"), named("new.shop.test"))
    sites = {
        "shop.test": shop,
        "www.shop.test": {"/robots.txt": plain(""), "/x": redirect("http://shop.test/x")},
        "new.shop.test": site(plain(""), "/x", "/later"),
        "hub.test": {"/": first(1, unavailable(7200), page("http://shop.test/later"))},
    }
    web = crawled(db_path, sites, "http://shop.test/x", "http://hub.test/")
    assert asked(web, "new.shop.test") == ["/later", "/robots.txt"]
    assert contradictions(db_path) == [("http://shop.test", "http://new.shop.test", "host", None)]


def test_a_main_host_that_cannot_be_reached_is_none(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> list[str]:
        web = SimulatedWeb(clock, {"a.site.test": site(named("gone.site.test"), "/x")})
        await crawl_for(clock, db_path, web, ["http://a.site.test/x"], Options(), 3600, crash=False)
        return asked(web, "a.site.test")

    assert run_virtual(main) == ["/robots.txt", "/x"]
    assert ends(db_path)["http://a.site.test/x"] == ("fetched", "200")
    assert contradictions(db_path) == [("http://a.site.test", "http://gone.site.test", "refuted", "unreachable")]


def test_a_main_host_without_pages_is_none(db_path: Path) -> None:
    sites = {
        "a.site.test": site(named("empty.site.test"), "/x", "/y"),
        "empty.site.test": {"/robots.txt": plain("")},
    }
    web = crawled(db_path, sites, "http://a.site.test/x", "http://a.site.test/y")
    assert asked(web, "a.site.test") == ["/robots.txt", "/x", "/y"]
    end = ends(db_path)
    assert {end[f"http://a.site.test/{name}"] for name in "xy"} == {("fetched", "200")}
    assert contradictions(db_path) == [("http://a.site.test", "http://empty.site.test", "refuted", "no_page")]


def test_a_main_host_with_one_page_is_one(db_path: Path) -> None:
    sites = {"a.site.test": site(named("b.site.test"), "/x", "/y"), "b.site.test": site(plain(""), "/y")}
    web = crawled(db_path, sites, "http://a.site.test/x", "http://a.site.test/y")
    assert asked(web, "a.site.test") == ["/robots.txt"]
    assert contradictions(db_path) == [("http://a.site.test", "http://b.site.test", "host", None)]


def test_a_main_host_that_closes_itself_is_not_opened_by_its_mirror(db_path: Path) -> None:
    sites = {
        "a.site.test": site(named("b.site.test"), "/x"),
        "b.site.test": site(plain("User-agent: *\nDisallow: /"), "/x"),
    }
    web = crawled(db_path, sites, "http://a.site.test/x")
    assert {hit.path for hit in web.log} == {"/robots.txt"}


def test_another_domain_is_the_main_host_only_if_it_says_the_same(db_path: Path) -> None:
    """A customer's domain whose robots.txt, made by its provider, names the provider's host."""
    sites = {
        "customer.test": site(named("provider.test"), "/x"),
        "agreed.test": site(named("main.test"), "/x"),
        "provider.test": site(plain("User-agent: *\nDisallow: /private"), "/x"),
        "main.test": site(named("main.test"), "/x"),
    }
    web = crawled(db_path, sites, "http://customer.test/x", "http://agreed.test/x")
    assert [asked(web, host) for host in sites] == [
        ["/robots.txt", "/x"],
        ["/robots.txt"],
        ["/robots.txt"],
        ["/robots.txt", "/x"],
    ]
    assert contradictions(db_path) == [
        ("http://agreed.test", "http://main.test", "host", None),
        ("http://customer.test", "http://provider.test", "refuted", "other_domain"),
    ]


def again(*answers: Page) -> Site:
    """A site whose robots.txt is valid for an hour and then changes."""
    held = [Page(a.body, a.status, (("Cache-Control", "max-age=3600"),), "text/plain") for a in answers]
    return {"/robots.txt": lambda asked: held[min(asked.before, len(held) - 1)], "/x": page(), "/later": page()}


def test_a_former_mirror_is_crawled(db_path: Path) -> None:
    sites = {
        "a.site.test": again(named("main.site.test"), plain("")),
        "main.site.test": site(plain(""), "/x"),
        "hub.test": {"/": first(1, unavailable(7200), page("http://a.site.test/later"))},
    }
    web = crawled(db_path, sites, "http://a.site.test/x", "http://hub.test/")
    # Its URLs were requested from its main site. Once it names none any more, its own are requested as well.
    assert asked(web, "main.site.test") == ["/robots.txt", "/x"]
    assert asked(web, "a.site.test") == ["/later", "/robots.txt", "/robots.txt", "/x"]
    assert ends(db_path)["http://a.site.test/x"] == ("fetched", "200")
    assert mirrors(db_path) == []


def test_a_mirror_without_an_answer_for_robots_txt_stays_a_mirror(db_path: Path) -> None:
    sites = {
        "a.site.test": again(named("main.site.test"), Page(status=503), Page(status=503), named("main.site.test")),
        "main.site.test": site(plain(""), "/x", "/later"),
        "hub.test": {"/": first(1, unavailable(7200), page("http://a.site.test/later"))},
    }
    web = crawled(db_path, sites, "http://a.site.test/x", "http://hub.test/")
    assert asked(web, "a.site.test") == ["/robots.txt"] * 4
    assert asked(web, "main.site.test") == ["/later", "/robots.txt", "/x"]
    assert mirrors(db_path) == [("http://a.site.test", "http://main.site.test", "http://main.site.test")]


def test_mirrors_are_remembered_by_the_next_run(db_path: Path) -> None:
    sites = {
        "a.site.test": site(named("b.site.test"), "/x", "/y"),
        "b.site.test": site(named("c.site.test"), "/x", "/y"),
        "c.site.test": site(plain(""), "/x", "/y"),
    }
    crawled(db_path, sites, "http://a.site.test/x")
    web = crawled(db_path, sites, "http://a.site.test/y")
    assert [asked(web, host) for host in sites] == [[], [], ["/y"]], "the copies of robots.txt still hold"
    assert ends(db_path)["http://a.site.test/y"] == ("excluded", "mirror of http://c.site.test (Host, line 2)")


def test_a_mirror_dropped_by_another_worker_is_dropped_here(db_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = (f"http://{name}.test" for name in "abc")
    told = Heard([(a, b)], [], [])

    async def heard() -> Heard:
        return told

    async def main(clock: VirtualClock) -> None:
        async with session(clock, db_path, SimulatedWeb(clock, {}), [f"{a}/"], Options()) as (run, store):
            store._workers.lease_s = 60.0
            monkeypatch.setattr(store, "heard", heard)
            context, here = run, ClaimedSite(1, a, robots(b"Host: b.test\n"), 1)
            context.main_sites.learn([(a, b), (b, c)])
            assert context.main_sites.main_of(a) == Main(c)
            await context.robots_cache.in_force(here, "a.test")
            assert context.main_sites.main_of(a) == Main(b)
            context.main_sites.learn([(b, c)])
            await context.robots_cache.in_force(here, "a.test")
            assert context.main_sites.main_of(a) == Main(c), "it was looked at just now"

    run_virtual(main)


def test_a_mirror_with_a_deferred_robots_txt_stays_a_mirror(db_path: Path) -> None:
    a: Site = {"/robots.txt": first(1, named("b.test"), unavailable()), "/x": page()}
    b = site(named("b.test"), "/x")

    async def main(clock: VirtualClock) -> list[str]:
        web = SimulatedWeb(clock, {"a.test": a, "b.test": b})
        await crawl(clock, db_path, web, ["http://a.test/x"])
        await clock.sleep(8 * 86_400)  # it has run out
        await crawl_for(clock, db_path, web, ["http://a.test/y"], Options(), 30, crash=False)
        return [hit.path for hit in web.web.hits("a.test")]

    assert run_virtual(main) == ["/robots.txt", "/robots.txt"]
    assert run_virtual(lambda clock: rows(db_path, "SELECT site, main_site FROM mirrors")) == [
        ("http://a.test", "http://b.test")
    ]
