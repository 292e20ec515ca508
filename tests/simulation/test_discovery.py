"""Sitemaps in whole crawls: which are requested, what is read from them, and by which rules."""

from __future__ import annotations

import gzip
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from crawler.demo.pages import Asked, Fault, Page, Site, plain, redirect, unavailable
from crawler.engine.crawl_settings import DiscoverySettings, LimitSettings
from crawler.frontier.scope import ScopeMode, ScopeSettings
from tests.simulation.crawls import Options, crawl, crawl_for, rows, states
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

DONE = "nothing is left in the frontier"
SITEMAPS = DiscoverySettings(sitemaps=True)
A = "http://a.test"


def xml(text: str | bytes) -> Page:
    return Page(text, content_type="application/xml")


def urlset(*urls: str, lastmod: str = "") -> Page:
    date = f"<lastmod>{lastmod}</lastmod>" if lastmod else ""
    return xml("<urlset>" + "".join(f"<url><loc>{url}</loc>{date}</url>" for url in urls) + "</urlset>")


def index(*urls: str) -> Page:
    return xml("<sitemapindex>" + "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls) + "</sitemapindex>")


def page(*links: str) -> Page:
    return Page("<!doctype html>" + "".join(f"<a href='{link}'>{link}</a>" for link in links))


def naming(*sitemaps: str, rules: str = "") -> Page:
    return plain(rules + "".join(f"Sitemap: {url}\n" for url in sitemaps))


def crawled(
    path: Path, sites: dict[str, Site], *seeds: str, discovery: DiscoverySettings = SITEMAPS, **options: Any
) -> tuple[SimulatedWeb, str]:
    async def main(clock: VirtualClock) -> tuple[SimulatedWeb, str]:
        web = SimulatedWeb(clock, sites)
        return web, await crawl(clock, path, web, seeds or [f"{A}/"], Options(discovery=discovery, **options))

    return run_virtual(main)


def asked(web: SimulatedWeb, host: str = "a.test") -> list[str]:
    return sorted(hit.path for hit in web.log if hit.host == host)


def ends(path: Path) -> dict[str, tuple[str, str]]:
    return run_virtual(lambda clock: states(path))


def select(path: Path, sql: str) -> list[tuple[Any, ...]]:
    return run_virtual(lambda clock: rows(path, sql))


def test_sitemaps_are_requested_only_if_enabled(db_path: Path) -> None:
    a: Site = {"/robots.txt": naming("/s.xml"), "/": page(), "/s.xml": urlset(f"{A}/x"), "/x": page()}
    web, _ = crawled(db_path, {"a.test": a}, discovery=DiscoverySettings())
    assert asked(web) == ["/", "/robots.txt"]


def test_a_sitemap_index_leads_to_its_children_and_their_pages(db_path: Path) -> None:
    """The children are in another directory than the index, and only the index names them."""
    a: Site = {
        "/robots.txt": naming("/maps/index.xml"),
        "/": page(),
        "/maps/index.xml": index(f"{A}/data/1.xml.gz", f"{A}/data/2.txt", f"{A}/data/3.rss"),
        "/data/1.xml.gz": Page(gzip.compress(urlset(f"{A}/one").octets), content_type="application/gzip"),
        "/data/2.txt": plain(f"{A}/two\n"),
        "/data/3.rss": xml(f"<rss version='2.0'><channel><item><link>{A}/three</link></item></channel></rss>"),
        **{f"/{name}": page() for name in ("one", "two", "three")},
    }
    web, ended_by = crawled(db_path, {"a.test": a})
    assert ended_by == DONE
    assert asked(web) == sorted(a)
    found = dict(select(db_path, "SELECT url, discovered_from FROM urls"))
    assert found[f"{A}/three"] == f"{A}/data/3.rss"
    assert found[f"{A}/data/3.rss"] == f"{A}/maps/index.xml"
    assert ends(db_path)[f"{A}/maps/index.xml"] == ("fetched", "200, sitemap (index): 3 sitemaps")
    assert sorted(select(db_path, "SELECT purpose, count(*) FROM requests GROUP BY 1")) == [
        ("page", 4),
        ("robots", 1),
        ("sitemap", 4),
    ]
    kinds = select(db_path, "SELECT kind, count(*), min(depth), max(depth) FROM urls GROUP BY kind")
    assert kinds == [("page", 4, 0, 1), ("sitemap", 4, 0, 0)]
    assert select(db_path, "SELECT count(*) FROM pages") == [(4,)], "a sitemap is no page"
    assert select(db_path, "SELECT fetched FROM sites") == [(4,)]


@pytest.mark.parametrize("robots", [plain("User-agent: *\nDisallow: /no"), Page(status=404)], ids=["file", "404"])
def test_sitemap_xml_is_requested_if_robots_txt_names_no_sitemap(db_path: Path, robots: Page) -> None:
    a: Site = {"/robots.txt": robots, "/": page(), "/sitemap.xml": urlset(f"{A}/x"), "/x": page()}
    assert asked(crawled(db_path, {"a.test": a})[0]) == ["/", "/robots.txt", "/sitemap.xml", "/x"]


def test_a_missing_sitemap_is_not_a_failure(db_path: Path) -> None:
    crawled(db_path, {"a.test": {"/robots.txt": plain(""), "/": page()}})
    assert ends(db_path) == {
        f"{A}/": ("fetched", "200"),
        f"{A}/sitemap.xml": ("excluded", "sitemap: there is none (404)"),
    }


def test_a_sitemap_is_requested_again_after_a_server_was_down(db_path: Path) -> None:
    def once_down(asked: Asked) -> Page:
        return unavailable() if not asked.before else urlset(f"{A}/x")

    web, _ = crawled(db_path, {"a.test": {"/robots.txt": plain(""), "/": page(), "/sitemap.xml": once_down}})
    assert asked(web).count("/sitemap.xml") == 2
    assert f"{A}/x" in ends(db_path)


def test_sitemap_requests_obey_robots_txt_scope_and_pace(db_path: Path) -> None:
    """Neither --include nor --max-pages applies to them."""
    a: Site = {
        "/robots.txt": naming(
            "/closed/s.xml", "/open.xml", "http://b.other/s.xml", rules="User-agent: *\nDisallow: /closed/\n"
        ),
        "/": page(),
        "/open.xml": urlset(f"{A}/closed/x", f"{A}/in.html", f"{A}/out", "http://b.other/y.html"),
        "/in.html": page(),
        "/more.html": page(),
    }
    scope = ScopeSettings(ScopeMode.DOMAIN, include=(r"\.html$",))
    web, _ = crawled(
        db_path,
        {"a.test": a, "b.other": {"/s.xml": urlset()}},
        limits=LimitSettings(max_pages=2),
        scope=scope,
    )
    assert asked(web) == ["/", "/in.html", "/open.xml", "/robots.txt"]
    assert asked(web, "b.other") == []
    hits = sorted(web.log, key=lambda hit: hit.started_at)
    assert all(later.started_at - hit.finished_at >= 1.0 for hit, later in pairwise(hits))
    end = ends(db_path)
    assert end[f"{A}/closed/s.xml"] == ("excluded", "robots: line 2, Disallow: /closed/ (draft1996)")
    assert end["http://b.other/s.xml"][1] == "scope: b.other is not the domain of a seed (scope.mode domain)"
    assert end[f"{A}/out"][1] == "pattern: matches no scope.include"
    assert "http://b.other/y.html" not in end, "this sitemap may not speak for it"
    assert end[f"{A}/open.xml"][1].endswith("1 URLs ignored: this sitemap may not speak for them")


def test_a_sitemap_excluded_by_options_returns_with_wider_ones(db_path: Path) -> None:
    a: Site = {"/robots.txt": naming("/s.xml"), "/": page(), "/s.xml": urlset(f"{A}/page/1"), "/page/1": page()}
    narrow = ScopeSettings(ScopeMode.ANY, include=("/page/",), exclude=(r"s\.xml",))
    crawled(db_path, {"a.test": a}, scope=narrow)
    assert ends(db_path)[f"{A}/s.xml"][0] == "excluded"
    crawled(db_path, {"a.test": a}, scope=replace(narrow, exclude=()))
    assert ends(db_path)[f"{A}/s.xml"][0] == ends(db_path)[f"{A}/page/1"][0] == "fetched"


def test_max_pages_does_not_count_sitemaps(db_path: Path) -> None:
    a: Site = {"/robots.txt": plain(""), "/": page("/x"), "/sitemap.xml": urlset(f"{A}/y"), "/x": page(), "/y": page()}
    web, _ = crawled(db_path, {"a.test": a}, limits=LimitSettings(max_pages=3, max_pages_per_site=3))
    assert asked(web) == ["/", "/robots.txt", "/sitemap.xml", "/x", "/y"]


@pytest.mark.parametrize("proven", [True, False])
def test_a_sitemap_counts_for_another_site_only_if_its_robots_txt_names_it(db_path: Path, proven: bool) -> None:
    b = {
        "/robots.txt": naming(f"{A}/s.xml") if proven else plain(""),
        "/": page(),
        "/b": page(),
        "/sitemap.xml": page(),
    }
    a: Site = {
        "/robots.txt": naming("/s.xml"),
        "/": page(),
        "/s.xml": urlset("http://b.test/b", f"{A}/x"),
        "/x": page(),
    }
    web, _ = crawled(db_path, {"a.test": a, "b.test": b}, f"{A}/", "http://b.test/")
    assert ("/b" in asked(web, "b.test")) is proven
    assert "/x" in asked(web)


def test_lastmod_is_stored_for_pages_that_were_known_before(db_path: Path) -> None:
    a: Site = {
        "/robots.txt": plain(""),
        "/": page("/linked"),
        "/linked": page(),
        "/listed": page(),
        "/sitemap.xml": Page(
            urlset(f"{A}/", f"{A}/linked", f"{A}/listed", lastmod="2026-01-02T00:00:00Z").body,
            content_type="text/xml",
            delay_s=60.0,
        ),
    }
    crawled(db_path, {"a.test": a})
    dates = dict(select(db_path, "SELECT url, lastmod FROM urls"))
    assert dates == {
        **dict.fromkeys((f"{A}/", f"{A}/linked", f"{A}/listed"), 1_767_312_000.0),
        f"{A}/sitemap.xml": None,
    }


def test_a_redirected_sitemap_counts_for_the_site_that_names_it(db_path: Path) -> None:
    a: Site = {
        "/robots.txt": naming("/s"),
        "/": page(),
        "/s": redirect("/cache/s", 301),
        "/cache/s": redirect("/cache/deep/s.xml"),
        "/cache/deep/s.xml": urlset(f"{A}/x"),
        "/x": page(),
    }
    web, _ = crawled(db_path, {"a.test": a})
    assert asked(web) == sorted(a)
    kinds = dict(select(db_path, "SELECT url, kind FROM urls"))
    assert [kinds[f"{A}{path}"] for path in ("/s", "/cache/s", "/cache/deep/s.xml", "/x")] == ["sitemap"] * 3 + ["page"]


def test_hostile_sitemaps_are_bounded_and_harm_no_other_site(db_path: Path) -> None:
    bomb = "<!DOCTYPE x [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;'>]><urlset><url><loc>&b;</loc></url></urlset>"
    circle = [f"{A}/i{n}.xml" for n in range(9)]
    hostile = {
        "/bomb.xml": xml(bomb),
        "/gz.xml": xml(gzip.compress(b" " * 60_000_000)),
        "/cut.xml": xml(f"<urlset><url><loc>{A}/x</loc></url><url><loc>{A}/"),
        "/nul.xml": xml(b"\0" * 1000),
        "/js.xml": urlset("javascript:alert(1)", "file:///etc/passwd", "http://10.0.0.1/"),
        "/broken.xml": Page(b"<urlset>", fault=Fault.CUT),
        # An index of indexes, each naming the next, and the first again.
        **{f"/i{n}.xml": index(*circle[n + 1 : n + 2], circle[0]) for n in range(9)},
    }
    a: Site = {
        "/robots.txt": naming(*(p for p in hostile if not p.startswith("/i")), "/i0.xml"),
        "/": page(),
        **hostile,
    }
    web, ended_by = crawled(db_path, {"a.test": {**a, "/x": page()}})
    assert ended_by == DONE
    assert {p for p in asked(web) if p.startswith("/i")} == {f"/i{n}.xml" for n in range(4)}, "three indexes deep"
    assert max(asked(web).count(path) for path in hostile if path != "/broken.xml") == 1
    end = ends(db_path)
    assert {url for url, (state, _) in end.items() if state == "fetched" and not url.endswith(".xml")} == {
        f"{A}/",
        f"{A}/x",
    }
    assert not any(url.startswith(("javascript", "file", "http://10.")) for url in end)


def test_a_page_named_as_a_sitemap_is_crawled_as_a_page(db_path: Path) -> None:
    """One is a site map for people, the other the start page of another site."""
    a: Site = {"/robots.txt": naming("/map.html", "http://b.test/"), "/": page(), "/map.html": page("/x"), "/x": page()}
    b: Site = {"/robots.txt": plain(""), "/": page("/y"), "/y": page()}
    web, _ = crawled(db_path, {"a.test": a, "b.test": b}, f"{A}/", "http://b.test/")
    assert asked(web) == ["/", "/map.html", "/map.html", "/robots.txt", "/x"]
    assert "/y" in asked(web, "b.test")
    assert ends(db_path)[f"{A}/map.html"] == ("fetched", "200")


def test_no_url_is_taken_from_a_sitemap_that_says_nofollow(db_path: Path) -> None:
    for number, (tag, taken) in enumerate((("noindex, follow", ["/new"]), ("noindex, nofollow", []))):
        listed = replace(urlset(f"{A}/new"), headers=(("X-Robots-Tag", tag),))
        site: Site = {"/": page(), "/new": page(), "/sitemap.xml": listed}
        web, _ = crawled(db_path.with_suffix(f".{number}"), {"a.test": site})
        assert asked(web) == ["/", *taken, "/robots.txt", "/sitemap.xml"], tag


def test_a_start_page_served_for_every_url_is_not_a_sitemap(db_path: Path) -> None:
    web, _ = crawled(db_path, {"a.test": {"/robots.txt": plain(""), "*": page()}})
    assert asked(web) == ["/", "/robots.txt", "/sitemap.xml"]
    assert ends(db_path)[f"{A}/sitemap.xml"][1].startswith("200, sitemap (unknown): 0 URLs; not a sitemap")


def test_a_link_to_a_sitemap_does_not_make_it_a_page(db_path: Path) -> None:
    """A link leads to it before the robots.txt that names it is read."""
    b: Site = {"/": page(f"{A}/s.xml", f"{A}/t.xml")}
    a: Site = {
        "/robots.txt": naming("/s.xml", "/t.xml"),
        "/s.xml": urlset(f"{A}/x"),
        "/t.xml": urlset(f"{A}/y"),
        "/x": page(),
        "/y": page(),
    }
    scope = ScopeSettings(ScopeMode.ANY, exclude=("t.xml",))
    web, _ = crawled(db_path, {"a.test": a, "b.test": b}, "http://b.test/", scope=scope)
    assert asked(web) == ["/robots.txt", "/s.xml", "/s.xml", "/x"]
    web, _ = crawled(db_path, {"a.test": a, "b.test": b}, "http://b.test/", scope=ScopeSettings(ScopeMode.ANY))
    # What the scope left out at first is a sitemap by now, and claimed as such.
    assert asked(web) == ["/t.xml", "/y"]
    assert ends(db_path)[f"{A}/t.xml"] == ("fetched", "200, sitemap (urlset): 1 URLs")


@pytest.mark.parametrize("crash", [True, False])
@pytest.mark.parametrize("seconds", [0.5, 1.5, 3.0, 4.5, 6.0, 8.0])
def test_an_interrupted_crawl_loses_nothing(db_path: Path, seconds: float, crash: bool) -> None:
    a: Site = {
        "/robots.txt": naming("/i.xml"),
        "/": page(),
        "/i.xml": index(f"{A}/1.xml", f"{A}/2.xml"),
        "/1.xml": urlset(f"{A}/one"),
        "/2.xml": urlset(f"{A}/two"),
        "/one": page(),
        "/two": page(),
    }

    async def main(clock: VirtualClock) -> list[str]:
        web = SimulatedWeb(clock, {"a.test": a}, latency_s=0.4)
        options = Options(discovery=SITEMAPS)
        await crawl_for(clock, db_path, web, [f"{A}/"], options, seconds, crash=crash)
        assert await crawl(clock, db_path, web, [], options) == DONE
        return asked(web)

    paths = run_virtual(main)
    assert set(paths) == set(a)
    assert len(paths) <= len(a) + 1
    assert {state for state, _ in ends(db_path).values()} == {"fetched"}


def test_an_endless_chain_of_canonical_urls_is_given_up(db_path: Path) -> None:
    """A page names a new canonical URL for each request, at the same depth, so the depth does not bound it."""

    def restless(asked: Asked) -> Page:
        number = int(asked.path.partition("?")[2] or 0) + 1
        return Page(f"<!doctype html><link rel=canonical href='{A}/page?{number}'>")

    web, ended_by = crawled(
        db_path,
        {"a.test": {"/robots.txt": plain(""), "/page": restless}},
        f"{A}/page",
        discovery=DiscoverySettings(),
        limits=LimitSettings(max_pages=100, max_depth=3),
    )
    assert ended_by == DONE
    assert len(web.log) == 12
    assert ends(db_path)[f"{A}/page?11"] == ("excluded", "redirects: 11 in a row, at most 10 are followed")


# --- Content Signals, July 2026: use ---


def test_the_levels_of_use_bind_the_pages_of_their_paths(db_path: Path) -> None:
    lines = ("use=full", "/index/ use=reference", "/log/ use=immediate")
    text = "User-agent: *\nAllow: /\n" + "".join(f"Content-Signal: {line}\n" for line in lines)
    pages = ("/", "/index/a", "/log/b", "/beyond")
    a: Site = {"/robots.txt": plain(text), **{path: page() for path in pages}}
    a["/"], a["/log/b"] = page("/index/a", "/log/b"), page("/beyond")
    crawled(db_path, {"a.test": a}, discovery=DiscoverySettings())
    kept = select(db_path, "SELECT url, coalesce(directives, ''), body_sha256 IS NOT NULL FROM pages ORDER BY url")
    assert [tuple(row) for row in kept] == [
        (f"{A}/", "", 1),
        (f"{A}/index/a", '["robots.txt: noarchive, use=reference"]', 1),
        (f"{A}/log/b", '["robots.txt: noindex, nofollow, noarchive, use=immediate"]', 0),
    ]
    assert select(db_path, "SELECT count(*) FROM links WHERE source LIKE '%/log/b'") == [(0,)]
    stated = select(db_path, "SELECT value FROM preferences WHERE category = 'use' ORDER BY url")
    assert [value for (value,) in stated] == ["full", "reference", "immediate"]


# --- draft-illyes-repext-03: Robots-Tag ---


def test_a_robots_tag_line_of_robots_txt_binds_every_page_of_its_site(db_path: Path) -> None:
    """The line for this crawler and the line for all add up; lines for others do not count."""
    text = "User-agent: *\nDisallow:\nRobots-Tag: *;nosnippet, OtherBot;nofollow\nRobots-Tag: SimulatedBot;noindex\n"
    sites: dict[str, Site] = {
        "a.test": {"/robots.txt": plain(text), "/": page("http://b.test/")},
        "b.test": {"/robots.txt": plain("Robots-Tag: OtherBot;noindex"), "/": page()},
    }

    async def main(clock: VirtualClock) -> list[tuple[Any, ...]]:
        await crawl(clock, db_path, SimulatedWeb(clock, sites), [f"{A}/"], Options())
        return await rows(db_path, "SELECT url, noindex, nofollow, directives FROM pages ORDER BY url")

    assert run_virtual(main) == [
        ("http://a.test/", 1, 0, '["robots.txt: nosnippet, noindex"]'),
        ("http://b.test/", 0, 0, None),
    ]


# --- llms.txt ---


def test_an_llms_txt_is_shown_if_it_was_named_and_never_requested_otherwise(db_path: Path) -> None:
    sites: dict[str, Site] = {
        f"{name}.test": {"/robots.txt": plain(""), "/": page(*links), "/llms.txt": plain("# A")}
        for name, links in {"a": ("/llms.txt",), "b": ()}.items()
    }
    web, _ = crawled(db_path, sites, f"{A}/", "http://b.test/", discovery=DiscoverySettings())
    assert [hit.host for hit in web.log if hit.path == "/llms.txt"] == ["a.test"]
    assert select(db_path, "SELECT url, reason_code FROM llms_txt") == [(f"{A}/llms.txt", "type")]
