"""The main text of a document as blocks: headings, paragraphs, items of lists, and preformatted text.

resiliparse (Bevendorff et al., *ECIR 2018*) finds the main content (``docs/decisions/``, "Main text by resiliparse").
It returns headings, paragraphs, lists and preformatted text as reduced HTML, from which the blocks are made. Nothing
bounds its time: nested elements take it quadratic time. So only parser processes call it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawler.page.charset import to_utf8
from crawler.page.headers import HTML_TYPES, PDF
from crawler.page.main_text import MAX_TEXT_CHARS, is_text
from crawler.page.pdf import read_pdf
from crawler.page.texts import Block

#: The module of the extra ``text`` that finds the main content.
EXTRACTOR = "resiliparse.extract.html2text"
_DEEPEST = 50  # of lists and other elements within one another; what is deeper is one block
# A list of text: at most so much of it is in links, and an item has at least so many characters outside of links. Text
# stands beside it, or beside one of the elements that it is in, and its items have no headings, pictures or forms.
_MOST_LINKED, _LEAST_ITEM_CHARS = 0.5, 40
_BESIDE, _ELEMENTS_AROUND = ("p", "pre", "dl", "blockquote"), 3
_NOT_IN_ITEMS = "h1,h2,h3,h4,h5,h6,img,svg,figure,article,iframe,form,button,input,time"
_LEVELS = {f"h{level}": level for level in range(1, 7)}


def blocks(body: bytes, charset: str | None, content_type: str) -> list[Block]:
    """The blocks of the main text of a document that the crawl decoded with ``charset``.

    Raises :class:`ModuleNotFoundError` if the library that reads it is missing.
    """
    if content_type == PDF:
        read = read_pdf(body, MAX_TEXT_CHARS)
        return [block for page in (read.pages if read else ()) for block in _paragraphs(page)]
    text = to_utf8(body, charset)[1].decode(errors="replace")
    if content_type not in HTML_TYPES and not is_text(content_type):
        return []
    if content_type not in HTML_TYPES:
        return list(_paragraphs(text))
    extract: Any = import_module(EXTRACTOR).extract_plain_text
    reduced = extract(
        _with_lists(text),
        main_content=True,
        preserve_formatting="minimal_html",
        alt_texts=False,
        comments=False,
        post_meta=False,
    )
    root = LexborHTMLParser(reduced).body
    return [] if root is None else list(_blocks(root))


def _with_lists(html: str) -> str:
    """The page with the items of lists of text outside of a list.

    resiliparse takes a ``<ul>`` for navigation if it stands high up in the page, or if a fifth of its text is in links,
    as in manuals. It keeps items without a list.
    """
    tree = LexborHTMLParser(html)
    lists = [] if tree.body is None else [node for node in tree.body.css("ul") if _is_text(node)]
    for node in lists:
        node.unwrap()
    return (tree.html or "") if lists else html


def _is_text(node: LexborNode) -> bool:
    chars, linked = _chars(node), sum(map(_chars, node.css("a")))
    unlinked_each = (chars - linked) / max(1, len(node.css("li")))
    if linked > _MOST_LINKED * chars or unlinked_each < _LEAST_ITEM_CHARS or node.css_first(_NOT_IN_ITEMS):
        return False
    around = node.parent
    for _ in range(_ELEMENTS_AROUND):
        if around is None or any(child.tag in _BESIDE for child in around.iter()):
            return around is not None
        around = around.parent
    return False


def _chars(node: LexborNode) -> int:
    return len("".join(node.text().split()))


def _blocks(root: LexborNode, depth: int = 0) -> Iterator[Block]:
    """The blocks below a node of the reduced HTML. Text outside of any element is a paragraph at each blank line."""
    if depth > _DEEPEST:
        yield from _paragraphs(root.text())
        return
    loose: list[str] = []
    for node in root.iter(include_text=True):
        tag = node.tag or ""
        if tag in ("-text", "br", "a"):
            loose.append("\n" if tag == "br" else node.text(deep=True))
            continue
        yield from _paragraphs("".join(loose))
        loose.clear()
        if tag in _LEVELS:
            if heading := " ".join(node.text().split()):
                yield Block("heading", heading.rstrip("¶ "), _LEVELS[tag])
        elif tag == "pre":
            if node.text().strip():
                yield Block("pre", node.text().strip("\n"))
        elif tag in ("ul", "ol"):
            yield from _items(node, 1)
        elif tag == "li":
            yield from _item(node, 1)
        else:
            yield from _blocks(node, depth + 1)
    yield from _paragraphs("".join(loose))


def _items(node: LexborNode, depth: int) -> Iterator[Block]:
    for item in node.iter():
        yield from _item(item, depth)


def _item(item: LexborNode, depth: int) -> Iterator[Block]:
    lists = ("ul", "ol") if depth < _DEEPEST else ()
    parts = list(item.iter(include_text=True))
    own = "".join(part.text() for part in parts if part.tag not in lists)
    if said := " ".join(own.split()):
        yield Block("item", said, depth)
    for inner in parts:
        if inner.tag in lists:
            yield from _items(inner, depth + 1)


def _paragraphs(text: str) -> Iterator[Block]:
    for part in re.split(r"\n\s*\n", text):
        lines = (" ".join(line.split()) for line in part.splitlines())
        if said := "\n".join(filter(None, lines)):
            yield Block("text", said)
