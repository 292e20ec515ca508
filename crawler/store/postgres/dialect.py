"""The SQL and the values of SQLite as PostgreSQL takes them: what is written once, for both, is mended here.

What only has another name there is a function of the schema (``hex``, ``instr``); each store has its own statements
for what it writes (``sql/*/queries.sql``). Text of the web may hold a NUL, which PostgreSQL has no place for: it is
stored as U+FFFD, as HTML reads it (HTML Living Standard, 13.2.5).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from crawler.store.rows import Parameters

_ROWS_AT_ONCE = 10_000
# A text, a quoted name or a comment, in which nothing is mended; or something to mend.
_TOKEN = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/"
    r"|\?(?P<number>\d*)"
    r"|(?<!:):(?P<name>[a-z_]\w*)"
    r"|\bCAST\((?P<cast>[^()]*) AS INTEGER\)"
    r"|\bgroup_concat\((?P<concat>[^()]*)\)"
    r"|(?P<one>\b1)(?= << 39)",
    re.DOTALL | re.IGNORECASE,
)


def bind(sql: str, parameters: Parameters) -> tuple[str, list[Any]]:
    """A statement as PostgreSQL takes it, and its values in order."""
    translated, names = _translate(sql)
    values = [parameters[name] for name in names] if isinstance(parameters, Mapping) else parameters
    return translated, [storable(value) for value in values]


def translate(sql: str) -> str:
    """A statement with ``$1`` for ``?``, ``?1`` and ``:name``, and with PostgreSQL's functions for SQLite's."""
    return _translate(sql)[0]


@lru_cache(maxsize=1000)
def _translate(sql: str) -> tuple[str, list[str]]:
    """The translated statement, and the names of its parameters in the order of their numbers."""
    count = 0
    names: list[str] = []

    def mended(token: re.Match[str]) -> str:
        nonlocal count
        if token["number"] is not None:
            count = int(token["number"]) if token["number"] else count + 1
            return f"${count}"
        if token["name"] is not None:
            if token["name"] not in names:
                names.append(token["name"])
            return f"${names.index(token['name']) + 1}"
        if token["cast"] is not None:
            inner = _TOKEN.sub(mended, token["cast"])
            return f"trunc({inner})::bigint"
        if token["concat"] is not None:
            return f"string_agg(({token['concat']})::text, ',')"
        return "1::bigint" if token["one"] else token[0]

    return _TOKEN.sub(mended, sql), names


def storable(value: Any) -> Any:
    """A value as PostgreSQL takes it."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value


def columns(rows: Iterable[Any]) -> Iterator[list[list[Any]]]:
    """Rows as columns, so many at a time that a statement for them keeps within bounds."""
    rest = iter(rows)
    while batch := list(islice(rest, _ROWS_AT_ONCE)):
        yield [[storable(value) for value in column] for column in zip(*batch, strict=True)]
