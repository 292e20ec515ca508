"""The statements of a store on PostgreSQL, which returns the rows that it has inserted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crawler.store.postgres.dialect import columns
from crawler.store.sql.tables import Known, StoreStatements, insert_statement


class PostgresStatements(StoreStatements):
    """As for every store, and inserts that return rows."""

    async def inserted(
        self, table: str, rows: Sequence[Mapping[str, object]], returning: str, *, known: Known = None
    ) -> list[Any]:
        """Insert rows; returns these columns of those that the table did not have."""
        found: list[Any] = []
        for batch in columns(rows):
            sql = f"{insert_statement('postgres', table, tuple(batch), known)} RETURNING {returning}"
            found += await self._db.execute_fetchall(sql, batch)
        return found
