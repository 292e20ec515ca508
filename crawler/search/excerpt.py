"""Marks the words of a query in titles and excerpts, with FTS5 in a small index of the few pages that are shown.

So the text is split into words as in the index of the store, which keeps no texts.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from crawler.page.main_text import clean
from crawler.search.tokenizer import TOKENIZER, as_shown, for_tokenizer
from crawler.store.statements import load_statements

#: The approximate number of words in an excerpt.
EXCERPT_WORDS = 40
#: The maximum length of an excerpt: data without blanks is one long word.
EXCERPT_CHARS = 600
_UNMARKED_CHARS = 400

# Two controls enclose each match; clean text contains none.
_ON, _OFF = "\x02", "\x03"
_SQL = load_statements("crawler.search", "excerpt.sql")
# snippet() takes quadratic time: 20 ms for so many characters if each word matches. And to index a long text takes most
# of the time of a search. So one piece is indexed.
_PIECE_CHARS = 4_000
_LEAST_ROOT = 4
_QUOTED, _TERM = re.compile(r'"[^"]*"'), re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Marked:
    """A plain text and the positions of the matches in it: ``marks`` are pairs ``(start, end)`` in characters."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()


def mark(match: str, texts: Sequence[tuple[str, str]]) -> list[tuple[Marked, Marked]]:
    """Mark the matches of an FTS5 expression in pairs of texts: in the first, and in an excerpt of the second."""
    terms = _terms(match)
    ready = [(for_tokenizer(clean(short)), _likely_piece(long, terms)) for short, long in texts]
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute(_SQL["create_table"].format(tokenizer=TOKENIZER))
        db.executemany(_SQL["insert"], ((k, short, "") for k, (short, _) in enumerate(ready)))
        db.executemany(_SQL["insert"], ((len(ready) + k, "", piece) for k, (_, piece) in enumerate(ready)))
        matching = {"match": match, "texts": len(ready)}
        titles = dict(db.execute(_SQL["highlight"], matching))
        excerpts = dict(db.execute(_SQL["snippet"].format(words=EXCERPT_WORDS), matching))
    return [
        (_marked(titles.get(k, short)), _marked(excerpts[k]) if k in excerpts else Marked(_beginning(long)))
        for k, ((short, _), (_, long)) in enumerate(zip(ready, texts, strict=True))
    ]


def _terms(match: str) -> set[str]:
    """The words of an expression, without those that begin with another one: forms count once."""
    words = {word for quoted in _QUOTED.findall(as_shown(match)) for word in _TERM.findall(quoted.lower())}
    roots = tuple(word for word in words if len(word) >= _LEAST_ROOT)
    return {word for word in words if not any(word.startswith(root) and word != root for root in roots)}


def _likely_piece(text: str, terms: Collection[str]) -> str:
    """The piece of a text with the most of the terms, rare ones counting more, for the tokenizer."""
    pieces = list(_pieces(text)) or [""]
    written, score = [piece.lower() for piece in pieces], [0.0] * len(pieces)
    for term in sorted(terms) if len(pieces) > 1 else ():
        having = [n for n, piece in enumerate(written) if term in piece]
        for n in having:
            score[n] += math.log(1 + len(pieces) / len(having))
    return for_tokenizer(clean(pieces[score.index(max(score))]))


def _pieces(text: str) -> Iterator[str]:
    """The pieces of a text. A piece ends at a blank, if there is one near its end."""
    start = 0
    while start < len(text):
        blank = text.find(" ", start + _PIECE_CHARS, start + 2 * _PIECE_CHARS)
        end = start + 2 * _PIECE_CHARS if blank < 0 else blank
        yield text[start:end].strip()
        start = end


def _beginning(text: str) -> str:
    return " ".join(clean(text[:_UNMARKED_CHARS]).split(" ")[:EXCERPT_WORDS])


def _marked(text: str) -> Marked:
    plain = ""
    marks: list[tuple[int, int]] = []
    for part in as_shown(text).split(_ON):
        inside, off, outside = part.partition(_OFF)
        if off:
            marks.append((len(plain), len(plain) + len(inside)))
        plain += inside + outside
    return Marked(plain, tuple(marks))


def within(excerpt: Marked, chars: float) -> Marked:
    """At most ``chars`` characters of an excerpt, around its first mark if it is too long."""
    if len(excerpt.text) <= chars:
        return excerpt
    most = int(chars)
    first = excerpt.marks[0][0] if excerpt.marks else 0
    start = max(0, min(first - most // 3, len(excerpt.text) - most))
    inside = [(max(a, start) - start, min(b, start + most) - start) for a, b in excerpt.marks]
    return Marked(excerpt.text[start : start + most], tuple((a, b) for a, b in inside if a < b))


def matching_anchors(match: str, anchors_of: Mapping[int, str]) -> dict[int, Marked]:
    """For each page (by number), the anchor of a link to it with the most matches of the FTS5 expression ``match``.

    ``anchors_of`` are the anchors that the index has, one a line, the most frequent first. Of anchors with equally many
    matches the most frequent is taken; a page without a match is not in the result.
    """
    anchors = [(page, text) for page, lines in anchors_of.items() for text in lines.split("\n")]
    best: dict[int, Marked] = {}
    for (page, _), (anchor, _) in zip(anchors, mark(match, [(text, "") for _, text in anchors]), strict=True):
        if len(anchor.marks) > len(best.get(page, Marked("")).marks):
            best[page] = anchor
    return best
