"""SQLite on virtual time: each call of a connection takes a drawn time, and fails or kills the process as told.

A connection executes its calls in the event loop, one after the other. aiosqlite does the same in a thread; here the
order of all calls follows from the seed. SQLite itself is real, and so are its file and its locks.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any
from unittest import mock

import aiosqlite
from aiosqlite.core import Connection

#: Seconds of virtual time: of a usual call, and of one call in a hundred.
_CALL_S, _SLOW_CALL_S = 0.001, 0.05
#: How often a call that waits for the lock of another connection is repeated, and for how long: longer than a process
#: stalls in a transaction. PostgreSQL, which several workers need, lets a call wait for a lock without end.
_BUSY_EVERY_S, _BUSY_FOR_S = 0.01, 600.0
_WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE")

_Call = tuple[asyncio.Future[Any], Callable[[], Any], float]


class Disk:
    """The disk as one process sees it. A process that is killed never hears from it again.

    ``kill`` is called when the call with the number ``kill_at`` is due: before the call, or after it if
    ``kills_after``.
    """

    def __init__(self, chance: random.Random, kill: Callable[[], None], most_calls: float) -> None:
        self._chance = chance
        self._kill = kill
        self._connections: list[_DiskConnection] = []
        self.tasks: dict[asyncio.Task[Any], None] = {}  # of the process, in the order in which they were made
        self.calls = 0
        self.most_calls = most_calls
        self.kill_at: int | None = None
        self.kills_after = False
        self.is_full = False
        self.is_dead = False
        self.stalled_until = 0.0  # in virtual seconds: until then the process does nothing

    def opened(self, connection: _DiskConnection) -> None:
        self._connections.append(connection)

    def latency_s(self) -> float:
        """The time that the next call takes, in seconds."""
        return self._chance.uniform(0, _SLOW_CALL_S if self._chance.random() < 0.01 else _CALL_S)

    def execute(self, function: Callable[[], Any]) -> Any:
        """Execute one call. Raises :class:`sqlite3.OperationalError` if it writes and the disk is full."""
        self.calls += 1
        if self.calls > self.most_calls:
            raise RuntimeError(f"{self.calls} calls of the store: the crawl turns in a circle")
        is_last = self.kill_at is not None and self.calls >= self.kill_at
        if is_last and not self.kills_after:
            self._kill()
            return None
        if self.is_full and _is_write(function):
            raise _disk_full()
        result = function()
        if is_last:
            self._kill()
        return result

    def die(self) -> None:
        """The process is killed: all its connections are gone, and what was not committed with them."""
        self.is_dead = True
        for connection in self._connections:
            connection.drop()


#: The disk of the process that the current task belongs to.
DISK: ContextVar[Disk | None] = ContextVar("disk", default=None)


class _DiskConnection(Connection):
    """A connection of aiosqlite without a thread."""

    def __init__(self, connector: Callable[[], sqlite3.Connection], iter_chunk_size: int) -> None:
        super().__init__(connector, iter_chunk_size)
        self._disk = DISK.get()
        self._queue: deque[_Call] = deque()
        if self._disk is not None:
            self._disk.opened(self)

    def __await__(self) -> Any:
        return self._connect().__await__()

    async def _connect(self) -> _DiskConnection:
        self._connection = await self._call(self._connector)
        return self

    async def _execute(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self._connection is None and not (self._disk is not None and self._disk.is_dead):
            raise ValueError("Connection closed")
        return await self._call(partial(fn, *args, **kwargs))

    def _call(self, function: Callable[[], Any]) -> asyncio.Future[Any]:
        future = asyncio.get_running_loop().create_future()
        self._queue.append((future, function, future.get_loop().time()))
        if len(self._queue) == 1:
            self._schedule()
        return future

    def _schedule(self) -> None:
        disk = self._disk
        if disk is None or not disk.is_dead:
            asyncio.get_running_loop().call_later(_CALL_S if disk is None else disk.latency_s(), self._step)

    def _step(self) -> None:
        disk = self._disk
        if disk is not None and disk.is_dead:
            return
        future, function, since = self._queue[0]
        if disk is not None and future.get_loop().time() < disk.stalled_until:
            future.get_loop().call_at(disk.stalled_until, self._step)
            return
        try:
            waiting = _with_waiting(function)
            result = waiting() if disk is None else disk.execute(waiting)
        except sqlite3.OperationalError as error:
            is_busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
            if is_busy and future.get_loop().time() < since + _BUSY_FOR_S:
                future.get_loop().call_later(_BUSY_EVERY_S, self._step)
                return
            self._answer(future, error)
        except (Exception, asyncio.CancelledError) as error:  # the latter, if the caller has not waited for it
            self._answer(future, error)
        else:
            if disk is None or not disk.is_dead:
                self._answer(future, result)

    def _answer(self, future: asyncio.Future[Any], result: object) -> None:
        self._queue.popleft()
        if not future.done():
            if isinstance(result, BaseException):
                future.set_exception(result)
            else:
                future.set_result(result)
        if self._queue:
            self._schedule()

    async def close(self) -> None:
        if self._connection is not None:
            await self._call(self._connection.close)
            self._connection = None

    def stop(self) -> None:
        self.drop()

    def drop(self) -> None:
        """Close without a commit. Calls that wait are never answered."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _with_waiting(function: Callable[[], Any]) -> Callable[[], Any]:
    """``function`` without the pragma by which SQLite itself would wait for a lock, and with it the loop."""
    if isinstance(function, partial) and function.args and "busy_timeout = 10000" in str(function.args[0]):
        script = str(function.args[0]).replace("busy_timeout = 10000", "busy_timeout = 0")
        return partial(function.func, script, *function.args[1:], **function.keywords)
    return function


def _is_write(function: Callable[[], Any]) -> bool:
    if not isinstance(function, partial) or not function.args:
        return False
    if not isinstance(function.args[0], str):
        return True  # a transaction as a whole
    sql = function.args[0].lstrip()
    return sql.startswith(_WRITES) or (sql.startswith("WITH") and ("INSERT" in sql or "UPDATE" in sql))


def _disk_full() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    return error


def _connect(database: Any, *, iter_chunk_size: int = 64, **options: Any) -> _DiskConnection:
    # timeout: the loop must not wait for a lock that one of its tasks holds
    return _DiskConnection(lambda: sqlite3.connect(str(database), timeout=0, **options), iter_chunk_size)


@contextmanager
def on_virtual_time() -> Iterator[None]:
    """Inside, all connections of aiosqlite are made here."""
    with mock.patch.object(aiosqlite, "connect", _connect):
        yield
