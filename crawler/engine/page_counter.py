"""The pages that this worker may request under ``--max-pages``.

The counter is in the store: the pages that are committed, and those that each worker has reserved. Each commit of a
worker counts its pages and reserves anew. The reservation of a worker ends with its lease.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable

from crawler.store.rows import PageGrant, PageRequest

_SPARE_GROUPS = 10  # groups claimed beyond the pages reserved: some bring no page, and some are slow


class PageCounter:
    """The pages reserved for this worker, and those in use: requested, or brought and not committed yet.

    Invariants:

    1. No more pages are in use than are reserved. So the pages that are committed or in flight are never more than the
       limit, over all workers together.
    2. Each successful :meth:`acquire` is followed by one :meth:`release`, or by the commit of its page.
    3. A page that a request did not bring goes to the task that has waited longest.
    """

    def __init__(self, limit: int | None, on_wait: Callable[[], object] = lambda: None) -> None:
        self._limit = limit
        self._on_wait = on_wait  # a task has begun to wait: the loop may sleep, and only a commit brings pages
        self._left: float = math.inf if limit is None else limit  # over all workers, as the last commit found
        self._reserved: float = math.inf if limit is None else 0
        self._in_use = 0
        self._waiting: deque[asyncio.Future[bool]] = deque()
        self.only_revisits = False  # nothing else is admitted, and no limit counts them

    # --- for the loop -------------------------------------------------------------------------

    @property
    def is_limited(self) -> bool:
        """Whether pages are counted at all."""
        return self._limit is not None

    @property
    def is_reached(self) -> bool:
        """Whether the store has as many pages as the limit allows."""
        return self._left <= 0

    @property
    def ends_work(self) -> bool:
        """Whether workers give their groups back because the limit is reached."""
        return self.is_reached and not self.only_revisits

    @property
    def needs_commit(self) -> bool:
        """Whether the next commit may bring pages to tasks that wait for them, or give others those not in use."""
        return self._limit is not None and not self.is_reached and bool(self._waiting or self._has_spare)

    @property
    def _has_spare(self) -> bool:
        return self._in_use < self._reserved

    def more_groups(self, at_most: int, held: int) -> int:
        """How many groups to claim beside those ``held``: about as many as pages are reserved, ``at_most`` at most."""
        if self.only_revisits:
            return at_most
        return 0 if self.is_reached else int(max(0, min(at_most, self._reserved + _SPARE_GROUPS - held)))

    def request(self, committing: int) -> PageRequest | None:
        """The pages to ask for in a commit that takes in ``committing`` of those in use; ``None`` without a limit.

        Until :meth:`learn` half of the spare pages may be used: the others are left to the store.
        """
        if self._limit is None or self.only_revisits:
            return None
        if self._has_spare:
            self._reserved = self._in_use + (self._reserved - self._in_use) // 2
        wanted = self._in_use + len(self._waiting)
        return PageRequest(self._limit, int(self._reserved) - committing, wanted - committing)

    def learn(self, committed: int, grant: PageGrant | None) -> None:
        """A commit has taken in ``committed`` pages, and has reserved others."""
        if grant is not None:
            self._in_use -= committed
            self._reserved, self._left = grant.pages, grant.left
            self._wake()

    def lose(self) -> None:
        """The lease was lost, and with it the pages reserved. No task is at work."""
        if self._limit is not None:
            self._reserved = self._in_use = 0

    # --- for the claim tasks ------------------------------------------------------------------

    async def acquire(self) -> bool:
        """Wait for a page to request; False if the limit is reached.

        Cancellation while waiting leaves the page to the next task that waits.
        """
        if self._has_spare or self.is_reached:
            self._in_use += not self.is_reached
            return not self.is_reached
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self._on_wait()
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            elif not waiter.cancelled() and waiter.result():
                self.release()
            raise

    def release(self) -> None:
        """The request is over and brought no page."""
        self._in_use -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting and (self._has_spare or self.is_reached):
            waiter = self._waiting.popleft()
            if not waiter.done():
                self._in_use += not self.is_reached
                waiter.set_result(not self.is_reached)
