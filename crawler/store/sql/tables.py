"""The tables of a store, read from its schema, and the statements that write whole rows.

An insert, an update by a key and a deletion by a key follow from the table and the names of the columns, so they are
made here. A statement that decides something is a named one (``queries.sql``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, Literal, NamedTuple

from crawler.store.sql.schema import load_queries, type_in_postgres
from crawler.store.statements import Database, Statements, read_sql

_COMMENT = re.compile(r"--[^\n]*")
_TABLE = re.compile(r"\s*CREATE TABLE (\w+) \((.*?)\)(?: WITHOUT ROWID| room\(\d+\)| WITH \(.*\))?\s*\Z", re.DOTALL)
_COMMA = re.compile(r",\s*(?![^()]*\))")  # outside of brackets

#: Columns with the number of a row that is given by its SHA-256: the table of that row.
_BY_SHA256 = {"page": ("body_id", "body"), "robots_copy": ("text_id", "robots_text")}

Dialect = Literal["sqlite", "postgres"]
Row = dict[str, object]  # values by the names of columns or parameters
#: What an insert does with a row whose key the table has: "kept" leaves the old row, "replaced" takes the new columns.
#: None: that is an error.
Known = Literal["kept", "replaced"] | None


class Table(NamedTuple):
    """A table: its primary key, whether the database numbers its rows, and the type of each column.

    The types are as the schema writes them.
    """

    key: tuple[str, ...]
    types: dict[str, str]
    is_numbered: bool


@cache
def tables(dialect: str) -> dict[str, Table]:
    """The tables of both databases, and those that ``sqlite`` or ``postgres`` has in a form of its own."""
    both, own = read_sql("crawler.store.sql", "schema.sql"), read_sql(f"crawler.store.{dialect}", "schema.sql")
    statements = map(_TABLE.match, _COMMENT.sub("", f"{both}\n{own}").split(";"))
    return {found[1]: _table(_COMMA.split(found[2].strip())) for found in statements if found is not None}


def _table(definitions: Sequence[str]) -> Table:
    key: list[str] = []
    types: dict[str, str] = {}
    is_numbered = False
    for name, kind, rest in ((*definition.split(None, 2), "")[:3] for definition in definitions):
        if name == "PRIMARY":
            key = re.findall(r"\w+", rest)
            continue
        types[name] = {"own_number()": "INTEGER", "lasting_number()": "INTEGER", "double": "REAL"}.get(kind, kind)
        is_numbered = is_numbered or kind.endswith("_number()")
        if (is_numbered and not key) or "PRIMARY KEY" in rest:
            key = [name]
    return Table(tuple(key), types, is_numbered)


class StoreStatements(Statements):
    """The named statements of a store on one connection, and those that write rows of a table.

    Rows are mappings with the same columns each. An insert also takes tuples of a class whose fields are the columns.
    """

    def __init__(self, db: Database, dialect: Dialect) -> None:
        super().__init__(db, load_queries(dialect))
        self._dialect = dialect

    async def insert(
        self, table: str, rows: Iterable[Any], *, known: Known = None, newest: str = "", columns: tuple[str, ...] = ()
    ) -> None:
        """Insert rows. ``columns`` are those of plain tuples.

        No row replaces one with a greater value in the column ``newest``.
        """
        rest = iter(rows)
        if (first := next(rest, None)) is None:
            return
        names = columns or getattr(first, "_fields", None) or tuple(first)
        sql = insert_statement(self._dialect, table, names, known, newest, named=isinstance(first, Mapping))
        await self._db.executemany(sql, chain([first], rest))

    async def update(self, table: str, rows: Iterable[Mapping[str, object]], key: str = "id") -> None:
        """Set the columns of the rows with these values in the column ``key``."""
        rest = iter(rows)
        if (first := next(rest, None)) is not None:
            await self._db.executemany(_update(self._dialect, table, tuple(first), key), chain([first], rest))

    async def delete(self, table: str, column: str, values: Iterable[object]) -> None:
        """Delete the rows with one of these values in a column."""
        rows = [{column: value} for value in values]
        if rows:
            await self._db.executemany(_delete(self._dialect, table, column), rows)

    async def clear(self, *names: str) -> None:
        """Delete all rows of tables."""
        for table in names:
            await self._db.execute(f"DELETE FROM {table}")


@cache
def insert_statement(
    dialect: Dialect, table: str, names: tuple[str, ...], known: Known = None, newest: str = "", *, named: bool = True
) -> str:
    """The statement that inserts rows of these values, whose parameters have their names, or are ``?`` each."""
    numbered, other = _BY_SHA256.get(table, ("", ""))
    columns = [numbered if other and name == "sha256" else name for name in names]
    given = [f":{name}" if named else "?" for name in names]
    one = given if dialect == "sqlite" else [f"t.{name}" for name in names]
    values = ", ".join(
        value if name == column else f"(SELECT id FROM {other} WHERE {other}.sha256 = {value})"
        for name, column, value in zip(names, columns, one, strict=True)
    )
    rows = f"VALUES ({values})" if dialect == "sqlite" else f"SELECT {values} FROM {_arrays(table, names, given)}"
    end = ""
    if known == "kept":
        end = " ON CONFLICT DO NOTHING"
    elif known == "replaced":
        key = tables(dialect)[table].key
        new = ", ".join(f"{column} = excluded.{column}" for column in columns if column not in key)
        end = f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET {new}"
        end += f" WHERE excluded.{newest} >= {table}.{newest}" if newest else ""
    return f"INSERT INTO {table} ({', '.join(columns)}) {rows}{end}"


@cache
def _update(dialect: Dialect, table: str, names: tuple[str, ...], key: str) -> str:
    one = ":" if dialect == "sqlite" else "t."
    new = ", ".join(f"{name} = {one}{name}" for name in names if name != key)
    given = "" if dialect == "sqlite" else f" FROM {_arrays(table, names, [f':{name}' for name in names])}"
    return f"UPDATE {table} SET {new}{given} WHERE {table}.{key} = {one}{key}"


@cache
def _delete(dialect: Dialect, table: str, column: str) -> str:
    value = f":{column}" if dialect == "sqlite" else f"ANY(:{column}::{_array_type(table, column)})"
    return f"DELETE FROM {table} WHERE {column} = {value}"


def _arrays(table: str, names: Sequence[str], given: Sequence[str]) -> str:
    """The rows of PostgreSQL whose columns are given as arrays, as a table ``t``."""
    arrays = (f"{value}::{_array_type(table, name)}" for name, value in zip(names, given, strict=True))
    return f"unnest({', '.join(arrays)}) AS t ({', '.join(names)})"


def _array_type(table: str, name: str) -> str:
    other = _BY_SHA256.get(table)
    return f"{type_in_postgres('BLOB' if other and name == 'sha256' else tables('postgres')[table].types[name])}[]"
