"""How many pages a crawl may still take under ``--max-pages``: one process alone, or its part of what all have.

Where several share a crawl, each takes pages only from those that the store has set aside for it: so all together take
no more than the limit allows, to the page.
"""

from __future__ import annotations

from crawler.store.interface import PageGrant, Store


class Budget:
    """``left`` pages may be taken; those ``under_way`` were taken and are not committed yet."""

    def __init__(self, limit: int | None, *, is_shared: bool) -> None:
        self.limit = limit
        self.only_revisits = False  # nothing new is taken any more: of these there is no limit
        self._is_shared = is_shared
        self._left: int | None = None if limit is None else 0
        self._is_reached = False
        self.under_way = 0

    async def begin(self, store: Store) -> None:
        """Count what is in the store already."""
        if self.limit is not None and not self._is_shared:
            self._left = self.limit - await store.fetched_count()

    def take(self) -> bool:
        """Whether there is a page left to take; it is then under way."""
        if self._left is not None:
            if self._left <= 0:
                return False
            self._left -= 1
        self.under_way += 1
        return True

    def give_back(self) -> None:
        """No page came of one that was taken."""
        self.under_way -= 1
        if self._left is not None:
            self._left += 1

    def is_spent(self) -> bool:
        """Whether there is none left, for now."""
        return self._left is not None and self._left <= 0 and not self.only_revisits

    def is_reached(self) -> bool:
        """Whether there will be none any more: of the pages that others have set aside, some may come back."""
        return not self.only_revisits and (self._is_reached if self._is_shared else self.is_spent())

    def wanted(self, committed: int, more: int) -> int:
        """How many pages to have set aside from the turn on that commits so many: those under way, and as many again
        as may be taken until the next turn (``more``; 0 gives back all that is not under way)."""
        if more == 0 and self._is_shared and self._left is not None:
            self._left = 0
        return self.under_way - committed + max(self._left or 0, more)

    def settle(self, committed: int, grant: PageGrant | None) -> None:
        """A turn has committed pages, and set aside others."""
        self.under_way -= committed
        if grant is not None:
            self._left = grant.pages - self.under_way
            self._is_reached = grant.reached

    def drop(self) -> None:
        """What was under way is given up, and what was set aside with it."""
        self.under_way = 0
        self._left = None if self.limit is None else 0
