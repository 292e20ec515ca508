"""Rows of the views of a bucket's store as Parquet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crawler.frontier.buckets import Bucket
from crawler.parquet import URL_NUMBERS, ParquetFile, url_number
from crawler.store.statements import load_statements
from crawler.store.views import VIEWS, ColumnType

if TYPE_CHECKING:
    from crawler.store.sections import Store

SQL = load_statements("crawler.dataset")

#: The tables of which a bucket has the rows of its own sites only.
_OF_SITES = ("sites", "robots_versions", "robots_answers", "mirrors", "seeds")
#: The columns beside those of the view. A URL that the scope refused may stand in several buckets; ``is_own`` is the
#: row of the bucket of its site. The others are those of the views by number.
_ADDED = {
    "urls": {"target_id": ColumnType.INTEGER, "hops": ColumnType.INTEGER, "is_own": ColumnType.YES},
    "links": {"follow": ColumnType.YES},
}
_OFFER = {
    "bucket": ColumnType.INTEGER,
    "url": ColumnType.TEXT,
    "depth": ColumnType.INTEGER,
    "hops": ColumnType.INTEGER,
    "seed": ColumnType.INTEGER,
    "kind": ColumnType.TEXT,
    "lastmod": ColumnType.NUMBER,
    "by_domain": ColumnType.INTEGER,
}


def columns_of(table: str) -> dict[str, ColumnType]:
    """The columns of a table of the dataset: those of the view, and those of :data:`_ADDED`."""
    if table == "outgoing":
        return _OFFER
    columns = {name: column.type for name, column in VIEWS["requests" if table == "lost" else table].items()}
    return columns | _ADDED.get(table, {})


class TableFile(ParquetFile):
    """A Parquet file with rows of a table."""

    def __init__(self, table: str, path: Path) -> None:
        self._columns = columns_of(table)
        super().__init__(path, self._columns, extra="rounds", what="a dataset")

    def add_row(self, row: Mapping[str, Any]) -> None:
        """Add a row; columns that it does not have are empty."""
        self.add([row.get(name) for name in self._columns])


async def write_table(
    store: Store, table: str, bucket: Bucket, number: int, parameters: Mapping[str, Any], path: Path
) -> int:
    """Write rows of a bucket's store in round ``number`` to ``path``; returns how many."""
    made = ("is_own", "target_id") if table == "urls" else ()
    view = [name for name in columns_of(table) if name not in made]
    statement = SQL[table].format(columns=", ".join(view))
    used = {name: value for name, value in parameters.items() if f":{name}" in statement}
    with TableFile(table, path) as file:
        async for values in store.rows(statement, used):
            row = row_of(view, values, bucket, number)
            if table in _OF_SITES and bucket.other_of(row["site"]) is not None:
                continue
            file.add_row(row)
    return file.count


def row_of(names: list[str], values: Any, bucket: Bucket, number: int) -> dict[str, Any]:
    """A row of a store, with numbers that mean the same in the whole dataset."""
    row = dict(zip(names, values, strict=False))
    for name, of in URL_NUMBERS.items():
        if name in row or name == "target_id":
            row[name] = url_number(row.get(of))
    if "run_id" in row:
        row["run_id"] = number
    if row.get("robots_copy") is not None:
        row["robots_copy"] = bucket.number << 32 | row["robots_copy"]
    if "reason_code" in row and "site" in row:
        row["is_own"] = bucket.other_of(row["site"]) is None
    return row
