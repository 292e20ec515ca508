"""Emptying SQLite's write-ahead log, which holds what was deleted."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from crawler.store.sqlite.store import SqliteStore


async def test_a_reader_keeps_the_log_from_being_emptied(db_path: Path) -> None:
    store = await SqliteStore.open(db_path)
    try:
        await store._db.execute("PRAGMA busy_timeout = 0")
        with closing(sqlite3.connect(db_path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM url").fetchone()
            assert not await store.maintenance.empty_log()
        assert await store.maintenance.empty_log()
        assert db_path.with_name(f"{db_path.name}-wal").stat().st_size == 0
    finally:
        await store.close()
