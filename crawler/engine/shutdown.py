"""Requests that a crawl ends before its frontier is empty."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from crawler.clock import Clock
from crawler.engine.alarm import Alarm
from crawler.engine.gate import Gate
from crawler.engine.tasks import background_task
from crawler.reasons import EndCode, RunEnd

_CHECK_EVERY_S = 60.0  # a timer of the event loop stands still while the machine sleeps


class Shutdown:
    """Ends a crawl, and keeps the reason.

    A stop is requested by a signal or the caller of the API (through :meth:`crawler.engine.crawl.Crawl.stop`), by the
    operator, when ``--max-time`` is over, when a newer crawl has replaced this one, and by each failure of a task. They
    all come here, so they all have the same effect:

    1. The gate is closed at once: nothing new is sent, tasks that wait at the gate are cancelled, and a request in
       flight may finish.
    2. The loop is woken. It commits what is finished, waits for requests in flight, and commits once more. Requests
       still in flight :data:`crawler.engine.loop.STOP_GRACE_S` after the request to stop, or at :meth:`end_grace`, are
       cancelled then, in any state of the loop. So a request that keeps the event loop or the store busy cannot delay
       its own end.
    3. The first reason counts. Of failures, the first is raised by the loop after that.

    A lost lease is no stop: the loop lets go of all groups and joins the run again.
    """

    def __init__(self, gate: Gate, alarm: Alarm) -> None:
        self._gate = gate
        self._alarm = alarm
        self._failure: BaseException | None = None
        self.end: RunEnd | None = None
        self.lease_lost = False  # until the loop has let go of all groups
        self._requested = asyncio.Event()
        self._grace_is_over = asyncio.Event()

    @property
    def requested(self) -> bool:
        """Whether the crawl was ordered to end."""
        return self.end is not None

    def request(self, end: RunEnd) -> None:
        """End soon, for the reason ``end``. Only the first request counts."""
        if self.end is None:
            self.end = end
            self._gate.close()
            self._requested.set()
        self._alarm.ring()

    async def wait(self) -> None:
        """Wait until the crawl is ordered to end."""
        await self._requested.wait()

    def end_grace(self) -> None:
        """Give the requests in flight no more time, once the crawl is ordered to end."""
        self._grace_is_over.set()

    async def wait_for_grace(self, grace_s: float, clock: Clock) -> None:
        """Wait until the crawl is ordered to end and the requests in flight have had their ``grace_s`` seconds."""

        async def end_later() -> None:
            await clock.sleep(grace_s)
            self.end_grace()

        await self.wait()
        async with background_task(end_later()):
            await self._grace_is_over.wait()

    def fail(self, error: BaseException) -> None:
        """End soon, and let the loop raise ``error``. Only the first failure counts."""
        self._failure = self._failure or error
        self.request(RunEnd(EndCode.BUG))

    def raise_failure(self) -> None:
        """Raise the failure that the crawl ends with, if there was one."""
        if self._failure is not None:
            raise self._failure

    def lose_lease(self) -> None:
        """The lease was lost: let the loop join the run again."""
        self.lease_lost = True
        self._alarm.ring()


async def stop_at(time: float, stop: Callable[[RunEnd], None], clock: Clock) -> None:
    """Call ``stop`` at ``time`` (seconds since the epoch): ``--max-time`` is over. To be run in the background."""
    while (left_s := time - clock.now()) > 0:
        await clock.sleep(min(left_s, _CHECK_EVERY_S))
    stop(RunEnd(EndCode.MAX_TIME))
