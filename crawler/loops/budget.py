"""The pages that ``--max-pages`` leaves: never more requests for pages in flight than may still become pages."""

from __future__ import annotations

import asyncio
import math
from collections import deque


class Budget:
    """Pages still wanted, handed around: what brought no page goes to whoever has waited longest."""

    def __init__(self, pages: float = math.inf) -> None:
        self._left = pages  # those being asked for included
        self._out = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def left(self) -> float:
        """How many pages may still come; infinite without a limit."""
        return self._left

    @property
    def is_limited(self) -> bool:
        """Whether pages are counted at all."""
        return self._left < math.inf

    @property
    def is_free(self) -> bool:
        """Whether one more page may be asked for now."""
        return self._out < self._left

    @property
    def is_spent(self) -> bool:
        """Whether all pages have come."""
        return self._left <= 0

    async def take(self) -> bool:
        """Wait for the right to ask for one page; False: all have come. Every True needs a :meth:`give_back`."""
        while not self.is_free and not self.is_spent:
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done():  # its turn is another's
                    self._wake()
                raise
        self._out += not self.is_spent
        return not self.is_spent

    def give_back(self, *, fetched: bool) -> None:
        """The request is over; whether it brought a page."""
        self._out -= 1
        self._left -= fetched
        while self.is_spent and self._waiting:
            self._wake()
        if self.is_free:
            self._wake()

    def _wake(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
