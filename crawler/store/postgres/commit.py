"""One commit on PostgreSQL, where other workers write at the same time and a commit keeps to its groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from crawler.frontier.decide import Outcome
from crawler.store.postgres.offers import PostgresOffers
from crawler.store.postgres.statements import PostgresStatements
from crawler.store.rows import CommitBatch, CommitResult, SiteNews
from crawler.store.sql.commit import REQUEST, Committer
from crawler.store.sql.tables import Row


class PostgresCommitter(Committer):
    """Commits batches to PostgreSQL, and leaves offers of URLs to the workers that hold the groups of these URLs."""

    _sql: PostgresStatements
    _offers: PostgresOffers
    _new_bodies: list[object]  # by SHA-256: those that the next commit names

    def begin(self, run_id: int) -> None:
        super().begin(run_id)
        self._new_bodies = []

    async def commit(self, batch: CommitBatch) -> CommitResult:
        self._offers.worker = self._workers.id
        return await super().commit(batch)

    async def _store_news(self, news: SiteNews) -> tuple[set[int], dict[int, int], list[str]]:
        robots = [await self._offers.leave_sitemaps(each, news.limits.max_depth) for each in news.robots]
        return await super()._store_news(replace(news, robots=robots))

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

    async def _store_outcomes(self, outcomes: list[Outcome], max_depth: int | None) -> set[int]:
        kept = [self._offers.kept(outcome) for outcome in outcomes]
        touched = await super()._store_outcomes(kept, max_depth)
        await self._offers.leave(zip(outcomes, kept, strict=True), max_depth)  # and deletes earlier ones
        return touched

    async def _insert_robots(self, rows: Sequence[Row]) -> dict[int, int]:
        return {row.site_id: row.id for row in await self._sql.inserted("robots_copy", rows, "site_id, id")}

    async def _insert_requests(self, rows: list[tuple[object, ...]], columns: tuple[str, ...] = REQUEST) -> None:
        if rows:
            first = (await self._sql.fetch_one("number_requests_of", count=len(rows))).first
            await super()._insert_requests([(n, *row) for n, row in enumerate(rows, first)], ("id", *columns))
