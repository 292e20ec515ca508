"""The pages that ``--max-pages`` leaves: no more requests for pages are in flight than may still become pages.

Several workers that share a crawl each take pages only from those that the store has set aside for them. So all
together fetch exactly as many as the limit allows.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from typing import TYPE_CHECKING

from crawler.model import Kind
from crawler.store.rows import Claim, PageGrant

if TYPE_CHECKING:
    from crawler.store.sections import Store

_BETWEEN_COMMITS_S = 1.0  # commits are hardly further apart
_MAX_PER_GROUP = 50
_SPARE_GROUPS = 10  # groups claimed beyond the pages wanted: some bring no page, and some are slow


class Budget:
    """Pages still wanted, without a limit or under one of this process alone.

    Invariants: at most ``left`` pages are being requested. Each successful :meth:`take` is followed by one
    :meth:`give_back`. A request that brought no page leaves its page to the task that has waited longest.
    """

    def __init__(self, pages: float = math.inf) -> None:
        self._left = pages  # those being requested included
        self._requested = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._only_revisits = False
        self._groups = 0  # held for pages

    # --- for the loop -------------------------------------------------------------------------

    @property
    def left(self) -> float:
        """How many pages may still come; infinite without a limit."""
        return self._left

    @property
    def is_limited(self) -> bool:
        """Whether pages are counted at all."""
        return self._left < math.inf

    @property
    def is_spent(self) -> bool:
        """Whether all pages have come."""
        return self._left <= 0

    @property
    def only_revisits(self) -> bool:
        """Whether nothing but revisits is admitted. Revisits are not limited."""
        return self._only_revisits

    @property
    def waits_for_others(self) -> bool:
        """Whether other workers have all pages that are left, and may give some back."""
        return False

    def more_groups(self, at_most: int) -> int:
        """How many more groups to claim: about as many as pages are wanted, ``at_most`` at most."""
        if self._only_revisits:
            return at_most
        if not (self.is_free or self._may_get_more):
            return 0
        return int(max(0, min(at_most, self._wanted + _SPARE_GROUPS - self._groups)))

    def ends_work(self) -> bool:
        """Whether workers give their groups back because no pages are left to fetch."""
        return (self.is_spent or self._may_get_more) and not self._only_revisits

    @property
    def is_free(self) -> bool:
        return self._requested < self._left

    @property
    def _may_get_more(self) -> bool:
        """Whether this worker has no page now, and the store may set some aside for it."""
        return False

    @property
    def _wanted(self) -> float:
        return self._left

    #: The limit of all workers together, if several may take part.
    limit: int | None = None
    #: How many pages are to be set aside for each group held.
    per_group = 0

    async def begin(self, store: Store) -> None:
        """Count the pages that are in the store already."""

    def restrict_to_revisits(self) -> None:
        """Admit nothing but revisits from now on."""
        self._only_revisits = True

    def enter_group(self, *, for_pages: bool) -> None:
        """A group was claimed, ``for_pages`` or for revisits and sitemaps alone."""
        self._groups += for_pages

    def leave_group(self, *, for_pages: bool) -> None:
        """The group was given back."""
        self._groups -= for_pages

    @property
    def under_way(self) -> int:
        """How many pages were taken from those set aside and are not committed yet."""
        return 0

    def keep(self, groups: int) -> int:
        """Give back pages that ``groups`` can hardly use before the commit after next, or beyond the fair share.

        Returns how many are kept beside those under way; 0 groups keep none.
        """
        return 0

    def settle(self, committed: int, grant: PageGrant | None) -> None:
        """A commit took in ``committed`` pages, and the store set others aside."""

    def drop(self) -> None:
        """The lease was lost: pages under way no longer count, and none is set aside."""

    # --- for the claim tasks ------------------------------------------------------------------

    async def take(self) -> bool:
        """Wait for a page to request; False if all have come.

        Cancellation while waiting leaves the page to the next task that waits.
        """
        while not self.is_free and not self.is_spent:
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done():
                    self._wake()
                raise
        self._requested += not self.is_spent
        return not self.is_spent

    def give_back(self, *, fetched: bool) -> None:
        """The request is over; ``fetched`` if it brought a page."""
        self._requested -= 1
        self._left -= fetched
        while self.is_spent and self._waiting:
            self._wake()
        if self.is_free:
            self._wake()

    def _wake(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return


class _OwnBudget(Budget):
    """A limit of this process alone."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._pages = limit

    async def begin(self, store: Store) -> None:
        self._left = self._pages - await store.fetched_count()


class SharedBudget(Budget):
    """A limit of several workers: this one takes the pages that the store has set aside for it."""

    def __init__(self, limit: int, delay_s: float) -> None:
        super().__init__(0)
        self.limit = limit
        self.per_group = 1 + min(_MAX_PER_GROUP, int(_BETWEEN_COMMITS_S / max(delay_s, 0.001)))
        self._fair = limit
        self._fetched = 0  # and not committed yet
        self._is_reached = False
        self._none_left = False

    @property
    def is_spent(self) -> bool:
        return self._is_reached

    @property
    def waits_for_others(self) -> bool:
        return self._none_left and not self._is_reached

    @property
    def _wanted(self) -> float:
        return self._fair

    @property
    def _may_get_more(self) -> bool:
        return not self.is_free and not self._is_reached

    @property
    def under_way(self) -> int:
        return self._requested + self._fetched

    async def take(self) -> bool:
        """Without waiting: the pages that others have set aside may come back only when this group is given back."""
        free = self.is_free
        self._requested += free
        return free

    def give_back(self, *, fetched: bool) -> None:
        self._requested -= 1
        self._left -= fetched
        self._fetched += fetched

    def keep(self, groups: int) -> int:
        free = int(self._left) - self._requested
        kept = max(0, min(free, self.per_group * groups, self._fair - self._requested))
        self._left = self._requested + kept
        return kept

    def settle(self, committed: int, grant: PageGrant | None) -> None:
        self._fetched -= committed
        if grant is not None:
            self._left = grant.pages - self._fetched
            self._fair = grant.fair
            self._is_reached = grant.reached
            self._none_left = grant.none_left

    def drop(self) -> None:
        self._left = self._requested = self._fetched = 0


def is_for_pages(claim: Claim) -> bool:
    """Whether a group was claimed for pages that the limit counts, not for revisits and sitemaps alone."""
    return any(queued.seen is None and queued.kind is Kind.PAGE for queued in claim.urls)


def budget_for(limit: int | None, delay_s: float, *, is_shared: bool) -> Budget:
    """The budget of a crawl under ``--max-pages`` (``None``: no limit), alone or ``is_shared`` with other workers.

    Requests to a site are ``delay_s`` seconds apart at least.
    """
    if limit is None:
        return Budget()
    return SharedBudget(limit, delay_s) if is_shared else _OwnBudget(limit)
