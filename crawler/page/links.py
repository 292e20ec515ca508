"""The links of a page, gathered as written.

A page of 190 links has about 32 targets once fragments are cut, so fragments are cut and equal
texts thrown together before any URL is joined or any anchor text is read.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

#: Distinct links looked at in one page.
MAX_LINKS = 20_000
MAX_ANCHOR_NODES = 64
_OURS = ("http://", "https://")
#: Characters of an anchor text that are kept.
KEEP_ANCHOR_CHARS = 200

#: A link as written: its rel, and its anchor text.
Use = tuple[str, str]

_SILENT = frozenset(node.tag_id for node in LexborHTMLParser("<script></script><style></style>").css("script,style"))
_REFRESH = re.compile(r"\s*+[\d.]++(?=[\s;,])\s*+[;,]?\s*+(?:url\s*+=\s*+)?(.*)", re.IGNORECASE | re.DOTALL)


class Uses(NamedTuple):
    """How often a target is linked to, and of these uses, in their order, those that can matter."""

    times: int
    telling: list[Use]


class LinkTable:
    """Links in the order of their first use; ``note`` says in words if some were left out."""

    __slots__ = ("_uses", "note", "settled")

    def __init__(self) -> None:
        self._uses: dict[str, list[Use]] = {}
        self.settled: set[str] = set()  # targets without fragment of which no further use could say anything new
        self.note = ""

    def add(self, href: str, rel: str, node: LexborNode | None) -> None:
        """Take a link as written, and the element that holds its anchor text. One that is only a fragment is none."""
        href, fragment, _ = href.partition("#")
        if href in self.settled or (fragment and not href.strip()):
            return
        uses = self._uses.get(href)
        if uses is None:
            if len(self._uses) >= MAX_LINKS:
                self.note = f"more than {MAX_LINKS} distinct links; the rest were left out"
                return
            uses = self._uses[href] = []
        anchor = "" if node is None else anchor_text(node, KEEP_ANCHOR_CHARS)
        if not uses and anchor and "nofollow" not in rel.lower() and (":" not in href or href.startswith(_OURS)):
            self.settled.add(href)  # (the uses of other schemes are counted)
        uses.append((rel, anchor))

    def written(self) -> dict[str, Uses]:
        """The targets as written, without fragments."""
        return {href: Uses(len(uses), _telling(uses)) for href, uses in self._uses.items()}


def may_follow(use: Use) -> bool:
    """Whether this use of a link may be followed."""
    return "nofollow" not in rel_words(use[0])


def rel_words(rel: str) -> list[str]:
    """The words of a ``rel``. Blanks separate them (HTML, 2.3.7); but who writes ``nofollow,noopener`` means both."""
    return rel.lower().replace(",", " ").replace(";", " ").split()


def _telling(uses: list[Use]) -> list[Use]:
    """The first, the first that may be followed, and the first that has a text."""
    if len(uses) < 4:
        return uses
    followed = (place for place, use in enumerate(uses) if may_follow(use))
    named = (place for place, (_, anchor) in enumerate(uses) if anchor)
    return [uses[place] for place in sorted({0, next(followed, 0), next(named, 0)})]


def anchor_text(node: LexborNode, keep_chars: int) -> str:
    """The text of a link, white space collapsed; where it has none, the ``alt`` of its images (or of the area)."""
    only = node.first_child
    if only is not None and only.next is None:
        inner = only.first_child  # of <a><span>text</span></a>, or else the text itself
        if inner is None or inner.next is None:
            text = (inner or only).text_content
            if text and only.tag_id not in _SILENT:
                return collapse(text, keep_chars)
    texts: list[str] = []
    for part in islice(node.traverse(include_text=True), MAX_ANCHOR_NODES):
        text = part.text_content
        if text is not None and not _is_silent(part):
            texts.append(text)
    shown = collapse("".join(texts), keep_chars)
    if shown:
        return shown
    alts = [part.attributes.get("alt") or "" for part in islice(node.traverse(), MAX_ANCHOR_NODES)]
    return collapse(" ".join(alts), keep_chars)


def _is_silent(text: LexborNode) -> bool:
    """Whether nobody sees this text, for it is a script or a style."""
    return text.parent is not None and text.parent.tag_id in _SILENT


def collapse(text: str, keep_chars: int) -> str:
    """One line of at most ``keep_chars``, white space collapsed."""
    if len(text) > keep_chars:
        return " ".join(text.lstrip()[: 4 * keep_chars].split())[:keep_chars].rstrip()
    return " ".join(text.split())


def refresh_target(content: str) -> str | None:
    """Where ``<meta http-equiv=refresh>`` leads, as written; ``None`` if only to the page itself (4.2.5.3)."""
    match = _REFRESH.match(content)
    if match is None:
        return None
    target = match[1].strip()
    if target[:1] in ("'", '"'):
        target = target[1:].partition(target[0])[0]
    return target or None
