"""Crawls of sites whose robots.txt names licences of RSL, by a crawl that declares purposes."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from crawler.audit.checks import Check, Violation
from crawler.audit.run_audit import run_audit
from crawler.demo.pages import Fault, Page, Site, plain, redirect
from crawler.preferences.purposes import UsePurpose
from crawler.settings.loading import settings_from
from crawler.settings.settings import Identity
from crawler.store.sqlite.store import SqliteStore
from tests.judge import Manners, violations
from tests.simulation.crawls import Options, crawl, rows
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

TERMS = "http://terms.test/all.xml"
LINK = f'<link rel="license" type="application/rsl+xml" href="{TERMS}">'
DAY_S = 86_400.0
NO_TRAINING = '<license><prohibits type="usage">ai-train</prohibits></license>'
LICENCE = plain(f'<rsl xmlns="https://rslstandard.org/rsl"><content url="/p/">{NO_TRAINING}</content></rsl>')


def site(*licences: str) -> dict[str, Page]:
    robots = "User-agent: *\nDisallow: /x\n" + "".join(f"License: {url}\n" for url in licences)
    return {"/robots.txt": plain(robots), "/": Page("<a href=/p/1>1</a><a href=/open>2</a>"), "*": Page("text")}


def options(*purposes: UsePurpose) -> Options:
    return Options(identity=Identity("SimulatedBot", purpose=tuple(purposes)))


class Crawled:
    """What a crawl of these sites requested, and what it concluded of URLs."""

    def __init__(self, path: Path, web: Mapping[str, Site], *purposes: UsePurpose, seeds: int | None = None) -> None:
        self.path = path

        async def main(clock: VirtualClock) -> tuple[list[tuple[str, str]], str]:
            simulated = SimulatedWeb(clock, web)
            started = list(web) if seeds is None else list(web)[:seeds]
            ended = await crawl(clock, path, simulated, [f"http://{host}/" for host in started], options(*purposes))
            assert violations(simulated.log, Manners(delay_s=1.0, tolerance_s=1e-6)) == []
            return [(hit.host, hit.path) for hit in simulated.log], ended

        self.asked, self.ended = run_virtual(main)

    def codes(self) -> dict[str, str]:
        return dict(self.query("SELECT replace(url, 'http://', ''), reason_code FROM urls WHERE url LIKE '%.test/%'"))

    def audited(self, forgery: str = "") -> set[str]:
        """The paths of the pages that the audit finds requested against a preference, after a change of the store."""
        settings = settings_from(
            {"identity.contact": "who@example.org", "identity.purpose": ["train-ai"], "politeness.delay": 1}, source="x"
        )
        with sqlite3.connect(self.path) as db:
            db.execute("UPDATE run SET settings = ?", (json.dumps(asdict(settings)),))
            if forgery:
                db.execute(forgery)

        async def main() -> list[Violation]:
            store = await SqliteStore.open(self.path, read_only=True)
            try:
                return (await run_audit(store, 0.0)).violations
            finally:
                await store.close()

        found = asyncio.run(main())
        assert {each.check for each in found} <= {Check.PREFERENCE}
        return {each.url.partition(".test")[2] for each in found}

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        return asyncio.run(rows(self.path, sql))


@pytest.mark.parametrize("there", ["terms.test", "s1.test"])
def test_a_licence_is_requested_once_for_all_sites_before_their_first_page(db_path: Path, there: str) -> None:
    """It is on a site of its own, or on one of the sites that name it."""
    url = f"http://{there}/all.xml"
    web: dict[str, Site] = {f"s{n}.test": site(url) for n in range(20)}
    web[there] = {**web.get(there, {"/robots.txt": plain("")}), "/all.xml": LICENCE}
    found = Crawled(db_path, web, UsePurpose.TRAIN_AI, seeds=20)
    assert found.asked.count((there, "/all.xml")) == 1
    assert found.asked.index((there, "/robots.txt")) < found.asked.index((there, "/all.xml"))
    first = min(found.asked.index((f"s{n}.test", "/")) for n in range(20))
    assert found.asked.index((there, "/all.xml")) < first
    codes = found.codes()
    for n in range(20):
        assert (codes[f"s{n}.test/p/1"], codes[f"s{n}.test/open"]) == ("preference", "fetched")
    ((status, note),) = found.query("SELECT status, note FROM site_files")
    assert (status, note) == ("200", "")
    stated = found.query("SELECT DISTINCT category, value, source FROM preferences WHERE scheme = 'rsl'")
    assert stated == [("license", url, "robots.txt")]
    assert found.audited() == set()
    assert found.audited("UPDATE site_file SET body = CAST(replace(body, '/p/', '/open') AS BLOB)") == {"/open"}
    failed = "UPDATE request SET status = 500, error_kind = 'http' WHERE purpose = 'license'"
    assert found.audited(failed) == {"/", "/open"}, "no page may be requested while its licence fails"
    found.audited("UPDATE request SET status = 200, error_kind = NULL WHERE purpose = 'license'")
    assert found.audited("DELETE FROM site_file") == {"/", "/open"}
    reason = found.query("SELECT DISTINCT reason FROM urls WHERE reason_code = 'preference'")
    assert reason == [(f"preference: licence License: {url}",)]


def test_without_a_purpose_that_it_could_refuse_no_licence_is_requested(db_path: Path, tmp_path: Path) -> None:
    web = {"a.test": site(TERMS), "terms.test": {"/robots.txt": plain(""), "/all.xml": LICENCE}}
    found = Crawled(db_path, web, seeds=1)
    assert not [host for host, _ in found.asked if host == "terms.test"]
    allowed = Crawled(tmp_path / "search.db", web, UsePurpose.SEARCH, seeds=1)
    assert allowed.codes()["a.test/p/1"] == "fetched"
    assert ("terms.test", "/all.xml") in allowed.asked
    categories = {row[0] for row in allowed.query("SELECT category FROM preferences WHERE source = 'licence'")}
    assert categories == {"train-ai"}


FORBIDDEN = {"/robots.txt": plain("User-agent: *\nDisallow: /all.xml"), "/all.xml": LICENCE}
OPEN = {"/robots.txt": plain("")}


@pytest.mark.parametrize(
    ("there", "note", "requested"),
    [
        ({**OPEN, "/all.xml": Page("", status=404)}, "404", 1),
        ({**OPEN, "/all.xml": plain("<html>")}, "broken XML", 1),
        ({**OPEN, "/all.xml": plain("x" * 70_000)}, "70000 bytes", 1),
        (FORBIDDEN, "forbids /all.xml", 0),
        ({"/robots.txt": Page("", status=403)}, "forbids the whole site", 0),
    ],
)
def test_a_licence_that_cannot_be_had_refuses_every_use(
    db_path: Path, there: Site, note: str, requested: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "crawler.robots"):
        found = Crawled(db_path, {"a.test": site(TERMS), "terms.test": there}, UsePurpose.ARCHIVE, seeds=1)
    assert found.codes()["a.test/"] == "preference"
    assert ("a.test", "/") not in found.asked
    assert found.asked.count(("terms.test", "/all.xml")) == requested
    ((said,),) = found.query("SELECT note FROM site_files")
    assert note in said
    assert f"refuses every use: no licence could be read: {said}" in caplog.text


def test_a_licence_behind_a_redirect_and_one_on_a_site_that_fails_for_a_while(db_path: Path) -> None:
    answers = iter([Page("", status=503), Page(fault=Fault.RESET)])
    web: dict[str, Site] = {
        "a.test": site("http://a.test/moved.xml"),
        "terms.test": {"/robots.txt": plain(""), "/all.xml": lambda _: next(answers, LICENCE)},
    }
    web["a.test"] = {**web["a.test"], "/moved.xml": redirect(TERMS)}
    found = Crawled(db_path, web, UsePurpose.TRAIN_AI, seeds=1)
    assert found.asked.count(("terms.test", "/all.xml")) == 3, "it is requested again after each failure"
    assert (found.codes()["a.test/p/1"], found.codes()["a.test/open"]) == ("preference", "fetched")
    assert found.ended == "nothing is left in the frontier"
    assert found.audited() == set()


def test_while_a_licence_fails_its_site_rests_and_answers_wait_for_it(db_path: Path) -> None:
    """The licence of a robots.txt holds its site as a whole; that of a page leaves the page's answer unread."""
    answers = {name: iter([Page("", status=503)] * 3) for name in ("a", "b")}
    web: dict[str, Site] = {
        "a.test": site("http://terms.test/a.xml"),
        "b.test": {
            "/robots.txt": plain(""),
            "/": Page(f"{LINK.replace(TERMS, 'http://terms.test/b.xml')}<a href=/p/1>1</a>"),
            "/p/1": Page("text"),
        },
        "terms.test": {
            "/robots.txt": plain(""),
            "/a.xml": lambda _: next(answers["a"], LICENCE),
            "/b.xml": lambda _: next(answers["b"], LICENCE),
        },
    }
    found = Crawled(db_path, web, UsePurpose.TRAIN_AI, seeds=2)
    pages = [(host, path) for host, path in found.asked if host != "terms.test" and path != "/robots.txt"]
    assert sorted(pages) == [("a.test", "/"), ("a.test", "/open"), ("b.test", "/"), ("b.test", "/p/1")]
    assert [found.asked.count(("terms.test", f"/{name}.xml")) for name in "ab"] == [4, 4]
    assert found.asked.index(("a.test", "/")) > found.asked.index(("terms.test", "/a.xml"))
    assert found.query("SELECT max(attempts) FROM urls WHERE url LIKE '%.test/'") == [(0,)]
    assert found.query("SELECT count(*) FROM unread_answer") == [(0,)]
    assert found.audited() == set()


