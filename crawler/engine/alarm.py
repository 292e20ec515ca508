"""The alarm that wakes the loop of a crawl."""

from __future__ import annotations

import asyncio


class Alarm:
    """Tells the loop that something has happened, and whether a commit is urgent.

    A ring is never lost: one that comes while no task waits ends the next wait at once. One task waits at a time.
    """

    def __init__(self) -> None:
        self._rung = asyncio.Event()
        self.is_urgent = False
        self.is_awaited = False  # a task waits for the commit, and holds others up

    def ring(self) -> None:
        """End the wait of the loop."""
        self._rung.set()

    def request_commit(self) -> None:
        """End the wait of the loop, and ask for a commit at once."""
        self.is_urgent = True
        self._rung.set()

    def request_commit_now(self) -> None:
        """As :meth:`request_commit`, for a commit that is not to wait for further work."""
        self.is_awaited = True
        self.request_commit()

    def begin_commit(self) -> None:
        """A commit begins: it serves every request for a commit so far."""
        self.is_urgent = self.is_awaited = False

    async def wait(self, seconds: float | None) -> bool:
        """Wait for a ring, for ``seconds`` at most if given. Returns whether one came; it is used up."""
        if not self._rung.is_set():
            try:
                async with asyncio.timeout(None if seconds is None else max(0.0, seconds)):
                    await self._rung.wait()
            except TimeoutError:
                return False
        self._rung.clear()
        return True
