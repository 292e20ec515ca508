"""The index in a SQLite file: FTS5 without a copy of the texts. Its rows can only be added."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiosqlite

from crawler.search.index_backend import SITE_WEIGHT, IndexBackend, IndexEntry
from crawler.search.tokenizer import for_tokenizer
from crawler.store.sqlite.connection import read_errors
from crawler.store.statements import load_statements

_ROWS_AT_ONCE = 5_000
_STEPS_BETWEEN_CHECKS = 100_000  # instructions of SQLite's virtual machine, about a millisecond


class SqliteIndex(IndexBackend):
    """The index in the file of a store. Make one with :func:`sqlite_index`."""

    BEGIN = "BEGIN IMMEDIATE"
    SQL = load_statements("crawler.search", "sqlite.sql")

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
        (live,) = await self.query(self.SQL["live_rows"])
        return await self._highest_row() > 2 * int(live["n"])

    async def clear(self) -> bool:
        await self._db.execute(self.SQL["erase_deleted"])
        return await super().clear()

    async def _empty(self) -> None:
        for name in ("delete_texts", "delete_heads", "delete_pages", "delete_anchors", "delete_words", "set_hash_size"):
            await self._db.execute(self.SQL[name])

    async def _list_words(self) -> None:
        for name in ("make_vocabulary", "delete_words", "insert_words"):
            await self._db.execute(self.SQL[name])

    async def _set_places(self) -> None:
        await self._db.execute(self.SQL["set_places"].format(site_weight=SITE_WEIGHT))

    async def _rows(self, entries: Sequence[IndexEntry]) -> list[list[str]]:
        return await asyncio.to_thread(lambda: [[for_tokenizer(text) for text in entry.texts] for entry in entries])

    async def _insert(self, entries: Sequence[IndexEntry], rows: Sequence[list[str]]) -> None:
        first = await self._highest_row() + 1
        await self._db.executemany(
            self.SQL["insert_text"], [(row_id, *texts) for row_id, texts in enumerate(rows, first)]
        )
        await self._db.executemany(
            self.SQL["insert_head"], [(row_id, *texts[:-1]) for row_id, texts in enumerate(rows, first)]
        )
        await self._db.executemany(
            self.SQL["insert_page"],
            [
                (row_id, e.url_id, e.digest, *e.figures[:-1], e.site_id, e.language)
                for row_id, e in enumerate(entries, first)
            ],
        )
        await self._db.executemany(self.SQL["delete_anchors_of"], [(entry.url_id,) for entry in entries])

    async def _highest_row(self) -> int:
        rows = await self.query(self.SQL["highest_row"])
        return int(rows[0]["row_id"]) if rows else 0


@asynccontextmanager
async def sqlite_index(path: Path) -> AsyncIterator[SqliteIndex]:
    """The index of the store at ``path``, which the caller holds open for writing.

    An exception, or a cancellation, interrupts the statement that is running.
    """
    stop = threading.Event()
    async with read_errors(path):
        db = await aiosqlite.connect(path, isolation_level=None)
        db.row_factory = aiosqlite.Row
        try:
            await db.set_progress_handler(stop.is_set, _STEPS_BETWEEN_CHECKS)
            await db.executescript(SqliteIndex.SQL["settings"])
            yield SqliteIndex(db)
        finally:
            stop.set()
            await asyncio.shield(db.close())
