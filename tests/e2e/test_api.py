"""The Python API, as README.md shows it."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import crawler
from crawler.api.open_crawl import OpenCrawl, _Run
from crawler.demo.pages import Asked, Page
from crawler.errors import ConfigError, CrawlerError, SeedError, StoreError, StoreInUse, UsageError
from crawler.settings.loading import load_file
from crawler.settings.settings import Settings
from crawler.store.sqlite.store import SqliteStore
from tests.command import until
from tests.web import LoopbackWeb

pytestmark = pytest.mark.usefixtures("reads_here")

QUICK = {"politeness.delay": 0.02, "fetch.resolve": ["*.test=127.0.0.1"], "fetch.allow_private": True}


@pytest.fixture
def web(loopback: LoopbackWeb) -> LoopbackWeb:
    pages = {f"/{n}": Page(f"<title>page {n}</title><a href=/{n + 1}>next</a><a href=/>home</a>") for n in range(30)}
    loopback.sites["a.test"] = pages | {"/": Page("<title>home</title><a href=/0>first</a>")}
    return loopback


async def test_the_example(web: LoopbackWeb, db_path: Path) -> None:
    async with crawler.open(db_path, QUICK) as crawl:
        pages = crawl.run(seeds=[web.url("a.test")])
        seen = [(page.url, page.status, page.title, len(page.links)) async for page in pages]
        assert crawl.ended_by == "nothing is left in the frontier"
        (row,) = await crawl.query("SELECT count(*) AS pages FROM pages")
        assert await crawl.body(web.url("a.test")) == b"<title>home</title><a href=/0>first</a>"
        assert await crawl.body(web.url("a.test", "/none")) is None
    assert len(seen) == row["pages"] == 31
    assert seen[0] == (web.url("a.test"), 200, "home", 1)
    assert (web.url("a.test", "/7"), 200, "page 7", 2) in seen


async def test_leaving_early_stops_in_order_and_a_later_run_goes_on(web: LoopbackWeb, db_path: Path) -> None:
    first, others = [], asyncio.all_tasks()
    async with crawler.open(db_path, QUICK) as crawl:
        async for page in crawl.run(seeds=[web.url("a.test")]):
            first.append(page.url)
            if len(first) == 5:
                break
    asked = len(web.log)
    async with asyncio.timeout(300):
        while ending := asyncio.all_tasks() - others:  # Python closes the generator a little later
            await asyncio.wait(ending)
    assert len(web.log) == asked, "nothing goes on behind the caller's back"
    async with crawler.open(db_path, QUICK) as crawl:
        rest = [page.url async for page in crawl.run()]
        (row,) = await crawl.query("SELECT count(*) AS pages FROM pages")
        ends = await crawl.query("SELECT ended_by FROM runs ORDER BY run_id")
    assert row["pages"] == 31
    assert not set(first) & set(rest)
    assert ends == [
        {"ended_by": "stopped by the caller; run() continues the crawl"},
        {"ended_by": "nothing is left in the frontier"},
    ]
    paths = [hit.path for hit in web.log if hit.path != "/robots.txt"]
    assert len(paths) == len(set(paths)), "nothing was fetched twice"


async def test_an_error_in_the_loop_stops_the_crawl_and_is_raised(web: LoopbackWeb, db_path: Path) -> None:
    async def fail() -> None:
        async with crawler.open(db_path, QUICK) as crawl:
            async for _ in crawl.run(seeds=[web.url("a.test")]):
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    async with crawler.open(db_path, QUICK) as crawl:
        assert len([page async for page in crawl.run()]) >= 20


async def test_a_cancelled_crawl_can_be_continued(web: LoopbackWeb, db_path: Path) -> None:
    async def consume() -> None:
        async with crawler.open(db_path, QUICK) as crawl:
            async for _ in crawl.run(seeds=[web.url("a.test")]):
                pass

    task = asyncio.create_task(consume())
    await asyncio.to_thread(until, lambda: len(web.log) >= 6, "some requests")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with crawler.open(db_path, QUICK) as crawl:
        async for _ in crawl.run():
            pass
        assert len(await crawl.query("SELECT url FROM pages")) == 31


@pytest.mark.parametrize("hurry", ["cancelled again", "interrupted"])
async def test_a_caller_that_does_not_wait_leaves_a_complete_log(hurry: str, web: LoopbackWeb, db_path: Path) -> None:
    """A timeout around another, or a second Ctrl-C, at which ``asyncio.run`` cancels all tasks there are."""
    asked, opened = threading.Event(), list[OpenCrawl]()

    def slow(_: Asked) -> Page:
        asked.set()
        return Page(delay_s=60)

    web.sites["b.test"] = {"/": Page("<a href=/slow>"), "/slow": slow}

    async def consume() -> None:
        async with crawler.open(db_path, QUICK) as crawl:
            opened.append(crawl)
            async for _ in crawl.run(seeds=[web.url("b.test")]):
                pass

    others = asyncio.all_tasks()
    task = asyncio.create_task(consume())
    await asyncio.to_thread(asked.wait, 300)
    (run,) = opened[0]._runs
    task.cancel()
    await run.stop.wait()  # it has begun to end
    if hurry == "cancelled again":
        task.cancel()
    else:
        for each in asyncio.all_tasks() - others:
            each.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with crawler.open(db_path, QUICK) as crawl:
        requests = await crawl.query("SELECT url, error FROM requests ORDER BY started_at, finished_at")
        (run,) = await crawl.query("SELECT ended_by FROM runs")
    stopped = "stopped before the answer was complete"
    assert [(row["url"], row["error"]) for row in requests] == [
        (web.url("b.test", "/robots.txt"), "404 Not Found"),
        (web.url("b.test"), None),
        (web.url("b.test", "/slow"), stopped),
    ]
    assert run["ended_by"] == "cut short by the caller; run() continues the crawl"


async def test_limits_of_a_run(web: LoopbackWeb, db_path: Path) -> None:
    async with crawler.open(db_path, QUICK) as crawl:
        pages = [page.url async for page in crawl.run(seeds=[web.url("a.test")], max_pages=4)]
        assert len(pages) == 4
        assert crawl.ended_by == "limits.max_pages reached (4)"
        more = [page.url async for page in crawl.run(max_pages=6)]
        assert len(more) == 2


async def test_the_crawl_waits_for_a_slow_caller(
    web: LoopbackWeb, db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, hand_over, taken = threading.Event(), _Run.hand_over, 0

    async def watched(run: _Run, page: Any) -> None:
        if run.pages.full():
            waits.set()
        await hand_over(run, page)

    monkeypatch.setattr(_Run, "hand_over", watched)
    async with crawler.open(db_path, QUICK | {"politeness.delay": 0}) as crawl:
        async for _ in crawl.run(seeds=[web.url("a.test")]):
            taken += 1
            if taken == 1:
                await asyncio.to_thread(until, lambda: waits.is_set() or len(web.log) > 5, "a page that waits")
                assert len(web.log) <= 5, "robots.txt, the page, one handed over, one that waits, and the next"
    assert taken == 31


@pytest.mark.parametrize("form", ["dotted", "tables", "path", "text path", "settings"])
async def test_each_form_of_a_configuration(form: str, web: LoopbackWeb, db_path: Path, tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text(
        "[politeness]\ndelay = 0.02\n[limits]\nmax_pages = 2\n"
        '[fetch]\nresolve = ["*.test=127.0.0.1"]\nallow_private = true\n'
    )
    tables = {
        "politeness": {"delay": 0.02},
        "fetch": {"resolve": ["*.test=127.0.0.1"], "allow_private": True},
        "limits": {"max_pages": 2},
    }
    config = {
        "dotted": QUICK | {"limits.max_pages": 2},
        "tables": tables,
        "path": file,
        "text path": str(file),
        "settings": load_file(Settings(), file),
    }[form]
    async with crawler.open(str(db_path), config) as crawl:
        assert len([page async for page in crawl.run(seeds=[web.url("a.test")])]) == 2


def test_a_wrong_configuration_is_refused_where_it_is_given(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'politeness\.delay'"):
        crawler.open("c.db", {"politeness.dealy": 5})
    with pytest.raises(ConfigError, match="No such file"):
        crawler.open("c.db", tmp_path / "none.toml")


async def test_every_failure_is_a_crawler_error(web: LoopbackWeb, db_path: Path, tmp_path: Path) -> None:
    url = web.url("a.test")

    async def run(db: Path = db_path, seeds: tuple[str, ...] = (url,), **limits: Any) -> None:
        async with crawler.open(db, QUICK) as crawl:
            async for _ in crawl.run(seeds=seeds, **limits):
                pass

    with pytest.raises(SeedError, match="run\\(seeds=…\\): 1 bad seed"):
        await run(seeds=("a.test",))
    with pytest.raises(UsageError, match=r"no seeds.* seeds\.file$"):
        await run(seeds=())
    with pytest.raises(ConfigError, match="max_pages = -1"):
        await run(max_pages=-1)
    with pytest.raises(UsageError, match=r"did you mean 'limits\.max_pages'"):
        await run(max_page=1)
    with pytest.raises(UsageError, match=r"identity\.contact$"):
        await run(seeds=("https://example.org/",))
    with pytest.raises(UsageError, match="does not exist"):
        await run(db=tmp_path / "none" / "c.db")
    (tmp_path / "diary.db").write_bytes(b"not a database, but long enough to look at " * 100)
    with pytest.raises(CrawlerError, match="this file is not a store"):
        await run(db=tmp_path / "diary.db")
    async with crawler.open(db_path, QUICK) as crawl:
        with pytest.raises(UsageError, match="no such store"):
            await crawl.query("SELECT 1")
        with pytest.raises(UsageError, match="not a URL"):
            await crawl.body("hello")
    with pytest.raises(ConfigError, match=r"fetch\.resolve = .*must be a list of texts, each PATTERN=ADDRESS"):
        crawler.open(db_path, {"fetch.resolve": {"*.test": "127.0.0.1"}})
    assert web.log == []


async def test_two_crawls_cannot_share_a_store(web: LoopbackWeb, db_path: Path) -> None:
    async with crawler.open(db_path, QUICK) as one, crawler.open(db_path, QUICK) as other:
        async for _ in one.run(seeds=[web.url("a.test")]):
            with pytest.raises(StoreInUse):
                async for _ in other.run():
                    pass
            break


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_each_method_works_on_both_databases(
    kind: str, request: pytest.FixtureRequest, web: LoopbackWeb, db_path: Path, tmp_path: Path
) -> None:
    db = request.getfixturevalue("postgres").make_database() if kind == "postgres" else db_path
    async with crawler.open(db, QUICK) as crawl:
        urls = {page.url async for page in crawl.run(seeds=[web.url("a.test")])}
        tally = await crawl.export("jsonl", tmp_path / "pages.jsonl", where="status = 200")
        ranked = await crawl.rank()
        await crawl.report(tmp_path / "report.html")
        ranks = await crawl.query("SELECT url FROM ranks")
        built = await crawl.index()
        found = await crawl.search("home")
        elsewhere = await crawl.search("home", depth=9)
        status, known = await crawl.status(), await crawl.why(web.url("a.test"))
        audit = await crawl.audit()
        given = await crawl.hint([web.url("a.test")])
    lines = (tmp_path / "pages.jsonl").read_text().splitlines()
    assert {json.loads(line)["url"] for line in lines} == urls
    assert built.pages == len(urls)
    assert found.hits[0].url == web.url("a.test")
    assert elsewhere.hits == ()
    assert status["urls"]["fetched"] == len(urls)
    assert (known["known"], known["state"]) == (True, "fetched")
    assert (audit.violation_count, audit.totals.requests > len(urls)) == (0, True)
    assert (given.counts.moved, given.counts.ignored) in ((1, 0), (0, 1))
    assert tally.written == len(urls) > 0
    assert ranked.pages == len(ranks) >= len(urls)
    assert "<title>" in (tmp_path / "report.html").read_text()


async def test_pages_and_links_out_of_the_store(web: LoopbackWeb, db_path: Path) -> None:
    web.sites["a.test"] = {
        "/": Page("<title>home</title><a href=/hid>hid</a><a href=/b rel=nofollow>b</a><a href=/>self</a>"),
        "/hid": Page("<meta name=robots content=noindex><title>secret</title><a href=/>back</a>"),
    }
    home, hid, closed = (web.url("a.test", path) for path in ("/", "/hid", "/b"))
    async with crawler.open(db_path, QUICK) as crawl:
        fetched = {page.url: page async for page in crawl.run(seeds=[home])}
        stored = {page.url: page async for page in crawl.pages()}
        deep = [page.url async for page in crawl.pages(where="depth > 0 -- not the seeds")]
        links = [(link.source, link.target, link.anchor, link.rel, link.follow) async for link in crawl.links(home)]
        async for _ in crawl.pages():
            break  # leaving early leaves nothing open
        nothing = [link async for link in crawl.links("http://unknown.test/")]
        for where, said in (
            ("nosuch = 1", "no such column"),
            ("1); DROP TABLE url; --", "brackets"),
            (" ", "contains no condition"),
        ):
            with pytest.raises(UsageError, match=said):
                [page async for page in crawl.pages(where)]
        with pytest.raises(UsageError, match="not a URL"):
            [link async for link in crawl.links("hello")]
    assert set(fetched) == {home, hid}
    assert {url: replace(page, links=tuple(sorted(page.links))) for url, page in stored.items()} == {
        url: replace(page, links=tuple(sorted(page.links))) for url, page in fetched.items()
    }
    assert stored[hid].body is None
    assert deep == [hid]
    assert nothing == []
    assert sorted(links[:3]) == sorted(
        [(home, hid, "hid", "", True), (home, closed, "b", "nofollow", False), (home, home, "self", "", True)]
    )
    assert links[3:] == [(hid, home, "back", "", True)]


async def test_one_seed_needs_no_list_and_queries_only_read(web: LoopbackWeb, db_path: Path) -> None:
    async with crawler.open(db_path, QUICK) as crawl:
        assert [page.url async for page in crawl.run(web.url("a.test"), max_pages=1)] == [web.url("a.test")]
        with pytest.raises(UsageError, match="a query only reads the store"):
            await crawl.query("DELETE FROM url")
        assert len(await crawl.query("SELECT * FROM pages")) == 1


async def test_a_call_after_a_loop_that_was_left_waits_for_its_end(web: LoopbackWeb, db_path: Path) -> None:
    async with crawler.open(db_path, QUICK) as crawl:
        for _ in range(2):
            async for _ in crawl.run(seeds=[web.url("a.test")]):
                break
            built = await crawl.index()
            assert crawl.ended_by == "stopped by the caller; run() continues the crawl"
        async for _ in crawl.pages():
            break
        async for _ in crawl.run():
            break
        ranked = await crawl.rank()
        async for _ in crawl.run():
            break
        rest = [page.url async for page in crawl.run()]
        assert crawl.ended_by == "nothing is left in the frontier"
    assert crawl.ended_by == "nothing is left in the frontier"
    assert built.pages >= 2
    assert ranked.pages >= 3
    assert rest


async def test_a_generator_that_is_still_held_is_not_a_loop_that_was_left(web: LoopbackWeb, db_path: Path) -> None:
    async with crawler.open(db_path, QUICK) as crawl:
        pages = crawl.run(seeds=[web.url("a.test")])
        async for _ in pages:
            break
        with pytest.raises(StoreInUse):
            await crawl.index()
        assert len([page async for page in pages]) == 30
        await crawl.index()
        crawl.run()  # never begun


async def test_a_failure_after_a_loop_was_left_is_raised_once(
    web: LoopbackWeb, db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise StoreError("the disk is full")

    async with crawler.open(db_path, QUICK) as crawl:
        async for _ in crawl.run(seeds=[web.url("a.test")]):
            monkeypatch.setattr(SqliteStore, "end_run", fail)
            break
        with pytest.raises(StoreError, match="the disk is full"):
            await crawl.query("SELECT 1")
        assert await crawl.query("SELECT 1 AS one") == [{"one": 1}]
