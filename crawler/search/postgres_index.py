"""An index in a PostgreSQL database, by its own text search."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from crawler.errors import StoreInUse
from crawler.search.index_backend import IndexBackend, IndexEntry
from crawler.search.postgres_text_search import vectors
from crawler.store.postgres.connection import INDEXING, Postgres

_ROWS_AT_ONCE = 5_000


class PostgresIndex(IndexBackend):
    SET_LINKS = """
UPDATE search_page s SET in_links = t.in_links, in_sites = t.in_sites
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS t (in_links, in_sites, url_id) WHERE s.url_id = t.url_id"""
    INSERT_INBOUND = "INSERT INTO inbound SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[])"
    BODIES = "SELECT id, data FROM body WHERE id = ANY(numbers(?))"

    def __init__(self, db: Postgres) -> None:
        super().__init__(db)
        self._postgres = db

    async def script(self, sql: str) -> None:
        await self._db.execute(sql.replace("INTEGER", "BIGINT"))

    async def batches(self, sql: str) -> AsyncIterator[list[Any]]:
        cursor = await self._postgres.open_cursor(sql, ())
        while batch := await self._postgres.fetch_from(cursor, _ROWS_AT_ONCE):
            yield batch

    async def _is_stale(self) -> bool:
        return False  # what is replaced is gone

    async def _empty(self) -> None:
        await self._db.execute("TRUNCATE search_page, search_text")

    async def _rows(self, entries: Sequence[IndexEntry]) -> list[tuple[int, list[str]]]:
        return await asyncio.to_thread(lambda: [vectors(entry.texts) for entry in entries])

    async def _insert(self, entries: Sequence[IndexEntry], rows: Sequence[tuple[int, list[str]]]) -> None:
        gone = "DELETE FROM search_page WHERE url_id = ANY($1::bigint[])"
        await self._db.executemany(gone, [(entry.url_id,) for entry in entries])
        await self._db.executemany(
            "INSERT INTO search_page SELECT * FROM "
            "unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])",
            [(e.url_id, e.digest, e.in_links, e.in_sites, size) for e, (size, _) in zip(entries, rows, strict=True)],
        )
        parts = [
            (entry.url_id, number, vector)
            for entry, (_, found) in zip(entries, rows, strict=True)
            for number, vector in enumerate(found)
        ]
        await self._db.executemany(
            "INSERT INTO search_text SELECT url_id, part, words::tsvector "
            "FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS t (url_id, part, words)",
            parts,
        )


@asynccontextmanager
async def postgres_index(url: str) -> AsyncIterator[PostgresIndex]:
    """The index of a database. Raises :class:`StoreInUse` where another process builds it."""
    db = Postgres(url)
    try:
        ((alone,),) = await db.execute_fetchall("SELECT pg_try_advisory_lock(?)", (INDEXING,))
        if not alone:
            raise StoreInUse(f"{db.name}: another `crawler index` is at work on this store; wait for it, or stop it")
        yield PostgresIndex(db)
    finally:
        await db.close()  # and not dropped: the server lets go of the lock before it answers
