"""The anchor of a link as the reason for a result, if neither title nor excerpt of the page shows one."""

from __future__ import annotations

from collections.abc import Mapping

from crawler.search.excerpt import Marked, mark


def matching_anchors(match: str, anchors_of: Mapping[int, str]) -> dict[int, Marked]:
    """For each page (by number), the anchor of a link to it with the most matches of the FTS5 expression ``match``.

    ``anchors_of`` are the anchors that the index has, one a line, the most frequent first. Of anchors with equally many
    matches the most frequent is taken; a page without a match is not in the result.
    """
    anchors = [(page, text) for page, lines in anchors_of.items() for text in lines.split("\n")]
    best: dict[int, Marked] = {}
    for (page, _), (anchor, _) in zip(anchors, mark(match, [(text, "") for _, text in anchors]), strict=True):
        before = best.get(page)
        if len(anchor.marks) > (0 if before is None else len(before.marks)):
            best[page] = anchor
    return best
