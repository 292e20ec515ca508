"""Marks the words of a query in titles and excerpts, with FTS5 in a small index of the few pages that are shown.

So the text is split into words as in the index of the store, which keeps no texts.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

from crawler.clock import monotonic_s
from crawler.errors import QueryInterrupted
from crawler.page.main_text import clean
from crawler.search.tokenizer import TOKENIZER, as_shown, for_tokenizer
from crawler.store.statements import load_statements

#: The approximate number of words in an excerpt.
EXCERPT_WORDS = 40
#: The maximum length of an excerpt: data without blanks is one long word.
EXCERPT_CHARS = 600
_CHARS_BEFORE = 200  # characters before the first mark of an excerpt that is cut
_UNMARKED_CHARS = 400

# Two controls enclose each match; clean text contains none.
_ON, _OFF = "\x02", "\x03"
_SQL = load_statements("crawler.search", "excerpt.sql")
# snippet() takes quadratic time, so a long text is split, and the best piece is shown.
_PIECE_CHARS = 10_000
# SQLite asks whether it is late after so many steps of a statement.
_STEPS = 1000
_TOO_LATE = "the matches were not marked in time"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Marked:
    """A plain text and the positions of the matches in it: ``marks`` are pairs ``(start, end)`` in characters."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()

    def share(self) -> float:
        """The share of letters and digits that are marked, from 0 to 1."""
        marked = sum(_letters(self.text[start:end]) for start, end in self.marks)
        return marked / max(_letters(self.text), 1)


def mark(match: str, texts: Sequence[tuple[str, str]], until: float = math.inf) -> list[tuple[Marked, Marked]]:
    """Mark the matches of an FTS5 expression in pairs of texts: in the first, and in an excerpt of the second.

    Raises :class:`QueryInterrupted` soon after ``until``, in seconds of :func:`crawler.clock.monotonic_s`.
    """

    def is_late() -> bool:
        return monotonic_s() >= until

    def in_time(things: Iterable[T]) -> Iterator[T]:
        for thing in things:
            if is_late():
                raise QueryInterrupted(_TOO_LATE)
            yield thing

    ready = [(for_tokenizer(clean(short)), for_tokenizer(clean(long))) for short, long in in_time(texts)]
    places = {n * len(ready) + k: (k, piece) for k, (_, long) in enumerate(ready) for n, piece in _pieces(long)}
    excerpts: dict[int, str] = {}
    try:
        with closing(sqlite3.connect(":memory:")) as db:
            db.set_progress_handler(is_late, _STEPS)
            db.execute(_SQL["create_table"].format(tokenizer=TOKENIZER))
            db.executemany(_SQL["insert"], ((k, short, "") for k, (short, _) in enumerate(ready)))
            db.executemany(_SQL["insert"], ((row_id, "", piece) for row_id, (_, piece) in in_time(places.items())))
            matching = {"match": match, "texts": len(ready)}
            titles = dict(db.execute(_SQL["highlight"], matching))
            snippet = _SQL["snippet"].format(words=EXCERPT_WORDS)
            for (row_id,) in in_time(db.execute(_SQL["best_pieces"], matching).fetchall()):
                text_number, _ = places[row_id]
                if text_number not in excerpts:
                    (excerpts[text_number],) = db.execute(snippet, {"match": match, "row_id": row_id}).fetchone()
    except sqlite3.OperationalError:
        if is_late():
            raise QueryInterrupted(_TOO_LATE) from None
        raise
    return [
        (_marked(titles.get(k, short)), _bounded(_marked(excerpts.get(k, _beginning(long)))))
        for k, (short, long) in enumerate(ready)
    ]


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """The pieces of a text, numbered from 1. A piece ends at a blank, if there is one near its end."""
    start = number = 0
    while start < len(text):
        blank = text.find(" ", start + _PIECE_CHARS, start + 2 * _PIECE_CHARS)
        end = start + 2 * _PIECE_CHARS if blank < 0 else blank
        number += 1
        yield number, text[start:end].strip()
        start = end


def _beginning(text: str) -> str:
    return " ".join(text[:_UNMARKED_CHARS].split(" ")[:EXCERPT_WORDS])


def _marked(text: str) -> Marked:
    plain = ""
    marks: list[tuple[int, int]] = []
    for part in as_shown(text).split(_ON):
        inside, off, outside = part.partition(_OFF)
        if off:
            marks.append((len(plain), len(plain) + len(inside)))
        plain += inside + outside
    return Marked(plain, tuple(marks))


def _bounded(excerpt: Marked) -> Marked:
    """The part of an excerpt around its first mark, if the excerpt is too long."""
    if len(excerpt.text) <= EXCERPT_CHARS:
        return excerpt
    first = excerpt.marks[0][0] if excerpt.marks else 0
    start = max(0, min(first - _CHARS_BEFORE, len(excerpt.text) - EXCERPT_CHARS))
    end = start + EXCERPT_CHARS
    before, after = "…" * (start > 0), "…" * (end < len(excerpt.text))
    moved = ((a - start + len(before), min(b, end) - start + len(before)) for a, b in excerpt.marks if a < end)
    return Marked(f"{before}{excerpt.text[start:end]}{after}", tuple(moved))


def within(excerpt: Marked, chars: float) -> Marked:
    """At most ``chars`` characters of an excerpt, from its first mark on if it is too long."""
    if len(excerpt.text) <= chars:
        return excerpt
    most = int(chars)
    first = excerpt.marks[0][0] if excerpt.marks else 0
    start = min(first, len(excerpt.text) - most)
    inside = [(max(a, start) - start, min(b, start + most) - start) for a, b in excerpt.marks]
    return Marked(excerpt.text[start : start + most], tuple((a, b) for a, b in inside if a < b))


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text))
