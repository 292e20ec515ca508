"""Rows of the views of a bucket's store as Parquet."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from crawler.dataset.records import TASK_TABLES
from crawler.errors import require
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
#: row of the bucket of its site. The others are those of the views by number.
_ADDED = {
    "urls": {"target_id": ColumnType.INTEGER, "hops": ColumnType.INTEGER, "is_own": ColumnType.YES},
    "links": {"follow": ColumnType.YES},
}
#: The columns that no statement reads.
_MADE = {"urls": ("is_own", "target_id"), "links": ("source", "target")}
_BODY = {"body_sha256": ColumnType.TEXT, "data": ColumnType.BYTES}
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


class Written(NamedTuple):
    """The rows of a table in Parquet, or the file with bodies, and how many there are."""

    rows: int
    content: bytes | Path


def columns_of(table: str) -> dict[str, ColumnType]:
    """The columns of a table of the dataset: those of the view, and those of :data:`_ADDED`."""
    if table in ("outgoing", "bodies"):
        return _OFFER if table == "outgoing" else _BODY
    columns = {name: column.type for name, column in VIEWS["requests" if table == "lost" else table].items()}
    return columns | _ADDED.get(table, {})


def table_file(table: str, out: Path | BinaryIO) -> ParquetFile:
    """A Parquet file for rows of a table."""
    return ParquetFile(out, columns_of(table), extra="rounds", what="a dataset")


def write_tables(
    db: sqlite3.Connection,
    bucket: Bucket,
    number: int,
    parameters: Mapping[str, Any],
    bodies: Path,
    written: dict[str, Written],
) -> Iterator[None]:
    """Put the rows of a bucket's store in round ``number`` into ``written``, by table. A step is some thousand rows.

    Bodies, which may take much room, go into the file ``bodies``.
    """
    for table in TASK_TABLES:
        at_once = _BODIES_AT_ONCE if table == "bodies" else _ROWS_AT_ONCE
        view = [name for name in columns_of(table) if name not in _MADE.get(table, ())]
        site = view.index("site") if table in _OF_SITES else None
        cursor = _tuples(db, SQL[table].format(columns=", ".join(view)), parameters)
        buffer = require("rounds", "a dataset", "pyarrow").BufferOutputStream()
        path = bodies if table == "bodies" else None
        with ExitStack() as stack:
            file: ParquetFile | None = None
            while rows := cursor.fetchmany(at_once):
                own = rows if site is None else [row for row in rows if bucket.other_of(row[site]) is None]
                if own:
                    file = file or stack.enter_context(table_file(table, path or buffer))
                    columns: dict[str, Any] = dict(zip(view, zip(*own, strict=True), strict=True))
                    if table == "links":
                        columns |= _urls_of_links(db, columns)
                    put_numbers(columns, bucket, number)
                    file.add_columns([columns[name] for name in columns_of(table)])
                if len(rows) == at_once:
                    yield
        written[table] = Written(0 if file is None else file.count, path or buffer.getvalue().to_pybytes())


def _tuples(db: sqlite3.Connection, statement: str, parameters: Mapping[str, Any]) -> sqlite3.Cursor:
    """The rows of a statement as tuples, which are made in half the time of named tuples."""
    cursor = db.cursor()
    cursor.row_factory = None
    return cursor.execute(statement, parameters)


def _urls_of_links(db: sqlite3.Connection, links: Mapping[str, Sequence[int]]) -> dict[str, list[str]]:
    """The URLs of links, each of which is read once: a page is the source of dozens, and most have few targets."""
    numbers = json.dumps([*{*links["source_id"], *links["target_id"]}])
    urls: dict[int, str] = dict(_tuples(db, SQL["urls_of"], {"numbers": numbers}))
    return {of: [urls[number] for number in links[name]] for name, of in URL_NUMBERS.items() if name in links}


def put_numbers(columns: dict[str, Any], bucket: Bucket, number: int) -> None:
    """Put numbers into ``columns`` of rows of a store that mean the same in the whole dataset."""
    for name, of in URL_NUMBERS.items():
        if name in columns or (name == "target_id" and "target" in columns):
            urls = columns.get(of) or [None] * len(columns[name])  # a page has no URL of its cluster
            numbers = {url: url_number(url) for url in set(urls)}
            columns[name] = [numbers[url] for url in urls]
    if "run_id" in columns:
        columns["run_id"] = [number] * len(columns["run_id"])
    if "robots_copy" in columns:
        copies, high = columns["robots_copy"], bucket.number << 32
        columns["robots_copy"] = [None if copy is None else high | copy for copy in copies]
    if "reason_code" in columns and "site" in columns:
        is_own = {site: bucket.other_of(site) is None for site in set(columns["site"])}
        columns["is_own"] = [is_own[site] for site in columns["site"]]
