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


@asynccontextmanager
async def time_limit(limit_s: float | None, lag_now_s: LagNow) -> AsyncIterator[None]:
    """Cancel the context after ``limit_s`` seconds and raise :class:`TimeoutError`; ``None``: no limit.

    If the loop is late then, the limit is longer by the lag, once: data may have arrived long before.
    """
    if limit_s is None:
        yield
        return
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as deadline:
        timer = loop.call_later(limit_s, lambda: deadline.reschedule(loop.time() + lag_now_s()))
        try:
            yield
        finally:
            timer.cancel()
