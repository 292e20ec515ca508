"""The functions of a caller of ``run()``: follow, keep, headers; and URLs that are added while it runs."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import crawler
from crawler.api.open_crawl import _Run
from crawler.demo.pages import Page, plain, redirect
from crawler.reasons import EndCode
from tests.command import LOOPBACK
from tests.command import crawler as run
from tests.web import LoopbackWeb

pytestmark = pytest.mark.usefixtures("reads_here")

BOOKS = {
    "/robots.txt": plain("User-agent: *\nDisallow: /closed\n"),
    "/": Page(
        "<title>Shop</title><a href=/b1>One</a> <a href=/b2>Two</a> <a href=/help>Help</a> <a href=/closed>X</a>"
    ),
    "/b1": Page("<title>One</title><a href=/help rel=help>Help</a>"),
    "/b2": Page("<title>Two</title>"),
    "/help": Page("<title>Help</title>"),
    "/new": Page("<title>New</title><a href=/newer>Newer</a>"),
    "/newer": Page("<title>Newer</title>"),
    "/gone": redirect("/b1"),
}


@pytest.fixture
def web() -> LoopbackWeb:
    return LoopbackWeb({"books.test": BOOKS})


def opened(web: LoopbackWeb, tmp_path: Path) -> crawler.OpenCrawl:
    settings = {"fetch.resolve": ["*.test=127.0.0.1"], "fetch.allow_private": True, "politeness.delay": 0.02}
    return crawler.open(tmp_path / "crawl.db", settings)


async def titles(crawl: crawler.OpenCrawl, seeds: list[str], **hooks: Any) -> list[str | None]:
    return sorted([page.title async for page in crawl.run(seeds, **hooks)], key=str)


async def states(crawl: crawler.OpenCrawl, web: LoopbackWeb) -> dict[str, str]:
    home = web.url("books.test").rstrip("/")
    rows = await crawl.query("SELECT url, state, reason_code FROM urls")
    return {row["url"].removeprefix(home): f"{row['state']}: {row['reason_code']}" for row in rows}


async def test_follow_chooses_the_links_and_cannot_open_what_robots_txt_closes(
    web: LoopbackWeb, tmp_path: Path
) -> None:
    asked: list[crawler.FoundLink] = []

    def no_help(link: crawler.FoundLink) -> bool:
        asked.append(link)
        return not link.target.endswith("/help")

    with web:
        async with opened(web, tmp_path) as crawl:
            assert await titles(crawl, [web.url("books.test")], follow=no_help) == ["One", "Shop", "Two"]
            found = await states(crawl, web)
            (said,) = await crawl.query("SELECT reason FROM urls WHERE reason_code = 'not_followed'")
    assert found["/help"] == "excluded: not_followed"
    assert "no_help" in said["reason"]
    assert found["/closed"] == "excluded: robots"
    first = next(link for link in asked if link.target.endswith("/b1"))
    assert (first.source, first.anchor, first.rel, first.depth) == (web.url("books.test"), "One", "", 1)


async def test_keep_chooses_the_pages_and_their_links_are_followed(web: LoopbackWeb, tmp_path: Path) -> None:
    with web:
        async with opened(web, tmp_path) as crawl:
            kept = await titles(crawl, [web.url("books.test")], keep=lambda page: page.title != "Shop")
            found = await states(crawl, web)
            rows = await crawl.query("SELECT title, body_sha256 FROM pages WHERE title IS NULL")
    assert kept == ["Help", "One", "Two"]
    assert found["/"] == "fetched: not_kept"
    assert rows == [{"title": None, "body_sha256": None}]


@pytest.mark.parametrize("role", ["follow", "keep"])
async def test_an_error_of_the_caller_is_told_as_such_and_nothing_is_lost(
    web: LoopbackWeb, tmp_path: Path, role: str
) -> None:
    def clumsy(what: Any) -> bool:
        raise KeyError("price")

    def vague(what: Any) -> Any:
        return None

    with web:
        async with opened(web, tmp_path) as crawl:
            for function, told in (
                (clumsy, "clumsy) raised KeyError"),
                (vague, "vague) returned None"),
            ):
                with pytest.raises(crawler.HookError, match=role) as raised:
                    await titles(crawl, [web.url("books.test")], **{role: function})
                assert told in str(raised.value)
                assert isinstance(raised.value.__cause__, KeyError) is (function is clumsy)
                (run,) = await crawl.query("SELECT ended_code FROM runs ORDER BY run_id DESC LIMIT 1")
                assert run["ended_code"] == EndCode.HOOK
                assert (await states(crawl, web))["/"].startswith("queued")
            with pytest.raises(crawler.UsageError, match="would go on without it"):
                await titles(crawl, [])
            assert len(await titles(crawl, [], **{role: "none"})) == 4
            assert await titles(crawl, []) == []  # nothing is left, and the last run had no function


async def test_functions_may_be_async_and_see_redirects(web: LoopbackWeb, tmp_path: Path) -> None:
    asked: list[crawler.FoundLink] = []

    async def no_redirects(link: crawler.FoundLink) -> bool:
        await asyncio.sleep(0)
        asked.append(link)
        return link.rel != "redirect"

    async def no_title(page: crawler.Page) -> bool:
        return not page.select("title")

    with web:
        async with opened(web, tmp_path) as crawl:
            assert await titles(crawl, [web.url("books.test", "/gone")], follow=no_redirects, keep=no_title) == []
            found = await states(crawl, web)
    assert [(link.rel, link.source, link.target) for link in asked] == [
        ("redirect", web.url("books.test", "/gone"), web.url("books.test", "/b1"))
    ]
    assert found == {"/gone": "redirected: redirect", "/b1": "excluded: not_followed"}


async def test_a_page_is_decoded_by_the_charset_that_the_crawler_found(tmp_path: Path) -> None:
    cyrillic = Page(
        "<meta charset=koi8-r><h1>Привет</h1><h1 class=x>мир</h1>".encode("koi8-r"),
        content_type="text/html",
        headers=(("Server", "s"),),
    )
    text = Page("привет".encode("cp1251"), content_type="text/plain; charset=windows-1251")
    web = LoopbackWeb({"books.test": {"/robots.txt": plain(""), "/": cyrillic, "/t": text}})
    with web:
        settings = {"fetch.resolve": ["*.test=127.0.0.1"], "fetch.allow_private": True, "fetch.types": ["html", "text"]}
        async with crawler.open(tmp_path / "crawl.db", settings | {"politeness.delay": 0.02}) as crawl:
            seeds = [web.url("books.test"), web.url("books.test", "/t")]
            live = {page.url: page async for page in crawl.run(seeds)}
            stored = {page.url: page async for page in crawl.pages()}
    assert live == stored
    page, plain_text = (live[seed] for seed in seeds)
    assert (page.charset, plain_text.charset) == ("koi8-r", "windows-1251")
    assert [node.text() for node in page.select("h1.x")] == ["мир"]
    assert plain_text.text == "привет"
    assert page.headers["server"]
    with pytest.raises(crawler.UsageError, match="not a CSS selector"):
        page.select("[[")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_importable_functions_choose_in_every_worker(web: LoopbackWeb, tmp_path: Path, workers: str) -> None:
    (tmp_path / "choice.py").write_text("def no_help(link):\n    return not link.target.endswith('/help')\n")
    with web:
        command = ["run", web.url("books.test"), *LOOPBACK, "--delay", "0.02", "--workers", workers, "--db", "c.db"]
        refused = run(*command, "--follow", "choice:nothing", cwd=tmp_path)
        assert (refused.code, "cannot be imported" in refused.err) == (2, True), refused.err
        done = run(*command, "--follow", "choice:no_help", cwd=tmp_path)
        assert done.code == 0, done.err
        help_page = web.url("books.test", "/help")
        without = run("run", "--db", "c.db", cwd=tmp_path)
    with closing(sqlite3.connect(tmp_path / "c.db")) as db:
        found = dict(db.execute("SELECT url, reason_code FROM urls").fetchall())
    assert found[help_page] == "not_followed"
    assert without.code == 2
    assert "--follow choice:no_help, or go on without it by --follow none" in without.err


@pytest.mark.parametrize("name", ["User-Agent", "host", "From", "If-None-Match", "Cookie", "Authorization", "Range"])
async def test_headers_cannot_replace_what_the_crawler_says_of_itself(tmp_path: Path, name: str) -> None:
    async with crawler.open(tmp_path / "crawl.db") as crawl:
        with pytest.raises(crawler.UsageError, match=f"headers: {name} "):
            crawl.run(["http://127.0.0.1:9/"], headers={name: "x"})


@pytest.mark.parametrize("headers", [{"X-A": "1\r\nHost: b"}, {"X A": "1"}, {"X": 1}, ["X"]])
async def test_headers_are_checked(tmp_path: Path, headers: Any) -> None:
    async with crawler.open(tmp_path / "crawl.db") as crawl:
        with pytest.raises(crawler.UsageError, match="headers"):
            crawl.run(["http://127.0.0.1:9/"], headers=headers)


async def test_headers_are_sent_with_every_request(tmp_path: Path) -> None:
    seen: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with crawler.open(tmp_path / "crawl.db", {"fetch.allow_private": True}) as crawl:
            async for _ in crawl.run([f"http://127.0.0.1:{port}/"], headers={"Accept-Language": "de"}):
                pass
    assert len(seen) == 2
    assert all("Accept-Language: de\r\n" in head and "User-Agent: PoliteCrawler/" in head for head in seen)


@pytest.mark.parametrize("when", ["first", "last"])
async def test_urls_added_while_it_runs_are_fetched_by_the_same_run(
    web: LoopbackWeb, tmp_path: Path, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str | None] = []
    out_of_work, all_consumed = asyncio.Event(), _Run.all_consumed

    async def watched(run: _Run) -> bool:
        out_of_work.set()
        return await all_consumed(run)

    monkeypatch.setattr(_Run, "all_consumed", watched)
    with web:
        async with opened(web, tmp_path) as crawl:
            async for page in crawl.run([web.url("books.test")]):
                seen.append(page.title)
                if len(seen) == (1 if when == "first" else 4):
                    if when == "last":
                        await out_of_work.wait()
                    await crawl.add([web.url("books.test", "/new"), web.url("books.test", "/closed")])
            assert crawl.ended_code is EndCode.DONE
            found = await states(crawl, web)
    assert sorted(map(str, seen)) == ["Help", "New", "Newer", "One", "Shop", "Two"]
    assert found["/closed"] == "excluded: robots"


async def test_urls_that_cannot_be_added_are_refused(web: LoopbackWeb, tmp_path: Path) -> None:
    with web:
        async with opened(web, tmp_path) as crawl:
            with pytest.raises(crawler.UsageError, match=r"no run\(\) is under way"):
                await crawl.add([web.url("books.test", "/new")])
            async for _ in crawl.run([web.url("books.test")], max_pages=1):
                with pytest.raises(crawler.UsageError, match="out of scope"):
                    await crawl.add([web.url("books.test", "/new"), "http://127.0.0.1:9/"])
                with pytest.raises(crawler.UsageError):
                    await crawl.add(["ftp://x/"])
            assert "/new" not in await states(crawl, web)
