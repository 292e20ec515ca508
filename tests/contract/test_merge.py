"""``crawler store merge``: rows of several stores with numbers of their own in one store, on both databases."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from shlex import quote

import pytest

from crawler.errors import StoreError, UsageError
from crawler.frontier.offers import Offer
from crawler.frontier.parts import Parts, PartTraffic
from crawler.store import keys, merge
from crawler.store.copy import TABLES, copy_store
from crawler.store.merge import merge_parts
from crawler.store.postgres.store import PostgresStore
from crawler.store.sql import offers as stored_offers
from crawler.store.sql.store import Store
from crawler.store.sqlite.store import SqliteStore
from tests.contract.visits import NOW, Harness, fetched, request, robots
from tests.postgres import Cluster

A, B = "http://a.test/", "http://b.test/"  # of the first part, and of the second
DBS = ("a.db", "b.db")
Opener = Callable[[], Awaitable[Store]]


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture(params=["sqlite", "postgres"])
def openers(request: pytest.FixtureRequest, tmp_path: Path) -> list[Opener]:
    """Open the stores of two parts, and of their merger."""
    if request.param == "sqlite":
        return [lambda name=name: SqliteStore.open(tmp_path / name) for name in (*DBS, "merged.db")]  # type: ignore[misc]
    server: Cluster = request.getfixturevalue("postgres")
    urls = [server.make_store() for _ in range(3)]
    return [lambda url=url: PostgresStore.open(url) for url in urls]  # type: ignore[misc]


async def part(opener: Opener, own: int, seed: str, offers: list[Offer], links: dict[str, list[str]]) -> Store:
    """Crawl a part: a seed, then offers of the other part; ``links`` are those of its pages."""

    async def opened() -> Store:
        store = await opener()
        if store.parts is None:
            await store.keep_parts(Parts(DBS, own))
        return store

    harness = Harness(opened)  # type: ignore[arg-type]
    await harness.reopen()
    await harness.seed(seed)
    if offers:
        await harness.store.receive_offers(1 - own, offers, None, None)
    for claim in await harness.claim():
        (site,) = claim.sites.values()
        await harness.news(site.id, site.name, robots(b"User-agent: *\n"))
        done = [fetched(queued, links[queued.url], title=queued.url, body=b"same") for queued in claim.urls]
        sent = request(site.id, f"/{own}", NOW + 10 - own)
        await harness.commit(*done, released=[claim.group_id], requests=[sent])
    return harness.store  # type: ignore[return-value]


@pytest.mark.parametrize("collide", [False, True])
async def test_the_rows_of_a_url_become_one(
    openers: list[Opener], stack: AsyncExitStack, collide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path has another number in each part: their keys differ, or all paths have the same hash (``collide``)."""
    if collide:
        monkeypatch.setattr(keys, "xxh3_64_intdigest", lambda path, key: 7 << 32)
    monkeypatch.setattr(stored_offers, "new_key", iter([0, 1]).__next__)
    first = await part(openers[0], 0, A, [], {A: [f"{B}x", f"{B}late", f"{A}1"]})
    stack.push_async_callback(first.close)
    waiting = await first.outgoing(1, 10)
    assert [(row.offer.url, row.offer.depth) for row in waiting] == [(f"{B}x", 1), (f"{B}late", 1)]
    second = await part(openers[1], 1, f"{B}y", [waiting[0].offer], {f"{B}y": [A], f"{B}x": [f"{B}y"]})
    stack.push_async_callback(second.close)
    assert await first.part_traffic() == [PartTraffic(1, "b.db", waiting=2, received=0)]
    assert await second.part_traffic() == [PartTraffic(0, "a.db", waiting=1, received=1)]
    merged = await openers[2]()
    stack.push_async_callback(merged.close)
    await merge_parts([first, second], merged, NOW + 100)
    urls = await merged.query("SELECT url, state, depth, discovered_from, seed FROM urls ORDER BY url")
    assert [tuple(row.values()) for row in urls] == [
        (A, "fetched", 0, None, 1),
        (f"{A}1", "queued", 1, A, 0),
        (f"{B}late", "queued", 1, A, 0),  # its offer is still under way
        (f"{B}x", "fetched", 1, A, 0),
        (f"{B}y", "fetched", 0, None, 1),
    ]
    links = await merged.query("SELECT source, target FROM links ORDER BY 1, 2")
    assert [tuple(row.values()) for row in links] == [
        (A, f"{A}1"), (A, f"{B}late"), (A, f"{B}x"), (f"{B}x", f"{B}y"), (f"{B}y", A),
    ]  # fmt: skip
    pages = await merged.query("SELECT url, title FROM pages ORDER BY url")
    assert {row["url"] for row in pages} == {row["title"] for row in pages} == {A, f"{B}x", f"{B}y"}
    assert await merged.query("SELECT count(*) AS n FROM body") == [{"n": 1}]
    asked = await merged.query("SELECT path, run_id FROM request ORDER BY id")
    assert [row["path"] for row in asked] == ["/1", "/0"], "in the order of time"
    assert len({row["run_id"] for row in asked}) == 2
    in_force = await merged.query("SELECT site, robots_status FROM sites ORDER BY site")
    assert [tuple(row.values()) for row in in_force] == [(A[:-1], "200"), (B[:-1], "200")]
    harness = Harness(openers[2])  # type: ignore[arg-type]
    await merged.close()
    await harness.reopen()
    assert {queued.url for claim in await harness.claim() for queued in claim.urls} == {f"{A}1", f"{B}late"}
    await harness.close()


