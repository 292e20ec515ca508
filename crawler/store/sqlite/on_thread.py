"""Calls of a connection of SQLite, on its thread.

A call of aiosqlite goes to the thread and back, which takes both threads as long as a short statement. So the code of a
transaction goes to the thread as a whole, and its calls are executed there at once.

SQLite takes half as long to bind a row by position as by name: for each name, the driver makes a text and looks it up.
The driver releases and takes Python's lock for each statement, and its thread shares the lock with the event loop. So
the rows of ``executemany`` are bound by position, and one statement inserts several of them.

The driver looks for an adapter of each value that is not exactly an ``int``, a ``float`` or a ``str``. A search in vain
takes longer than the rest of the binding. So the types of which a commit has many values have adapters. Adapters hold
for the whole process: one that a program has registered for a type of Python stays, and these change no value.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from functools import cache
from itertools import chain, islice
from operator import itemgetter
from threading import Event, get_ident
from typing import Any, NamedTuple, TypeVar, cast

import aiosqlite

from crawler.model import Kind, Purpose, State
from crawler.reasons import ErrorKind, ReasonCode, WaitCode

T = TypeVar("T")

#: The rows that one statement inserts. With more of them, a row takes no less time.
_AT_ONCE = 32
_NAME = re.compile(r":(\w+)")
_VALUES = re.compile(r"\bVALUES (\(.*?\))(?=\s*(?:ON CONFLICT|;|\Z))", re.DOTALL)


for _kind in (State, Kind, Purpose, ReasonCode, ErrorKind, WaitCode):
    sqlite3.register_adapter(_kind, str.__str__)
_none = dict[None, None]().get  # returns None; a function of Python would take longer
for _type, _adapter in ((bool, int), (bytes, bytes), (type(None), _none)):
    sqlite3.adapters.setdefault((_type, sqlite3.PrepareProtocol), _adapter)


class _Positional(NamedTuple):
    """A statement with ``?`` for each name; ``values_of`` makes its values, and is ``None`` if it has no name.

    ``of_many`` inserts :data:`_AT_ONCE` rows; it is empty if the statement is not ``INSERT … VALUES``.
    """

    sql: str
    of_many: str
    values_of: Callable[[Any], tuple[object, ...]] | None


class OnThread:
    """A :class:`~crawler.store.statements.Database` on a connection of SQLite."""

    def __init__(self, db: aiosqlite.Connection) -> None:
        self._hop: Callable[..., Awaitable[Any]] = db._execute
        self._connection = db._conn
        self._thread: int | None = None  # while it executes a function
        self._is_cancelled = Event()  # of the caller of this function

    async def run(self, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Execute a function on the thread as a whole. It awaits nothing but the methods of this object.

        If the caller is cancelled, the next call in the function raises :class:`asyncio.CancelledError`.
        """
        is_cancelled = Event()
        try:
            return cast(T, await self._hop(self._execute, function, is_cancelled))
        except asyncio.CancelledError:
            is_cancelled.set()
            raise

    def _execute(self, function: Callable[[], Coroutine[Any, Any, T]], is_cancelled: Event) -> T:
        self._thread, self._is_cancelled = get_ident(), is_cancelled
        coroutine = function()
        try:
            coroutine.send(None)
            coroutine.close()
        except StopIteration as end:
            return cast(T, end.value)
        finally:
            self._thread = None
        raise RuntimeError("a transaction awaits something else than its statements")

    async def step_through(self, read: Callable[[sqlite3.Connection], Iterator[None]]) -> None:
        """Execute a generator on the thread. Other calls are executed between its steps."""
        steps = read(self._connection)
        while await self._hop(next, steps, self) is None:
            pass

    async def execute(self, sql: str, parameters: Any = (), /) -> Any:
        return await self._call(self._connection.execute, sql, parameters)

    async def execute_fetchall(self, sql: str, parameters: Any = (), /) -> Iterable[Any]:
        """The rows; in a function of :meth:`run`, they are read as they are needed."""
        return cast(Iterable[Any], await self._call(self._fetch, sql, parameters))

    def _fetch(self, sql: str, parameters: Any) -> Iterable[Any]:
        rows = self._connection.execute(sql, parameters)
        return rows.fetchall() if self._thread is None else rows

    async def executemany(self, sql: str, parameters: Iterable[Any], /) -> None:
        """Execute a statement for each row of parameters: mappings, or tuples for a statement with ``?``."""
        statement = _by_position(sql)
        rows = iter(parameters if statement.values_of is None else map(statement.values_of, parameters))
        if not statement.of_many:
            await self._call(self._connection.executemany, statement.sql, rows)
            return
        group = list(islice(rows, _AT_ONCE))
        if len(group) == _AT_ONCE:
            rest: list[tuple[object, ...]] = []
            await self._call(self._connection.executemany, statement.of_many, _flattened(chain(group, rows), rest))
            group = rest
        if group:
            await self._call(self._connection.executemany, statement.sql, group)

    async def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        if self._thread != get_ident():
            return await self._hop(function, *arguments)
        if self._is_cancelled.is_set():
            self._is_cancelled = Event()  # the function still has to roll back
            raise asyncio.CancelledError
        return function(*arguments)


def _flattened(rows: Iterator[tuple[object, ...]], rest: list[tuple[object, ...]]) -> Iterator[tuple[object, ...]]:
    """The values of :data:`_AT_ONCE` rows each time. The last rows, if they are fewer, are added to ``rest``."""
    while len(group := list(islice(rows, _AT_ONCE))) == _AT_ONCE:
        yield tuple(chain.from_iterable(group))
    rest += group


@cache
def _by_position(sql: str) -> _Positional:
    """The statements that get several rows have no colon in their texts."""
    names = _NAME.findall(sql)
    positional = _NAME.sub("?", sql)
    of_many = _VALUES.sub(lambda found: f"VALUES {', '.join([found[1]] * _AT_ONCE)}", positional)
    values_of: Callable[[Any], tuple[object, ...]] | None = itemgetter(*names) if names else None
    if len(names) == 1:
        values_of = lambda row, name=names[0]: (row[name],)  # noqa: E731
    return _Positional(positional, "" if of_many == positional else of_many, values_of)
