"""Plans the index: which pages are duplicates of which, and what links to each page that is indexed.

The plan is made in temporary tables. ``main_of`` maps a URL to the URL of its main page: by canonical URLs, redirects,
mirrors, and equal bodies. If the main URL is no page, its duplicate nearest to a seed stands in for it. A chain that is
a circle, or is longer than 16 steps, is ignored. A page whose main page asks for NOINDEX is not indexed either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

from crawler.search.index_backend import SQL, Inbound, IndexBackend

MAX_ANCHORS = 50
MAX_ANCHORS_CHARS = 4_000
_MAX_ANCHORS_COUNTED = 1_000

_page_id = itemgetter("page_id")


async def plan(index: IndexBackend) -> int:
    """Make the temporary tables ``chosen`` (the pages to index) and ``inbound`` (what links to them).

    Returns how many pages are chosen. Memory is bounded: the database sorts in files.
    """
    await index.script(SQL["deduplicate"])
    async with index.transaction():
        last: list[Any] = []  # the links to the last page of the batch, which the next batch may continue
        async for batch in index.batches(SQL["inbound_links"]):
            last_page = _page_id(batch[-1])
            if not last or _page_id(last[0]) != last_page:
                await index.add_inbound(_inbound([*last, *(row for row in batch if _page_id(row) != last_page)]))
                last = []
            last += [row for row in batch if _page_id(row) == last_page]
        await index.add_inbound(_inbound(last))
    (row,) = await index.query(SQL["count_chosen"])
    return int(row["pages"])


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
