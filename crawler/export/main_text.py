"""The main text of pages as exports write it: as text, as Markdown, and in chunks. Needs the extra `text`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from crawler.errors import require
from crawler.page.blocks import EXTRACTOR
from crawler.page.headers import HTML_TYPES, PDF
from crawler.page.texts import Block

_SENTENCE_END = re.compile(r"(?<=[.!?…。！？])\s+|(?<=[。！？])")
# A line that begins so would be read as another block of Markdown (CommonMark 0.31, 4 and 5).
_MARKS = re.compile(r"^(?=(?:#{1,6}|[-+>]|\d{1,9}[.)])(?:\s|$)|(?:```|~~~|---|===|\*\*\*))", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Successive text of one section. ``headings`` are those above it, the highest first."""

    headings: tuple[str, ...]
    text: str


def require_library(content_type: str) -> None:
    """Raise :class:`crawler.errors.UsageError` if the library that reads such documents is missing."""
    if content_type == PDF:
        require("documents", "this export", "pypdfium2")
    elif content_type in HTML_TYPES:
        require("text", "this export", EXTRACTOR)


def as_text(page: Sequence[Block]) -> str:
    """Plain text: a blank line between blocks, items with a dash."""
    return _joined(page, _plain)


def as_markdown(page: Sequence[Block]) -> str:
    """CommonMark: headings, paragraphs, lists and code."""
    return _joined(page, _markdown)


def chunks(page: Sequence[Block], most_chars: int) -> Iterator[Chunk]:
    """The text in chunks of at most ``most_chars`` characters. No chunk continues beyond a heading.

    A block that is longer ends at a sentence, else at a blank, else anywhere.
    """
    headings: list[Block] = []
    parts: list[str] = []
    size = 0
    for block in page:
        if block.kind == "heading":
            if parts:
                yield Chunk(tuple(heading.text for heading in headings), "\n\n".join(parts))
            headings = [*(above for above in headings if above.level < block.level), block]
            parts, size = [], 0
            continue
        for piece in _pieces(_plain(block), most_chars):
            if parts and size + 2 + len(piece) > most_chars:
                yield Chunk(tuple(heading.text for heading in headings), "\n\n".join(parts))
                parts, size = [], 0
            size += len(piece) + (2 if parts else 0)
            parts.append(piece)
    if parts:
        yield Chunk(tuple(heading.text for heading in headings), "\n\n".join(parts))


def _pieces(text: str, most_chars: int) -> Iterator[str]:
    """A text in pieces of at most ``most_chars`` characters, each as long as can be."""
    while len(text) > most_chars:
        ends = [end.start() for end in _SENTENCE_END.finditer(text, 0, most_chars + 1) if 0 < end.start() <= most_chars]
        blank = text.rfind(" ", 0, most_chars + 1)
        end = ends[-1] if ends else blank if blank > 0 else most_chars
        if piece := text[:end].strip():
            yield piece
        text = text[end:].strip()
    if text:
        yield text


def _joined(page: Sequence[Block], written: Callable[[Block], str]) -> str:
    parts: list[str] = []
    before = ""
    for block in page:
        if parts:
            parts.append("\n" if before == block.kind == "item" else "\n\n")
        parts.append(written(block))
        before = block.kind
    return "".join(parts)


def _plain(block: Block) -> str:
    return f"{'  ' * (block.level - 1)}- {block.text}" if block.kind == "item" else block.text


def _markdown(block: Block) -> str:
    if block.kind == "heading":
        return f"{'#' * block.level} {block.text}"
    if block.kind == "item":
        return _plain(block)
    if block.kind == "pre":
        fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", block.text)), default=0))
        return f"{fence}\n{block.text}\n{fence}"
    return _MARKS.sub(r"\\", block.text)
