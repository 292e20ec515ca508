"""Pages and queries for PostgreSQL's text search (its manual, chapter 12), ranked as FTS5 ranks.

The index stores the words of a page as ``tsvector`` values. ``tokenizer.py`` splits the text as FTS5 does, and each
word is labelled with the weight of its field. For a word or phrase, ``ts_rank_cd`` returns the sum of the weights of
all its positions. That is the frequency in BM25, as the ``bm25()`` of FTS5 defines it
(https://www.sqlite.org/fts5.html, section 5.1.1). ``ts_rank`` considers neither the rarity of a word nor the length of
the page.

A ``tsvector`` holds at most 255 positions of a word, positions up to 16,383, words of 2,046 octets, and one megabyte
(12.9). A longer page has several rows. Each row repeats the last words of the row before, for phrases across the two.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from crawler.search.query import Phrase, Query, weighed
from crawler.search.tokenizer import tokenize

#: The fields of a page (title 0, anchors 1, description 2, keywords 3, headings 4, body 5) with the label of their
#: weight: A weighs 50, B 20, C 5, D (no label) 1. There are four labels only; keywords weigh 2, so they are indexed
#: twice.
_FIELDS = ((0, "A"), (1, "B"), (2, "C"), (3, ""), (3, ""), (4, "C"), (5, ""))
HEAVIEST = 50

_MAX_POSITION = 16_383
_MAX_POSITIONS_OF_A_WORD = 255
_MAX_CHARS = 150_000  # of distinct words, up to four octets each
_MAX_WORD_CHARS = 500  # longer words are cut
_REPEATED_WORDS = 20


class PageVectors(NamedTuple):
    """How many words a page has, and its ``tsvector`` values."""

    size: int
    vectors: list[str]


def with_all(query: Query) -> str:
    """The value of ``:match`` for pages that contain everything; pages with words in a row rank higher."""
    return _match(query, [*((phrase,) for phrase in query.phrases), *map(weighed, query.words)])


def with_some(query: Query) -> str | None:
    """The value for pages with all phrases and some of the words; ``None`` if it would match no other pages."""
    if len(query.words) < 2:
        return None
    some = [form for forms in query.words for form in weighed(forms)]
    return _match(query, [*((phrase,) for phrase in query.phrases), some])


def _match(query: Query, groups: Iterable[Iterable[Phrase]]) -> str:
    """The JSON array that the statement ``matching`` reads: [group, tsquery] for each term."""
    required = [(n, tsquery(phrase)) for n, group in enumerate(groups, 1) for phrase in group]
    ranking = [(0, tsquery(phrase)) for phrase in query.in_a_row if phrase is not None]
    excluded = [(-1, tsquery(phrase)) for phrase in query.excluded]
    return json.dumps([*required, *ranking, *excluded])


def tsquery(phrase: Phrase) -> str | None:
    """The phrase as a ``tsquery``; ``None``, which matches nothing, for a phrase without words."""
    words = tokenize(phrase.text)
    if not words:
        return None
    return " <-> ".join(f"'{word[:_MAX_WORD_CHARS]}'" for word in words) + ":*" * phrase.is_prefix


def vectors(texts: Sequence[str]) -> PageVectors:
    """The words of a page as ``tsvector`` values.

    ``texts`` are title, anchors, description, keywords, headings and body, each
    :func:`clean <crawler.page.main_text.clean>`.
    """
    fields = [tokenize(text) for text in texts]
    return PageVectors(sum(map(len, fields)), list(_vectors((fields[field], label) for field, label in _FIELDS)))


def _vectors(fields: Iterable[tuple[Sequence[str], str]]) -> Iterator[str]:
    positions: dict[str, list[str]] = {}
    position = chars = 0
    for words, label in fields:
        for n, word in enumerate(words):
            of_word = positions.get(word)
            if of_word is None:
                of_word = positions[word] = []
                chars += len(word)
            of_word.append(f"{position + 1}{label}")
            position += 1
            is_full = position >= _MAX_POSITION - 1 or chars >= _MAX_CHARS
            if is_full or len(of_word) >= _MAX_POSITIONS_OF_A_WORD:
                yield _vector(positions)
                positions, position, chars = {}, 0, 0
                for repeated in words[max(0, n + 1 - _REPEATED_WORDS) : n + 1]:
                    position += 1
                    positions.setdefault(repeated, []).append(f"{position}{label}")
        position += 1  # a gap: no phrase continues from one field into the next
    yield _vector(positions)


def _vector(positions: dict[str, list[str]]) -> str:
    return " ".join([f"'{word[:_MAX_WORD_CHARS]}':{','.join(of_word)}" for word, of_word in positions.items()])
