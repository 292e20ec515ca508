"""The SQLite store alone: full disks, damaged, foreign, older or newer files, and equal hashes."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from crawler.errors import NoStore, Setting, StoreError, StoreInUse, StoreVersionError, UsageError
from crawler.store.sql import offers as sqlite_offers
from crawler.store.sql.schema import SCHEMA_VERSION, load_queries
from crawler.store.sqlite import connection
from crawler.store.sqlite.store import SqliteStore
from tests.contract.visits import Harness, fetched, queued_urls

A = "http://a.test/"


@pytest.fixture
async def store(db_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(db_path)
    yield store
    await store.close()


async def open_and_close(path: Path, *, read_only: bool = False) -> None:
    await (await SqliteStore.open(path, read_only=read_only)).close()


def run_sql(path: Path, script: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(path) as db:
        rows = db.execute(script).fetchall()
    db.close()
    return rows


@pytest.mark.parametrize("change", ["PRAGMA user_version = 999", "DROP VIEW runs"])
@pytest.mark.parametrize("read_only", [False, True])
async def test_a_store_with_another_schema_is_refused_and_left_alone(
    change: str, read_only: bool, db_path: Path
) -> None:
    await open_and_close(db_path)
    run_sql(db_path, change)
    before = db_path.read_bytes()
    with pytest.raises(StoreVersionError, match=r"another version of the crawler.*choose another store\.db"):
        await open_and_close(db_path, read_only=read_only)
    assert db_path.read_bytes() == before


async def test_a_foreign_sqlite_file_is_refused_and_left_alone(db_path: Path) -> None:
    run_sql(db_path, "CREATE TABLE accounts (money)")
    before = db_path.read_bytes()
    with pytest.raises(UsageError, match="no crawl store"):
        await open_and_close(db_path)
    assert db_path.read_bytes() == before


async def test_an_empty_file_becomes_a_store(db_path: Path) -> None:
    db_path.touch()
    await open_and_close(db_path)
    assert run_sql(db_path, "PRAGMA user_version") == [(SCHEMA_VERSION,)]


async def test_a_second_crawl_into_the_same_store_is_refused(store: SqliteStore, db_path: Path) -> None:
    with pytest.raises(StoreInUse, match="another command writes"):
        await SqliteStore.open(db_path)
    await open_and_close(db_path, read_only=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
async def test_a_command_of_root_leaves_a_restored_store_to_its_owner(tmp_path: Path) -> None:
    db_path = tmp_path / "crawl.db"
    db_path.touch()
    os.chown(db_path, 65534, 65534)
    store = await SqliteStore.open(db_path)
    assert {file.name: file.stat().st_uid for file in tmp_path.iterdir() if file.name.startswith("crawl.db")} == (
        dict.fromkeys(("crawl.db", "crawl.db.lock", "crawl.db-shm", "crawl.db-wal"), 65534)
    )
    await store.close()


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ("python -m crawler run http://a.test/", "crawler run, "),
        ("/opt/crawler --log-format json run http://a.test/", "crawler run, "),
        ("python script.py run", ""),
    ],
)
def test_the_command_that_holds_a_store_is_named(arguments: str, command: str) -> None:
    assert connection.command_of(arguments.split()) == command


async def test_readers_see_whether_a_process_may_write(store: SqliteStore, db_path: Path) -> None:
    reader = await SqliteStore.open(db_path, read_only=True)
    assert (store.is_held(), reader.is_held()) == (True, True)
    await store.close()
    assert not reader.is_held()
    await reader.close()


async def test_reading_a_missing_store_does_not_create_it(db_path: Path) -> None:
    with pytest.raises(UsageError, match="no such store"):
        await open_and_close(db_path, read_only=True)
    assert not db_path.exists()
    with pytest.raises(UsageError, match="does not exist"):
        await open_and_close(db_path.parent / "nowhere" / "crawl.db")
    db_path.touch()
    with pytest.raises(NoStore) as refused:
        await open_and_close(db_path, read_only=True)
    assert refused.value.args == (f"{db_path}: an empty file, no crawl store; choose another ", Setting("store.db"))
    assert db_path.read_bytes() == b""


async def test_opening_a_foreign_file_is_a_store_error(db_path: Path) -> None:
    db_path.write_bytes(b"no database at all, " * 1000)
    for read_only in (True, False):
        with pytest.raises(StoreError, match="this file is not a store"):
            await open_and_close(db_path, read_only=read_only)


async def test_a_damaged_file_is_a_store_error(db_path: Path) -> None:
    await _fill(db_path)
    run_sql(db_path, "PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(db_path.read_bytes())
    for start in range(3 * 8192, len(content), 8192):
        content[start : start + 200] = b"\xff" * 200
    db_path.write_bytes(content)
    with pytest.raises(StoreError, match="malformed"):
        await _fill(db_path)


async def _fill(path: Path) -> None:
    store = await SqliteStore.open(path)
    try:
        await store.start_run({}, 0.0)
        await store.add_seeds([(f"http://h{n % 7}.test/{n}", None) for n in range(3000)])
        await store.counts()
    finally:
        await store.close()


async def test_a_full_disk_is_a_store_error_and_keeps_earlier_commits(db_path: Path) -> None:
    harness = Harness(lambda: SqliteStore.open(db_path))
    await harness.reopen()
    await harness.seed(A)
    (claim,) = await harness.claim()
    await harness.commit(fetched(claim.urls[0], [f"{A}kept"]))
    (pages,) = (await harness.store.query("PRAGMA page_count"))[0].values()
    await harness.store.query(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(StoreError, match=r"disk is full; what was committed is kept"):
        await harness.commit(fetched(claim.urls[0], [f"{A}lost{n:0200}" for n in range(500)]))
    assert await harness.urls() == {A: "fetched", f"{A}kept": "queued"}
    await harness.store.query("PRAGMA max_page_count = 1000000")
    await harness.commit(fetched(claim.urls[0], [f"{A}found{n}" for n in range(500)]), released=[claim.group_id])
    assert len(await harness.urls()) == 502
    await harness.reopen()
    assert len(queued_urls(await harness.claim(per_group=1000))) == 501
    await harness.close()


async def test_many_sites_may_be_forgotten_while_they_are_needed(
    db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_offers, "_SITES_KEPT", 3)
    harness = Harness(lambda: SqliteStore.open(db_path))
    await harness.reopen()
    for start in range(0, 20, 2):
        await harness.seed(*(f"http://h{n}.test/{start}" for n in range(start, start + 6)))
    assert len(await harness.urls()) == 60
    await harness.close()


@pytest.mark.parametrize("steps", range(1, 12, 3))
async def test_a_cancelled_transaction_leaves_none_open(store: SqliteStore, steps: int) -> None:
    task = asyncio.create_task(store.add_seeds([(f"http://h{n}.test/", None) for n in range(300)]))
    for _ in range(steps):
        await asyncio.sleep(0 if steps < 6 else 0.001)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled() or task.exception() is None
    await store.add_seeds([(A, None)])
    seeds = await store.seeds()
    assert A in seeds
    assert len(seeds) in (1, 301), "all of it or nothing"


async def test_a_batch_of_blocked_urls_costs_no_walk_over_the_table(store: SqliteStore) -> None:
    sql = "EXPLAIN QUERY PLAN " + load_queries()["blocked_within"].rstrip(";")
    plan = await store.query(sql, {"first": 1, "last": 2, "reason_code": "blocked", "limit": 3})
    assert [row["detail"] for row in plan] == ["SEARCH url USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"]


async def test_orders_are_heard_while_the_writer_is_busy(store: SqliteStore, db_path: Path) -> None:
    over = threading.Event()
    await store._db.create_function("work", 0, lambda: over.wait(300))
    async with store._writing():
        turn = asyncio.create_task(store.query("SELECT work()"))
        orders = await store.control.orders()
        assert (orders, turn.done()) == ([], False)
        over.set()
        await turn


def test_a_store_is_closed_before_the_loop_if_opening_is_cancelled(
    db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[object] = []
    monkeypatch.setattr(threading, "excepthook", failures.append)
    opening, cancelled, connect = threading.Event(), threading.Event(), sqlite3.connect

    def slow(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        opening.set()
        assert cancelled.wait(300)
        made: sqlite3.Connection = connect(*args, **kwargs)
        return made

    monkeypatch.setattr(sqlite3, "connect", slow)

    async def cut_short() -> None:
        task = asyncio.create_task(connection.open_database(db_path))
        await asyncio.to_thread(opening.wait)
        task.cancel()
        asyncio.get_running_loop().call_soon(cancelled.set)  # behind the task, which is told first
        with pytest.raises(asyncio.CancelledError):
            await task

    before = set(threading.enumerate())
    asyncio.run(cut_short())
    for thread in set(threading.enumerate()) - before:
        thread.join()
    assert failures == []
