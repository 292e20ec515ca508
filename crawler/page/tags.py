"""Collects what the tags of a page say, as written. Only this module and ``links`` use the tree that lexbor builds.

Source: HTML Standard for ``<base>`` (4.2.3) and for refresh (4.2.5.3). A tag counts wherever the parser puts it,
because a ``<noscript><img>`` ends the head. What is in a ``<template>`` does not count: it is no part of the tree.
"""

from __future__ import annotations

from array import array
from collections import Counter
from hashlib import sha256
from typing import NamedTuple

from selectolax.lexbor import LexborCSSSelector, LexborDocumentOptions, LexborHTMLParser, LexborNode

from crawler.page.charset import changed, in_utf8, meta_encoding, sniffed
from crawler.page.headers import LICENCE_TYPE, as_html, language_tag
from crawler.page.links import LinkTable, collapse, is_instant, refresh_target
from crawler.page.targets import Use, rel_words

MAX_TITLE_CHARS = 1_000
#: Title elements examined before the page counts as having no title.
MAX_TITLES = 16
MAX_FEEDS = 8
#: Links to licences that are taken from one page, and the characters of a licence in it.
MAX_LICENCES = 8
MAX_LICENCE_CHARS = 65_536
#: Elements examined for resources.
MAX_RESOURCES = 5_000

# One query for all tags is faster than one query each, and keeps document order. Each alternative is tried on each
# element, so [href] stands for <a>, <area>, <link> and <base>, and [src] for frames; few other elements have one. An
# anchor whose href is a bare fragment is no link; in a drawing that may be its second href. The title is looked for in
# the head.
_SELECTOR = "[href]:not(a[href^='#']:not(svg *)),[src]:not(img):not(script),meta,script,style,noscript"
# Each tree would make an engine of its own.
_ENGINE = LexborCSSSelector()  # type: ignore[no-untyped-call]
# Without events: nothing here needs <selectedcontent> filled as a browser fills it.
_OPTIONS = int(LexborDocumentOptions.WO_EVENTS)
# Tag numbers are cheaper to read than names, and are the same in every document.
_ANCHORS = frozenset(node.tag_id for node in LexborHTMLParser("<a></a><area>").css("a,area"))
_NOT_TEXT = frozenset(
    node.tag_id for tag in ("script", "style", "noscript") for node in LexborHTMLParser(f"<{tag}></{tag}>").css(tag)
)
_FEED_TYPES = frozenset(("application/rss+xml", "application/atom+xml"))
_RESOURCES = "script[src],img[src],iframe[src],frame[src],link[rel][href]"
_KINDS = {"script": "script", "img": "image", "iframe": "frame", "frame": "frame"}
_WHITESPACE = b"\t\n\f\r "  # of HTML


class Said(NamedTuple):
    """The statements in the tags of one page, in document order, not yet interpreted or resolved."""

    encoding: str
    base: str | None
    title: str | None
    metas: list[tuple[str, str]]  # name in lower case, content
    canonicals: list[str]
    refresh: str | None  # the target of an instant refresh
    feeds: list[str]
    links: dict[str, list[Use]]  # the uses of each target, without fragments
    note: str  # empty unless links were left out
    text_sha256: bytes
    shingles: bytes  # of the visible text, if they are wanted; empty otherwise
    licences: list[str]  # the targets of links to licences of RSL
    inline_licence: str
    language: str | None
    resources: Counter[tuple[str, str]]  # how often each kind names each target


def read_tags(
    body: bytes, charset: str | None, *, is_xml: bool = False, resources: bool = False, shingles: bool = False
) -> Said:
    """Parse a page and collect what its tags say, with the digest of its visible text.

    On request it has the resources of the page and the shingles of its text.

    ``charset`` is that of the Content-Type header, which also says whether the page ``is_xml``. A hostile page can take
    minutes and gigabytes.
    """
    encoding, is_certain = sniffed(body, charset)
    root, tags = _parsed(body, encoding, is_xml)
    if not is_certain and (change := changed(encoding, tags.declared)) != encoding:  # by a <meta> behind the prescan
        encoding = change
        del root, tags
        root, tags = _parsed(body, encoding, is_xml)
    return Said(
        encoding=encoding,
        base=tags.base,
        title=_title(root),
        metas=tags.metas,
        canonicals=tags.canonicals,
        refresh=tags.refresh,
        feeds=tags.feeds,
        links=tags.links.uses,
        note=tags.links.note,
        language=_declared_language(root, tags.pragma_language),
        resources=_resources(root) if resources else Counter(),
        licences=tags.licences,
        inline_licence=tags.inline_licence or "",
        text_sha256=_text_sha256(root, tags.not_text),  # this and the next change the tree
        shingles=_shingles(root) if shingles else b"",
    )


def _parsed(body: bytes, encoding: str, is_xml: bool) -> tuple[LexborNode, _Tags]:
    utf8 = in_utf8(body, encoding)
    tree = LexborHTMLParser(as_html(utf8) if is_xml else utf8, options=_OPTIONS)
    tree.raw_html = b""  # the parser would keep a copy of the page
    root = tree.root
    assert root is not None  # an empty page has an <html> too
    return root, _Tags(root)


