"""One commit on PostgreSQL, where other workers write at the same time."""

from __future__ import annotations

from crawler.store.sql.commit import REQUEST, Committer


class PostgresCommitter(Committer):
    """Commits batches to PostgreSQL."""

    async def _insert_requests(self, rows: list[tuple[object, ...]]) -> None:
        await self._sql.execute_many("insert_requests", [dict(zip(REQUEST, row, strict=True)) for row in rows])
