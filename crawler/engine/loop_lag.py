"""The lag of the event loop: how long it keeps finished work waiting. Code that blocks the loop delays every site."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from crawler.clock import Clock
from crawler.engine.progress import Progress
from crawler.engine.tasks import background_task

_EVERY_S = 0.05
_RESOLUTION_S = 0.001  # a timer of the loop may come so much later than asked for, on an idle loop too
_KEPT = 4096  # measurements, of the last three minutes at least: longer than a request may take


class _Measured(NamedTuple):
    """From ``since`` to ``until`` (epoch seconds) the loop was late, and then made one round."""

    since: float
    until: float


class LoopLag:
    """The lag of the loop in the last minutes, measured 20 times a second while :meth:`measure` runs.

    A timer shows how late the loop is, and a call without a delay shows how long one round of the loop takes. Both come
    from the loop's own work and from other processes of the machine. Without measurements there is no lag.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._measured: deque[_Measured] = deque(maxlen=_KEPT)
        self._due_at: float | None = None  # of the measurement under way

    async def measure(self, progress: Progress) -> None:
        """Measure until cancelled, and tell ``progress`` each lag."""
        try:
            while True:
                self._due_at = due_at = self._clock.now() + _EVERY_S + _RESOLUTION_S
                await asyncio.sleep(_EVERY_S)
                came_at = self._clock.now()
                await asyncio.sleep(0)
                measured = _Measured(min(due_at, came_at), self._clock.now())
                self._measured.append(measured)
                progress.late(measured.until - measured.since)
        finally:
            self._due_at = None

    def lately(self, seconds: float) -> float:
        """How much of the last ``seconds`` was lag, in seconds."""
        now = self._clock.now()
        return self.within(now - seconds, now)

    def within(self, started_at: float, finished_at: float) -> float:
        """How much of a period was lag, in seconds. The period ends now or ended lately; times are epoch seconds.

        It is the lag measured during the period. If no measurement fell into the period, it is the lag measured last
        before. It is never more than was measured, and never more than the period.
        """
        lag_s, fell_inside = 0.0, False
        if self._due_at is not None and finished_at > self._due_at:  # the loop is late, and does not know it yet
            lag_s, fell_inside = finished_at - max(self._due_at, started_at), True
        for since, until in reversed(self._measured):
            if until <= started_at:
                if not fell_inside:
                    lag_s = until - since
                break
            fell_inside = True
            lag_s += max(0.0, min(until, finished_at) - max(since, started_at))
        return min(lag_s, max(0.0, finished_at - started_at))


@asynccontextmanager
async def loop_lag_measured(lag: LoopLag, progress: Progress) -> AsyncIterator[None]:
    """Measure the lag inside the context, and keep the worst in ``progress.worst_lag_s``."""
    async with background_task(lag.measure(progress)):
        yield
