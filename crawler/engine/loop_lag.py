"""The lag of the event loop: how long it keeps finished work waiting. Code that blocks the loop delays every site."""

from __future__ import annotations

import asyncio
import math

from crawler.clock import Clock
from crawler.engine.progress import Progress

_EVERY_S = 0.05
_RESOLUTION_S = 0.001  # a timer of the loop may come so much later than asked for, on an idle loop too


class LoopLag:
    """The lag of the loop, measured 20 times a second while :meth:`measure` runs. Without measurements it is zero.

    A timer shows how late the loop is, and a call without a delay shows how long one round of the loop takes. Both come
    from the loop's own work and from other processes of the machine.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_s = 0.0
        self._due_at = math.inf  # of the measurement under way

    async def measure(self, progress: Progress) -> None:
        """Measure until cancelled, and note each lag in ``progress``."""
        try:
            while True:
                self._due_at = self._clock.now() + _EVERY_S + _RESOLUTION_S
                await asyncio.sleep(_EVERY_S)
                since = min(self._due_at, self._clock.now())
                await asyncio.sleep(0)
                self._last_s = self._clock.now() - since
                progress.late(self._last_s)
        finally:
            self._due_at, self._last_s = math.inf, 0.0

    def now_s(self) -> float:
        """For how many seconds the loop may have kept waiting what it runs now."""
        return max(self._last_s, self._clock.now() - self._due_at)

    def in_answer(self, started_at: float, finished_at: float) -> float:
        """By how many seconds the loop may have noticed the end of an answer too late. It was noticed just now.

        Lag before the end does not count: while the loop was busy, the server worked. Never more than the answer took;
        times are epoch seconds.
        """
        return max(0.0, min(self.now_s(), finished_at - started_at))
