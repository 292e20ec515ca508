"""Rows of the views of a bucket's store as Parquet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crawler.frontier.buckets import Bucket
from crawler.parquet import URL_NUMBERS, ParquetFile, url_number
from crawler.store.statements import load_statements
from crawler.store.views import VIEWS, ColumnType

if TYPE_CHECKING:
    from crawler.store.sections import SqliteStore

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


def table_file(table: str, path: Path) -> ParquetFile:
    """A Parquet file for rows of a table."""
    return ParquetFile(path, columns_of(table), extra="rounds", what="a dataset")


async def write_table(
    store: SqliteStore, table: str, bucket: Bucket, number: int, parameters: Mapping[str, Any], path: Path
) -> int:
    """Write rows of a bucket's store in round ``number`` to ``path``; returns how many. None: no file."""
    made = ("is_own", "target_id") if table == "urls" else ()
    view = [name for name in columns_of(table) if name not in made]
    statement = SQL[table].format(columns=", ".join(view))
    used = {name: value for name, value in parameters.items() if f":{name}" in statement}
    site = view.index("site") if table in _OF_SITES else None
    file: ParquetFile | None = None
    async with aclosing(store.batches(statement, used, by_name=False)) as batches:
        with ExitStack() as stack:
            async for rows in batches:
                own = rows if site is None else [row for row in rows if bucket.other_of(row[site]) is None]
                if own:
                    file = file or stack.enter_context(table_file(table, path))
                    columns = columns_in_dataset(view, own, bucket, number)
                    file.add_columns([columns[name] for name in columns_of(table)])
    return 0 if file is None else file.count


def columns_in_dataset(names: Sequence[str], rows: Sequence[Any], bucket: Bucket, number: int) -> dict[str, Any]:
    """Rows of a store by column, with numbers that mean the same in the whole dataset."""
    columns: dict[str, Any] = dict(zip(names, zip(*rows, strict=True), strict=True))
    for name, of in URL_NUMBERS.items():
        if name in columns or name == "target_id":
            urls = columns.get(of, [None] * len(rows))
            numbers = {url: url_number(url) for url in set(urls)}
            columns[name] = [numbers[url] for url in urls]
    if "run_id" in columns:
        columns["run_id"] = [number] * len(rows)
    if "robots_copy" in columns:
        copies, high = columns["robots_copy"], bucket.number << 32
        columns["robots_copy"] = [None if copy is None else high | copy for copy in copies]
    if "reason_code" in columns and "site" in columns:
        is_own = {site: bucket.other_of(site) is None for site in set(columns["site"])}
        columns["is_own"] = [is_own[site] for site in columns["site"]]
    return columns
