"""Crawls that ask sites for /.well-known/tdmrep.json."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crawler.demo.pages import Fault, Page, Site, plain
from crawler.frontier.revisit import RevisitSettings
from crawler.preferences.purposes import UsePurpose
from crawler.robots.response import RobotsSettings
from crawler.settings.settings import Identity
from tests.judge import Manners, violations
from tests.simulation.crawls import Options, crawl, crawl_for, rows
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

TDMREP = "/.well-known/tdmrep.json"
RESERVED = '[{"location": "/closed/", "tdm-reservation": 1}]'
FREE_TAG = '<meta name="tdm-reservation" content="0">'
DAY_S = 86_400.0


def site(file: Page, robots: str = "") -> Site:
    links = "".join(f"<a href='{path}'>x</a>" for path in ("/closed/1", "/closed/free", "/open"))
    return {
        "/robots.txt": plain(robots),
        TDMREP: file,
        "/": Page(links),
        "/closed/1": Page("<title>one</title>"),
        "/closed/free": Page(f"{FREE_TAG}<title>two</title>"),
        "/open": Page("<title>three</title>"),
    }


def options(*purposes: UsePurpose, wanted: bool = True) -> Options:
    return Options(robots=RobotsSettings(tdmrep=wanted), identity=Identity("SimulatedBot", purpose=tuple(purposes)))


def after_crawl(path: Path, described: Site, given: Options, statement: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The paths that were requested, and the rows of a query."""

    async def main(clock: VirtualClock) -> tuple[list[str], list[tuple[Any, ...]]]:
        web = SimulatedWeb(clock, {"a.test": described})
        assert await crawl(clock, path, web, ["http://a.test/"], given) == "nothing is left in the frontier"
        assert violations(web.log, Manners(delay_s=1.0, tolerance_s=1e-6)) == []
        return [hit.path for hit in web.log], await rows(path, statement)

    return run_virtual(main)


STATED = "SELECT url, category, value, source, line FROM preferences ORDER BY url"


def test_the_file_is_requested_once_after_robots_txt_and_speaks_for_pages_that_are_silent(db_path: Path) -> None:
    paths, stated = after_crawl(db_path, site(plain(RESERVED)), options(), STATED)
    assert paths[:3] == ["/robots.txt", TDMREP, "/"]
    assert paths.count(TDMREP) == 1
    assert stated == [
        ("http://a.test/closed/1", "tdm", "n", "tdmrep.json", None),
        ("http://a.test/closed/free", "tdm", "y", "META", None),
    ]


def test_a_reserved_page_is_not_kept_for_a_declared_purpose(db_path: Path) -> None:
    query = "SELECT url, reason_code FROM urls WHERE reason_code <> 'fetched' ORDER BY url"
    _, refused = after_crawl(db_path, site(plain(RESERVED)), options(UsePurpose.TRAIN_AI), query)
    assert refused == [("http://a.test/closed/1", "withheld")]
    kept = run_virtual(lambda clock: rows(db_path, "SELECT title FROM pages WHERE title <> '' ORDER BY url"))
    assert kept == [("two",), ("three",)]


def test_a_file_that_begins_to_reserve_is_obeyed_at_the_revisit(db_path: Path) -> None:
    """A 304 leads to a request for the whole page, whose tags may say otherwise."""
    given = options(UsePurpose.TRAIN_AI)
    given = replace(given, revisit=RevisitSettings(enabled=True, first_s=DAY_S, min_interval_s=3_600.0))
    file = [plain("[]")]
    tagged = (("ETag", '"1"'),)
    described = dict(site(Page())) | {
        TDMREP: lambda asked: file[0],
        "/closed/1": Page("<title>one</title>", headers=tagged),
        "/closed/free": Page(f"{FREE_TAG}<title>two</title>", headers=tagged),
    }

    async def main(clock: VirtualClock) -> None:
        web = SimulatedWeb(clock, {"a.test": described})
        await crawl(clock, db_path, web, ["http://a.test/"], given)
        file[0] = plain(RESERVED)
        await clock.sleep(40 * DAY_S)
        await crawl(clock, db_path, web, [], given)
        found = await rows(db_path, "SELECT url, title, noindex FROM pages WHERE url LIKE '%closed%' ORDER BY url")
        assert found == [("http://a.test/closed/1", None, 1), ("http://a.test/closed/free", "two", 0)]

    run_virtual(main)


def test_it_is_not_requested_unless_wanted_and_allowed(db_path: Path, tmp_path: Path) -> None:
    paths, stated = after_crawl(db_path, site(plain(RESERVED)), options(wanted=False), STATED)
    assert TDMREP not in paths
    assert len(stated) == 1
    closed = site(plain(RESERVED), "User-agent: *\nDisallow: /.well-known/")
    assert TDMREP not in after_crawl(tmp_path / "closed.db", closed, options(), STATED)[0]


@pytest.mark.parametrize(
    ("file", "status", "note"),
    [
        (plain('[{"location": "/"'), "200", "malformed"),
        (plain("[" + " " * 70_000 + "]"), "200", "70002 bytes"),
        (Page("", status=404), "404", "404"),
        (Page(fault=Fault.RESET), "no answer", ""),
    ],
)
def test_a_file_that_cannot_be_read_says_nothing(file: Page, status: str, note: str, db_path: Path) -> None:
    query = "SELECT site, status, note FROM site_files"
    paths, found = after_crawl(db_path, site(file), options(UsePurpose.TRAIN_AI), query)
    assert len(paths) == 6
    assert found[0][:2] == ("http://a.test", status)
    assert note in found[0][2]
    assert found[0][2]


def test_it_is_remembered_across_a_crash_and_requested_again_with_robots_txt(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        web = SimulatedWeb(clock, {"a.test": site(plain(RESERVED), "User-agent: *\nCrawl-delay: 200000")})
        for _ in range(3):
            await crawl_for(clock, db_path, web, ["http://a.test/"], options(), 250_000, crash=True)
        await crawl(clock, db_path, web, options=options())
        paths = [hit.path for hit in web.log]
        assert paths.count(TDMREP) == paths.count("/robots.txt") > 1
        assert paths.count("/closed/1") == 1
        assert [row[3] for row in await rows(db_path, STATED)] == ["tdmrep.json", "META"]

    run_virtual(main)
