"""Transactions on the thread of SQLite, and rows of ``executemany``."""

from __future__ import annotations

import asyncio
import runpy
import sqlite3
import threading

import aiosqlite
import pytest

from crawler.store.sql.schema import load_queries
from crawler.store.sqlite import on_thread
from crawler.store.sqlite.connection import transaction
from crawler.store.sqlite.on_thread import OnThread


def test_an_adapter_that_a_program_has_registered_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sqlite3.adapters, (bool, sqlite3.PrepareProtocol), str)
    runpy.run_path(on_thread.__file__)  # as if the crawler was imported now
    with sqlite3.connect(":memory:") as db:
        assert db.execute("SELECT ?, ?, ?", (True, None, b"x")).fetchone() == ("True", None, b"x")
    db.close()


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("INSERT INTO t (a, b, c) VALUES (:a, :b, :a)", [{"b": 2, "a": 1}, {"a": 3, "b": 4, "unused": 5}]),
        ("INSERT INTO t (a, b, c) VALUES (?, ?, ?)", [(1, 2, 1), (3, 4, 3)]),
        (
            "INSERT INTO t SELECT v ->> 0, v ->> 1, v ->> 0 FROM (SELECT :one AS v)",
            [{"one": "[1,2]"}, {"one": "[3,4]"}],
        ),
    ],
)
async def test_each_name_gets_its_value(sql: str, rows: list[object]) -> None:
    async with aiosqlite.connect(":memory:") as db:
        await db.execute("CREATE TABLE t (a, b, c)")
        await OnThread(db).executemany(sql, iter(rows))
        assert await db.execute_fetchall("SELECT * FROM t") == [(1, 2, 1), (3, 4, 3)]


@pytest.mark.parametrize("count", [31, 32, 33, 70])
async def test_all_rows_of_a_long_insert_are_stored_in_their_order(count: int) -> None:
    rows = [{"a": number, "b": "even" if number % 2 == 0 else None} for number in range(count)]
    async with aiosqlite.connect(":memory:") as db:
        await db.execute("CREATE TABLE t (a, b)")
        sql = "INSERT INTO t (a, b) VALUES (:a, coalesce(:b, upper(:a || 'odd'))) ON CONFLICT DO NOTHING"
        await OnThread(db).executemany(sql, iter(rows))
        expected = [(row["a"], row["b"] or f"{row['a']}ODD") for row in rows]
        assert await db.execute_fetchall("SELECT * FROM t ORDER BY rowid") == expected


def test_an_update_makes_no_table_of_its_one_row() -> None:
    updates = [sql for sql in load_queries("sqlite").values() if sql.startswith("UPDATE")]
    assert not [sql for sql in updates if ") AS t\n" in sql and "JOIN" not in sql]


async def test_work_whose_caller_is_cancelled_ends_at_its_next_statement_and_is_rolled_back() -> None:
    began, goes_on = threading.Event(), threading.Event()
    async with aiosqlite.connect(":memory:", isolation_level=None) as db:
        await db.create_function("work", 0, lambda: began.set() or goes_on.wait(300))
        await db.execute("CREATE TABLE t (a)")
        thread, done = OnThread(db), list[str]()

        async def work() -> None:
            async with transaction(thread):
                await thread.execute("INSERT INTO t SELECT work()")
                done.append("first")
                await thread.execute("INSERT INTO t VALUES (2)")
                done.append("second")

        caller = asyncio.create_task(thread.run(work))
        await asyncio.to_thread(began.wait, 300)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        goes_on.set()
        assert await db.execute_fetchall("SELECT * FROM t") == []
        assert done == ["first"]
        await thread.run(work)
        assert done == ["first", "first", "second"]


async def test_work_that_awaits_something_else_is_refused() -> None:
    async with aiosqlite.connect(":memory:", isolation_level=None) as db:
        with pytest.raises(RuntimeError, match="awaits something else"):
            await OnThread(db).run(lambda: asyncio.sleep(0))
