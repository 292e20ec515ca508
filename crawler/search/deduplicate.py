"""Plans the index: which pages are duplicates of which, and what links to each page that is indexed.

The plan is made in temporary tables of the index, from rows of the store. ``main_of`` maps a URL to the URL of its main
page: by canonical URLs, redirects, mirrors, and equal bodies. If the main URL is no page, its duplicate nearest to a
seed stands in for it. A chain that is a circle, or is longer than 16 steps, is ignored. A page whose main page asks for
NOINDEX is not indexed either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import aclosing
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from crawler.search.index_file import INDEX, WritableIndex
from crawler.store.statements import load_statements

if TYPE_CHECKING:
    from crawler.store.sections import Store

MAX_ANCHORS = 50
MAX_ANCHORS_CHARS = 4_000
_MAX_ANCHORS_COUNTED = 1_000
_ROWS_AT_ONCE = 5_000

#: The statements on the views of the store.
SQL = load_statements("crawler.search")

_page_id = itemgetter("page_id")


class Inbound(NamedTuple):
    """The links to a page: the anchors, one a line, and the numbers of linking pages and of other sites."""

    url_id: int
    anchors: str
    in_links: int
    in_sites: int


async def plan(store: Store, index: WritableIndex, *, adds: bool) -> int:
    """Make the temporary tables ``chosen`` (the pages to index) and ``inbound`` (what links to them) in the index.

    Without ``adds``, only pages are chosen that the index has. Returns how many are chosen. Memory is bounded: SQLite
    sorts in files.
    """
    async with index.transaction("BEGIN"):  # of temporary tables: it holds up no other process
        await index.script("plan_tables")
        for statement in ("duplicate_steps", "mirror_steps"):
            await _copy(store, SQL[statement], index, "insert_step")
        await _copy(store, SQL["page_facts"], index, "insert_fact")
        await index.script("choose")
        if not adds:
            await index.script("keep_indexed")
        await _copy(store, SQL["links"], index, "insert_link")
        last: list[Any] = []  # the links to the last page of the batch, which the next batch may continue
        async for batch in index.batches(INDEX["found_links"]):
            last_page = _page_id(batch[-1])
            if not last or _page_id(last[0]) != last_page:
                whole = [*last, *(row for row in batch if _page_id(row) != last_page)]
                await index.many("insert_inbound", _inbound(whole))
                last = []
            last += [row for row in batch if _page_id(row) == last_page]
        await index.many("insert_inbound", _inbound(last))
    (row,) = await index.query(INDEX["count_chosen"])
    return int(row["pages"])


async def _copy(store: Store, sql: str, index: WritableIndex, statement: str) -> None:
    """Execute a statement of the index for each row of a query on the store."""
    rows: list[Any] = []
    async with aclosing(store.rows(sql)) as found:
        async for row in found:
            rows.append(tuple(row))
            if len(rows) == _ROWS_AT_ONCE:
                await index.many(statement, rows)
                rows = []
    await index.many(statement, rows)


def _inbound(links: Iterable[Any]) -> Iterator[Inbound]:
    """The links to each page, the most frequent anchors first. ``links`` are ordered by page and linking page."""
    for page, group in groupby(links, key=_page_id):
        anchors: Counter[str] = Counter()
        pages = sites = 0
        source = source_site = None
        for link in group:
            if link["source_id"] != source:
                pages += 1
                sites += link["source_site_id"] not in (source_site, link["page_site_id"])
                source, source_site = link["source_id"], link["source_site_id"]
            if link["anchor"] in anchors or len(anchors) < _MAX_ANCHORS_COUNTED:
                anchors[link["anchor"]] += 1
        best = sorted(anchors, key=lambda text: (-anchors[text], text))[:MAX_ANCHORS]
        yield Inbound(page, "\n".join(best)[:MAX_ANCHORS_CHARS], pages, sites)
