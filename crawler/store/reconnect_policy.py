"""How long a worker retries while a database or object store is away, and how often after a conflict."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from crawler.clock import monotonic_s
from crawler.errors import ConnectionLost, StoreFull
from crawler.store.retrying import TransactionConflict

T = TypeVar("T")

_LOG = logging.getLogger("crawler.store")

_MOST_CONFLICTS = 20
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 2.0


class ReconnectPolicy:
    """Retries for all callers of one store. A database whose disk is full counts as away, because it accepts no writes.

    The callers may wait ``left_s`` seconds for the store ``name``, which is of this ``kind`` in messages. Once a caller
    has waited that long without an answer, no caller waits any more.
    """

    def __init__(self, name: str, left_s: float, kind: str = "database") -> None:
        self._name = name
        self._kind = kind
        self._left_s = left_s
        self._lost: list[float] = []  # when each waiting caller lost its connection
        self._over: float | None = None  # the same of the caller that waited too long
        self._given_up = asyncio.Event()

    @property
    def away_s(self) -> float | None:
        """For how long the database or object store has been away, in seconds; ``None`` if it answers."""
        since = min(self._lost, default=self._over)
        return None if since is None else monotonic_s() - since

    def give_up(self) -> None:
        """Wait no longer: all calls that wait fail at once with :class:`crawler.errors.ConnectionLost`."""
        self._left_s, self._over = 0.0, monotonic_s()
        self._given_up.set()

    async def retry(self, attempt: Callable[[], Awaitable[T]], *, waits: Callable[[], bool]) -> T:
        """Make an attempt; retry at once after a conflict of transactions, and with pauses after a lost connection.

        ``waits`` says whether this caller waits. Raises the error of the last attempt.
        """
        lost_at, conflicts, pause_s = 0.0, 0, _FIRST_PAUSE_S
        try:
            while True:
                if self._given_up.is_set():
                    raise ConnectionLost(
                        f"{self._name}: the {self._kind} does not answer, and the crawl waits for it no longer; "
                        "what was committed is kept, run the same command again when it is back"
                    )
                try:
                    done = await attempt()
                    self._over = None
                    if lost_at and len(self._lost) == 1:
                        _LOG.warning("%s: the %s answers again", self._name, self._kind)
                    return done
                except TransactionConflict:
                    conflicts += 1
                    if conflicts > _MOST_CONFLICTS:
                        raise
                except (ConnectionLost, StoreFull) as error:
                    if not waits():
                        raise
                    if not lost_at:
                        if not self._lost:
                            what = "the connection to" if isinstance(error, ConnectionLost) else "the disk of"
                            why = "is lost" if isinstance(error, ConnectionLost) else "is full"
                            _LOG.warning("%s: %s the %s %s", self._name, what, self._kind, why)
                        lost_at = monotonic_s()
                        self._lost.append(lost_at)
                    if monotonic_s() - lost_at >= self._left_s:
                        self._left_s, self._over = 0.0, lost_at
                        raise
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._given_up.wait(), pause_s)
                    pause_s = min(_LONGEST_PAUSE_S, 2 * pause_s)
        finally:
            if lost_at:
                self._lost.remove(lost_at)
