"""Rows of the views of a bucket's store as Parquet."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from crawler.frontier.buckets import Bucket
from crawler.parquet import URL_NUMBERS, ParquetFile, url_number
from crawler.store.statements import load_statements
from crawler.store.views import VIEWS, ColumnType

SQL = load_statements("crawler.dataset")

_ROWS_AT_ONCE = 5_000
_BODIES_AT_ONCE = 50

#: The tables of which a bucket has the rows of its own sites only.
_OF_SITES = ("sites", "robots_versions", "robots_answers", "mirrors", "seeds")
#: The columns beside those of the view. A URL that the scope refused may stand in several buckets; ``is_own`` is the
#: row of the bucket of its site. The others are those of the views by number, and those of tables that have no view.
_ADDED = {
    "urls": {"target_id": ColumnType.INTEGER, "hops": ColumnType.INTEGER, "is_own": ColumnType.YES},
    "links": {"follow": ColumnType.YES},
    "bodies": {"body_sha256": ColumnType.TEXT, "data": ColumnType.BYTES},
    "outgoing": {
        "bucket": ColumnType.INTEGER,
        "url": ColumnType.TEXT,
        "depth": ColumnType.INTEGER,
        "hops": ColumnType.INTEGER,
        "seed": ColumnType.INTEGER,
        "kind": ColumnType.TEXT,
        "lastmod": ColumnType.NUMBER,
        "by_domain": ColumnType.INTEGER,
    },
}
#: The columns that no statement reads.
_MADE = {"urls": ("is_own", "target_id")}
#: The columns of links that the store has as lists, one for each page.
_LISTS = ("target_id", "anchor", "rel", "follow")


def columns_of(table: str) -> dict[str, ColumnType]:
    """The columns of a table of the dataset: those of the view, and those of :data:`_ADDED`."""
    view = VIEWS.get("requests" if table == "lost" else table, {})
    return {name: column.type for name, column in view.items()} | _ADDED.get(table, {})


def table_file(table: str, out: Path | BinaryIO) -> ParquetFile:
    """A Parquet file for rows of a table."""
    return ParquetFile(out, columns_of(table), extra="rounds", what="a dataset")


def write_table(
    db: sqlite3.Connection,
    *,
    table: str,
    bucket: Bucket,
    number: int,
    parameters: Mapping[str, Any],
    path: Path,
    counts: dict[str, int],
) -> Iterator[None]:
    """Write the rows of a table of a bucket's store in round ``number`` to ``path``; ``counts`` gets their number.

    A step is some thousand rows. Without a row, no file is written.
    """
    batches = _links(db, parameters) if table == "links" else _rows(db, table, bucket, parameters)
    with ExitStack() as stack:
        file: ParquetFile | None = None
        for columns in batches:
            if file is not None:
                yield
            file = file or stack.enter_context(table_file(table, path))
            put_numbers(columns, bucket, number)
            file.add_columns([columns[name] for name in columns_of(table)])
    counts[table] = 0 if file is None else file.count


def _rows(
    db: sqlite3.Connection, table: str, bucket: Bucket, parameters: Mapping[str, Any]
) -> Iterator[dict[str, Sequence[Any]]]:
    """The rows of a table, some thousand at a time, as columns."""
    view = [name for name in columns_of(table) if name not in _MADE.get(table, ())]
    site = view.index("site") if table in _OF_SITES else None
    cursor = _tuples(db, SQL[table].format(columns=", ".join(view)), parameters)
    while rows := cursor.fetchmany(_BODIES_AT_ONCE if table == "bodies" else _ROWS_AT_ONCE):
        if site is not None:
            rows = [row for row in rows if bucket.other_of(row[site]) is None]
        if rows:
            yield dict(zip(view, zip(*rows, strict=True), strict=True))


def _links(db: sqlite3.Connection, parameters: Mapping[str, Any]) -> Iterator[dict[str, Sequence[Any]]]:
    """The links, as :func:`_rows`.

    SQLite hands over those of a page at once: its driver releases and takes Python's lock for each row.
    """
    urls: dict[int, str] = {}  # those of the last rows: most pages of a site have the same targets
    links = defaultdict[str, list[Any]](list)
    for source, *lists in _tuples(db, SQL["links"], parameters):
        for name, text in zip(_LISTS, lists, strict=True):
            links[name] += msgspec.json.decode(text)
        links["source_id"] += [source] * (len(links["target_id"]) - len(links["source_id"]))
        if len(links["source_id"]) >= _ROWS_AT_ONCE:
            yield _with_urls(db, links, urls)
            links.clear()
    if links:
        yield _with_urls(db, links, urls)


def _tuples(db: sqlite3.Connection, statement: str, parameters: Mapping[str, Any]) -> sqlite3.Cursor:
    """The rows of a statement as tuples, which are made in half the time of named tuples."""
    cursor = db.cursor()
    cursor.row_factory = None
    return cursor.execute(statement, parameters)


def _with_urls(
    db: sqlite3.Connection, links: Mapping[str, list[Any]], urls: dict[int, str]
) -> dict[str, Sequence[Any]]:
    """The columns of ``links`` with the URLs. ``urls`` by number are known; those of these links replace them."""
    numbers = {*links["source_id"], *links["target_id"]}
    unknown = msgspec.json.encode(numbers.difference(urls)).decode()
    (found,) = _tuples(db, SQL["urls_of"], {"numbers": unknown})
    urls |= zip(*map(msgspec.json.decode, found), strict=True)
    for old in urls.keys() - numbers:
        del urls[old]
    return {**links, **{URL_NUMBERS[of]: [urls[number] for number in links[of]] for of in ("source_id", "target_id")}}


def put_numbers(columns: dict[str, Any], bucket: Bucket, number: int) -> None:
    """Put numbers into ``columns`` of rows of a store that mean the same in the whole dataset."""
    for name, of in URL_NUMBERS.items():
        if name in columns or (name == "target_id" and "target" in columns):
            urls = columns.get(of) or [None] * len(columns[name])  # a page has no URL of its cluster
            columns[name] = list(map(url_number, urls))
    if "run_id" in columns:
        columns["run_id"] = [number] * len(columns["run_id"])
    if "robots_copy" in columns:
        copies, high = columns["robots_copy"], bucket.number << 32
        columns["robots_copy"] = [None if copy is None else high | copy for copy in copies]
    if "reason_code" in columns and "site" in columns:
        is_own = {site: bucket.other_of(site) is None for site in set(columns["site"])}
        columns["is_own"] = [is_own[site] for site in columns["site"]]
