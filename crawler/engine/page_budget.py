"""The pages that ``--max-pages`` leaves: never more requests for pages in flight than may still become pages.

Where several workers share a crawl, each takes pages only from those that the store has set aside for it: so all
together take no more than the limit allows, to the page.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque

from crawler.model import Kind
from crawler.store.coordination import PageGrant
from crawler.store.protocols import Claim, Store

_BETWEEN_TURNS_S = 1.0  # hardly more
_MOST_PER_GROUP = 50
_SPARE_GROUPS = 10  # some bring no page, and some are slow


class Budget:
    """Pages still wanted, handed around: what brought no page goes to whoever has waited longest."""

    #: Nothing new is taken any more, and of revisits there is no limit.
    only_revisits = False
    #: Of all workers together, where there may be several.
    limit: int | None = None
    #: That are at work for pages now.
    groups = 0

    def __init__(self, pages: float = math.inf) -> None:
        self._left = pages  # those being asked for included
        self._out = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def left(self) -> float:
        """How many pages may still come; infinite without a limit."""
        return self._left

    @property
    def hopes(self) -> bool:
        """Whether more may be set aside for this worker, which has none now."""
        return False

    #: Others have all that is left, and may give some of it back.
    waits_for_others = False
    #: To be set aside for each group that is worked on.
    per_group = 0

    @property
    def under_way(self) -> int:
        """Pages that were taken from what was set aside, and are not committed yet."""
        return 0

    @property
    def is_limited(self) -> bool:
        """Whether pages are counted at all."""
        return self._left < math.inf

    @property
    def is_free(self) -> bool:
        """Whether one more page may be asked for now."""
        return self._out < self._left

    @property
    def is_spent(self) -> bool:
        """Whether all pages have come."""
        return self._left <= 0

    @property
    def _wanted(self) -> float:
        return self._left

    def more_groups(self, most: int) -> int:
        """How many more groups to claim, ``most`` at most: who wants one page does not knock at a thousand doors."""
        if self.only_revisits:
            return most
        return int(max(0, min(most, self._wanted + _SPARE_GROUPS - self.groups)))

    def ends_work(self) -> bool:
        """Whether a group is worked on no further for want of pages."""
        return (self.is_spent or self.hopes) and not self.only_revisits

    async def begin(self, store: Store) -> None:
        """Count what is in the store already."""

    def keep(self, groups: int) -> int:
        """Give back what ``groups`` can hardly use until the turn after next, or is more than a fair share; with
        0, all that is not under way. What is kept, beside what is under way."""
        return 0

    def settle(self, committed: int, grant: PageGrant | None) -> None:
        """A turn has committed pages, and set aside others."""

    def drop(self) -> None:
        """What was under way is given up, and what was set aside with it."""

    async def take(self) -> bool:
        """Wait for the right to ask for one page; False: all have come. Every True needs a :meth:`give_back`."""
        while not self.is_free and not self.is_spent:
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done():  # its turn is another's
                    self._wake()
                raise
        self._out += not self.is_spent
        return not self.is_spent

    def give_back(self, *, fetched: bool) -> None:
        """The request is over; whether it brought a page."""
        self._out -= 1
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
    """Under a limit that nobody shares."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._pages = limit

    async def begin(self, store: Store) -> None:
        self._left = self._pages - await store.fetched_count()


class SharedBudget(Budget):
    """Under a limit of several workers: pages that are set aside for this one."""

    def __init__(self, limit: int, delay_s: float) -> None:
        super().__init__(0)
        self.limit = limit
        self.per_group = 1 + min(_MOST_PER_GROUP, int(_BETWEEN_TURNS_S / max(delay_s, 0.001)))
        self._fair = limit
        self._come = 0  # and not committed yet
        self._is_reached = False

    @property
    def is_spent(self) -> bool:
        return self._is_reached

    @property
    def _wanted(self) -> float:
        return self._fair

    @property
    def hopes(self) -> bool:
        return not self.is_free and not self._is_reached

    @property
    def under_way(self) -> int:
        return self._out + self._come

    async def take(self) -> bool:
        """Without waiting: what others have set aside may come back only when this group is given back."""
        free = self.is_free
        self._out += free
        return free

    def give_back(self, *, fetched: bool) -> None:
        self._out -= 1
        self._left -= fetched
        self._come += fetched

    def keep(self, groups: int) -> int:
        kept = max(0, min(int(self._left) - self._out, self.per_group * groups, self._fair - self._out))
        self._left = self._out + kept
        return kept

    def settle(self, committed: int, grant: PageGrant | None) -> None:
        self._come -= committed
        if grant is not None:
            self._left = grant.pages - self._come
            self._fair = grant.fair
            self._is_reached = grant.reached
            self.waits_for_others = grant.none_left and not grant.reached

    def drop(self) -> None:
        self._left = self._out = self._come = 0


def is_for_pages(claim: Claim) -> bool:
    """Whether a group was claimed for pages that the limit counts, not for revisits and sitemaps alone."""
    return any(queued.seen is None and queued.kind is Kind.PAGE for queued in claim.urls)


def budget_for(limit: int | None, delay_s: float, *, is_shared: bool) -> Budget:
    """The budget of a crawl under ``--max-pages``, ``None`` for none, alone or as one of several; requests to a site
    are ``delay_s`` apart at least."""
    if limit is None:
        return Budget()
    return SharedBudget(limit, delay_s) if is_shared else _OwnBudget(limit)
