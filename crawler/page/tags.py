"""What the tags of a page say, as written: all that is asked of the tree that lexbor builds.

What this module imports takes memory in the process that reads heavy pages, so neither URLs nor the model are among it.

Source: HTML Standard for ``<base>`` (4.2.3), for refresh (4.2.5.3), and for where tags count at all. Tags are heard
wherever the parser puts them, for a ``<noscript><img>`` ends the head; but not in a ``<template>``.
"""

from __future__ import annotations

from typing import NamedTuple

from selectolax.lexbor import LexborAttributes, LexborDocumentOptions, LexborHTMLParser, LexborNode

from crawler.page.charset import to_utf8
from crawler.page.links import LinkTable, Uses, collapse, refresh_target, rel_words

MAX_TITLE_CHARS = 1_000
#: A page has one title; this many are looked at before it counts as having none.
MAX_TITLES = 16
MAX_FEEDS = 8

# One query for all is faster than a query each, and keeps the order of the document. Each alternative is tried on each
# element, so <a>, <area>, <link> and <base> are one; few others have an href.
_SAYING = "[href],meta[content],title,frame[src],iframe[src]"
# Without events: nothing here needs <selectedcontent> filled as a browser fills it.
_OPTIONS = int(LexborDocumentOptions.WO_EVENTS)
# Numbers of tags are cheaper to read than names, and the same in every document.
_ANCHORS = frozenset(node.tag_id for node in LexborHTMLParser("<a></a><area>").css("a,area"))
_FEED_TYPES = frozenset(("application/rss+xml", "application/atom+xml"))
_NOT_TEXT = ["script", "style", "template", "noscript"]


class Parsed(NamedTuple):
    """The tree of a page, and the encoding that the page was in."""

    tree: LexborHTMLParser
    encoding: str


def parsed(body: bytes, charset: str | None) -> Parsed:
    """Parse a page; nothing of ``body`` is kept, so that whoever has a large one can let it go before reading."""
    encoding, text = to_utf8(body, charset)
    tree = LexborHTMLParser(text, options=_OPTIONS)
    tree.raw_html = b""
    return Parsed(tree, encoding)


class Said(NamedTuple):
    """What the tags of one page say, in document order, before anything is judged or resolved."""

    encoding: str
    base: str | None
    title: str | None
    metas: list[tuple[str, str]]  # name in lower case, content
    canonicals: list[str]
    feeds: list[str]
    links: dict[str, Uses]
    note: str  # in words, what was left out
    text_sha256: bytes | None


def heard(page: Parsed, *, hash_text: bool) -> Said:
    """Hear what the page says, with the digest of its text if ``hash_text``. Spoils the tree."""
    tags = _Tags(page.tree)
    return Said(
        encoding=page.encoding,
        base=tags.base,
        title=tags.title,
        metas=tags.metas,
        canonicals=tags.canonicals,
        feeds=tags.feeds,
        links=tags.links.written(),
        note=tags.links.note,
        text_sha256=_text_sha256(page.tree) if hash_text else None,
    )


class _Tags:
    __slots__ = ("_titles", "base", "canonicals", "feeds", "links", "metas", "title")

    def __init__(self, tree: LexborHTMLParser) -> None:
        self.links = LinkTable()
        self.base: str | None = None
        self.canonicals: list[str] = []
        self.metas: list[tuple[str, str]] = []
        self.title: str | None = None
        self.feeds: list[str] = []
        self._titles = 0
        settled = self.links.settled
        for node in tree.css(_SAYING):
            if node.tag_id in _ANCHORS:  # nearly all of them, and most of these say nothing new
                one = node.attrs  # cheaper than a dictionary of all
                href = one.get("href") or _href_in_drawing(one)
                if href.partition("#")[0] not in settled:
                    self.links.add(href, one.get("rel") or "", node)
                continue
            tag, attributes = node.tag, node.attributes
            if tag == "link" and "href" in attributes:  # in a drawing it may be XLink's alone
                self._link(attributes, rel_words(attributes.get("rel") or ""))
            elif tag == "meta":
                if "content" in attributes:
                    self._meta(attributes)
            elif tag == "title":
                self._title(node)
            elif tag == "base":
                self.base = attributes.get("href") if self.base is None else self.base
            elif tag in ("frame", "iframe") and "src" in attributes:
                self.links.add(attributes["src"] or "", tag, None)

    def _link(self, attributes: dict[str, str | None], rel: list[str]) -> None:
        href = attributes["href"] or ""
        if "alternate" in rel and "nofollow" not in rel and len(self.feeds) < MAX_FEEDS:
            bare = (attributes.get("type") or "").partition(";")[0]
            self.feeds += [href] if bare.strip().lower() in _FEED_TYPES else []
        if "canonical" in rel:
            self.canonicals.append(href)
        if "next" in rel:
            self.links.add(href, "next nofollow" if "nofollow" in rel else "next", None)

    def _meta(self, attributes: dict[str, str | None]) -> None:
        content = attributes["content"] or ""
        self.metas.append(((attributes.get("name") or "").strip().lower(), content))
        if (attributes.get("http-equiv") or "").strip().lower() == "refresh":
            target = refresh_target(content)
            if target:
                self.links.add(target, "refresh", None)

    def _title(self, node: LexborNode) -> None:
        if self.title is not None or self._titles >= MAX_TITLES:
            return
        self._titles += 1
        if not _in_drawing(node):
            self.title = collapse(node.text(), MAX_TITLE_CHARS)


def _text_sha256(tree: LexborHTMLParser) -> bytes:
    """Of what a reader could see, and the title, without blanks, which come with mark-up. Spoils the tree."""
    from hashlib import sha256  # 4 MB of libcrypto, which the process that reads heavy pages can do without

    tree.strip_tags(_NOT_TEXT)
    root = tree.root
    return sha256("".join(root.text().split()).encode("utf-8", "replace") if root is not None else b"").digest()


def _href_in_drawing(attributes: LexborAttributes) -> str:
    """What an ``<a>`` without ``href`` leads to in a drawing (SVG 2, Linking, XLinkRefAttrs)."""
    return "" if "href" in attributes else attributes.get("xlink:href") or ""


def _in_drawing(node: LexborNode) -> bool:
    """Whether a title is that of a drawing or formula in the page."""
    above = node.parent
    while above is not None:
        if above.tag in ("svg", "math"):
            return True
        above = above.parent
    return False
