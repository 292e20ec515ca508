"""The tables of the data appendix, each written as CSV and as Parquet."""

from __future__ import annotations

import csv
from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crawler.audit.totals import SITE_COLUMNS
from crawler.export.tables import cell
from crawler.parquet import ParquetFile
from crawler.store.views import VIEWS, Column, columns_of

DRAWS = "draws"

#: The columns of the table of draws that the view ``samples`` lacks: first those of the design.
DESIGN: Mapping[str, Column] = columns_of(
    [
        "certainty yes: whether the site of the URL was certain to be in the sample",
        "psu_stratum integer: the stratum from which the primary sampling unit was drawn; empty without an answer",
        "psu integer: the primary sampling unit: a site drawn by chance, a random walk, or else the URL",
        "fpc number: the share of the primary units of the stratum that answered; empty for draws with replacement",
        "second_stage_probability number: of the URL within its primary unit, times the share that answered",
        "weight number: one by the probability of the draw and of the answer; empty without an answer",
    ]
)
#: Then those of the quantities that every sample estimates, and of the variables of the study; ``EARLIER`` and the name
#: are the same in the earlier wave of a panel.
QUANTITIES: Mapping[str, Column] = columns_of(
    [
        "disallowed number: 1 if robots.txt disallows the URL, else 0; empty without an answer",
        "answer text: the status of the answer, or what stands for it; empty if robots.txt disallows the URL",
        "soft_404 number: 1 if the page is like a missing page of its site, else 0; empty if it was not compared",
        "size number: the decoded size of the page in octets",
        "links number: the number of distinct links of the page; empty if it says NOFOLLOW",
        "language text: the language that the page declares, or not said; empty if it says NOINDEX",
    ]
)
EARLIER = "earlier_"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the appendix. ``view`` and ``order`` say which rows it has, unless a statement makes them.

    ``own`` names the columns that no view has.
    """

    name: str
    title: str
    columns: Mapping[str, Column]
    view: str = ""
    order: str = ""
    own: frozenset[str] = frozenset()


def _of_view(name: str, title: str, view: str, order: str, *, without: Iterable[str] = ()) -> Table:
    columns = {name: column for name, column in VIEWS[view].items() if name not in without}
    return Table(name, title, columns, view, order)


TABLES: tuple[Table, ...] = (
    _of_view("runs", "Every run with its settings", "runs", "run_id"),
    _of_view("seeds", "What became of each seed", "seeds", "url_id"),
    _of_view("design", "Every draw; the last one gave the sample", "sample_draws", "number"),
    Table(
        "frame",
        "The sampling frame",
        columns_of(
            [
                "url text",
                "site text",
                "stratum text",
                "url_id integer: the number; empty if the crawl knows no such URL",
            ]
        ),
    ),
    _of_view(DRAWS, "The sample: a row for each draw", "samples", "draw"),
    Table(
        "nonresponse",
        "What became of the drawn URLs",
        columns_of(
            [
                "outcome text: what became of drawn URLs; all but the first three are nonresponse",
                "urls integer: drawn URLs, each once",
            ]
        ),
    ),
    Table(
        "estimates",
        "The estimates from the sample, and the totals",
        columns_of(
            [
                "quantity text: what is estimated",
                "among text: the URLs that the estimate is about",
                "unit text: share, points (the change of a share), bytes, links, number or count",
                "estimate number: the value",
                "low number: lower end of the 95 % interval; empty if the sample does not determine it",
                "high number: upper end of the 95 % interval",
                "standard_error number: of the estimate",
                "units integer: drawn units with a value",
                "missing integer: drawn units whose value is not known",
                "lowest number: lower bound whatever the missing units would answer",
                "highest number: upper bound whatever the missing units would answer",
                "may_be_too_narrow yes: whether the interval may contain the true value less often",
            ]
        ),
    ),
    Table(
        "exclusions",
        "Excluded URLs by reason",
        columns_of(
            [
                "reason_code text",
                "meaning text: the reason in words",
                "urls integer: number of URLs",
                "sites integer: number of sites",
            ]
        ),
    ),
    Table(
        "sites",
        "Requests, octets and pages of every site",
        SITE_COLUMNS,
    ),
    _of_view("requests", "The request log", "requests", "started_at, finished_at, url"),
    _of_view("robots_versions", "The robots.txt versions", "robots_versions", "site, fetched_at", without=["body"]),
    _of_view("robots_answers", "Every answer for a robots.txt", "robots_answers", "robots_copy"),
    _of_view("orders", "The orders of the operator", "orders", "order_id"),
    _of_view("pages", "The pages, without their bodies", "pages", "url_id"),
    _of_view("resources", "The hosts of the resources of pages", "resources", "url_id, kind, host"),
)


def tables_with(own: Mapping[str, Column]) -> tuple[Table, ...]:
    """The tables; the table of draws has the columns ``own`` too."""
    return tuple(
        replace(table, columns={**table.columns, **own}, own=frozenset(own)) if table.name == DRAWS else table
        for table in TABLES
    )


async def write_table(folder: Path, table: Table, rows: AsyncIterable[Sequence[Any]]) -> int:
    """Write a table to ``folder`` as ``NAME.csv`` and ``NAME.parquet``. Returns the number of rows.

    A cell of CSV is protected against spreadsheets as in :func:`crawler.export.tables.write_csv`.
    """
    kinds = {name: column.type for name, column in table.columns.items()}
    with (
        (folder / f"{table.name}.csv").open("w", newline="", encoding="utf-8", errors="replace") as file,
        ParquetFile(folder / f"{table.name}.parquet", kinds) as parquet,
    ):
        cells = csv.writer(file)
        cells.writerow(table.columns)
        async for row in rows:
            cells.writerow(map(cell, row, kinds.values()))
            parquet.add(row)
    return parquet.count
