"""Every view of the store with its columns: type and meaning. `views.txt` lists them beside ``sql/views.sql``.

Exports, the codebook of the data appendix and ``docs/views.md`` are made from this table.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from crawler.model import RobotsAction
from crawler.store.statements import read_sql


class ColumnType(StrEnum):
    """A column's type. Any column may be NULL."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    TIME = "time"  # seconds since the epoch
    YES = "yes"  # 0 or 1
    JSON = "json"  # a JSON document, as text
    BYTES = "bytes"


class Column(NamedTuple):
    """The type of a column, and what it means."""

    type: ColumnType
    meaning: str


def columns_of(lines: Iterable[str]) -> dict[str, Column]:
    """Columns from lines such as ``url text: the page``. Without a meaning, a column means what it means elsewhere."""
    parted = [line.strip().partition(": ") for line in lines]
    words = [(head.split(" "), meaning) for head, _, meaning in parted]
    return {name: Column(ColumnType(kind), meaning or _MEANINGS[name]) for (name, kind), meaning in words}


_TEXT = read_sql("crawler.store", "views.txt").replace("{ROBOTS_ACTIONS}", ", ".join(RobotsAction))
_COMMENT, _ANY, *_PARTS = _TEXT.strip().split("\n\n")
_MEANINGS = {name: meaning for name, _, meaning in (line.strip().partition(": ") for line in _ANY.split("\n")[1:])}

#: Every view but those by number (docs/store.md), with its columns in order.
VIEWS = {part.partition(":")[0]: columns_of(part.split("\n")[1:]) for part in _PARTS}

#: What each of these views has a row for.
ROWS = {part.partition(":")[0]: part.partition("\n")[0].partition(": ")[2] for part in _PARTS}
