"""The tables of the data appendix, each written as CSV and as Parquet."""

from __future__ import annotations

import csv
from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from crawler.audit.totals import SiteTotals
from crawler.export.optional_libraries import load
from crawler.export.tables import arrow_column, arrow_type, cell
from crawler.export.view_columns import VIEWS, ColumnType

_ROWS_PER_BATCH = 5_000
DRAWS = "draws"

_T, _I, _N, _AT = ColumnType.TEXT, ColumnType.INTEGER, ColumnType.NUMBER, ColumnType.TIME


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the appendix. ``view`` and ``order`` say which rows it has, unless a statement makes them.

    ``own`` has the expressions of the user's variables, which are further columns, by their names.
    """

    name: str
    title: str
    columns: Mapping[str, ColumnType]
    view: str = ""
    order: str = ""
    own: Mapping[str, str] = field(default_factory=dict)


def _of_view(name: str, title: str, view: str, order: str, *, without: Iterable[str] = ()) -> Table:
    columns = {column: kind for column, kind in VIEWS[view].items() if column not in without}
    return Table(name, title, columns, view, order)


TABLES: tuple[Table, ...] = (
    _of_view("runs", "Every run with its settings", "runs", "run_id"),
    _of_view("seeds", "What became of each seed", "seeds", "url_id"),
    _of_view("design", "Every draw; the last one gave the sample", "sample_draws", "number"),
    Table("frame", "The sampling frame", {"url": _T, "site": _T, "stratum": _T, "url_id": _I}),
    _of_view(DRAWS, "The sample: a row for each draw", "samples", "draw"),
    Table("nonresponse", "What became of the drawn URLs", {"outcome": _T, "urls": _I}),
    Table("exclusions", "Excluded URLs by reason", {"reason_code": _T, "meaning": _T, "urls": _I, "sites": _I}),
    Table(
        "sites",
        "Requests, octets and pages of every site",
        dict.fromkeys(SiteTotals._fields, _I)
        | dict.fromkeys(("site", "host", "registered_domain"), _T)
        | {"first_at": _AT, "last_at": _AT, "crawl_delay_s": _N},
    ),
    _of_view("requests", "The request log", "requests", "started_at, finished_at, url"),
    _of_view("robots_versions", "The robots.txt versions", "robots_versions", "site, fetched_at", without=["body"]),
    _of_view("robots_answers", "Every answer for a robots.txt", "robots_answers", "robots_copy"),
    _of_view("orders", "The orders of the operator", "orders", "order_id"),
    _of_view("pages", "The pages, without their bodies", "pages", "url_id"),
    _of_view("resources", "The hosts of the resources of pages", "resources", "url_id, kind, host"),
)


def tables_with(expressions: Mapping[str, str], kinds: Mapping[str, ColumnType]) -> tuple[Table, ...]:
    """The tables with variables of the user as columns of the table of draws, by their names."""
    return tuple(
        replace(table, columns={**table.columns, **kinds}, own=expressions) if table.name == DRAWS else table
        for table in TABLES
    )


async def write_table(folder: Path, table: Table, rows: AsyncIterable[Sequence[Any]]) -> int:
    """Write a table to ``folder`` as ``NAME.csv`` and ``NAME.parquet``. Returns the number of rows.

    A cell of CSV is protected against spreadsheets as in :func:`crawler.export.tables.write_csv`.
    """
    pa, pq = load("pyarrow"), load("pyarrow.parquet")
    kinds = list(table.columns.values())
    schema = pa.schema([(name, arrow_type(pa, kind)) for name, kind in table.columns.items()])
    count, batch = 0, list[Sequence[Any]]()
    with (
        (folder / f"{table.name}.csv").open("w", newline="", encoding="utf-8", errors="replace") as file,
        pq.ParquetWriter(folder / f"{table.name}.parquet", schema, compression="zstd") as parquet,
    ):
        cells = csv.writer(file)
        cells.writerow(table.columns)

        def write_batch() -> None:
            columns = zip(*batch, strict=True) if batch else [()] * len(kinds)
            arrays = [
                arrow_column(pa, list(of), field, kind) for of, field, kind in zip(columns, schema, kinds, strict=True)
            ]
            parquet.write_batch(pa.record_batch(arrays, schema=schema))
            batch.clear()

        async for row in rows:
            cells.writerow([cell(value) for value in row])
            batch.append(row)
            count += 1
            if len(batch) == _ROWS_PER_BATCH:
                write_batch()
        write_batch()
    return count
