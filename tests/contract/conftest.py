"""The stores that must keep the contract of :class:`crawler.store.sections.Store`. Another store: another row here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from crawler.frontier.politeness import PolitenessSettings
from crawler.store.postgres.store import PostgresStore
from crawler.store.sections import Store
from crawler.store.sqlite.store import SqliteStore
from tests.contract.visits import Harness
from tests.postgres import Cluster

Opener = Callable[[], Awaitable[Store]]

POLITENESS = PolitenessSettings(delay_s=2.0)


def sqlite(folder: Path) -> Opener:
    return lambda: SqliteStore.open(folder / "crawl.db", POLITENESS)


@pytest.fixture(params=["sqlite", "postgres"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Opens the same store at each call."""
    if request.param == "sqlite":
        return sqlite(tmp_path)
    cluster: Cluster = request.getfixturevalue("postgres")
    url = cluster.make_store()
    return lambda: PostgresStore.open(url, POLITENESS)


@pytest.fixture
async def harness(opener: Opener) -> AsyncIterator[Harness]:
    """An open store in its first run, and hands to work it with."""
    harness = Harness(opener)
    await harness.reopen()
    yield harness
    await harness.close()
