"""Storing offered URLs on PostgreSQL, where several workers offer the same URLs at the same time."""

from __future__ import annotations

import json
from collections.abc import Iterable

from crawler.store.postgres.dialect import columns
from crawler.store.sql.offers import Offers


class PostgresOffers(Offers):
    """The URLs of a store to which other workers write at the same time.

    Each step of a transaction acquires its locks in the order of the numbers, so that two transactions rarely wait for
    each other. If they do, the database rolls one of them back, and the store retries it.
    """

    async def _insert(self, rows: list[dict[str, object]]) -> set[int]:
        numbers = {row["id"] for row in rows if isinstance(row["id"], int)}
        for batch in columns(rows):
            numbers -= {row.id for row in await self._sql.fetch("insert_urls", **batch)}
        return numbers

    async def lock_groups(self, numbers: Iterable[int], names: Iterable[str]) -> None:
        """Without the lock, :meth:`recompute` would undo what another worker has written since."""
        await self._sql.execute("lock_groups", numbers=json.dumps(list(numbers)), names=json.dumps(list(names)))