async def test_a_merge_that_was_cut_off_begins_anew(
    openers: list[Opener], stack: AsyncExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [
        await part(openers[0], 0, A, [], {A: [f"{B}y"]}),
        await part(openers[1], 1, f"{B}y", [], {f"{B}y": [A]}),
    ]
    merged = await openers[2]()
    for store in (*parts, merged):
        stack.push_async_callback(store.close)
    names = sorted(store.name for store in parts)

    async def cut_off(self: Store, now: float) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(type(merged), "find_content_mirrors", cut_off)
        with pytest.raises(StoreError, match="the disk is full"):
            await merge_parts(parts, merged, NOW)
    for store in parts:
        await store.query("ROLLBACK")
    command = f"`crawler store merge {quote(names[0])} {quote(merged.name)}` begins it anew"
    with pytest.raises(UsageError) as refused:
        await merged.require_whole()
    assert str(refused.value) == f"{merged.name}: a merge that is not finished; {command}"
    with pytest.raises(UsageError, match="not an empty store"):
        await merge_parts(parts[:1], merged, NOW)
    with pytest.raises(UsageError, match=f"a part of {re.escape(' and '.join(names))}"):
        await copy_store(parts[0], merged, NOW)
    await merge_parts(parts, merged, NOW)
    await merged.require_whole()
    urls = await merged.query("SELECT url FROM pages ORDER BY url")
    assert [row["url"] for row in urls] == [A, f"{B}y"]
    assert await merged.query("SELECT count(*) AS n FROM links") == [{"n": 2}]


async def test_a_store_with_a_crawl_is_not_merged_into(openers: list[Opener], stack: AsyncExitStack) -> None:
    first = await part(openers[0], 0, A, [], {A: []})
    stack.push_async_callback(first.close)
    second = await part(openers[1], 1, f"{B}y", [], {f"{B}y": []})
    stack.push_async_callback(second.close)
    with pytest.raises(UsageError, match="not an empty store"):
        await merge_parts([first], second, NOW)


def test_every_table_is_merged_or_named() -> None:
    own = {"run", "robots_text", "body", "body_to_drop", "site", "politeness_group", "url", "link", "request"}
    places = [set(merge._NUMBERED), set(merge._SHARED), merge.NOT_MERGED, own]
    assert set(TABLES) == set().union(*places)
    assert sum(map(len, places)) == len(TABLES)
