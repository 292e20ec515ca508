"""Real requests over real connections, for a crawl on virtual time: the clock stands still while one is in flight.

The requests run on an event loop of their own, in a thread. So the real fetcher, its decoders and its timeouts are
tested, and hours of pauses take no time. A busy machine makes such a test slower; it cannot change what is asked, nor
when.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from crawler.fetch.client import FetchSettings, HttpFetcher
from crawler.model import FetchResult, Request
from crawler.url import host_of, split
from tests.threaded import Threaded
from tests.virtual_time import VirtualClock

_IN_FLIGHT = 64
#: Real seconds without an octet after which a server counts as silent: for servers that are silent on purpose, and for
#: all the others, however busy the machine is. Connections and whole requests have the second one too.
_SILENT_S, _BUSY_S = 0.2, 120.0


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. ``began`` and ``ended`` number what happened, over all requests; the times are virtual seconds."""

    host: str
    path: str
    began: int
    ended: int
    started_at: float
    finished_at: float


class Wire(Threaded):
    """Fetches for a crawl on virtual time; ``is_silent`` names the hosts whose servers never answer some request."""

    def __init__(self, clock: VirtualClock, settings: FetchSettings, is_silent: Callable[[str], bool]) -> None:
        super().__init__()
        self.log: list[Asked] = []
        self._clock = clock
        self._settings = replace(settings, concurrency=_IN_FLIGHT, connect_timeout_s=_BUSY_S, total_timeout_s=_BUSY_S)
        self._is_silent = is_silent
        self._numbers = itertools.count()
        self._threads = ThreadPoolExecutor(_IN_FLIGHT)

    async def _serve(self) -> None:
        async with AsyncExitStack() as stack:
            self._fetchers = {
                silent: await stack.enter_async_context(
                    HttpFetcher(replace(self._settings, read_timeout_s=timeout_s), self._clock)
                )
                for silent, timeout_s in ((True, _SILENT_S), (False, _BUSY_S))
            }
            self._real_loop = asyncio.get_running_loop()
            self._ready.set()
            await self._stop.wait()
        self._threads.shutdown()

    async def fetch(self, request: Request) -> FetchResult:
        """One GET. Takes no virtual time."""
        host, path = host_of(request.url), split(request.url).path
        began, started_at = next(self._numbers), self._clock.now()
        fetcher = self._fetchers[self._is_silent(host)]

        def wait() -> FetchResult:
            return asyncio.run_coroutine_threadsafe(fetcher.fetch(request), self._real_loop).result()

        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, wait)
        finally:
            self.log.append(Asked(host, path, began, next(self._numbers), started_at, self._clock.now()))
