"""Named statements: the files that hold them, and calls of them on a connection.

SQL stands in files, in the folder of the store and in those of features. A feature reads the views of the store and
nothing else; ``tests/e2e/test_views_only.py`` enforces it. A statement begins with its name, and comments say what it
returns::

    -- name: largest_sites
    -- The sites with the most pages, largest first.
    SELECT site, fetched FROM sites ORDER BY fetched DESC LIMIT :limit

Parameters are named (``:limit``). Rows are named tuples, made from the names of the columns.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from itertools import chain
from pkgutil import get_data
from typing import Any, Protocol

#: What a store says of a statement of the user that does more than read the views.
ONLY_READS = "a query only reads the store; begin it with SELECT, and read the views of docs/store.md"

_UNLIMITED = 1 << 62

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_COMMENT = re.compile(r"^ *--.*\n", re.MULTILINE)


def unlimited(limit: int | None) -> int:
    """``limit`` as a parameter of a statement, which compares a number with it; ``None`` is no limit."""
    return _UNLIMITED if limit is None else limit


def read_sql(package: str, file: str) -> str:
    """The text of an SQL file in the folder of ``package``."""
    import_module(package)  # get_data alone would load it without making it an attribute of its parent
    content = get_data(package, file)  # importlib.resources takes twenty times as long to load
    assert content is not None, "the loader of Python's packages reads files"
    return content.decode()


@cache
def load_statements(package: str, file: str = "queries.sql") -> Mapping[str, str]:
    """The statements in ``file`` of ``package`` by name, without their comments."""
    _, *parts = _NAME.split(read_sql(package, file))
    return {name: _COMMENT.sub("", sql).strip() for name, sql in zip(parts[::2], parts[1::2], strict=True)}


def render_calls(sql: str, functions: Mapping[str, str | Callable[[str], str]]) -> str:
    """``sql`` with the calls of ``functions`` written out. Their arguments contain no brackets.

    ``functions`` maps the name of a function to its text, in which ``{0}`` stands for the arguments, or to a function
    that makes the text from the arguments.
    """

    def written_out(found: re.Match[str]) -> str:
        text = functions[found[1]]
        return text.format(found[2]) if isinstance(text, str) else text(found[2])

    return re.sub(rf"\b({'|'.join(functions)})\(([^()]*)\)", written_out, sql)


class UserSql(str):
    """A statement that contains text of the user. A store executes it only if it does nothing but read the views."""

    __slots__ = ()


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


class Queries:
    """Named statements that return rows. A call names the statement and its parameters.

    ``fetch_rows`` executes a statement with named parameters and returns its rows as named tuples.
    """

    def __init__(
        self, fetch_rows: Callable[[str, Any], Awaitable[Iterable[Any]]], statements: Mapping[str, str]
    ) -> None:
        self._fetch_rows = fetch_rows
        self._statements = statements

    async def fetch(self, statement: str, /, **parameters: object) -> list[Any]:
        return list(await self._fetch_rows(self._statements[statement], parameters))

    async def each(self, statement: str, /, **parameters: object) -> Iterable[Any]:
        """As :meth:`fetch`. SQLite reads the rows as they are needed, before the end of the transaction."""
        return await self._fetch_rows(self._statements[statement], parameters)

    async def fetch_one(self, statement: str, /, **parameters: object) -> Any:
        """The first row, or ``None``."""
        return next(iter(await self.fetch(statement, **parameters)), None)


class Statements(Queries):
    """Named statements of any kind on one connection."""

    def __init__(self, db: Database, statements: Mapping[str, str]) -> None:
        super().__init__(db.execute_fetchall, statements)
        self._db = db

    async def execute(self, statement: str, /, **parameters: object) -> None:
        await self._db.execute(self._statements[statement], parameters)

    async def execute_many(self, statement: str, rows: Iterable[Mapping[str, object] | tuple[object, ...]], /) -> None:
        """Execute a statement for each row of parameters; see :meth:`Database.executemany`."""
        rest = iter(rows)
        for first in rest:  # without rows there is nothing to execute
            await self._db.executemany(self._statements[statement], chain([first], rest))
