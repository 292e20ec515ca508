"""The live stream: one snapshot a second for all viewers, while there are any."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

from crawler.clock import Clock
from crawler.dashboard.snapshot import SnapshotReader
from crawler.engine.tasks import required_task
from crawler.errors import CrawlerError

MOST_VIEWERS = 100
#: Streams to one address. A browser opens six connections to a server at most.
MOST_VIEWS_EACH = 6
_EVERY_S = 1.0
_HEARTBEAT_S = 15.0


class Feed:
    """Takes snapshots and sends each to every viewer. A slow viewer misses snapshots, and gets the newest."""

    def __init__(self, reader: SnapshotReader, clock: Clock) -> None:
        self._reader = reader
        self._clock = clock
        self._lock = asyncio.Lock()
        self._fresh = asyncio.Condition()
        self._frame = b""
        self._number = 0
        self._closed = False
        self.viewers = 0

    async def snapshot(self, *, whole: bool = False) -> dict[str, Any]:
        """One snapshot; never two at a time. Raises what :meth:`SnapshotReader.snapshot` raises."""
        async with self._lock:
            return await self._reader.snapshot(self._clock.now(), whole=whole)

    def _has_more(self, seen: int) -> bool:
        return self._closed or self._number > seen

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take snapshots while inside.

        A bug cancels the body and is raised: otherwise the dashboard would show old figures without saying so. The
        viewers are told of any other error.
        """
        async with required_task(self._run()):
            yield

    async def close(self) -> None:
        """End every stream."""
        async with self._fresh:
            self._closed = True
            self._fresh.notify_all()

    async def _run(self) -> None:
        with suppress(CrawlerError):  # _publish() reports it to the viewers
            while not (await self.snapshot())["log_read"]:
                pass  # a long log is read once, before a viewer waits for its sums
        while True:
            if self.viewers:
                await self._publish()
                await self._clock.sleep(_EVERY_S)
            else:
                async with self._fresh:
                    await self._fresh.wait_for(lambda: self.viewers > 0)

    async def _publish(self) -> None:
        try:
            seen = await self.snapshot()
        except CrawlerError as error:
            seen = {"error": str(error)}
        seen["at"] = self._clock.now()
        async with self._fresh:
            self._frame = f"data: {json.dumps(seen, default=str)}\n\n".encode()
            self._number += 1
            self._fresh.notify_all()

    async def frames(self) -> AsyncGenerator[bytes, None]:
        """Server-sent events (WHATWG HTML, 9.2) for one viewer, and a comment if there was no event for 15 seconds."""
        async with self._fresh:
            self.viewers += 1
            self._fresh.notify_all()
        try:
            # If there are other viewers, the last snapshot is new to this one; otherwise it is out of date.
            seen = self._number - (self.viewers > 1 and self._number > 0)
            while not self._closed:
                try:
                    async with asyncio.timeout(_HEARTBEAT_S), self._fresh:
                        await self._fresh.wait_for(partial(self._has_more, seen))
                        seen, frame = self._number, self._frame
                except TimeoutError:
                    frame = b": still here\n\n"
                if not self._closed:
                    yield frame
        finally:
            self.viewers -= 1
