"""``crawler run --revisit`` against a real server, whose log counts the 304s and the bodies."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import crawler as library
from crawler.demo.pages import Asked, Fault, Page
from tests import judge
from tests.command import HASTY, LOOPBACK, crawler, finish, here, start, until
from tests.later import later
from tests.web import LoopbackWeb

#: Everything is due after an hour, and again after two at the latest.
SOON = HASTY + '[revisit]\nfirst = "1 hour"\nmin_interval = "30 minutes"\nmax_interval = "2 hours"\n'
HOUR_S = 3600.0
PAGES = 12


@pytest.fixture
def web(loopback: LoopbackWeb) -> LoopbackWeb:
    links = "".join(f"<a href=/{n}>{n}</a>" for n in range(PAGES))
    pages = {f"/{n}": page(n, 1) for n in range(PAGES)}
    loopback.sites["a.test"] = pages | {"/": Page(f"<title>Home</title>{links}", headers=(("ETag", '"home"'),))}
    return loopback


def page(number: int, version: int) -> Page:
    return Page(f"<title>{number}</title><p>version {version}", headers=(("ETag", f'"{number}.{version}"'),))


def change(web: LoopbackWeb, **pages: Page | None) -> None:
    site = dict(web.sites["a.test"])
    for name, new in pages.items():
        site.pop(f"/{name[1:]}")
        if new is not None:
            site[f"/{name[1:]}"] = new
    web.sites["a.test"] = site


@pytest.fixture
def options(tmp_path: Path, db_path: Path) -> list[str | Path]:
    (tmp_path / "soon.toml").write_text(SOON)
    return ["--config", tmp_path / "soon.toml", *LOOPBACK, "--db", db_path]


def rows(db: Path, sql: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(db)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def test_what_holds_costs_no_body_and_what_changed_is_kept_in_both_versions(
    web: LoopbackWeb, db_path: Path, options: list[str | Path]
) -> None:
    assert here("run", web.url("a.test"), *options).code == 0
    bodies_before = rows(db_path, "SELECT count(*) FROM body")
    change(web, _3=page(3, 2), _4=None)
    before = len(web.log)
    later(db_path, 1.2 * HOUR_S)
    ended = here("run", "--revisit", *options, "--json")
    assert (ended.code, ended.err) == (0, "crawler: changes the crawl: --revisit (was off)\n")
    result = json.loads(ended.out)
    assert result["ended_by"] == "nothing is left in the frontier, and no revisit is due"
    assert result["run"]["revisits"] == {"unchanged": PAGES - 1, "changed": 1, "gone": 1}
    assert Counter(hit.status for hit in web.log[before:]) == {304: PAGES - 1, 200: 1, 404: 1}
    assert rows(db_path, "SELECT count(*) FROM body") == [(bodies_before[0][0] + 1,)]
    assert rows(db_path, "SELECT count(*) FROM pages") == [(PAGES + 1,)]
    versions = "SELECT version, body_bytes FROM page_versions WHERE url LIKE '%/3' ORDER BY version"
    assert rows(db_path, versions) == [(1, len(page(3, 1).octets)), (2, len(page(3, 2).octets))]
    assert rows(db_path, "SELECT title FROM pages WHERE gone_at IS NOT NULL") == [("4",)]
    assert judge.violations(web.log, judge.Manners(0.05, agent="PoliteCrawler/")) == []

    audited = json.loads(here("audit", "--db", db_path, "--json").out)
    assert (audited["violations"], audited["requests"]) == ([], len(web.log))
    gone = here("why", web.url("a.test", "/4"), "--db", db_path).out
    assert "failed: 404 Not Found: gone" in gone
    assert "visits in a row that found no page: 1" in gone or "revisit.max_interval" in gone
    changed = here("why", web.url("a.test", "/3"), "--db", db_path).out
    assert "200, changed" in changed
    assert "changes about every" in changed
    assert [f"{n}: 20" in changed for n in (1, 2, 3)] == [True, True, False], "its versions, with their times"
    assert json.loads(here("status", "--db", db_path, "--json").out)["revisits"]["known"] == PAGES + 1
    later(db_path, 2 * HOUR_S)
    assert re.search(r"URLs? (is|are) due for `crawler run --revisit --db ", here("status", "--db", db_path).out)


def test_a_killed_revisit_loses_nothing(web: LoopbackWeb, db_path: Path, options: list[str | Path]) -> None:
    assert here("run", web.url("a.test"), *options).code == 0
    later(db_path, 1.2 * HOUR_S)
    pages, ration, hangs = {n: page(n, 2) for n in range(PAGES)}, 0, threading.Event()

    def answer(asked: Asked) -> Page:
        nonlocal ration
        ration -= 1
        if ration < 0:
            hangs.set()
        return pages[int(asked.path[1:])] if ration >= 0 else Page(fault=Fault.HANG)

    web.sites["a.test"] = {**web.sites["a.test"], **{f"/{n}": answer for n in pages}}
    for changed in (3, 6, 9):
        ration = 3
        hangs.clear()
        process = start("run", "--revisit", *options)
        until(lambda n=changed: len(rows(db_path, "SELECT 1 FROM pages WHERE version = 2")) == n, "three revisits")
        assert hangs.wait(300), "a revisit under way"
        process.send_signal(signal.SIGKILL)
        assert finish(process).code == -signal.SIGKILL
        waiting = rows(db_path, "SELECT 1 FROM urls WHERE state = 'queued' AND reason LIKE 'revisit: due'")
        assert len(waiting) in (PAGES - changed, PAGES + 1 - changed), "the start page may be one of them"
        assert rows(db_path, "SELECT count(*) FROM pages") == [(PAGES + 1,)]
    change(web, **{f"_{n}": page(n, 2) for n in range(PAGES)})
    assert here("run", "--revisit", *options).code == 0
    newest = rows(db_path, "SELECT version FROM pages WHERE title <> 'Home'")
    assert newest == [(2,)] * PAGES
    assert json.loads(here("audit", "--db", db_path, "--json").out)["violations"] == []
    assert judge.violations(web.log, judge.Manners(0.05, agent="PoliteCrawler/")) == []


def test_a_hint_brings_a_visit_forward(web: LoopbackWeb, db_path: Path, tmp_path: Path) -> None:
    """At once, though the least interval between visits is an hour."""
    (tmp_path / "late.toml").write_text(HASTY)
    options = ["--config", tmp_path / "late.toml", *LOOPBACK, "--db", db_path]
    here("run", web.url("a.test"), *options)
    before = len(web.log)
    here("run", "--revisit", *options)
    assert len(web.log) == before, "nothing is due for a week"
    change(web, _5=page(5, 2))
    said = f"{web.url('a.test', '/5')}\n{web.url('a.test', '/new')} # a page nobody links to\nhttp://b.test/\n"
    told = crawler("hint", "-", "--db", db_path, "--json", stdin=said.encode())
    heeded = json.loads(told.out)
    assert list(heeded.pop("refused")) == ["http://b.test/"]
    assert heeded == {"moved": 1, "new": 1, "ignored": 1, "over": 0}
    here("run", "--revisit", *options)
    assert [hit.path for hit in web.log[before:]] == ["/new", "/5"]
    assert rows(db_path, "SELECT version FROM pages WHERE url LIKE '%/5'") == [(2,)]


def test_a_hint_about_a_host_that_needs_a_contact_is_ignored(web: LoopbackWeb, db_path: Path, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(HASTY)
    here("run", web.url("a.test"), "--config", tmp_path / "c.toml", *LOOPBACK, "--db", db_path, "--scope", "any")
    told = here("hint", "http://outside.example/", web.url("b.test"), "--db", db_path, "--json")
    heeded = json.loads(told.out)
    assert list(heeded.pop("refused")) == ["http://outside.example/"]
    assert heeded == {"moved": 0, "new": 1, "ignored": 1, "over": 0}
    assert rows(db_path, "SELECT url FROM urls WHERE url LIKE '%outside%'") == []


def test_refresh_visits_what_is_named_or_all(web: LoopbackWeb, db_path: Path, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(HASTY)
    options = ["--config", tmp_path / "c.toml", *LOOPBACK, "--db", db_path]
    assert here("run", web.url("a.test"), *options).code == 0
    pages = {hit.path for hit in web.log} - {"/robots.txt"}
    before = len(web.log)
    one = here("run", "--refresh", web.url("a.test", "/5"), *options)
    assert (one.code, one.err) == (0, "crawler: 1 visit queued by --refresh\n")
    assert [hit.path for hit in web.log[before:]] == ["/5"]
    for name in ([], ["a.test"]):
        before = len(web.log)
        assert here("run", "--refresh", *name, *options).code == 0
        assert {hit.path for hit in web.log[before:]} == {"/robots.txt", *pages}
    before = len(web.log)
    assert here("run", "--refresh", web.url("a.test", "/robots.txt"), web.url("a.test", "/5"), *options).code == 0
    assert [hit.path for hit in web.log[before:]] == ["/robots.txt", "/5"]
    assert json.loads(here("audit", "--db", db_path, "--json").out)["violations"] == []


def test_several_workers_refresh_what_is_named_once(web: LoopbackWeb, db_path: Path, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(HASTY)
    options = ["--config", tmp_path / "c.toml", *LOOPBACK, "--db", db_path]
    assert here("run", web.url("a.test"), web.url("a.test", "/failed"), *options).code == 0
    before, named = len(web.log), [web.url("a.test", path) for path in ("/robots.txt", "/5", "/failed")]
    ended = here("run", "--refresh", *named, *options, "--workers", "2")
    assert ended.code == 0
    assert "crawler: 2 visits queued by --refresh\n" in ended.err
    assert sorted(hit.path for hit in web.log[before:]) == ["/5", "/failed", "/robots.txt"]


def test_refresh_refuses_what_the_store_does_not_know(web: LoopbackWeb, db_path: Path, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(HASTY)
    options = ["--config", tmp_path / "c.toml", *LOOPBACK, "--db", db_path]
    assert "no such store" in here("run", "--refresh", *options).err
    assert here("run", web.url("a.test"), "--max-pages", "1", *options).code == 0
    for name, said in (
        ("b.test", "the store knows no site b.test"),
        (web.url("a.test", "/none"), "the store does not know it"),
        ("*.test", "--refresh: "),
    ):
        ended = here("run", "--refresh", name, *options)
        assert (ended.code, ended.out) == (2, "")
        assert said in ended.err


def test_hint_tells_what_is_no_url_and_that_there_is_no_store(tmp_path: Path) -> None:
    wrong = here("hint", "not a url", "--db", tmp_path / "none.db")
    assert wrong.code == 2
    assert "not a url" in wrong.err
    assert "say which URLs have changed" in here("hint", "--db", tmp_path / "none.db").err
    missing = here("hint", "http://a.test/", "--db", tmp_path / "none.db")
    assert missing.code == 2
    assert "no such store" in missing.err
    assert not (tmp_path / "none.db").exists()


def test_the_bounds_are_refused_where_they_are_none(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("[revisit]\nper_day = -1\nmin_interval = 0\nfrist = 3\n")
    ended = here("run", "http://a.test/", "--config", tmp_path / "c.toml")
    assert ended.code == 2
    assert all(word in ended.err for word in ("revisit.per_day", "revisit.min_interval", "revisit.first"))


async def test_older_versions_from_python(web: LoopbackWeb, db_path: Path) -> None:
    settings = {
        "fetch.resolve": [LoopbackWeb.resolve],
        "fetch.allow_private": True,
        "politeness.delay": 0.02,
        "revisit.enabled": True,
        "revisit.first": HOUR_S,
        "revisit.min_interval": HOUR_S / 2,
    }
    url = web.url("a.test", "/3")
    async with library.open(db_path, settings) as crawl:
        assert [p.url async for p in crawl.run(seeds=[url])] == [url]
        change(web, _3=page(3, 2))
        later(db_path, 2 * HOUR_S)
        assert [p.body async for p in crawl.run()] == [page(3, 2).octets], "a changed page is handed over again"
        assert crawl.ended_by == "nothing is left in the frontier, and no revisit is due"
        assert [await crawl.body(url, version=n) for n in (1, 2)] == [page(3, 1).octets, page(3, 2).octets]
