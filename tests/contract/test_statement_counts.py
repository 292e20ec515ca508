"""A commit is one call of the database's thread with a fixed number of statements, whatever it contains."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiosqlite.core
import pytest

from crawler.frontier import offers
from crawler.model import Link, Purpose, SiteFile
from crawler.store.rows import AgentLine, ClaimLimits, CommitBatch, RobotsNews, UrlLimits
from crawler.store.sql import offers as sqlite_offers
from crawler.store.sqlite.on_thread import OnThread
from crawler.store.sqlite.store import SqliteStore
from tests.contract.conftest import sqlite
from tests.contract.visits import NOW, Harness, fetched, retried, robots

A = "http://a.test/"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the database's thread was called, and how many statements it executed."""
    counted: Counter[str] = Counter()

    def count(owner: type, method: str, what: str) -> None:
        counted_method = getattr(owner, method)

        async def counting(self: object, *arguments: Any, **options: Any) -> Any:
            counted[what] += 1
            return await counted_method(self, *arguments, **options)

        monkeypatch.setattr(owner, method, counting)

    count(aiosqlite.core.Connection, "_execute", "calls")
    count(OnThread, "_call", "statements")
    return counted


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    harness = Harness(sqlite(tmp_path))
    await harness.reopen()
    yield harness
    await harness.close()


def _require_same(counted: list[Counter[str]]) -> None:
    """The first one of these commits also reads what the store remembers."""
    _, few, many = counted
    assert few == many
    assert (many["calls"], many["statements"] < 40) == (1, True)


async def test_the_calls_of_a_commit_do_not_depend_on_its_size(calls: Counter[str], harness: Harness) -> None:
    await harness.seed(*(f"{A}{n}" for n in range(12)))
    (claim,) = await harness.claim()
    counted = []
    for visited in (claim.urls[:1], claim.urls[1:2], claim.urls[2:]):
        links = [f"{A}{visited[0].id}/{n}" for n in range(37 * len(visited))]
        calls.clear()
        await harness.commit(*(fetched(queued, links, body=b"%d" % queued.id) for queued in visited))
        counted.append(calls.copy())
    _require_same(counted)


async def test_robots_copies_of_more_sites_add_no_calls_to_a_commit(calls: Counter[str], harness: Harness) -> None:
    names = [f"http://{n}.test" for n in range(32)]
    sites = [(await harness.site_number(name), name) for name in names]
    counted = []
    for some in (sites[:2], sites[2:4], sites[4:]):
        news = [
            RobotsNews(number, name, robots(name.encode()), None, A if number % 2 else None, (AgentLine(2, "/", None),))
            for number, name in some
        ]
        files = {(number, "/f"): SiteFile("/f", Purpose.TDMREP, NOW, "404") for number, _ in some}
        calls.clear()
        await harness.commit(robots=news, files=files)
        counted.append(calls.copy())
    _require_same(counted)


async def _steps_beside(folder: Path, held_back: int) -> int:
    """Instructions of SQLite's machine for a turn of a site that waits for one retry, and has so much held back."""
    folder.mkdir()
    harness = Harness(sqlite(folder))
    await harness.reopen()
    held = UrlLimits(below_depth=1)
    try:
        await harness.seed(A)
        (claim,) = await harness.claim()
        found: list[Link | str] = [f"{A}{n}" for n in range(held_back)]
        again = [fetched(claim.urls[0], found), retried(claim.urls[0], NOW + 50)]
        await harness.store.commit(
            CommitBatch(NOW, claim_limits=ClaimLimits(0), outcomes=again, released=[claim.group_id])
        )
        assert isinstance(harness.store, SqliteStore)
        steps = 0

        def count() -> int:
            nonlocal steps
            steps += 1
            return 0

        await harness.store._db.set_progress_handler(count, 1)
        (claim,) = (await harness.store.commit(CommitBatch(NOW + 60, held, claim_limits=ClaimLimits(10)))).claims
        assert [queued.url for queued in claim.urls] == [A]
        await harness.store.commit(CommitBatch(NOW + 60, held, claim_limits=ClaimLimits(10), released=[claim.group_id]))
        await harness.store._db.set_progress_handler(count, 0)
        return steps
    finally:
        await harness.close()


async def test_held_back_urls_add_no_calls_to_a_commit(tmp_path: Path) -> None:
    few = await _steps_beside(tmp_path / "few", 3)
    many = await _steps_beside(tmp_path / "many", 3000)
    assert many < few + 50


async def test_a_link_seen_lately_is_weighed_without_asking_the_database(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbered: list[str] = []
    number = sqlite_offers.url_number

    def counting(site_id: int, path: str, key: int) -> int:
        numbered.append(path)
        return number(site_id, path, key)

    monkeypatch.setattr(sqlite_offers, "url_number", counting)
    monkeypatch.setattr(sqlite_offers, "weigh", _unexpected)
    await harness.seed(f"{A}1", f"{A}2")
    (claim,) = await harness.claim()
    numbered.clear()
    for queued in claim.urls:
        await harness.commit(fetched(queued, [f"{A}link/{n}" for n in range(30)], body=b"%d" % queued.id))
    assert sorted(numbered) == sorted(f"/link/{n}" for n in range(30))  # hashed once, not once for each page


def _unexpected(known: offers.KnownUrl, offer: offers.Offer) -> None:
    raise AssertionError(f"{offer.url} was looked up again")
