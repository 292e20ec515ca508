"""A query that takes too long is interrupted, and the store goes on."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING

import pytest

from crawler.errors import QueryInterrupted
from crawler.store.postgres import connection as postgres
from crawler.store.sqlite import connection as sqlite
from tests.contract.visits import Harness

if TYPE_CHECKING:
    from crawler.store.sections import Store

ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) AS n FROM n"


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes on by a second each time it is looked at: of steps, not of time."""
    for module in (sqlite, postgres):
        seconds = count()
        monkeypatch.setattr(module, "monotonic_s", lambda seconds=seconds: next(seconds))


async def test_an_endless_query_is_interrupted(harness: Harness, looks: None) -> None:
    store: Store = harness.store
    async with store.deadline(10):
        assert await store.query("SELECT 1 AS n") == [{"n": 1}]
    with pytest.raises(QueryInterrupted):
        async with store.deadline(1.5):
            await store.query(ENDLESS)
    assert await store.query("SELECT 1 AS n") == [{"n": 1}]


async def test_a_cancelled_query_holds_up_no_other(harness: Harness) -> None:
    store: Store = harness.store

    async def ask() -> None:
        async with store.deadline(600):
            await store.query(ENDLESS)

    asking = asyncio.create_task(ask())
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await store.query("SELECT 1 AS n") == [{"n": 1}]
