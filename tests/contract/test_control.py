"""Each store keeps orders in sequence, has each carried out once, and applies it to the right sites."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from crawler.errors import UsageError
from crawler.frontier.operator import BLOCKED, Command
from crawler.reasons import EndCode, RunEnd
from crawler.store.open import give_order_to_file
from crawler.store.rows import Beat
from crawler.store.sql.store import Store
from crawler.store.sqlite.store import SqliteStore
from tests.contract.visits import NOW, Harness
from tests.reasons import reason


class Still:
    """A clock that stands."""

    def __init__(self, now: float) -> None:
        self._now = now

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("who gives an order does not wait")


async def give(harness: Harness, folder: Path, command: Command, name: str = "") -> int:
    if isinstance(harness.store, SqliteStore):
        return (await give_order_to_file(str(folder / "crawl.db"), command, name, Still(harness.now))).id
    assert isinstance(harness.store, Store)
    return (await harness.store.control.give(command, name, Still(harness.now))).id


async def test_orders_are_stored_in_sequence_and_read_from_any_number(harness: Harness, tmp_path: Path) -> None:
    first = await give(harness, tmp_path, Command.PAUSE)
    second = await give(harness, tmp_path, Command.BLOCK, "a.test")
    assert [order.id for order in await harness.store.control.orders()] == [first, second]
    (later,) = await harness.store.control.orders(first)
    assert (later.command, later.name, later.asked_at, later.done_at) == (Command.BLOCK, "a.test", NOW, None)
    await harness.store.control.done(later, NOW + 1)
    await harness.store.control.done(later, NOW + 0.5)  # another worker obeyed earlier, and says so later
    await harness.reopen()
    assert [order.done_at for order in await harness.store.control.orders()] == [None, NOW + 1]


async def test_an_order_waits_for_the_commit_in_progress(harness: Harness, tmp_path: Path) -> None:
    """A second writer for a moment: neither fails for the other."""
    await harness.seed(*(f"http://h{n}.test/" for n in range(50)))
    turns = [harness.claim(1) for _ in range(20)]
    given = [give(harness, tmp_path, Command.BLOCK, f"h{n}.test") for n in range(20)]
    await asyncio.gather(*turns, *given)
    assert len(await harness.store.control.orders()) == 20


async def test_stop_applies_to_the_latest_run_while_it_goes_on(harness: Harness, tmp_path: Path) -> None:
    await harness.reopen()  # as after a crash: the run before has no end
    await give(harness, tmp_path, Command.STOP)
    (order,) = await harness.store.control.orders()
    assert order.run_id == harness.store.run_id
    await harness.store.end_run(RunEnd(EndCode.DONE), NOW)
    with pytest.raises(UsageError, match="nothing to stop"):
        await give(harness, tmp_path, Command.STOP)
    assert len(await harness.store.control.orders()) == 1


async def test_blocked_urls_are_found_by_host_and_by_site(harness: Harness) -> None:
    urls = ["http://a.test/", "https://a.test/", "http://a.test:8080/", "http://a.test./", "http://b.a.test/"]
    await harness.seed(*urls)

    async def named(name: str, *, excluded: bool = False) -> set[str]:
        control = harness.store.control
        numbers = set(await (control.blocked_on if excluded else control.queued_on)(name, 100))
        rows = await harness.store.query("SELECT url_id, url FROM urls")
        return {row["url"] for row in rows if row["url_id"] in numbers}

    assert await named("a.test") == set(urls[:4])
    assert await named("https://a.test") == {"https://a.test/"}
    assert await named("c.test") == set()
    assert len(await harness.store.control.queued_on("a.test", 2)) == 2
    numbers = await harness.store.control.queued_on("a.test", 100)
    await harness.store.exclude([(number, BLOCKED) for number in numbers])
    assert (await named("a.test"), await named("a.test", excluded=True)) == (set(), set(urls[:4]))
    await harness.store.requeue(await harness.store.control.blocked_on("https://a.test", 100))
    assert (await harness.urls())["https://a.test/"] == "queued"
    assert {queued.url for claim in await harness.claim() for queued in claim.urls} == {urls[1], urls[4]}


async def test_blocked_urls_are_read_in_successive_batches(harness: Harness) -> None:
    urls = [f"http{secure}://a.test{port}/{n}" for secure in ("", "s") for port in ("", ":81") for n in range(10)]
    await harness.seed(*urls, "http://b.test/")
    control, known = harness.store.control, await harness.store.query("SELECT url_id, url FROM urls")
    await harness.store.exclude([(row["url_id"], BLOCKED) for row in known])
    own = sorted(row["url_id"] for row in known if "//a.test" in row["url"])
    found: list[int] = []
    while batch := await control.blocked_on("a.test", 7, found[-1] if found else 0):
        assert len(batch) <= 7
        found += batch
    assert found == own
    await harness.store.exclude([(own[3], reason("trap: a loop"))])
    assert await control.blocked_on("a.test", 100, own[1]) == [own[2], *own[4:]]
    assert await control.blocked_on("c.test", 100) == []


async def test_signs_of_life_are_those_of_the_latest_run(harness: Harness) -> None:
    first = Beat(harness.store.run_id, 7, NOW, 1000, 0.5)
    await harness.store.control.beat(first)
    await harness.store.control.beat(again := Beat(harness.store.run_id, 7, NOW + 5, 2000, 0.1, vain_claims=3))
    assert await harness.store.control.beats() == [again]
    await harness.reopen()
    await harness.store.control.beat(last := Beat(harness.store.run_id, 9, NOW + 9, 1, 0.0))
    assert await harness.store.control.beats() == [last]
