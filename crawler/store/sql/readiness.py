"""The times from which groups are ready to be claimed. Every method must be called within a transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable

from crawler.store.statements import Statements, unlimited


class Readiness:
    """Recomputes when groups are ready, after something that bears on it has changed."""

    def __init__(self, sql: Statements) -> None:
        self._sql = sql

    async def lock(self, numbers: Iterable[int], names: Iterable[str]) -> None:
        """Keep other workers from changing these groups until the transaction ends. SQLite has one writer: no-op."""

    async def refresh(
        self, groups: set[int], pages_per_site: int | None = None, below_depth: int | None = None
    ) -> None:
        """Lock these groups, and :meth:`recompute` them."""
        if groups:
            await self.lock(groups, ())
            await self.recompute(groups, pages_per_site, below_depth)

    async def recompute(self, groups: set[int], pages_per_site: int | None, below_depth: int | None) -> None:
        """Recompute when each of these groups is ready, which are locked. URLs as deep as ``below_depth`` wait."""
        if groups:
            await self._sql.execute(
                "refresh_ready",
                groups=json.dumps(list(groups)),
                pages_per_site=unlimited(pages_per_site),
                below_depth=unlimited(below_depth),
            )

    async def refresh_all(self, pages_per_site: int | None) -> None:
        """Recompute when each group is ready, with nothing held back."""
        limits = {"pages_per_site": unlimited(pages_per_site), "below_depth": unlimited(None)}
        stale = await self._sql.fetch("stale_groups", **limits)
        await self.refresh({group.id for group in stale}, pages_per_site)
