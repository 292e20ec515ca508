"""A connection that binds the rows of ``executemany`` by position.

SQLite takes half as long to bind a row by position as by name: for each name, the driver makes a text and looks it up.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from functools import cache
from operator import itemgetter
from typing import Any

import aiosqlite

_NAME = re.compile(r":(\w+)")


class ByPosition:
    """A :class:`~crawler.store.statements.Database` on a connection of SQLite."""

    def __init__(self, db: aiosqlite.Connection) -> None:
        self._db = db
        self.execute = db.execute
        self.execute_fetchall = db.execute_fetchall

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> Awaitable[Any]:
        """Execute a statement for each row of parameters: mappings, or tuples for a statement with ``?``."""
        positional, values_of = _by_position(sql)
        return self._db.executemany(positional, parameters if values_of is None else map(values_of, parameters))


@cache
def _by_position(sql: str) -> tuple[str, Callable[[Any], tuple[object, ...]] | None]:
    """A statement with ``?`` for each name, and the function that makes its values; ``None`` if it has no name.

    The statements that get several rows have no colon in their texts.
    """
    names = _NAME.findall(sql)
    if not names:
        return sql, None
    if len(names) == 1:
        return _NAME.sub("?", sql), lambda row, name=names[0]: (row[name],)
    return _NAME.sub("?", sql), itemgetter(*names)
