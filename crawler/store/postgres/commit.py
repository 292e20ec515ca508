"""One commit on PostgreSQL, where other workers write at the same time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crawler.store.postgres.statements import PostgresStatements
from crawler.store.sql.commit import Committer
from crawler.store.sql.tables import Row


class PostgresCommitter(Committer):
    """Commits batches to PostgreSQL."""

    _sql: PostgresStatements
    _new_bodies: list[object]  # by SHA-256: those that the next commit names

    def begin(self, run_id: int) -> None:
        super().begin(run_id)
        self._new_bodies = []

    async def put_contents(self, contents: Mapping[str, Sequence[Row]]) -> None:
        """As for every store, in a transaction of its own before the commit that names them.

        A new body is to be dropped until then. The commit before has named its bodies: if it had failed,
        :meth:`begin` would have forgotten them.
        """
        if bodies := contents.get("body"):
            await self._sql.execute("keep_bodies", hashes=self._new_bodies)
            await self._sql.execute_many("insert_body", bodies)
            self._new_bodies = [row["sha256"] for row in bodies]
        await super().put_contents({table: rows for table, rows in contents.items() if table != "body"})

    async def _insert_robots(self, rows: Sequence[Row]) -> dict[int, int]:
        return {row.site_id: row.id for row in await self._sql.inserted("robots_copy", rows, "site_id, id")}

    async def _insert_requests(self, rows: list[Row]) -> None:
        if rows:
            first = (await self._sql.fetch_one("number_requests_of", count=len(rows))).first
            await super()._insert_requests([row | {"id": number} for number, row in enumerate(rows, first)])
