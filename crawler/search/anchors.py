"""The anchor of a link as the reason for a result, if neither title nor excerpt of the page shows one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from crawler.search.excerpt import Marked, mark
from crawler.search.index_backend import SQL

if TYPE_CHECKING:
    from crawler.store.sections import Store


async def matching_anchors(store: Store, match: str, pages: Sequence[int]) -> dict[int, Marked]:
    """For each page (by number), the anchor of a link to it with the most matches of the FTS5 expression ``match``.

    Of anchors with equally many matches the most frequent is taken; a page without a match is not in the result. Only
    the anchors that the index has are considered.
    """
    values: dict[str, object] = {f"page_{n}": page for n, page in enumerate(pages)}
    rows = await store.query(SQL["anchors"].format(pages=", ".join(f":{name}" for name in values)), values)
    anchors = [(row["url_id"], text) for row in rows for text in row["anchors"].split("\n")]
    marked = await asyncio.to_thread(mark, match, [(text, "") for _, text in anchors])
    best: dict[int, Marked] = {}
    for (page, _), (anchor, _) in zip(anchors, marked, strict=True):
        before = best.get(page)
        if len(anchor.marks) > (0 if before is None else len(before.marks)):
            best[page] = anchor
    return best
