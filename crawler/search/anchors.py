"""The anchor of a link as the reason for a result, if neither title nor excerpt of the page shows one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from crawler.search.excerpt import Marked, mark
from crawler.search.index_backend import SQL
from crawler.store.protocols import StoreReader

_MAX_ANCHORS = 10_000  # distinct anchors of all requested pages


async def matching_anchors(store: StoreReader, match: str, pages: Sequence[int]) -> dict[int, Marked]:
    """For each page (by number), the anchor of a link to it with the most matches of the FTS5 expression ``match``.

    Of anchors with equally many matches the most frequent is taken; a page without a match is not in the result. The
    statement scans all links: about 0.2 s for a million.
    """
    values: dict[str, object] = {f"page_{n}": page for n, page in enumerate(pages)}
    sql = SQL["anchors"].format(pages=", ".join(f":{name}" for name in values))
    rows = await store.query(sql, {**values, "limit": _MAX_ANCHORS})
    marked = await asyncio.to_thread(mark, match, [(row["anchor"], "") for row in rows])
    best: dict[int, Marked] = {}
    for row, (anchor, _) in zip(rows, marked, strict=True):
        before = best.get(row["page_id"])
        if len(anchor.marks) > (0 if before is None else len(before.marks)):
            best[row["page_id"]] = anchor
    return best
