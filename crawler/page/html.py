"""What an HTML page and its headers say of it, read from the tree that lexbor builds.

Sources: ``docs/protocols.md``, section 3; the robots FAQ of 1998 for the META names; HTML Standard
for ``<base>`` (4.2.3), for refresh (4.2.5.3), and for where tags count at all.

Where the documents are silent:

* ``<a href="#x">`` is a place in the page, not a link. All links to one target are one
  :class:`~crawler.model.Link`: the first that may be followed, else the first. Its anchor text is the
  first among them all that is not empty.
* ``nofollow`` alone keeps a link from being followed; ``ugc`` and ``sponsored`` only say who wrote it.
* The canonical URL is the first valid ``rel=canonical`` in the page, else in the Link header, else META
  URL: a tag was written for this page, a header is often set for a whole directory.
* Tags are heard wherever the parser puts them, for a ``<noscript><img>`` ends the head; but not in a
  ``<template>``.
* Bytes outside ASCII in a query are sent as UTF-8, whatever the page is written in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from selectolax.lexbor import LexborAttributes, LexborDocumentOptions, LexborHTMLParser, LexborNode

from crawler.model import Headers, PageFacts, Reading, header_values
from crawler.page.charset import to_utf8
from crawler.page.directives import directives, x_robots_tag
from crawler.page.links import LinkTable, canonical_in_headers, collapse, refresh_target
from crawler.reasons import NOT_PARSED
from crawler.url import NotCrawlable, canonicalise

MAX_TITLE_CHARS = 1_000
MAX_META_CHARS = 4_000
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
_DOCUMENT_STATES = ("STATIC", "DYNAMIC")
_FEED_TYPES = frozenset(("application/rss+xml", "application/atom+xml"))
_NOT_TEXT = ["script", "style", "template", "noscript"]


def header_facts(headers: Headers, *, url: str, token: str, reading: Reading, now: float) -> PageFacts:
    """What the headers alone say: all there is of a body that is not HTML. ``now`` in epoch seconds."""
    said = directives(x_robots_tag(header_values(headers, "x-robots-tag"), token), reading=reading, now=now)
    return PageFacts(
        index=said.index,
        follow=said.follow,
        archive=said.archive,
        canonical_url=canonical_in_headers(headers, url),
        base_url=url,
        directives=said.evidence,
    )


def unread_page(why: str, *, url: str, headers: Headers, token: str, reading: Reading, now: float) -> PageFacts:
    """What is known of a page that could not be parsed: it counts as NOINDEX, NOFOLLOW, for it may ask that."""
    known = header_facts(headers, url=url, token=token, reading=reading, now=now)
    return replace(known, index=False, follow=False, note=f"{NOT_PARSED}: {why}")


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


def read_page(
    body: bytes | Parsed,
    *,
    url: str,
    headers: Headers,
    charset: str | None,
    token: str,
    reading: Reading,
    now: float,
    keep_anchor_chars: int = 200,
    hash_text: bool = False,
) -> PageFacts:
    """Read an HTML page; never raises for what the page holds.

    ``url`` is the canonical URL it was fetched from, ``charset`` that of its Content-Type header,
    ``token`` our product token, ``now`` in epoch seconds. A hostile page may take minutes: ask
    :func:`crawler.page.guard.is_light` first, and read what is not light where it can be killed.
    """
    tree, encoding = body if isinstance(body, Parsed) else parsed(body, charset)
    page = _Tags(tree, keep_anchor_chars)
    tags = (*x_robots_tag(header_values(headers, "x-robots-tag"), token), *page.robots_tags(token))
    said = directives(tags, reading=reading, now=now)
    base = _canonical_or_none(page.base, url) or url
    links, other_schemes = page.links.resolve(base) if said.follow else ((), {})
    meta_url = _first_canonical(page.metas_named("url"), None)
    return PageFacts(
        index=said.index,
        follow=said.follow,
        archive=said.archive,
        title=page.title if said.index else None,
        description=page.first("description") if said.index else None,
        keywords=page.first("keywords") if said.index else None,
        document_state=page.document_state(),
        canonical_url=_first_canonical(page.canonicals, base) or canonical_in_headers(headers, url) or meta_url,
        meta_url=meta_url,
        base_url=base,
        charset=encoding,
        links=links,
        other_schemes=other_schemes,
        directives=said.evidence,
        note=page.links.note,
        text_sha256=page.text_sha256() if hash_text and said.index else None,
        feeds=tuple(filter(None, (_canonical_or_none(feed, base) for feed in page.feeds))) if said.follow else (),
    )


class _Tags:
    """What the tags of one page say, in document order, before anything is judged or resolved."""

    __slots__ = ("_titles", "_tree", "base", "canonicals", "feeds", "links", "metas", "title")

    def __init__(self, tree: LexborHTMLParser, keep_anchor_chars: int) -> None:
        self.links = LinkTable(keep_anchor_chars)
        self.base: str | None = None
        self.canonicals: list[str] = []
        self.metas: list[tuple[str, str]] = []  # name in lower case, content
        self.title: str | None = None
        self.feeds: list[str] = []
        self._titles = 0
        self._tree = tree
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
                self._link(attributes, (attributes.get("rel") or "").lower().split())
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
        if "alternate" in rel and len(self.feeds) < MAX_FEEDS:
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

    def metas_named(self, name: str) -> Iterator[str]:
        return (content for key, content in self.metas if key == name)

    def first(self, name: str) -> str | None:
        """The first META of this name that says anything, on one line."""
        lines = (collapse(content, MAX_META_CHARS) for content in self.metas_named(name))
        return next(filter(None, lines), None)

    def robots_tags(self, token: str) -> Iterator[tuple[str, str]]:
        names = ("robots", token.lower() or "robots")
        return ((f"META {key}", content) for key, content in self.metas if key in names)

    def text_sha256(self) -> bytes:
        """Of what a reader could see, and the title, without blanks, which come with mark-up. Spoils the tree."""
        from hashlib import sha256  # 4 MB of libcrypto, which the child that reads heavy pages can do without

        self._tree.strip_tags(_NOT_TEXT)
        root = self._tree.root
        return sha256("".join(root.text().split()).encode("utf-8", "replace") if root is not None else b"").digest()

    def document_state(self) -> str | None:
        states = (content.strip().upper() for content in self.metas_named("document-state"))
        return next((state for state in states if state in _DOCUMENT_STATES), None)


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


def _canonical_or_none(target: str | None, base: str | None) -> str | None:
    if target is None:
        return None
    try:
        return canonicalise(target, base)
    except NotCrawlable:
        return None


def _first_canonical(targets: Iterable[str], base: str | None) -> str | None:
    return next(filter(None, (_canonical_or_none(target, base) for target in targets)), None)
