"""Time limits that do not count the time in which the crawler's own event loop was late."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

#: Returns for how many seconds the event loop may have kept waiting what it runs now.
LagNow = Callable[[], float]


def no_lag() -> float:
    """The lag of an event loop that is not measured: none."""
    return 0.0


class PatientTimer:
    """Calls ``action`` after ``seconds``. If the loop is late then, the timer waits for as long as it is late, once.

    On a late loop a timer may run before data that have arrived long before.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, seconds: float, lag_now_s: LagNow, action: Callable[[], object]
    ) -> None:
        self._loop = loop
        self._lag_now_s = lag_now_s
        self._action = action
        self._handle = loop.call_later(seconds, self._ring)

    def _ring(self) -> None:
        if (lag_s := self._lag_now_s()) > 0:
            self._handle = self._loop.call_later(lag_s, self._action)
        else:
            self._action()

    def cancel(self) -> None:
        """Do not call ``action`` any more."""
        self._handle.cancel()


@asynccontextmanager
async def time_limit(limit_s: float | None, lag_now_s: LagNow) -> AsyncIterator[None]:
    """Cancel the context after ``limit_s`` seconds by a :class:`PatientTimer`, and raise :class:`TimeoutError`.

    ``None``: no limit.
    """
    if limit_s is None:
        yield
        return
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as deadline:
        timer = PatientTimer(loop, limit_s, lag_now_s, lambda: deadline.reschedule(loop.time()))
        try:
            yield
        finally:
            timer.cancel()
