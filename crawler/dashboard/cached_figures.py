"""The figures of the dashboard, each read from the store no more often than its cost allows."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from crawler.store.statements import load_statements

if TYPE_CHECKING:
    from crawler.store.sections import Store

T = TypeVar("T")

_REST_FACTOR = 20  # a query that took one second is not repeated for 20 seconds
_MIN_REST_S = 0.9
_REQUESTS_PER_QUERY = 100_000
_MAX_READING_S = 0.3  # time spent on a long log before the known part is shown
HISTORY_S = 300

_SQL = load_statements("crawler.dashboard")


class CachedFigure(Generic[T]):
    """The result of one query, repeated when ``_REST_FACTOR`` times its duration has passed."""

    def __init__(self, read: Callable[[float], Awaitable[T]]) -> None:
        self._read = read
        self._next_at = 0.0
        self._value: T

    async def at(self, now: float) -> T:
        """The value at ``now``, in seconds since the epoch."""
        if now >= self._next_at:
            began = time.perf_counter()
            self._value = await self._read(now)
            self._next_at = now + max(_MIN_REST_S, _REST_FACTOR * (time.perf_counter() - began))
        return self._value


class RequestTotals:
    """Sums over the request log of all runs. The log only grows, so each call of :meth:`read` reads the new rows."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last = 0
        #: Whether the last call of :meth:`read` reached the end of the log.
        self.caught_up = False
        #: Requests by purpose and status; the status is ``None`` without an answer.
        self.requests: Counter[tuple[str, int | None]] = Counter()
        #: Requests without a document for an answer, by error kind (:class:`crawler.reasons.ErrorKind`).
        self.errors: Counter[str] = Counter()
        self.bytes = 0
        #: Requests by the second in which they ended, for the last ``HISTORY_S`` seconds.
        self.recent: Counter[int] = Counter()

    async def read(self, now: float, *, whole: bool = False) -> None:
        """Add the new rows of the log: all of them if ``whole``, else as many as can be read in a third of a second."""
        began = time.perf_counter()
        (newest,) = await self._store.query(_SQL["last_request"])
        end, since = newest["request_id"], int(now) - HISTORY_S
        while self._last < end and (whole or time.perf_counter() - began < _MAX_READING_S):
            last = min(self._last + _REQUESTS_PER_QUERY, end)
            bounds = {"since": since, "after": self._last, "last": last}
            for row in await self._store.query(_SQL["request_totals"], bounds):
                self.requests[row["purpose"], row["status"]] += row["requests"]
                if row["error_kind"] is not None:
                    self.errors[row["error_kind"]] += row["requests"]
                self.bytes += row["bytes"]
                if row["second"] is not None:
                    self.recent[row["second"]] += row["requests"]
            self._last = last
        self.caught_up = self._last >= end
        for second in [second for second in self.recent if second < since]:
            del self.recent[second]
