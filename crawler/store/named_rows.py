"""The parameters and the rows of a query, both by name."""

from __future__ import annotations

import sqlite3
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

#: The values of a statement: by name for ``:name``, in order for ``?``.
Parameters = Sequence[object] | Mapping[str, object]


@lru_cache(maxsize=200)
def row_class(columns: tuple[str, ...]) -> Any:
    """The class of named tuples for rows with these columns.

    A column without a usable name is called by its position: ``_0``, ``_1`` and so on.
    """
    return namedtuple("Row", columns, rename=True)


def by_column(rows: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Named tuples of rows that ``Store.query`` returned."""
    return [row_class(tuple(row))(*row.values()) for row in rows]


def named_rows() -> Callable[[sqlite3.Cursor, tuple[Any, ...]], Any]:
    """A row factory for a connection to SQLite that makes named tuples."""
    described: Any = None
    make: Any = None

    def named(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> Any:
        nonlocal described, make
        if cursor.description is not described:  # the same object for all rows of a statement
            described = cursor.description
            make = row_class(tuple(column[0] for column in described))._make
        return make(row)

    return named
