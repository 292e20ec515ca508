"""Titles and excerpts with the words marked, by FTS5 itself: in a small index of the few pages that are shown.

So the words are told apart as they are in the index of the store, which keeps no texts.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from crawler.search.text import clean, joined, parted

#: About how many words an excerpt has.
EXCERPT_WORDS = 40
_UNMARKED_CHARS = 400

# Two controls, which no clean text holds, stand around what is marked.
_ON, _OFF = "\x02", "\x03"
_TABLE = "CREATE VIRTUAL TABLE t USING fts5(short, long, tokenize = 'unicode61 remove_diacritics 2')"
_MARK = f"""
SELECT rowid, highlight(t, 0, char(2), char(3)), snippet(t, 1, char(2), char(3), '…', {EXCERPT_WORDS})
FROM t WHERE t MATCH ?
"""


@dataclass(frozen=True, slots=True)
class Marked:
    """A plain text, and where in it the words searched for stand: ``marks`` are ``(start, end)`` in characters."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()

    def share(self) -> float:
        """How much of the text is marked, in letters and digits: 0 to 1."""
        marked = sum(_letters(self.text[start:end]) for start, end in self.marks)
        return marked / max(_letters(self.text), 1)


def mark(match: str, texts: Sequence[tuple[str, str]]) -> list[tuple[Marked, Marked]]:
    """Mark what an expression of FTS5 matches in pairs of texts: the first whole, of the second an excerpt."""
    ready = [(parted(clean(short)), parted(clean(long))) for short, long in texts]
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute(_TABLE)
        rows = ((number, *pair) for number, pair in enumerate(ready))
        db.executemany("INSERT INTO t (rowid, short, long) VALUES (?, ?, ?)", rows)
        marked = {number: (short, long) for number, short, long in db.execute(_MARK, (match,))}
    unmarked = ((short, _beginning(long)) for short, long in ready)
    pairs = (marked.get(number, pair) for number, pair in enumerate(unmarked))
    return [(_marked(short), _marked(long)) for short, long in pairs]


def _beginning(text: str) -> str:
    return " ".join(text[:_UNMARKED_CHARS].split(" ")[:EXCERPT_WORDS])


def _marked(text: str) -> Marked:
    plain = ""
    marks: list[tuple[int, int]] = []
    for part in joined(text).split(_ON):
        inside, off, outside = part.partition(_OFF)
        if off:
            marks.append((len(plain), len(plain) + len(inside)))
        plain += inside + outside
    return Marked(plain, tuple(marks))


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text))
