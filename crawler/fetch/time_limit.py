"""Time limits that do not count the time in which the crawler's own event loop was late."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

#: Returns the lag of the event loop within the last so many seconds, in seconds.
RecentLag = Callable[[float], float]


def no_lag(seconds: float) -> float:
    """The recent lag of a loop whose lag nobody measures."""
    return 0.0


@asynccontextmanager
async def time_limit(limit_s: float | None, recent_lag_s: RecentLag) -> AsyncIterator[None]:
    """Cancel the context after ``limit_s`` seconds and raise :class:`TimeoutError`. ``None``: no limit.

    The limit is longer by the lag within the context. So if the loop was late, the context gets the rest of its time
    when the loop is free again: on a late loop a timer may run before the data that have arrived long before.
    """
    if limit_s is None:
        yield
        return
    loop, most_s = asyncio.get_running_loop(), limit_s
    started_at = loop.time()
    timer: asyncio.TimerHandle

    def look() -> None:
        nonlocal timer
        took_s = loop.time() - started_at
        left_s = most_s + recent_lag_s(took_s) - took_s
        if left_s > 0:
            timer = loop.call_later(left_s, look)
        else:
            deadline.reschedule(loop.time())

    timer = loop.call_later(most_s, look)
    try:
        async with asyncio.timeout(None) as deadline:
            yield
    finally:
        timer.cancel()
