"""Reading the store from Python: loops that are left, cancellation, and queries that would write."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

import crawler
from crawler.demo.pages import Page
from crawler.store.location import is_url
from crawler.store.postgres.store import PostgresStore
from crawler.store.sqlite.store import SqliteStore
from tests.command import ROOT
from tests.postgres import Cluster
from tests.web import LoopbackWeb

pytestmark = pytest.mark.usefixtures("reads_here")

QUICK = {"politeness.delay": 0.02, "fetch.resolve": ["*.test=127.0.0.1"], "fetch.allow_private": True}
LEAVING = """
import asyncio, sys
import crawler

async def main(db, url):
    async with crawler.open(db) as crawl:
        async for _ in crawl.links(url):
            break
        async for _ in crawl.pages():
            break
        held = crawl.links(url)
        await anext(held)
    assert [link async for link in held] == []
    try:
        async with crawler.open(db) as crawl:
            async for _ in crawl.pages():
                raise ZeroDivisionError
    except ZeroDivisionError:
        print("well")

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture(params=["sqlite", "postgres"])
def db(request: pytest.FixtureRequest, db_path: Path) -> str:
    """A store on each database."""
    if request.param == "sqlite":
        return str(db_path)
    cluster: Cluster = request.getfixturevalue("postgres")
    return cluster.make_store()


@pytest.fixture
async def home(loopback: LoopbackWeb, db_path: Path) -> str:
    """A crawl of two pages; the URL of the first."""
    loopback.sites["a.test"] = {"/": Page("<a href=/b>b</a><a href=/c>c</a>"), "/b": Page("<a href=/>home</a>")}
    async with crawler.open(db_path, QUICK) as crawl:
        assert len([page async for page in crawl.run(seeds=[loopback.url("a.test")])]) == 2
    return loopback.url("a.test")


def test_a_loop_that_was_left_closes_the_store(home: str, db_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "always::ResourceWarning", "-c", LEAVING, db_path, home],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("well\n", "")


ROWS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT i FROM n WHERE i = 2"
ENDLESS = ROWS.replace("SELECT i FROM n WHERE i = 2", "SELECT count(*) FROM n")


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_long_query_can_be_cancelled(
    kind: str, request: pytest.FixtureRequest, loopback: LoopbackWeb, db_path: Path
) -> None:
    db = request.getfixturevalue("postgres").make_store() if kind == "postgres" else db_path
    loopback.sites["a.test"] = {"/": Page("<a href=/b>b</a>"), "/b": Page("<a href=/>home</a>")}
    async with crawler.open(db, QUICK) as crawl:
        assert len([page async for page in crawl.run(seeds=[loopback.url("a.test")])]) == 2

        async def every_page() -> None:
            async for _ in crawl.pages(f"depth = 0 OR ({ENDLESS}) > 0"):
                pass

        for ask in (
            lambda: crawl.query(ENDLESS),
            lambda: crawl.query(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT 1 FROM n WHERE i = 2"
            ),
            lambda: crawl.export("csv", db_path.with_name("o.csv"), where=f"({ENDLESS}) > 0"),
            every_page,
        ):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await ask()
            assert await crawl.query("SELECT count(*) AS n FROM pages") == [{"n": 2}]


@pytest.mark.parametrize(
    "statement",
    [
        "VACUUM INTO '{}'",
        "ATTACH '{}' AS y",
        "DETACH main",
        "PRAGMA journal_mode = delete",
        "PRAGMA user_version = 5",
        "DELETE FROM url",
        "CREATE TABLE mine (x)",
    ],
)
async def test_a_query_writes_no_file(statement: str, home: str, db_path: Path) -> None:
    new = db_path.with_name("new.db")
    async with crawler.open(db_path) as crawl:
        with pytest.raises(crawler.UsageError, match="a query only reads the store; begin it with SELECT"):
            await crawl.query(statement.format(new))
        assert await crawl.query("SELECT name FROM pragma_table_info('pages') LIMIT 1") == [{"name": "url"}]
        assert await crawl.query("PRAGMA table_info('pages')")
        assert await crawl.query("PRAGMA journal_mode") == [{"journal_mode": "wal"}]
    assert not new.exists()


@pytest.mark.parametrize("statement", ["DELETE FROM url", "CREATE TABLE mine (x INTEGER)"])
async def test_a_query_writes_nothing_on_postgresql(statement: str, postgres: Cluster) -> None:
    db = postgres.make_store()
    await (await PostgresStore.open(db)).close()
    async with crawler.open(db) as crawl:
        with pytest.raises(crawler.UsageError, match="a query only reads the store; begin it with SELECT"):
            await crawl.query(statement)


async def test_a_condition_selects_pages(loopback: LoopbackWeb, db: str) -> None:
    loopback.sites["a.test"] = {"/": Page("<a href=/b>b</a><a href=/c>c</a>"), "/b": Page("b"), "/c": Page("c")}
    home, b, c = (loopback.url("a.test", path) for path in ("/", "/b", "/c"))
    async with crawler.open(db, QUICK) as crawl:
        assert len([page async for page in crawl.run(seeds=[home])]) == 3
        for where, urls in (
            (None, {home, b, c}),
            ("depth > 0", {b, c}),
            ("depth > 0 OR status = 200", {home, b, c}),
            ("url LIKE '%/b' -- the second", {b}),
            ("status = 404", set()),
        ):
            assert {page.url async for page in crawl.pages(where)} == urls


@pytest.mark.parametrize(
    "where",
    [
        "nosuch = 1",
        "depth =",
        "DELETE FROM url",
        "nosuch(depth)",
        "depth = ?",
        "depth = :depth",
        "depth > (SELECT 1 FROM no)",
    ],
)
async def test_a_condition_that_the_database_rejects(where: str, db: str) -> None:
    open_store = SqliteStore.open(Path(db)) if not is_url(db) else PostgresStore.open(db)
    await (await open_store).close()
    async with crawler.open(db) as crawl:
        with pytest.raises(crawler.UsageError) as caught:
            [page async for page in crawl.pages(where)]
    assert repr(where) in str(caught.value)
