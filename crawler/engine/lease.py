"""The right of a worker process to send requests: until the end of its lease, and of the time of the crawl.

Others may work on the same crawl. A lease lasts longer than the longest request, and the gate sends no request that
could outlast it. So a worker that is cut off from the store, or stopped, is silent before another worker takes its
groups over. Leases are measured by a clock that nobody sets and that runs on while the process is stopped or the
machine asleep, and so is the time of the crawl (``--max-time``). The clock is read before each request, and again when
the connection stands.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from crawler.clock import Clock, boot_s
from crawler.engine import operator_log
from crawler.errors import LeaseLost

if TYPE_CHECKING:
    from crawler.store.sections import Store

#: A request may take so much longer than its timeout says, on a busy loop.
LATE_S = 0.5
_RENEWALS_PER_LEASE = 8


class Lease:
    """The lease of one worker. ``longest_s`` is how long a request may last, in seconds.

    Invariant: while :meth:`may_send` is true, no other worker has the groups of this one, and it is not yet ``ends_at``
    by the clock ``elapsed``. A store that nobody shares gives a lease until then, and so does
    ``None``, for stores that one process has alone.
    """

    def __init__(
        self,
        store: Store | None,
        clock: Clock,
        longest_s: float,
        elapsed: Callable[[], float] = boot_s,
        *,
        ends_at: float = math.inf,
    ) -> None:
        self._store = store
        self._clock = clock
        self._longest_s = longest_s
        self._elapsed = elapsed
        self._until = math.inf if self._lease_s is None else -math.inf
        self._ends_at = ends_at
        self._renewed = asyncio.Event()

    @property
    def _lease_s(self) -> float | None:
        return None if self._store is None else self._store.lease_s

    def end_at(self, ends_at: float) -> None:
        """Let requests be sent until ``ends_at``: the next round begins, and nothing of the last one is under way."""
        self._ends_at = ends_at

    def run_time_left_s(self) -> float:
        """How long the run may still last."""
        return self._ends_at - self._elapsed()

    def may_send(self) -> bool:
        """Whether a request may be sent now."""
        return self._elapsed() < min(self._until, self._ends_at)

    def covers_request(self) -> bool:
        """Whether a request may begin now, and would end within the lease."""
        now = self._elapsed()
        return now < self._ends_at and now + self._longest_s + LATE_S < self._until

    def over_by(self, started_at: float, heard_at: float) -> float:
        """The end of a request that began at ``started_at``; this process learnt of the end at ``heard_at``.

        A process that was stopped until its lease was over hears of it late: the answer came, or the site gave up,
        within the time that a request is given.
        """
        return heard_at if self._elapsed() < self._until else min(heard_at, started_at + self._longest_s + LATE_S)

    async def renewed(self) -> None:
        """Wait until the lease is renewed."""
        self._renewed.clear()
        await self._renewed.wait()

    def begin(self, asked_at: float) -> None:
        """The store has granted a lease that was requested at ``asked_at`` (of :func:`crawler.clock.boot_s`)."""
        if self._lease_s is not None:
            self._until = asked_at + self._lease_s
            self._renewed.set()

    async def keep(self) -> None:
        """Renew the lease again and again; returns at once if there is nothing to renew.

        Raises :class:`crawler.errors.LeaseLost` if it was taken away, and other errors of the store.
        """
        while self._store is not None and self._store.lease_s is not None:
            asked_at = self._elapsed()
            try:
                await self._store.renew(self._clock.now())
            except LeaseLost as error:
                operator_log.lease_lost(error)
                raise
            self.begin(asked_at)
            await self._clock.sleep((self._store.lease_s - self._longest_s) / _RENEWALS_PER_LEASE)
