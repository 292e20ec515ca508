"""One commit on PostgreSQL, where other workers write at the same time and a commit keeps to its groups."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from crawler.frontier.decide import Outcome
from crawler.model import Body
from crawler.store.postgres.dialect import columns
from crawler.store.postgres.offers import PostgresOffers
from crawler.store.rows import CommitBatch, CommitResult, SiteNews
from crawler.store.sql.commit import Committer, LinkRow, Row
from crawler.store.sql.readiness import Readiness

_LINK = ("source", "target", "anchor", "rel", "follow")  # the values of a LinkRow


class PostgresReadiness(Readiness):
    """Locks groups first: without the lock, a result would undo what another worker has written since."""

    async def lock(self, numbers: Iterable[int], names: Iterable[str]) -> None:
        await self._sql.execute("lock_groups", numbers=json.dumps(list(numbers)), names=json.dumps(list(names)))


class PostgresCommitter(Committer):
    """Commits batches to PostgreSQL, and leaves offers of URLs to the workers that hold the groups of these URLs."""

    _offers: PostgresOffers
    _body_ids: Mapping[bytes, int]  # by SHA-256, of the bodies in the next batch

    def begin(self, run_id: int) -> None:
        super().begin(run_id)
        self._body_ids = {}

    async def commit(self, batch: CommitBatch) -> CommitResult:
        self._offers.worker = self._workers.id
        return await super().commit(batch)

    async def _store_news(self, news: SiteNews) -> tuple[set[int], dict[int, int], list[str]]:
        robots = [await self._offers.leave_sitemaps(each, news.limits.max_depth) for each in news.robots]
        return await super()._store_news(replace(news, robots=robots))

    async def put_bodies(self, bodies: Mapping[bytes, bytes | None]) -> None:
        """Store bodies, by their SHA-256, in a transaction of their own before the commit that names them.

        ``None`` stands for a body that is kept outside the database. Bodies belong to no group. The commit before has
        named its bodies: if it had failed, :meth:`begin` would have dropped their
        numbers.
        """
        await self._sql.execute("keep_bodies", numbers=list(self._body_ids.values()))
        await self._sql.execute_many(
            "insert_body", [{"sha256": sha256, "data": data} for sha256, data in bodies.items()]
        )
        rows = await self._sql.fetch("bodies_named", hashes=list(bodies))
        self._body_ids = {row.sha256: row.id for row in rows}

    async def _store_outcomes(self, outcomes: list[Outcome], max_depth: int | None) -> set[int]:
        kept = [self._offers.kept(outcome) for outcome in outcomes]
        touched = await super()._store_outcomes(kept, max_depth)
        await self._offers.leave(zip(outcomes, kept, strict=True), max_depth)  # and deletes earlier ones
        return touched

    async def _insert_robots(self, rows: Sequence[Row]) -> dict[int, int]:
        found = [await self._sql.fetch("insert_robots_copy", **some) for some in columns(rows)]
        return {row.site_id: row.id for each in found for row in each}

    async def _insert_links(self, rows: list[LinkRow]) -> None:
        last = {row[:2]: row for row in rows}.values()
        await self._sql.execute_many("insert_link", [dict(zip(_LINK, row, strict=True)) for row in last])

    async def _insert_bodies(self, bodies: Sequence[Body]) -> None:
        """No-op: :meth:`put_bodies` has stored them."""

    async def put_preferences(self, rows: list[Row]) -> None:
        """Store sets of preferences in a transaction of their own before the commit that names them."""
        await self._sql.execute_many("insert_preferences", rows)

    async def _insert_preferences(self, outcomes: Iterable[Outcome]) -> None:
        """No-op: :meth:`put_preferences` has stored them."""

    async def put_answers(self, rows: list[Row]) -> None:
        """As :meth:`put_preferences`, for what answers have in common."""
        await self._sql.execute_many("insert_answer", rows)

    async def _insert_answers(self, outcomes: Iterable[Outcome]) -> None:
        """No-op: :meth:`put_answers` has stored them."""

    async def _insert_pages(self, rows: list[Row]) -> None:
        await super()._insert_pages([row | {"body_id": self._body(row["sha256"])} for row in rows])

    def _body(self, sha256: object) -> int | None:
        return self._body_ids[sha256] if isinstance(sha256, bytes) else None
