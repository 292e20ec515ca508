"""The links of a page: gathered as written, resolved once per distinct target.

A page of 190 links has about 32 targets once fragments are cut, so fragments are cut and equal
texts thrown together before any URL is joined or any anchor text is read.
"""

from __future__ import annotations

import re
from itertools import islice

from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawler.model import Headers, Link, header_values
from crawler.url import Joiner, NotCrawlable, canonicalise, scheme_of

#: Distinct links looked at in one page.
MAX_LINKS = 20_000
#: Characters joined for one page, base and link together: a base of 8,000 characters would make 80 MB of 10,000 links.
MAX_JOINED_CHARS = 20_000_000
MAX_ANCHOR_NODES = 64
_OURS = ("http://", "https://")
MAX_REL_CHARS = 200
MAX_SCHEMES = 32
MAX_SCHEME_CHARS = 32

#: A link as written: its rel, and its anchor text.
Use = tuple[str, str]

_SILENT = frozenset(node.tag_id for node in LexborHTMLParser("<script></script><style></style>").css("script,style"))
_REFRESH = re.compile(r"\s*+[\d.]++(?=[\s;,])\s*+[;,]?\s*+(?:url\s*+=\s*+)?(.*)", re.IGNORECASE | re.DOTALL)
_HEADER_LINK = re.compile(
    r"<([^<>]*)>((?:\s*;\s*[^\s;,=<>\"]+(?:\s*=\s*(?:\"(?:[^\"\\]|\\.)*\"|[^\s;,\"]*))?)*)", re.DOTALL
)
_PARAMETER = re.compile(r";\s*([^\s;,=\"]+)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|([^\s;,\"]*))", re.DOTALL)


class LinkTable:
    """Links in the order of their first use; ``note`` says in words if some were left out."""

    __slots__ = ("_keep_anchor_chars", "_uses", "note", "settled")

    def __init__(self, keep_anchor_chars: int) -> None:
        self._keep_anchor_chars = keep_anchor_chars
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
        anchor = "" if node is None else anchor_text(node, self._keep_anchor_chars)
        if not uses and anchor and "nofollow" not in rel.lower() and (":" not in href or href.startswith(_OURS)):
            self.settled.add(href)  # (the uses of other schemes are counted)
        uses.append((rel, anchor))

    def resolve(self, base: str) -> tuple[tuple[Link, ...], dict[str, int]]:
        """One :class:`Link` per target, and how many links each other scheme had."""
        targets: dict[str, list[Use]] = {}
        schemes: dict[str, int] = {}
        budget = MAX_JOINED_CHARS
        join = Joiner(base)
        for href, uses in self._uses.items():
            budget -= len(base) + len(href)
            if budget < 0:
                self.note = "the links are too long to be joined all; the rest were left out"
                break
            try:
                url = join(href)
            except NotCrawlable:
                _count_scheme(schemes, href, len(uses))
                continue
            known = targets.get(url)
            if known is None:
                targets[url] = uses
            else:
                known += uses
        return tuple([_link(url, uses) for url, uses in targets.items()]), schemes


def _count_scheme(schemes: dict[str, int], href: str, times: int) -> None:
    scheme = scheme_of(href)
    if scheme is None or scheme in ("http", "https"):
        return
    scheme = scheme[:MAX_SCHEME_CHARS]
    if scheme in schemes or len(schemes) < MAX_SCHEMES:
        schemes[scheme] = schemes.get(scheme, 0) + times


def _link(url: str, uses: list[Use]) -> Link:
    rel, anchor = uses[0]
    if len(uses) == 1 and not rel:
        return Link(url, anchor, "", True)
    chosen = next((use for use in uses if "nofollow" not in rel_words(use[0])), None)
    rel, anchor = chosen or uses[0]
    # That use's own text, else the first that there is.
    anchor = anchor or next((text for _, text in uses if text), "")
    return Link(url, anchor, " ".join(rel.lower().split())[:MAX_REL_CHARS], chosen is not None)


def rel_words(rel: str) -> list[str]:
    """The words of a ``rel``. Blanks separate them (HTML, 2.3.7); but who writes ``nofollow,noopener`` means both."""
    return rel.lower().replace(",", " ").replace(";", " ").split()


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


def canonical_in_headers(headers: Headers, url: str) -> str | None:
    """The first valid ``Link: <…>; rel="canonical"`` (RFC 8288, 3; RFC 6596), resolved against ``url``."""
    for value in header_values(headers, "link"):
        for target, parameters in _HEADER_LINK.findall(value):
            given: dict[str, str] = {}
            for name, quoted, single, bare in _PARAMETER.findall(parameters):
                given.setdefault(name.lower(), quoted or single or bare)
            # With an anchor parameter the link is about another resource (RFC 8288, 3.2).
            if "anchor" in given or "canonical" not in rel_words(given.get("rel", "")):
                continue
            try:
                return canonicalise(target, url)
            except NotCrawlable:
                continue
    return None
