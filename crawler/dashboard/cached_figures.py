"""What the dashboard reads of a store, each figure no more often than it can be had cheaply."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from crawler.store.protocols import Store

T = TypeVar("T")

_SHARE = 20  # a figure that took the store a second is not asked for again for twenty
_CHUNK = 100_000  # rows of the request log at once
_AT_ONCE_S = 0.3  # of reading a long log, before what is known is shown
HISTORY_S = 300


class CachedFigure(Generic[T]):
    """One query's answer, asked for anew once ``_SHARE`` times what it took has passed, and a second at least."""

    def __init__(self, ask: Callable[[float], Awaitable[T]]) -> None:
        self._ask = ask
        self._again_at = 0.0
        self._answer: T

    async def at(self, now: float) -> T:
        if now >= self._again_at:
            began = time.perf_counter()
            self._answer = await self._ask(now)
            self._again_at = now + max(0.9, _SHARE * (time.perf_counter() - began))
        return self._answer


class RequestTotals:
    """Sums over the request log, which only grows: each look reads what is new. Counts are of all runs on the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last = 0
        self.caught_up = False
        self.requests: Counter[tuple[str, int | None]] = Counter()  # by purpose and status; None: no answer
        self.bytes = 0
        self.recent: Counter[int] = Counter()  # requests by the second in which they ended, for five minutes

    async def read(self, now: float, *, whole: bool = False) -> None:
        """Take in new rows: all of them, or what can be read in a third of a second."""
        began = time.perf_counter()
        end = (await self._store.query("SELECT coalesce(max(id), 0) AS id FROM request"))[0]["id"]
        since = int(now) - HISTORY_S
        while self._last < end and (whole or time.perf_counter() - began < _AT_ONCE_S):
            upto = min(self._last + _CHUNK, end)
            for row in await self._store.query(
                """SELECT purpose, status, CASE WHEN finished_at >= ? THEN CAST(finished_at AS INTEGER) END AS second,
                     count(*) AS n, sum(bytes) AS bytes FROM request WHERE id > ? AND id <= ? GROUP BY 1, 2, 3""",
                (since, self._last, upto),
            ):
                self.requests[row["purpose"], row["status"]] += row["n"]
                self.bytes += row["bytes"]
                if row["second"] is not None:
                    self.recent[row["second"]] += row["n"]
            self._last = upto
        self.caught_up = self._last >= end
        for second in [second for second in self.recent if second < since]:
            del self.recent[second]
