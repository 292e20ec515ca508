"""Collects the links of a page as written.

A page of 190 links has about 32 targets once fragments are cut. Fragments are therefore cut and equal texts merged
before a URL is joined or an anchor text is read.
"""

from __future__ import annotations

import re
from itertools import islice

from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawler.page.targets import Use

#: Distinct links taken from one page.
MAX_LINKS = 20_000
MAX_ANCHOR_NODES = 64
_HTTP = ("http://", "https://")
#: Characters of an anchor text that are kept.
KEEP_ANCHOR_CHARS = 200

_SILENT = frozenset(node.tag_id for node in LexborHTMLParser("<script></script><style></style>").css("script,style"))
_REFRESH = re.compile(r"\s*+[\d.]++(?=[\s;,])\s*+[;,]?\s*+(?:url\s*+=\s*+)?(.*)", re.IGNORECASE | re.DOTALL)


class LinkTable:
    """The links of a page in the order of their first use. ``note`` is empty unless links were left out."""

    __slots__ = ("note", "settled", "uses")

    def __init__(self) -> None:
        #: The uses of each target as written, without fragment.
        self.uses: dict[str, list[Use]] = {}
        #: Targets without fragment for which no further use can change the result.
        self.settled: set[str] = set()
        self.note = ""

    def add(self, href: str, rel: str, node: LexborNode | None) -> None:
        """Add a link as written; ``node`` is the element that holds its anchor text. A bare fragment is ignored."""
        target, fragment, _ = href.partition("#")
        if target not in self.settled and (not fragment or target.strip()):
            self.add_target(target, rel, node)

    def add_target(self, target: str, rel: str, node: LexborNode | None) -> None:
        """As :meth:`add`, for a target that has no fragment and is not settled."""
        uses = self.uses.get(target)
        if uses is None:
            if len(self.uses) >= MAX_LINKS:
                self.note = f"more than {MAX_LINKS} distinct links; the rest were left out"
                return
            uses = self.uses[target] = []
        anchor = "" if node is None else anchor_text(node, KEEP_ANCHOR_CHARS)
        # Links of other schemes are never settled, because each use of them is counted.
        if not uses and anchor and "nofollow" not in rel.lower() and (":" not in target or target.startswith(_HTTP)):
            self.settled.add(target)
        uses.append((rel, anchor))


def anchor_text(node: LexborNode, keep_chars: int) -> str:
    """The text of a link with white space collapsed; without text, the ``alt`` of its images or of the area."""
    only = node.first_child
    if only is not None and only.next is None:
        text = only.text_content  # None for an element
        if text is None and (inner := only.first_child) is not None and inner.next is None:
            text = inner.text_content if only.tag_id not in _SILENT else None  # of <a><span>text</span></a>
        if text:
            return collapse(text, keep_chars)
    texts: list[str] = []
    for part in islice(node.traverse(include_text=True), MAX_ANCHOR_NODES):
        text = part.text_content
        if text is not None and not _is_silent(part):
            texts.append(text)
    visible = collapse("".join(texts), keep_chars)
    if visible:
        return visible
    alts = [part.attributes.get("alt") or "" for part in islice(node.traverse(), MAX_ANCHOR_NODES)]
    return collapse(" ".join(alts), keep_chars)


def _is_silent(text: LexborNode) -> bool:
    """Whether a text is not displayed because it belongs to a script or a style."""
    return text.parent is not None and text.parent.tag_id in _SILENT


def collapse(text: str, keep_chars: int) -> str:
    """One line of at most ``keep_chars`` characters, white space collapsed."""
    if len(text) > keep_chars:
        return " ".join(text.lstrip()[: 4 * keep_chars].split())[:keep_chars].rstrip()
    return " ".join(text.split())


def is_instant(content: str) -> bool:
    """Whether a ``<meta http-equiv=refresh>`` with a target takes effect at once: a fraction of its time is ignored."""
    return not content.lstrip().lstrip("0")[:1].isdigit()


def refresh_target(content: str) -> str | None:
    """The target of ``<meta http-equiv=refresh>`` as written; ``None`` if it is the page itself (HTML, 4.2.5.3)."""
    match = _REFRESH.match(content)
    if match is None:
        return None
    target = match[1].strip()
    if target[:1] in ("'", '"'):
        target = target[1:].partition(target[0])[0]
    return target or None
