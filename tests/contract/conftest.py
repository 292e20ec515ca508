"""The stores that must keep the contract of :class:`crawler.store.sections.Store`. Another store: another row here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from crawler.clock import SystemClock
from crawler.frontier.politeness import PolitenessSettings
from crawler.store.postgres.store import PostgresStore
from crawler.store.sections import Store
from crawler.store.sqlite.store import SqliteStore
from tests.contract.visits import Harness
from tests.postgres import Cluster

Opener = Callable[[], Awaitable[Store]]

POLITENESS = PolitenessSettings(delay_s=2.0)
A, B = "http://a.test/", "http://b.test/"

#: Two workers on PostgreSQL, and the time.
TwoWorkers = tuple[PostgresStore, PostgresStore, float]


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


async def two_workers(url: str, lease_s: float = 60.0, *, reconnect_s: float = 120.0) -> TwoWorkers:
    """Two workers of a run that knows two sites, and the time. The first waits ``reconnect_s`` for the database."""
    clock = SystemClock()
    first = await PostgresStore.open(url, lease_s=lease_s, reconnect_s=reconnect_s, clock=clock)
    second = await PostgresStore.open(url, lease_s=lease_s)
    await first.add_seeds([(A, None), (B, None)])
    await first.prepare(None)
    run_id = await first.start_run({}, clock.now())
    await second.join_run(run_id, clock.now())
    return first, second, clock.now()


@pytest.fixture
async def workers(postgres: Cluster) -> AsyncIterator[TwoWorkers]:
    first, second, now = await two_workers(postgres.make_store())
    yield first, second, now
    await first.close()
    await second.close()
