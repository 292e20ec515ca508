"""One turn on PostgreSQL, where others write at the same time and it keeps to its groups."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from crawler.frontier.decide import Outcome
from crawler.model import Body
from crawler.store.postgres.offers import PostgresOffers
from crawler.store.protocols import CommitBatch, CommitResult
from crawler.store.sql.commit import LinkRow, TurnTaker, allowed
from crawler.store.sqlite.connection import every

_BODY_OF_PAGE = 13  # its place in a row of insert_page


class PostgresTurns(TurnTaker):
    _offers: PostgresOffers
    _bodies: Mapping[bytes, int] = MappingProxyType({})  # by content, of the pages that the next turn brings

    async def take(self, batch: CommitBatch) -> CommitResult:
        self._offers.worker = self._workers.id
        max_depth = batch.limits.max_depth
        robots = [await self._offers.leave_sitemaps(news, max_depth) for news in batch.robots]
        return await super().take(replace(batch, robots=robots))

    async def put_bodies(self, bodies: Sequence[tuple[bytes, bytes]]) -> None:
        """Contents are of no group: they are there before a turn names them, in a transaction of their own.

        Those of the last turn were named: had it failed, who takes turns would have been made anew.
        """
        await self._db.execute(self._sql["keep_bodies"], (list(self._bodies.values()),))
        await self._db.executemany(self._sql["insert_body"], bodies)
        hashes = [sha256 for sha256, _ in bodies]
        self._bodies = dict(await every(self._db, self._sql["bodies_named"], (hashes,)))

    async def refresh(self, groups: set[int], pages_per_site: int | None, below_depth: int | None = None) -> None:
        """As there, under their locks: who computed it from what was there before would undo what another wrote."""
        if groups:
            await self._lock_groups(groups, ())
            await super().refresh(groups, pages_per_site, below_depth)

    async def refresh_all(self, pages_per_site: int | None) -> None:
        rows = await every(self._db, self._sql["stale_groups"], (allowed(pages_per_site),))
        await self.refresh({row[0] for row in rows}, pages_per_site)

    async def _take_outcomes(self, outcomes: list[Outcome], max_depth: int | None) -> set[int]:
        kept = [self._offers.kept(outcome) for outcome in outcomes]
        touched = await super()._take_outcomes(kept, max_depth)
        await self._offers.leave(zip(outcomes, kept, strict=True), max_depth)  # what pages had left before is void now
        return touched

    async def _lock_groups(self, numbers: Iterable[int], names: Iterable[str]) -> None:
        await self._db.execute(self._sql["lock_groups"], (json.dumps(list(numbers)), json.dumps(list(names))))

    async def _insert_links(self, rows: list[LinkRow]) -> None:
        await super()._insert_links(list({row[:2]: row for row in rows}.values()))

    async def _insert_bodies(self, bodies: Sequence[Body]) -> None:
        """They are there."""

    async def _insert_pages(self, rows: list[tuple[Any, ...]]) -> None:
        await super()._insert_pages([self._with_body(row) for row in rows])

    def _with_body(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        sha256 = row[_BODY_OF_PAGE]
        number = None if sha256 is None else self._bodies[sha256]
        return (*row[:_BODY_OF_PAGE], number, *row[_BODY_OF_PAGE + 1 :])
