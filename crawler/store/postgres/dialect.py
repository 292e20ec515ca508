"""The SQL and the values of SQLite, translated for PostgreSQL.

Statements that both databases run are written once, for SQLite. Functions that have another name in PostgreSQL are
functions of its schema (``hex``, ``instr``). A text of the web may hold a NUL, which PostgreSQL cannot store: it
becomes U+FFFD, as in HTML (HTML Living Standard, 13.2.5).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

_ROWS_AT_ONCE = 10_000
# A text, a quoted name, a comment or a cast, which stay as they are; or a part to translate.
_TOKEN = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|::"
    r"|\?(?P<number>\d*)"
    r"|(?<!\w):(?P<name>[A-Za-z_]\w*)"
    r"|\bCAST\((?P<cast>[^()]*) AS INTEGER\)"
    r"|\bgroup_concat\((?P<concat>[^()]*)\)",
    re.DOTALL | re.IGNORECASE,
)


class Translated(NamedTuple):
    """A statement for PostgreSQL.

    ``names`` are the named parameters in the order of their numbers ``$1``, ``$2`` and so on.
    """

    sql: str
    names: tuple[str, ...]

    def values(self, parameters: Mapping[str, Any] | Iterable[Any]) -> list[Any]:
        """The parameters in the order of their numbers. Raises :class:`KeyError` for one that is missing."""
        given = [parameters[name] for name in self.names] if isinstance(parameters, Mapping) else parameters
        return [storable(value) for value in given]


@lru_cache(maxsize=1000)
def translate(sql: str) -> Translated:
    """A statement with numbered parameters (``$1``) for named or positional ones, in the words of PostgreSQL."""
    count = 0
    names: dict[str, int] = {}

    def translated(token: re.Match[str]) -> str:
        nonlocal count
        if token["name"] is not None:
            return f"${names.setdefault(token['name'], len(names) + 1)}"
        if token["number"] is not None:
            count = int(token["number"]) if token["number"] else count + 1
            return f"${count}"
        if token["cast"] is not None:
            inner = _TOKEN.sub(translated, token["cast"])
            return f"trunc({inner})::bigint"
        if token["concat"] is not None:
            return f"string_agg(({token['concat']})::text, ',')"
        return token[0]

    return Translated(_TOKEN.sub(translated, sql), tuple(names))


def storable(value: Any) -> Any:
    """A value as PostgreSQL can store it."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value


def columns(rows: Iterable[Any]) -> Iterator[Any]:
    """Rows as columns, for a statement that takes arrays: at most 10,000 rows at a time.

    Rows of named values become a mapping of names to lists, other rows a list of lists.
    """
    rest = iter(rows)
    while batch := list(islice(rest, _ROWS_AT_ONCE)):
        if isinstance(batch[0], Mapping):
            yield {name: [storable(row[name]) for row in batch] for name in batch[0]}
        else:
            yield [[storable(value) for value in column] for column in zip(*batch, strict=True)]
