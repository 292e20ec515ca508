"""An index in a SQLite file, by FTS5. It has no copy of the texts, so that its rows can only be added to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiosqlite

from crawler.search.index_backend import IndexBackend, IndexEntry
from crawler.search.page_text import parted
from crawler.store.sqlite.connection import one, reading

_ROWS_AT_ONCE = 5_000
_STEPS_BETWEEN_LOOKS = 100_000  # of SQLite's machine, about a millisecond
_PRAGMAS = "PRAGMA busy_timeout = 10000; PRAGMA synchronous = NORMAL; PRAGMA temp_store = FILE;"


class SqliteIndex(IndexBackend):
    BEGIN = "BEGIN IMMEDIATE"
    SET_LINKS = "UPDATE search_page SET in_links = ?, in_sites = ? WHERE url_id = ?"
    INSERT_INBOUND = "INSERT INTO inbound VALUES (?, ?, ?, ?)"
    BODIES = "SELECT id, data FROM body WHERE id IN (SELECT value FROM json_each(?))"

    def __init__(self, db: aiosqlite.Connection) -> None:
        super().__init__(db)
        self._sqlite = db

    async def script(self, sql: str) -> None:
        await self._sqlite.executescript(sql)

    async def batches(self, sql: str) -> AsyncIterator[list[Any]]:
        cursor = await self._sqlite.execute(sql)
        while batch := list(await cursor.fetchmany(_ROWS_AT_ONCE)):
            yield batch

    async def _is_stale(self) -> bool:
        (live,) = await one(self._db, "SELECT count(*) FROM search_page")
        return await self._highest_row() > 2 * int(live)

    async def _empty(self) -> None:
        await self._db.execute("INSERT INTO search_text (search_text) VALUES ('delete-all')")
        await self._db.execute("DELETE FROM search_page")
        # Few, large segments.
        await self._db.execute("INSERT INTO search_text (search_text, rank) VALUES ('hashsize', 33554432)")

    async def _rows(self, entries: Sequence[IndexEntry]) -> list[list[str]]:
        return await asyncio.to_thread(lambda: [[parted(text) for text in entry.texts] for entry in entries])

    async def _insert(self, entries: Sequence[IndexEntry], rows: Sequence[list[str]]) -> None:
        first = await self._highest_row() + 1
        await self._db.executemany(
            "INSERT INTO search_text (rowid, title, anchors, description, keywords, headings, body) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(number, *texts) for number, texts in enumerate(rows, first)],
        )
        await self._db.executemany(
            "INSERT OR REPLACE INTO search_page VALUES (?, ?, ?, ?, ?)",
            [(n, e.url_id, e.digest, e.in_links, e.in_sites) for n, e in enumerate(entries, first)],
        )

    async def _highest_row(self) -> int:
        row = await one(self._db, "SELECT rowid FROM search_text ORDER BY rowid DESC LIMIT 1")
        return 0 if row is None else int(row[0])


@asynccontextmanager
async def sqlite_index(path: Path) -> AsyncIterator[SqliteIndex]:
    """The index of the file at ``path``, which the caller has open to write. Left early, a statement is given up."""
    stop = threading.Event()
    async with reading(path):
        db = await aiosqlite.connect(path, isolation_level=None)
        try:
            await db.set_progress_handler(stop.is_set, _STEPS_BETWEEN_LOOKS)  # then SQLite says "interrupted"
            await db.executescript(_PRAGMAS)
            yield SqliteIndex(db)
        finally:
            stop.set()
            await asyncio.shield(db.close())
