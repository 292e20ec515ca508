"""One commit on PostgreSQL, where other workers write at the same time and a commit keeps to its groups."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from crawler.frontier.decide import Outcome
from crawler.model import Body
from crawler.store.postgres.dialect import columns
from crawler.store.postgres.offers import PostgresOffers
from crawler.store.protocols import CommitBatch, CommitResult
from crawler.store.sql.commit import Committer, LinkRow, Row, unlimited

_LINK = ("source", "target", "anchor", "rel", "follow")  # the values of a LinkRow


class PostgresCommitter(Committer):
    """Commits batches to PostgreSQL, and leaves offers of URLs to the workers that hold the groups of these URLs."""

    _offers: PostgresOffers
    _bodies: Mapping[bytes, int] = MappingProxyType({})  # numbers by SHA-256, of the bodies in the next batch

    async def commit(self, batch: CommitBatch) -> CommitResult:
        self._offers.worker = self._workers.id
        max_depth = batch.limits.max_depth
        robots = [await self._offers.leave_sitemaps(news, max_depth) for news in batch.robots]
        return await super().commit(replace(batch, robots=robots))

    async def put_bodies(self, bodies: Mapping[bytes, bytes | None]) -> None:
        """Store bodies, by their SHA-256, in a transaction of their own before the commit that names them.

        ``None`` stands for a body that is kept outside the database. Bodies belong to no group. The commit before has
        named its bodies: if it had failed, this object would have been replaced.
        """
        await self._sql.execute("keep_bodies", numbers=list(self._bodies.values()))
        await self._sql.execute_many(
            "insert_body", [{"sha256": sha256, "data": data} for sha256, data in bodies.items()]
        )
        rows = await self._sql.fetch("bodies_named", hashes=list(bodies))
        self._bodies = {row.sha256: row.id for row in rows}

    async def refresh(self, groups: set[int], pages_per_site: int | None, below_depth: int | None = None) -> None:
        """Locks the groups first: without the lock, a result would undo what another worker has written since."""
        if groups:
            await self._lock_groups(groups, ())
            await super().refresh(groups, pages_per_site, below_depth)

    async def refresh_all(self, pages_per_site: int | None) -> None:
        stale = await self._sql.fetch("stale_groups", pages_per_site=unlimited(pages_per_site))
        await self.refresh({group.id for group in stale}, pages_per_site)

    async def _store_outcomes(self, outcomes: list[Outcome], max_depth: int | None) -> set[int]:
        kept = [self._offers.kept(outcome) for outcome in outcomes]
        touched = await super()._store_outcomes(kept, max_depth)
        await self._offers.leave(zip(outcomes, kept, strict=True), max_depth)  # and deletes earlier ones
        return touched

    async def _lock_groups(self, numbers: Iterable[int], names: Iterable[str]) -> None:
        await self._sql.execute("lock_groups", numbers=json.dumps(list(numbers)), names=json.dumps(list(names)))

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
        return self._bodies[sha256] if isinstance(sha256, bytes) else None
