"""A worker's right to ask sites, where others may be at work on the same crawl: for so long, and renewed in time.

The lease is longer than the longest request, and the gate lets none out that could outlast it: so a worker that is cut
off from the store, or was stopped, is silent before another may take its sites over. What counts is a clock that no one
sets and that runs on while the process is stopped or the machine asleep; it is looked at before each request, and again
once the connection stands.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from crawler.clock import Clock, boot_s
from crawler.engine import operator_log
from crawler.engine.tasks import required_task
from crawler.errors import LeaseLost, StoreError
from crawler.store.protocols import Store

_LATE_S = 0.5  # a request may take so much longer than its timeout says, on a busy loop
_TRIES_A_LEASE = 8  # to renew it


class Lease:
    """One worker's. ``longest_s`` is how long a request may last, in seconds."""

    def __init__(self, store: Store, clock: Clock, longest_s: float, elapsed: Callable[[], float] = boot_s) -> None:
        self._store = store
        self._clock = clock
        self._longest_s = longest_s
        self._elapsed = elapsed
        self._until = math.inf if store.lease_s is None else -math.inf
        self._renewed = asyncio.Event()
        self.lost: LeaseLost | None = None

    def covers_request(self) -> bool:
        """Whether a request that begins now would end within the lease."""
        return self._elapsed() + self._longest_s + _LATE_S < self._until

    def is_over(self) -> bool:
        return self._elapsed() >= self._until

    def over_by(self, started_at: float, heard_at: float) -> float:
        """When a request was over whose end we hear of at ``heard_at``. A process that was stopped until its lease was
        over hears late: its answer came, or the site gave up, within the time that requests are given."""
        return min(heard_at, started_at + self._longest_s + _LATE_S) if self.is_over() else heard_at

    async def renewed(self) -> None:
        """Until the lease has been renewed."""
        self._renewed.clear()
        await self._renewed.wait()

    def begin(self, asked_at: float) -> None:
        """The store has granted a lease that was asked for at ``asked_at`` (of :func:`crawler.clock.boot_s`)."""
        if self._store.lease_s is not None:
            self._until = asked_at + self._store.lease_s
            self._renewed.set()

    async def keep(self, wake: Callable[[], None], fail: Callable[[StoreError], None]) -> None:
        """Renew until it is lost, and then call ``wake``, or the store is, and then ``fail``. Ends at once where there
        is nothing to renew."""
        while self._store.lease_s is not None:
            asked_at = self._elapsed()
            try:
                await self._store.renew(self._clock.now())
            except LeaseLost as error:
                self.lost = error
                operator_log.lease_lost(error)
                wake()
                return
            except StoreError as error:
                fail(error)
                return
            self.begin(asked_at)
            await self._clock.sleep((self._store.lease_s - self._longest_s) / _TRIES_A_LEASE)


@asynccontextmanager
async def kept(lease: Lease) -> AsyncIterator[None]:
    """Renew a lease while inside; where that fails, whoever is inside is cut off.

    Raises :class:`LeaseLost` where it was taken away, and what else the store raises.
    """
    async with required_task(_keep_or_raise(lease)):
        yield


async def _keep_or_raise(lease: Lease) -> None:
    failures = list[StoreError]()
    await lease.keep(lambda: None, failures.append)
    if (error := next(iter(failures), lease.lost)) is not None:
        raise error