class _Tags:
    """Collects by one walk over the tree below ``root``."""

    __slots__ = (
        "base",
        "canonicals",
        "declared",
        "feeds",
        "inline_licence",
        "licences",
        "links",
        "metas",
        "not_text",
        "pragma_language",
        "refresh",
    )

    def __init__(self, root: LexborNode) -> None:
        self.links = LinkTable()
        self.base: str | None = None
        self.declared: str | None = None  # the first encoding that a <meta> declares
        self.canonicals: list[str] = []
        self.refresh: str | None = None
        self.metas: list[tuple[str, str]] = []
        self.not_text: list[LexborNode] = []
        self.pragma_language: str | None = None
        self.feeds: list[str] = []
        self.licences: list[str] = []  # the targets of links to licences of RSL (RSL 1.0, 4.5)
        self.inline_licence: str | None = None  # the first licence that stands in the page (4.6)
        settled = self.links.settled
        for node in _ENGINE.find(_SELECTOR, root):
            if node.tag_id in _ANCHORS:  # most elements are anchors, and most anchors repeat a settled target
                try:  # an item is cheaper than the dictionary of all attributes; one that is missing is dearer
                    href = node.attrs["href"] or ""
                except KeyError:  # in a drawing (SVG 2, Linking, XLinkRefAttrs)
                    href = node.attrs.get("xlink:href") or ""
                target, fragment, _ = href.partition("#")
                if target not in settled and (not fragment or target.strip()):
                    self.links.add_target(target, node.attributes.get("rel") or "", node)
                continue
            tag, attributes = node.tag, node.attributes
            if node.tag_id in _NOT_TEXT:
                self.not_text.append(node)
                if tag == "script" and self.inline_licence is None and _media_type(attributes) == LICENCE_TYPE:
                    self.inline_licence = node.text()[:MAX_LICENCE_CHARS]
            elif tag == "link" and "href" in attributes:  # in a drawing the match may be xlink:href
                self._link(attributes, rel_words(attributes.get("rel") or ""))
            elif tag == "meta":
                if self.declared is None:
                    said = map(attributes.get, ("charset", "http-equiv", "content"))
                    self.declared = meta_encoding(*said)
                if "content" in attributes:
                    self._meta(node, attributes)
            elif tag == "base":
                self.base = attributes.get("href") if self.base is None else self.base
            elif tag in ("frame", "iframe") and "src" in attributes:
                self.links.add(attributes["src"] or "", tag, None)

    def _link(self, attributes: dict[str, str | None], rel: list[str]) -> None:
        href = attributes["href"] or ""
        if "alternate" in rel and "nofollow" not in rel and len(self.feeds) < MAX_FEEDS:
            self.feeds += [href] if _media_type(attributes) in _FEED_TYPES else []
        if "canonical" in rel:
            self.canonicals.append(href)
        if "license" in rel and len(self.licences) < MAX_LICENCES and _media_type(attributes) == LICENCE_TYPE:
            self.licences.append(href)
        if "next" in rel:
            self.links.add(href, "next nofollow" if "nofollow" in rel else "next", None)

    def _meta(self, node: LexborNode, attributes: dict[str, str | None]) -> None:
        content = attributes["content"] or ""
        self.metas.append(((attributes.get("name") or "").strip().lower(), content))
        pragma = (attributes.get("http-equiv") or "").strip().lower()
        if pragma == "content-language" and "," not in content:
            self.pragma_language = content.strip() or self.pragma_language
        if pragma == "refresh":
            target = refresh_target(content)
            if target:
                self.links.add(target, "refresh", None)
                if self.refresh is None and is_instant(content) and not _is_within(node, "noscript"):
                    self.refresh = target


def _title(root: LexborNode) -> str | None:
    """The first title, which is nearly always in the head. A drawing or a formula has titles of its own."""
    head = root.parser.head
    titles = [] if head is None else _ENGINE.find("title", head)  # no drawing stands in a head
    if not titles:
        titles = [node for node in _ENGINE.find("title", root)[:MAX_TITLES] if not _is_within(node, "svg", "math")]
    return collapse(titles[0].text(), MAX_TITLE_CHARS) if titles else None


def _media_type(attributes: dict[str, str | None]) -> str:
    return (attributes.get("type") or "").partition(";")[0].strip().lower()


def _declared_language(root: LexborNode, pragma: str | None) -> str | None:
    """The language of the root element (HTML Standard, 3.2.6.1), else that of the pragma, if it is a tag."""
    attributes = root.attributes
    declared = attributes.get("lang") or attributes.get("xml:lang") or pragma
    return language_tag(declared)


def _resources(root: LexborNode) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for node in _ENGINE.find(_RESOURCES, root)[:MAX_RESOURCES]:
        tag, attributes = node.tag or "", node.attributes
        if tag != "link":
            found[_KINDS[tag], attributes["src"] or ""] += 1
        elif "stylesheet" in rel_words(attributes.get("rel") or ""):
            found["style", attributes["href"] or ""] += 1
    return found


def _text_sha256(root: LexborNode, not_text: list[LexborNode]) -> bytes:
    """The digest of the visible text and the title, without the blanks that mark-up adds. Changes the tree.

    ``not_text`` are the elements whose text is not visible.
    """
    for node in not_text:
        node.decompose(recursive=False)  # it leaves the tree with its content
    return sha256(root.text(skip_empty=True).encode().translate(None, _WHITESPACE)).digest()


def _shingles(root: LexborNode) -> bytes:
    """The smallest shingles of the text of a tree without what is not visible, eight octets each."""
    from crawler.page.shingles import MOST_SHINGLES, shingles, words  # few crawls want them

    return array("Q", sorted(shingles(words(root.text(separator=" "))))[:MOST_SHINGLES]).tobytes()


def _is_within(node: LexborNode, *tags: str) -> bool:
    """Whether a node is inside an element with one of these tags."""
    above = node.parent
    while above is not None:
        if above.tag in tags:
            return True
        above = above.parent
    return False
