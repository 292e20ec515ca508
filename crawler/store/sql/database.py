"""One connection to a database, and the named statements on it: what the stores on SQLite and PostgreSQL share.

Parameters are named (``:site_id``). Rows are named tuples, made here from the names of the columns.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from itertools import chain
from typing import Any, Protocol


class Database(Protocol):
    """A connection, one statement at a time; :class:`aiosqlite.Connection` is one.

    Parameters are given by name, or by position for a statement with ``?``. Every method raises the errors of the
    database's driver, or :class:`crawler.errors.StoreError`.
    """

    def execute(self, sql: str, parameters: Any = None, /) -> Awaitable[Any]: ...

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> Awaitable[Any]:
        """Execute a statement for each row of parameters. No row may depend on the effect of another row."""
        ...

    def execute_fetchall(self, sql: str, parameters: Any = None, /) -> Awaitable[Iterable[Any]]:
        """Execute a statement; returns its rows as named tuples."""
        ...


class Statements:
    """The named statements of a dialect on one connection. A call names the statement and its parameters."""

    def __init__(self, db: Database, queries: Mapping[str, str]) -> None:
        self._db = db
        self._queries = queries

    async def execute(self, statement: str, /, **parameters: object) -> None:
        await self._db.execute(self._queries[statement], parameters)

    async def execute_many(self, statement: str, rows: Iterable[Mapping[str, object] | tuple[object, ...]], /) -> None:
        """Execute a statement for each row of parameters; see :meth:`Database.executemany`."""
        rest = iter(rows)
        for first in rest:  # without rows there is nothing to execute
            await self._db.executemany(self._queries[statement], chain([first], rest))

    async def fetch(self, statement: str, /, **parameters: object) -> list[Any]:
        return list(await self._db.execute_fetchall(self._queries[statement], parameters))

    async def fetch_one(self, statement: str, /, **parameters: object) -> Any:
        """The first row, or ``None``."""
        return next(iter(await self.fetch(statement, **parameters)), None)
