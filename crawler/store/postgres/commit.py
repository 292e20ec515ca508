"""One commit on PostgreSQL, where other workers write at the same time."""

from __future__ import annotations

from collections.abc import Sequence

from crawler.store.postgres.statements import PostgresStatements
from crawler.store.sql.commit import REQUEST, Committer
from crawler.store.sql.tables import Row


class PostgresCommitter(Committer):
    """Commits batches to PostgreSQL."""

    _sql: PostgresStatements

    async def _insert_robots(self, rows: Sequence[Row]) -> dict[int, int]:
        return {row.site_id: row.id for row in await self._sql.inserted("robots_copy", rows, "site_id, id")}

    async def _insert_requests(self, rows: list[tuple[object, ...]]) -> None:
        await self._sql.execute_many("insert_requests", [dict(zip(REQUEST, row, strict=True)) for row in rows])
