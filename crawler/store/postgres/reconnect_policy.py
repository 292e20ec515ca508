"""How a worker waits for a database that has gone away: for so long, once, unless it is told to wait no longer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from crawler.clock import monotonic_s
from crawler.errors import ConnectionLost
from crawler.store.postgres.connection import Clash

T = TypeVar("T")

_LOG = logging.getLogger("crawler.store")
_CLASHES_BORNE = 20


class Patience:
    """``left_s``, in seconds, with the database ``name``."""

    def __init__(self, name: str, left_s: float) -> None:
        self._name = name
        self._left_s = left_s
        self._lost: list[float] = []  # when each of those who wait lost its connection
        self._over: float | None = None  # the same of who waited in vain
        self._given_up = asyncio.Event()

    @property
    def away_s(self) -> float | None:
        since = min(self._lost, default=self._over)
        return None if since is None else monotonic_s() - since

    def give_up(self) -> None:
        self._left_s, self._over = 0.0, monotonic_s()
        self._given_up.set()

    async def again(self, attempt: Callable[[], Awaitable[T]], *, waits: Callable[[], bool]) -> T:
        """Do something that clashed again at once, and, where one ``waits``, what lost its connection for as long as
        patience lasts: once."""
        lost_at, clashes, pause_s = 0.0, 0, 0.1
        try:
            while True:
                if self._given_up.is_set():
                    raise ConnectionLost(
                        f"{self._name}: the database does not answer, and is waited for no longer; "
                        "what was committed is kept, run the same command again when it is back"
                    )
                try:
                    done = await attempt()
                    self._over = None
                    if lost_at and len(self._lost) == 1:
                        _LOG.warning("%s: the database answers again", self._name)
                    return done
                except Clash:
                    clashes += 1
                    if clashes > _CLASHES_BORNE:
                        raise
                except ConnectionLost:
                    if not waits():
                        raise
                    if not lost_at:
                        lost_at = monotonic_s()
                        if not self._lost:
                            _LOG.warning("%s: the connection to the database is lost", self._name)
                        self._lost.append(lost_at)
                    if monotonic_s() - lost_at >= self._left_s:
                        self._left_s, self._over = 0.0, lost_at
                        raise
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._given_up.wait(), pause_s)
                    pause_s = min(2.0, 2 * pause_s)
        finally:
            if lost_at:
                self._lost.remove(lost_at)