def test_a_site_answers_for_others_while_its_own_licence_fails(db_path: Path) -> None:
    web: dict[str, Site] = {
        "a.test": {**site(TERMS), "/rules.txt": plain("")},
        "c.test": {"/robots.txt": replace(redirect("http://a.test/rules.txt"), delay_s=10.0), "/": Page("c")},
        "terms.test": {"/robots.txt": plain(""), "/all.xml": Page("", status=503)},
    }
    found = Crawled(db_path, web, UsePurpose.TRAIN_AI, seeds=2)
    assert found.asked.index(("terms.test", "/all.xml")) < found.asked.index(("a.test", "/rules.txt"))
    assert found.asked.count(("c.test", "/robots.txt")) == 1
    assert (found.codes()["c.test/"], found.codes()["a.test/"]) == ("fetched", "preference")


def test_sites_that_name_licences_on_each_other_do_not_wait_for_ever(db_path: Path) -> None:
    web: dict[str, Site] = {
        "a.test": {**site("http://b.test/all.xml"), "/all.xml": LICENCE},
        "b.test": {**site("http://a.test/all.xml"), "/all.xml": LICENCE},
    }
    found = Crawled(db_path, web, UsePurpose.TRAIN_AI)
    assert sorted(path for _, path in found.asked).count("/all.xml") == 2
    assert [found.codes()[f"{host}.test/p/1"] for host in "ab"] == ["preference", "preference"]
    assert [found.codes()[f"{host}.test/"] for host in "ab"] == ["fetched", "fetched"]


