"""The main content of pages as exports write it: Markdown with whole addresses, and chunks. Needs the extra `text`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, urljoin

from crawler.errors import require
from crawler.page.content import CONVERTER, EXTRACTOR, LINK
from crawler.page.headers import HTML_TYPES, PDF
from crawler.page.texts import Content

_SENTENCE_END = re.compile(r"(?<=[.!?…。！？])\s+|(?<=[。！？])")
_LINK = re.compile(rf"\]\({LINK}(\d+)\)")
_HEADING = re.compile(r"(#{1,6}) (.*)")
_FENCE = re.compile(r"`{3,}")
_MARKS = re.compile(r"\\([!-/:-@[-`{-~])|\[([^]]*)]\([^)]*\)|`")
_IN_ADDRESSES = "/:?#[]@!$&'*+,;=%~"  # characters that stay as they are; a bracket would end the address


@dataclass(frozen=True, slots=True)
class Chunk:
    """Successive Markdown of one section. ``headings`` are those above it, the highest first."""

    headings: tuple[str, ...]
    text: str


def require_library(content_type: str) -> None:
    """Raise :class:`crawler.errors.UsageError` if a library that reads such documents is missing."""
    if content_type == PDF:
        require("documents", "this export", "pypdfium2")
    if content_type in HTML_TYPES:
        require("text", "this export", EXTRACTOR)
    require("text", "this export", CONVERTER)


def with_links(content: Content, url: str) -> str:
    """The Markdown of the page at ``url``, with the whole addresses of its links."""

    def address(mark: re.Match[str]) -> str:
        number = int(mark[1])
        return f"]({_whole(content.links[number], url)})" if number < len(content.links) else mark[0]

    return _LINK.sub(address, content.markdown)


def _whole(address: str, url: str) -> str:
    try:
        return quote(urljoin(url, re.sub(r"[\t\n\r]", "", address)), safe=_IN_ADDRESSES, errors="replace")
    except ValueError:  # an address such as http://[
        return quote(address, safe="")


def chunks(markdown: str, most_chars: int) -> Iterator[Chunk]:
    """The Markdown in chunks of at most ``most_chars`` characters. No chunk continues beyond a heading.

    A block that is longer ends at a line, else at a sentence, else at a blank, else anywhere. The parts of longer code
    are code.
    """
    headings: list[tuple[int, str]] = []
    parts: list[str] = []

    def collected() -> Iterator[Chunk]:
        if parts:
            yield Chunk(tuple(said for _, said in headings), "\n\n".join(parts))
            parts.clear()

    for block in _blocks(markdown):
        if heading := _HEADING.fullmatch(block):
            yield from collected()
            level = len(heading[1])
            headings = [*(above for above in headings if above[0] < level), (level, _said(heading[2]))]
            continue
        for piece in _pieces(block, most_chars):
            if parts and sum(len(part) + 2 for part in parts) + len(piece) > most_chars:
                yield from collected()
            parts.append(piece)
    yield from collected()


def _blocks(markdown: str) -> Iterator[str]:
    """The parts between blank lines, and code whole."""
    lines: list[str] = []
    fence = ""
    for line in markdown.split("\n"):
        mark = _FENCE.match(line)
        if mark and (not fence or line == fence):
            fence = "" if fence else mark[0]
        if line or fence:
            lines.append(line)
        elif lines:
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)


def _pieces(block: str, most_chars: int) -> Iterator[str]:
    """A block in pieces of at most ``most_chars`` characters, each as long as can be."""
    fence = _FENCE.match(block)
    around = 2 * len(fence[0]) + 2 if fence else 0
    if len(block) <= most_chars or around >= most_chars:
        yield from _cut(block, most_chars)
    elif fence:
        for piece in _cut(block.removeprefix(fence[0] + "\n").removesuffix("\n" + fence[0]), most_chars - around):
            yield f"{fence[0]}\n{piece}\n{fence[0]}"
    else:
        yield from _cut(block, most_chars)


def _cut(text: str, most_chars: int) -> Iterator[str]:
    while len(text) > most_chars:
        line = text.rfind("\n", 0, most_chars + 1)
        ends = [end.start() for end in _SENTENCE_END.finditer(text, 0, most_chars + 1) if 0 < end.start() <= most_chars]
        blank = text.rfind(" ", 0, most_chars + 1)
        end = line if line > 0 else ends[-1] if ends else blank if blank > 0 else most_chars
        if (piece := text[:end]).strip():
            yield piece.rstrip() if line > 0 else piece.strip()
        text = text[end:].removeprefix("\n") if line > 0 else text[end:].strip()
    if text.strip():
        yield text


def _said(markdown: str) -> str:
    """A heading without marks."""
    return _MARKS.sub(lambda mark: mark[1] or (_said(mark[2]) if mark[2] else ""), markdown)
