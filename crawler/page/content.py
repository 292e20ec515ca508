"""The main content of an HTML page as Markdown and as plain text, by two libraries of the extra ``text``.

resiliparse (Bevendorff et al., *ECIR 2018*) says which words of the page are its content. It loses tables, code and
definitions, so its words only lead to the elements: the content is the smallest element with nearly all of them,
without the parts in which none of them stand. html-to-markdown writes these elements as CommonMark with tables
(``docs/decisions/``, "Main text by resiliparse"). Nothing bounds the time: only parser processes read content.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib import import_module
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawler.page.headers import HTML_TYPES, PDF
from crawler.page.main_text import MAX_TEXT_CHARS, is_text, readable
from crawler.page.pdf import read_pdf
from crawler.page.texts import Content

#: The modules of the extra ``text``.
EXTRACTOR, CONVERTER = "resiliparse.extract.html2text", "html_to_markdown"
#: The scheme that stands for the addresses of links in :attr:`Content.markdown`, with their numbers.
LINK = "page-link:"

_NEVER = (
    "script,style,template,noscript,svg,select,button,textarea,input,iframe,object,embed,audio,video,canvas,"
    "nav,footer,aside,[role=navigation],[role=search],[role=banner],[role=contentinfo],[hidden],[aria-hidden=true],"
    "[style*='display:none' i],[style*='display: none' i],figure:has(img):not(:has(pre,table)) figcaption"
)
_HEADINGS = "h1,h2,h3,h4,h5,h6"
_BLOCK = (
    "address,article,aside,blockquote,body,center,dd,details,dialog,div,dl,dt,fieldset,figcaption,figure,footer,form,"
    f"{_HEADINGS},header,hr,legend,li,main,ol,p,pre,section,summary,table,tbody,td,tfoot,th,thead,tr,ul"
)
# In a cell of Markdown stands a line. A table with one of these is unwrapped.
_IN_CELLS = f"pre,dl,blockquote,table,hr,{_HEADINGS}"
_WHOLE = frozenset({"p", "li", "ul", "ol", "dl", "pre", "blockquote", "table"})
_CELLS = "table,caption,thead,tbody,tfoot,tr,td,th"
_BREAK = "\ue000"  # stands for the end of a block until the elements are text
# Stand for the brackets of code in links until it is written: html-to-markdown escapes all brackets in links.
_BRACKETS = (("[", "\ue001"), ("]", "\ue002"))
_MARKS = re.compile(f"[{_BREAK}\ue001\ue002]")
# The converter escapes each mark. Behind a letter or digit these mean nothing; code, and the number that begins a line,
# are passed over.
_ESCAPED = re.compile(
    r"(^ *`{3,})[^`]*$.*?^\1$|(?<![\\`])(`+)(?!`).*?(?<!`)\2(?!`)|^(?:[^\w\n]|\d+[.)] )*\d+\\[.)]"
    r"|(?<=\w)( ?)\\([-+=)]|(?<=\w\\)#|(?<=\w\\)_(?=\w))",
    re.MULTILINE | re.DOTALL,
)
# Emphasis of a part of a word cannot be written in CommonMark, and it says little.
_PLAIN_INLINE = (
    *("b", "strong", "em", "i", "u", "s", "strike", "del", "ins", "mark", "small", "big", "sub", "sup", "q", "cite"),
    *("dfn", "abbr", "var", "samp", "kbd", "tt", "span", "font", "time"),
)
_STRUCTURE = ("pre", "dl", "math", "h1")
# The content is none of these alone: a description has its term, an item its list.
_NO_CORE = frozenset({*_PLAIN_INLINE, "dl", "ul", "ol", "p"})
_DEEPEST = 60  # elements within one another; what is deeper is one part
_CORE, _OUTSIDE = 0.9, 300  # of the words of the content are in its element, and so many may be outside
_LEAST_WORDS = 10  # of a part that resiliparse leaves out and that is kept
_RUN = 3  # words by which the content is recognised
_LINK_SIGNS = frozenset({"¶", "#", "§", "🔗", "\uf0c1", ""})
_NAVIGATION_LINE = re.compile(r"\s*(?:\[\s*)?(?:Next|Previous|Prev|Up)\s*:", re.ASCII)
_SCHEME, _SAFE_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:"), re.compile("(?:https?|mailto):", re.IGNORECASE)
_WORD = re.compile(r"\w+")

Words = tuple[str, ...]


@dataclass(slots=True)
class _Part:
    """An element of blocks: its words, those in links, and the runs of words in it that belong to the content."""

    node: LexborNode
    words: int = 0
    linked: int = 0
    found: int = 0
    parts: list[_Part] = field(default_factory=list)


def content_of(body: bytes, charset: str | None, content_type: str = "") -> Content | None:
    """The content of a fetched document; ``None`` without the libraries that read it, and for other types.

    ``charset`` is the one that the crawl decoded the page with.
    """
    try:
        if content_type == PDF:
            read = read_pdf(body, MAX_TEXT_CHARS)
            return None if read is None else content_of_text("\n\n".join(read.pages))
        document = readable(body, charset, content_type).decode(errors="replace")
        if content_type in HTML_TYPES:
            return content_of_html(document)
        return content_of_text(document[:MAX_TEXT_CHARS]) if is_text(content_type) else None
    except ModuleNotFoundError:
        return None


def content_of_html(html: str) -> Content:
    """The content of a page. Raises :class:`ModuleNotFoundError` if a library is missing."""
    found = import_module(EXTRACTOR).extract_plain_text(
        html, main_content=True, list_bullets=False, alt_texts=False, comments=False, post_meta=False
    )
    body = LexborHTMLParser(_MARKS.sub("", html)).body
    if body is None:
        return Content("", "")
    _cleaned(body)
    root = _measured(body, _with_blocks(body), *_runs(found))
    core = root
    is_text = root.found > _LEAST_WORDS  # else the page is a list of links, or nothing else
    least = max(_CORE * root.found, root.found - _OUTSIDE, 1)
    while is_text and (inner := [part for part in core.parts if part.found >= least and _may_be_core(part, core)]):
        core = inner[0]
    before = _before(root, core)
    if is_text:
        _prune(core)
    return converted([*before, core.node])


def content_of_text(text: str) -> Content:
    """The content of a document that is plain text: its paragraphs."""
    paragraphs = (escape(" ".join(part.split())) for part in re.split(r"\n\s*\n", text))
    return _written("".join(f"<p>{part}</p>" for part in paragraphs if part), ())


def _cleaned(body: LexborNode) -> None:
    """Remove what no page means as its content. A line of code that is all of a cell becomes a part of its line."""
    for node in body.css(_NEVER):
        node.decompose()
    for node in body.css("header"):
        if node.css_first(_HEADINGS) is None:
            node.decompose()
    for node in body.css("p,div"):
        if node.css_first("a") is not None and _NAVIGATION_LINE.match(node.text()) and len(node.text()) < 300:
            node.decompose()
    for node in body.css("td > pre:only-child,th > pre:only-child"):
        said = node.text().strip()
        if "\n" not in said and node.css_first("br") is None:  # with blocks in cells, the table would be unwrapped
            inline = LexborHTMLParser(f"<code>{escape(said)}</code>").css_first("code")
            assert inline is not None
            node.replace_with(inline)


def _runs(text: str) -> tuple[set[Words], set[Words]]:
    """The short runs of words of a text, and its short lines as words."""
    lines = [tuple(_WORD.findall(line)) for line in text.splitlines()]
    words = [word for line in lines for word in line]
    runs = set(zip(*(words[n:] for n in range(_RUN)), strict=False))
    return runs, {line for line in lines if len(line) < _RUN}


def _with_blocks(body: LexborNode) -> set[int]:
    """The elements that are blocks or contain one, by ``mem_id``. To ask each element would take quadratic time."""
    found: set[int] = set()
    for block in body.css(_BLOCK):
        node: LexborNode | None = block
        while node is not None and node.mem_id not in found:
            found.add(node.mem_id)
            node = node.parent
    return found


def _measured(node: LexborNode, with_blocks: set[int], runs: set[Words], lines: set[Words], depth: int = 0) -> _Part:
    part = _Part(node)
    loose: list[str] = []

    def count(text: str) -> None:
        words = _WORD.findall(text)
        part.words += len(words)
        if len(words) < _RUN:
            part.found += tuple(words) in lines and bool(words)
        else:
            part.found += sum(run in runs for run in zip(*(words[n:] for n in range(_RUN)), strict=False))

    for child in node.iter(include_text=True):
        if child.tag == "-text":
            loose.append(child.text() or "")
        elif depth < _DEEPEST and child.mem_id in with_blocks:
            count("".join(loose))
            loose.clear()
            inner = _measured(child, with_blocks, runs, lines, depth + 1)
            part.parts.append(inner)
            part.words, part.linked, part.found = (
                part.words + inner.words,
                part.linked + inner.linked,
                part.found + inner.found,
            )
            if child.tag == "a":
                part.linked += inner.words - inner.linked
        else:
            loose.append("\n" if child.tag == "br" else child.text())
            part.linked += sum(len(_WORD.findall(link.text())) for link in child.css("a"))
    count("".join(loose))
    return part


def _may_be_core(part: _Part, around: _Part) -> bool:
    """Whether a part can be the content alone: it is no part of code, and no code is around it beside words of it."""
    if around.node.tag == "pre" or part.node.tag in _NO_CORE:
        return False
    return not any(each is not part and each.found and each.node.css_first("pre") for each in around.parts)


def _before(root: _Part, core: _Part) -> list[LexborNode]:
    """The first ``h1`` of the page if it stands before the content, and the parts of the content behind it.

    With the ``h1`` comes the part around it if other headings are in that: manual pages say NAME there. Without such
    headings that part has lines about the page: authors, dates, captions.
    """
    found: list[LexborNode] = []
    part = root
    while part is not core:
        inner = next(each for each in part.parts if each is core or _holds(each, core))
        for each in part.parts[: part.parts.index(inner)]:
            heading = each.node.css_first("h1")
            if found:
                found += [each.node] if 2 * each.found > each.words > 2 * each.linked else []
            elif heading is not None and heading.text().strip():
                has_more = each.node.css_first("h2,h3,h4,h5,h6") is not None
                found = [each.node if has_more and 2 * each.linked <= each.words <= 200 else heading]
        part = inner
    own = core.node.css_first("h1")
    is_twice = bool(found) and own is not None and own.text().split() == found[0].text().split()
    return found[is_twice:]


def _holds(part: _Part, other: _Part) -> bool:
    return any(each is other or _holds(each, other) for each in part.parts)


def _prune(part: _Part) -> None:
    """Remove parts of which resiliparse found nothing: those mostly of links, and short ones without a heading.

    Cells of a row, the first heading, and a list behind a colon belong to what stands around them.
    """
    before = ""
    for each in part.parts:
        if each.found:
            if each.node.tag not in _WHOLE or (each.node.tag == "table" and _is_layout(each.node)):
                _prune(each)
        elif each.words and _is_around(each, before):
            each.node.decompose()
            continue
        before = (each.node.text() or "").rstrip()[-1:] or before


def _is_around(part: _Part, before: str) -> bool:
    """Whether a part of which resiliparse found nothing is no content; ``before`` is the last character before it."""
    node, is_short = part.node, part.words < _LEAST_WORDS
    tables = [node] if node.tag == "table" else node.css("table")
    if node.tag in _STRUCTURE or node.css_first(",".join(_STRUCTURE)) or not all(map(_is_layout, tables)):
        return False
    if (node.tag in ("td", "th") and is_short) or (node.tag in ("ul", "ol", "div") and before == ":"):
        return False
    return 2 * part.linked > part.words or (is_short and not tables and node.css_first(_HEADINGS) is None)


def _is_layout(table: LexborNode) -> bool:
    """Whether the cells of a table hold blocks, or no row has two cells with words."""
    if any(node.mem_id != table.mem_id for node in table.css(_IN_CELLS)):
        return True
    rows = [sum(bool(cell.text().strip()) for cell in row.css("td,th")) for row in table.css("tr")]
    return max(rows, default=0) < 2 or len(rows) < 2


def _normalise(root: LexborNode, links: list[str]) -> None:
    root.unwrap_tags(list(_PLAIN_INLINE))
    root.merge_text_nodes()
    for node in root.css("pre"):
        for line_break in node.css("br"):
            line_break.replace_with("\n")
        node.inner_html = escape("\n" + (node.text() or "").replace("\xa0", " ").strip("\n"))
    for node in reversed(root.css("code")):
        before = node.prev
        if before is not None and before.tag == "code":  # their marks would run together
            before.inner_html = (before.inner_html or "") + (node.inner_html or "")
            node.decompose()
    for node in root.css("a"):
        address = (node.attributes.get("href") or "").strip()
        if node.text().strip() in _LINK_SIGNS:
            node.decompose()
        elif not address or (_SCHEME.match(address) and not _SAFE_SCHEME.match(address)):
            node.unwrap()
        else:
            node.attrs["href"] = f"{LINK}{len(links)}"
            if "title" in node.attributes:
                del node.attrs["title"]
            links.append(address)
    for node in root.css("a code,code a"):
        if all(inner.mem_id == node.mem_id for inner in node.css("a,code")):
            code = node.text()
            for bracket, mark in _BRACKETS:
                code = code.replace(bracket, mark)
            node.inner_html = escape(code)
    for node in root.css("table"):
        if _is_layout(node):
            for inner in node.css(_CELLS):
                inner.insert_before(_BREAK)
                inner.insert_after(_BREAK)
                inner.unwrap()


@cache
def _options(output: str) -> Any:
    library: Any = import_module(CONVERTER)
    return library.ConversionOptions(
        output_format=output,
        escape_asterisks=True,
        escape_underscores=True,
        escape_misc=True,
        autolinks=False,
        compact_tables=True,
        br_in_tables=output == "markdown",
        highlight_style="none",
        expand_abbreviations=False,
        include_blockquote_citations=False,
        extract_metadata=False,
        skip_images=True,
        hidden_content="reachable",
        preprocessing=library.PreprocessingOptions(enabled=False),
    )


def converted(nodes: Iterable[LexborNode]) -> Content:
    """Elements, which this changes, as content."""
    links: list[str] = []
    parts = []
    for node in nodes:
        _normalise(node, links)
        parts.append(node.html or "")
    return _written("".join(parts).replace(_BREAK, "<p></p>"), tuple(links))


def _written(html: str, links: tuple[str, ...]) -> Content:
    convert: Any = import_module(CONVERTER).convert
    markdown, plain = (convert(html, _options(output)).content.strip() for output in ("markdown", "plain"))
    for bracket, mark in _BRACKETS:
        markdown, plain = markdown.replace(mark, bracket), plain.replace(mark, bracket)
    markdown = _ESCAPED.sub(lambda found: found[0] if found[4] is None else found[3] + found[4], markdown)
    return Content(markdown, plain, links)