HEADER = (("Link", f'<{TERMS}>; rel="license"; type="application/rsl+xml"'),)
INLINE = f"<script type='application/rsl+xml'><rsl><content url='/'>{NO_TRAINING}</content></rsl></script>"


def test_pages_name_licences_too_and_are_requested_once(db_path: Path) -> None:
    pages = {
        "/robots.txt": plain(""),
        "/": Page("".join(f"<a href=/p/{n}>x</a>" for n in range(5)) + "<a href=/open>x</a>"),
        "/p/0": Page(f"<title>0</title>{LINK}"),
        "/p/1": Page("<title>1</title>", headers=HEADER),
        "/p/2": Page(f"<title>2</title>{INLINE}"),
        "/p/3": Page("<title>3</title>"),
        "/p/4": Page(f"<title>4</title>{LINK}", headers=(("X-Robots-Tag", "noindex"),)),  # it may not be kept unread
        "/open": Page(f"<title>open</title>{LINK}"),
    }
    web = {"a.test": pages, "terms.test": {"/robots.txt": plain(""), "/all.xml": LICENCE}}
    found = Crawled(db_path, web, UsePurpose.TRAIN_AI, seeds=1)
    assert len(found.asked) == len(set(found.asked)), "an answer waits for its licence, and is not requested again"
    assert ("terms.test", "/all.xml") in found.asked
    codes = found.codes()
    assert [codes[f"a.test/p/{n}"] for n in range(5)] == ["withheld", "withheld", "withheld", "fetched", "noindex"]
    kept = found.query("SELECT title FROM pages WHERE body_sha256 IS NOT NULL AND title <> '' ORDER BY title")
    assert kept == [("3",), ("open",)]
    assert found.query("SELECT count(*) FROM unread_answer") == [(0,)]
    assert found.audited() == set()
