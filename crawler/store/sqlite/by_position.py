"""A connection that binds the rows of ``executemany`` by position, and inserts several of them by one statement.

SQLite takes half as long to bind a row by position as by name: for each name, the driver makes a text and looks it up.
The driver releases and takes Python's lock for each statement, and its thread shares the lock with the event loop.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain, islice
from operator import itemgetter
from typing import Any, NamedTuple

import aiosqlite

#: The rows that one statement inserts. With more of them, a row takes no less time.
_AT_ONCE = 32
_NAME = re.compile(r":(\w+)")
_VALUES = re.compile(r"\bVALUES (\(.*?\))(?=\s*(?:ON CONFLICT|;|\Z))", re.DOTALL)


class _Positional(NamedTuple):
    """A statement with ``?`` for each name; ``values_of`` makes its values, and is ``None`` if it has no name.

    ``of_many`` inserts :data:`_AT_ONCE` rows; it is empty if the statement is not ``INSERT … VALUES``.
    """

    sql: str
    of_many: str
    values_of: Callable[[Any], tuple[object, ...]] | None


class ByPosition:
    """A :class:`~crawler.store.statements.Database` on a connection of SQLite."""

    def __init__(self, db: aiosqlite.Connection) -> None:
        self._db = db
        self.execute = db.execute
        self.execute_fetchall = db.execute_fetchall

    async def executemany(self, sql: str, parameters: Iterable[Any], /) -> None:
        """Execute a statement for each row of parameters: mappings, or tuples for a statement with ``?``."""
        statement = _by_position(sql)
        rows = iter(parameters if statement.values_of is None else map(statement.values_of, parameters))
        if not statement.of_many:
            await self._db.executemany(statement.sql, rows)
            return
        group = list(islice(rows, _AT_ONCE))
        if len(group) == _AT_ONCE:
            rest: list[tuple[object, ...]] = []
            await self._db.executemany(statement.of_many, _flattened(chain(group, rows), rest))
            group = rest
        if group:
            await self._db.executemany(statement.sql, group)


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
