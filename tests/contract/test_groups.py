"""On PostgreSQL a commit writes rows of its own politeness groups, and offers to others are carried over after it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from crawler.errors import StoreError, UsageError
from crawler.frontier.offers import Offer
from crawler.frontier.politeness import GroupBy, PolitenessSettings
from crawler.reasons import EndCode, RunEnd
from crawler.store.copy import copy_store
from crawler.store.postgres.offers import Carrier
from crawler.store.postgres.store import PostgresStore
from crawler.store.rows import ClaimLimits, CommitBatch
from crawler.store.sql import revisits, section
from crawler.store.sql.tables import StoreStatements
from crawler.store.sqlite.store import SqliteStore
from tests.contract.locks import until_it_waits
from tests.contract.test_revisits import changed, queue
from tests.contract.visits import NOW, Harness, fetched, link, redirected
from tests.postgres import Cluster
from tests.records import replace

A, B, C = "http://a.test/", "http://b.test/", "http://c.test/"
LOOKS = (
    "SELECT url, state, depth, target FROM urls",
    "SELECT url, depth FROM pages",
    "SELECT source, target, anchor, rel FROM links",
)


@pytest.fixture
def url(postgres: Cluster) -> str:
    return postgres.make_store()


@pytest.fixture
async def harness(url: str) -> AsyncIterator[Harness]:
    harness = Harness(lambda: PostgresStore.open(url))
    await harness.reopen()
    yield harness
    await harness.close()


async def look(harness: Harness) -> list[set[tuple[Any, ...]]]:
    return [{tuple(row.values()) for row in await harness.store.query(sql)} for sql in LOOKS]


def random_web(seed: int) -> dict[str, list[Any]]:
    """Pages of five sites that link to each other, and now and then to one that is not there."""
    chance = random.Random(seed)
    pages = [f"http://{site}.test/{n}" for site in "abcde" for n in range(6)]
    return {
        page: [
            link(target, follow=chance.random() < 0.8)
            for target in chance.sample([*pages, f"http://x{chance.randrange(9)}.test/"], 6)
        ]
        for page in pages
    }


@pytest.mark.parametrize("seed", range(3))
async def test_a_random_web_gives_the_rows_of_sqlite(harness: Harness, db_path: Path, seed: int) -> None:
    web = random_web(seed)
    one = Harness(lambda: SqliteStore.open(db_path))
    await one.reopen()
    for each in (one, harness):
        each.max_depth = 4
        await each.seed(*(page for page in web if page.endswith("/0")))
        chance = random.Random(seed)
        while claims := [claim for _ in range(5) for claim in await each.claim(groups=1)]:
            visits = [chance.choice(claim.urls) for claim in claims]
            outcomes = [fetched(queued, web.get(queued.url, []), max_depth=4) for queued in visits]
            await each.commit(*outcomes, released=[claim.group_id for claim in claims])
    assert await look(harness) == await look(one)
    await one.close()


# --- carrying over ----------------------------------------------------------------------------

Stop = Callable[[str], None]


@pytest.fixture
def stop(monkeypatch: pytest.MonkeyPatch) -> Stop:
    """Have a step of carrying over fail, as where the process is killed before it; "" lets all go on."""
    steps = {name: getattr(Carrier, name) for name in ("_store_urls", "_store_links")}

    def stop_at(step: str) -> None:
        def failing(*_: object) -> Awaitable[None]:
            raise StoreError("killed")

        for name, doing in steps.items():
            monkeypatch.setattr(Carrier, name, failing if name == step else doing)

    return stop_at


@pytest.mark.parametrize("step", ["_store_urls", "_store_links"])
async def test_offers_left_by_a_killed_worker_are_carried_over_by_the_next(
    harness: Harness, stop: Stop, step: str
) -> None:
    await harness.seed(A, B)
    claims = {claim.group: claim for claim in await harness.claim()}
    stop(step)
    with pytest.raises(StoreError, match="killed"):
        await harness.commit(
            fetched(claims["a.test"].urls[0], [C, A + "1", link(B + "1", follow=False)]),
            redirected(claims["b.test"].urls[0], C + "2"),
            released=[claim.group_id for claim in claims.values()],
        )
    assert await harness.store.query("SELECT * FROM offer"), "the crawl is not over"
    assert len(await harness.store.query("SELECT * FROM links")) == 1
    stop("")
    await harness.reopen()
    assert await harness.store.query("SELECT * FROM offer") == []
    links = {(row["source"], row["target"]) for row in await harness.store.query("SELECT * FROM links")}
    assert links == {(A, C), (A, A + "1"), (A, B + "1")}
    assert await harness.urls("state, depth, target, discovered_from") == {
        A: ("fetched", 0, None, None),
        B: ("redirected", 0, C + "2", None),
        C: ("queued", 1, None, A),
        C + "2": ("queued", 0, None, B),
        A + "1": ("queued", 1, None, A),
        B + "1": ("excluded", 1, None, A),
    }
    assert {queued.url for claim in await harness.claim() for queued in claim.urls} == {C, C + "2", A + "1"}


@pytest.mark.parametrize("step", ["_store_urls", "_store_links"])
async def test_an_idle_worker_carries_over_what_a_killed_one_has_left(
    harness: Harness, url: str, stop: Stop, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawler.store.postgres.store._CARRY_EVERY_S", -1.0)
    await harness.seed(A)
    (claim,) = await harness.claim()
    stop(step)
    with pytest.raises(StoreError, match="killed"):
        await harness.commit(fetched(claim.urls[0], [C]), released=[claim.group_id])
    stop("")
    idle = await PostgresStore.open(url)
    await idle.register_in_run(harness.store.run_id, NOW, at_work=True)
    await idle.end_worker(harness.store.worker_id, RunEnd(EndCode.KILLED), NOW)
    await idle.others_at_work()
    assert await idle.query("SELECT * FROM offer") == []
    assert (await idle.next_ready(NOW)) is not None
    await idle.close()


async def test_a_page_that_comes_nearer_brings_its_pending_offers_nearer(harness: Harness, stop: Stop) -> None:
    harness.max_depth = 3
    await harness.seed(A, B)
    claims = {claim.group: claim for claim in await harness.claim()}
    claim, other = claims["a.test"], claims["b.test"]
    for n in range(1, 4):  # a way of three links on one site
        await harness.finish(claim, fetched(claim.urls[0], [f"{A}{n}"], max_depth=3))
        (claim,) = await harness.claim()
    stop("_store_urls")
    with pytest.raises(StoreError):
        await harness.finish(claim, fetched(claim.urls[0], [C], max_depth=3))
    stop("_store_links")  # C was stored, too deep, when the page that leads there is found to be near
    with pytest.raises(StoreError):
        await harness.finish(other, fetched(other.urls[0], [f"{A}3"], max_depth=3))
    found = await harness.urls("state, depth")
    assert (found[A + "3"], found[C]) == (("fetched", 1), ("excluded", 4))
    stop("")
    await harness.commit()
    found = await harness.urls("state, depth")
    assert (found[A + "3"], found[C]) == (("fetched", 1), ("queued", 2))
    assert len(await harness.store.query("SELECT * FROM links")) == 5


async def test_a_copy_contains_pending_offers(harness: Harness, url: str, stop: Stop, tmp_path: Path) -> None:
    await harness.seed(A)
    (claim,) = await harness.claim()
    stop("_store_links")
    with pytest.raises(StoreError):
        await harness.finish(claim, fetched(claim.urls[0], [B, C]))
    stop("")
    source, target = await PostgresStore.open(url, read_only=True), await SqliteStore.open(tmp_path / "copy.db")
    await copy_store(source, target, NOW)
    assert {row["target"] for row in await target.query("SELECT target FROM links")} == {B, C}
    await source.close()
    await target.close()


async def test_sites_go_into_the_groups_of_another_rule(url: str, harness: Harness) -> None:
    await harness.seed("http://one.site.example/", "http://two.site.example/")
    await harness.close()
    store = await PostgresStore.open(url, PolitenessSettings(group=GroupBy.DOMAIN))
    await store.regroup()
    assert await store.query("SELECT DISTINCT politeness_group AS name FROM sites") == [{"name": "site.example"}]
    await store.close()


async def test_a_changed_page_keeps_the_links_that_it_has_now(harness: Harness) -> None:
    await harness.seed(A)
    await harness.crawl({A: [B]}, lambda queued: queued[0])
    await queue(harness)
    claim = next(claim for claim in await harness.claim() if claim.group == "a.test")
    outcome = replace(
        changed(claim.urls[0], harness.now, b"<p>new", title="New"),
        links=(link(C), link(A + "own")),
        target=C,
        offers=(Offer(C, 1), Offer(A + "own", 1)),
    )
    await harness.finish(claim, outcome)
    assert {row["target"] for row in await harness.store.query("SELECT target FROM links")} == {C, A + "own"}
    assert (await harness.urls("target"))[A] == C


async def test_where_a_seed_is_redirected_to_counts_as_a_seed_and_is_no_named_one(harness: Harness) -> None:
    await harness.seed(A)
    (claim,) = await harness.claim()
    await harness.finish(claim, redirected(claim.urls[0], B))
    assert set(await harness.store.seeds()) == {A}
    assert await harness.urls("seed") == {A: 1, B: 1}


@pytest.mark.parametrize("how", ["copied", "joined"])
async def test_offers_go_into_the_groups_of_the_crawl_that_left_them(
    url: str, tmp_path: Path, stop: Stop, how: str
) -> None:
    store = await PostgresStore.open(url, PolitenessSettings(group=GroupBy.DOMAIN))
    await store.start_run({"politeness": {"group": GroupBy.DOMAIN}}, NOW)
    await store.add_seeds([("http://a.site.example/", None), (A, None)])
    claims = (await store.commit(CommitBatch(NOW, claim_limits=ClaimLimits(9)))).claims
    claim = next(claim for claim in claims if claim.group == "a.test")
    stop("_store_urls")
    with pytest.raises(StoreError):
        await store.commit(
            CommitBatch(NOW, claim_limits=ClaimLimits(0), outcomes=[fetched(claim.urls[0], ["http://b.site.example/"])])
        )
    stop("")
    other = await PostgresStore.open(url, PolitenessSettings(group=GroupBy.HOST), read_only=how == "copied")
    if how == "joined":
        await other.recover(NOW)
    else:
        copy = await SqliteStore.open(tmp_path / "copy.db")
        await copy_store(other, copy, NOW)
        await copy.close()
    rows = await other.query("SELECT DISTINCT politeness_group AS name FROM sites")
    assert {row["name"] for row in rows} == {"site.example", "a.test"}
    for each in (other, store):
        await each.close()


async def test_a_copy_does_not_wait_for_ever(url: str, tmp_path: Path, stop: Stop, harness: Harness) -> None:
    await harness.seed(A)
    (claim,) = await harness.claim()
    stop("_store_urls")
    with pytest.raises(StoreError):
        await harness.finish(claim, fetched(claim.urls[0], [B]))
    source, target = await PostgresStore.open(url, read_only=True), await SqliteStore.open(tmp_path / "copy.db")
    source._carrier.carry = nothing  # type: ignore[method-assign]
    with pytest.raises(UsageError, match="pause it with"):
        await copy_store(source, target, NOW)
    await source.close()
    await target.close()


async def nothing(*_: object) -> None:
    """Others leave as much as is carried over."""


# --- leases and sweeping ----------------------------------------------------------------------


async def test_no_run_begins_while_bodies_are_deleted(
    url: str, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await harness.seed(A)
    await harness.store.query("INSERT INTO body_to_drop VALUES (1)")
    other, begun = await PostgresStore.open(url), []

    async def while_others_come(sql: StoreStatements) -> bool:
        is_idle = await section.are_idle(sql)
        if is_idle:
            begun.append(asyncio.create_task(other.join_run(harness.store.run_id, NOW)))
            await until_it_waits(begun[0], url)
        return is_idle

    monkeypatch.setattr(revisits, "are_idle", while_others_come)
    await harness.store.end_run(RunEnd(EndCode.DONE), NOW)
    await begun[0]
    await harness.store.query("INSERT INTO body_to_drop VALUES (1)")
    await harness.store.start_run({}, NOW)  # the other one is at work: nothing is swept
    assert len(begun) == 1
    await other.close()
