"""The index in a PostgreSQL database, with the text search of PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from crawler.errors import StoreInUse
from crawler.search.index_backend import IndexBackend, IndexEntry
from crawler.search.postgres_text_search import PageVectors, vectors
from crawler.store.postgres.connection import INDEXING, Postgres
from crawler.store.statements import load_statements

_ROWS_AT_ONCE = 5_000


class PostgresIndex(IndexBackend):
    """The index in the database of a store. Make one with :func:`postgres_index`."""

    SQL = load_statements("crawler.search", "postgres.sql")

    def __init__(self, db: Postgres) -> None:
        super().__init__(db)
        self._postgres = db

    async def query(self, sql: str, parameters: Mapping[str, object] | None = None) -> list[Any]:
        return await self._postgres.fetch_records(sql, parameters)

    async def script(self, sql: str) -> None:
        await self._db.execute(sql.replace("INTEGER", "BIGINT"))

    async def batches(self, sql: str) -> AsyncIterator[list[Any]]:
        cursor = await self._postgres.open_cursor(sql, ())
        while batch := await self._postgres.fetch_from(cursor, _ROWS_AT_ONCE):
            yield batch

    async def _is_stale(self) -> bool:
        return False  # replaced rows are deleted

    async def _empty(self) -> None:
        await self._db.execute(self.SQL["delete_index"])

    async def _list_words(self) -> None:
        await self._db.execute(self.SQL["delete_words"])
        await self._db.execute(self.SQL["insert_words"])

    async def _set_places(self) -> None:
        """No-op: a search ranks all pages that match."""

    async def _rows(self, entries: Sequence[IndexEntry]) -> list[PageVectors]:
        return await asyncio.to_thread(lambda: [vectors(entry.texts) for entry in entries])

    async def _insert(self, entries: Sequence[IndexEntry], rows: Sequence[PageVectors]) -> None:
        pages = list(zip(entries, rows, strict=True))
        await self._db.executemany(self.SQL["delete_page"], [(entry.url_id,) for entry in entries])
        await self._db.executemany(
            self.SQL["insert_page"],
            [(e.url_id, e.digest, *e.figures[:-1], e.site_id, e.language, row.size) for e, row in pages],
        )
        await self._db.executemany(
            self.SQL["insert_text"],
            [(entry.url_id, part, vector) for entry, row in pages for part, vector in enumerate(row.vectors)],
        )


@asynccontextmanager
async def postgres_index(url: str) -> AsyncIterator[PostgresIndex]:
    """The index of a database. Raises :class:`StoreInUse` if another process is building it."""
    db = Postgres(url)
    try:
        index = PostgresIndex(db)
        (row,) = await index.query(index.SQL["try_lock"], {"key": INDEXING})
        if not row["is_locked"]:
            raise StoreInUse(f"{db.name}: another `crawler index` is at work on this store; wait for it, or stop it")
        yield index
    finally:
        await db.close()  # close() waits until the server has released the lock
