"""``crawler store copy``: in both directions, interrupted and continued, and never over another store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from crawler.errors import StoreError, UsageError
from crawler.store import copy
from crawler.store.computed import Computed
from crawler.store.copy import copy_store
from crawler.store.postgres.store import PostgresStore
from crawler.store.sql.store import Store
from crawler.store.sqlite.store import SqliteStore
from tests.contract.visits import NOW, Harness, fetched, robots
from tests.postgres import Cluster

A, B = "http://a.test/", "http://b.test/"
LOOKS = ("SELECT * FROM urls ORDER BY url", "SELECT * FROM pages ORDER BY url", "SELECT * FROM links ORDER BY 1, 2")


@pytest.fixture
async def crawled(db_path: Path) -> Path:
    """A store in which a little has happened."""
    harness = Harness(lambda: SqliteStore.open(db_path))
    await harness.reopen()
    await harness.seed(A, B)
    for claim in await harness.claim():
        (site,) = claim.sites.values()
        await harness.news(site.id, site.name, robots())
        links = [f"{claim.urls[0].url}{n}" for n in range(30)]
        await harness.finish(claim, fetched(claim.urls[0], links, title="a b", body=claim.group.encode()))
    await harness.close()
    return db_path


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


async def opened(stack: AsyncExitStack, store: Store) -> Store:
    stack.push_async_callback(store.close)
    return store


async def look(store: Store) -> list[Any]:
    return [[tuple(row.values()) for row in await store.query(sql)] for sql in LOOKS]


async def test_there_and_back(crawled: Path, postgres: Cluster, tmp_path: Path, stack: AsyncExitStack) -> None:
    url = postgres.make_database()
    source = await opened(stack, await SqliteStore.open(crawled, read_only=True))
    there = await opened(stack, await PostgresStore.open(url))
    first = await copy_store(source, there, NOW)
    back = await opened(stack, await SqliteStore.open(tmp_path / "back.db"))
    second = await copy_store(await opened(stack, await PostgresStore.open(url, read_only=True)), back, NOW)
    assert first == second
    assert {each.table: each.rows for each in first}["url"] == 62
    assert await look(source) == await look(back)
    assert await there.bodies.of_page(A) == await back.bodies.of_page(A) == b"a.test"
    await there.require_whole()


async def test_a_copy_has_no_index(crawled: Path, postgres: Cluster, stack: AsyncExitStack) -> None:
    writer = await SqliteStore.open(crawled)
    for each in Computed:
        await writer.results.cover(each, await writer.last_request())
    await writer.close()
    source = await opened(stack, await SqliteStore.open(crawled, read_only=True))
    there = await opened(stack, await PostgresStore.open(postgres.make_database()))
    await copy_store(source, there, NOW)
    assert await there.computed() == {Computed.RANKS: False, Computed.NEAR_DUPLICATES: False}


async def test_the_copy_can_be_crawled_on(crawled: Path, postgres: Cluster, stack: AsyncExitStack) -> None:
    url = postgres.make_database()
    source = await opened(stack, await SqliteStore.open(crawled, read_only=True))
    await copy_store(source, await opened(stack, await PostgresStore.open(url)), NOW)
    harness = Harness(lambda: PostgresStore.open(url))
    harness.now = NOW + 100
    await harness.reopen()
    await harness.seed("http://c.test/")  # a new site, which gets a number of its own
    for claim in await harness.claim():
        await harness.finish(claim, fetched(claim.urls[0], body=claim.urls[0].url.encode()))
    assert await harness.store.fetched_count() == 5
    await harness.close()


async def test_an_interrupted_copy_is_no_store_and_can_be_continued(
    crawled: Path, postgres: Cluster, stack: AsyncExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy, "_ROWS", 7)
    source = await opened(stack, await SqliteStore.open(crawled, read_only=True))
    target = await opened(stack, await PostgresStore.open(postgres.make_store()))
    insert, calls = target.insert_rows, 0

    async def cut_off(*arguments: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 12:
            raise StoreError("cut off")
        await insert(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(target, "insert_rows", cut_off)
        with pytest.raises(StoreError, match="cut off"):
            await copy_store(source, target, NOW)
    with pytest.raises(UsageError, match="not finished"):
        await target.require_whole()
    again = await opened(stack, await SqliteStore.open(crawled, read_only=True))
    copied = {each.table: each for each in await copy_store(again, target, NOW)}
    assert 0 < copied["url"].new < copied["url"].rows == 62
    assert copied["link"].rows == copied["link"].new == 60


async def test_a_source_that_changed_between_two_parts_is_noticed(
    crawled: Path, postgres: Cluster, stack: AsyncExitStack
) -> None:
    source = await opened(stack, await SqliteStore.open(crawled, read_only=True))
    target = await opened(stack, await PostgresStore.open(postgres.make_store()))
    await target.begin_copy(source.name)
    await target.insert_rows("mirror", ["site", "main_site", "evidence", "seen_at"], [("x", "y", "host", 1.0)])
    with pytest.raises(StoreError, match=f"mirror differs.*{crawled} was changed"):
        await copy_store(source, target, NOW)


async def test_nothing_is_copied_over_another_crawl_or_copy(
    crawled: Path, postgres: Cluster, tmp_path: Path, stack: AsyncExitStack
) -> None:
    source = await opened(stack, await SqliteStore.open(crawled, read_only=True))
    harness = Harness(lambda: SqliteStore.open(tmp_path / "other.db"))
    await harness.reopen()
    stack.push_async_callback(harness.close)
    assert isinstance(harness.store, Store)
    with pytest.raises(UsageError, match="crawl of its own"):
        await copy_store(source, harness.store, NOW)
    target = await opened(stack, await PostgresStore.open(postgres.make_store()))
    await target.begin_copy("elsewhere.db")
    with pytest.raises(UsageError, match=r"a part of elsewhere\.db"):
        await copy_store(source, target, NOW)
