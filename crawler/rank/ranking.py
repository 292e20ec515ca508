"""``crawler rank``: ranks the pages and sites of a store, stores the ranks, and shows the highest."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.text import Text

from crawler.cli.console import PrintableConsole
from crawler.cli.layout import STATE_STYLES, Align, table
from crawler.cli.progress import Say
from crawler.formatting import many
from crawler.rank.link_graph import read_graph
from crawler.rank.pagerank import rank_pages, rank_sites
from crawler.store.rows import PageRank, SiteRank
from crawler.store.statements import load_statements

if TYPE_CHECKING:
    from crawler.store.sections import Store

_ROWS_AT_ONCE = 10_000
_SQL = load_statements("crawler.rank")


@dataclass(frozen=True, slots=True)
class RankingSummary:
    """The size of the graph. ``links`` counts only links that may be followed."""

    pages: int
    links: int
    sites: int

    def __str__(self) -> str:
        return f"{many(self.pages, 'page')}, {many(self.links, 'link')}, {many(self.sites, 'site')} ranked"


async def rank(store: Store, say: Say = lambda what, done=0, total=None: None) -> RankingSummary:
    """Rank the pages and sites of a store that is open for writing, and replace the stored ranks in one transaction.

    ``say`` gets the progress. Raises :class:`crawler.errors.StoreError` if the store fails; it keeps the old ranks.
    """
    last_request = await store.last_request()
    graph = await read_graph(store, say)
    say("ranking pages")
    pages = await asyncio.to_thread(rank_pages, graph)
    say("ranking sites")
    sites = await asyncio.to_thread(rank_sites, graph, pages.pagerank)
    say("storing ranks")
    await store.results.replace_ranks(
        starmap(PageRank, _rows(graph.url_ids, graph.site_ids, pages.pagerank, pages.in_links, pages.in_sites)),
        starmap(SiteRank, _rows(sites.site_ids, sites.pagerank, sites.pages, sites.in_links, sites.in_sites)),
        last_request,
    )
    return RankingSummary(len(graph.url_ids), graph.in_links.nnz, len(sites.site_ids))


async def tops(store: Store) -> list[list[dict[str, Any]]]:
    """The 20 pages with the highest PageRank, highest first, and the 20 sites."""
    return [await store.query(_SQL[name]) for name in ("top_pages", "top_sites")]


def render(ranked: RankingSummary, tops: Iterable[Sequence[dict[str, Any]]], console: PrintableConsole) -> None:
    """Print ranks for people: a table for each of ``tops``, with the position and the columns of its rows."""
    console.print(str(ranked))
    for rows in filter(None, tops):
        _render_top(rows, console)


def _render_top(rows: Sequence[dict[str, Any]], console: PrintableConsole) -> None:
    name, *rest = rows[0]
    numbers = [column for column in rest if column != "state"]
    texts = [*rest[len(numbers) :], name]
    columns: dict[str, Align] = {**dict.fromkeys(("", *numbers), "right"), **dict.fromkeys(texts, "fold")}
    cells: list[tuple[str | Text, ...]] = [
        (
            f"{position}.",
            *(f"{row[column]:.6f}" if column == "pagerank" else f"{row[column]:,}" for column in numbers),
            *(Text(row[column], style=STATE_STYLES.get(row[column], "")) for column in texts),
        )
        for position, row in enumerate(rows, 1)
    ]
    console.print()
    console.print(table(columns, cells))


def _rows(*columns: np.ndarray[Any, Any]) -> Iterator[tuple[Any, ...]]:
    """The rows of arrays of equal length, as Python numbers."""
    for start in range(0, len(columns[0]), _ROWS_AT_ONCE):
        yield from zip(*(column[start : start + _ROWS_AT_ONCE].tolist() for column in columns), strict=True)
