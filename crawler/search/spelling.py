"""Suggests a spelling for the words of a query that no page has, from the words of the index itself."""

from __future__ import annotations

from typing import NamedTuple

from rapidfuzz import process
from rapidfuzz.distance import Indel

from crawler.search.forms import forms_of, languages_of
from crawler.search.index_file import INDEX, Index
from crawler.search.query import plain_words
from crawler.search.tokenizer import as_shown, tokenize

_LEAST_LETTERS = 4
_ALIKE = 0.75  # one wrong letter in a word of four, two in one of eight
_SHORTER_OR_LONGER = 2
_AS_ALIKE = 0.05  # of words that are less alike than the best by this at most, the one on most pages is meant
_MOST_UNKNOWN = 8  # words of one query that are compared: each reads a part of the vocabulary
_LAST = "\U0010ffff"


#: A word on so few pages may be misspelt there, if a word like it is on so many times as many.
_RARE, _MORE_FREQUENT = 2, 20


class Suggestion(NamedTuple):
    """A query in another spelling. ``as_typed`` is the query that searches for the words as they were typed."""

    words: str
    as_typed: str


async def suggestion(index: Index, words: str, *, few: bool) -> Suggestion | None:
    """The query ``words`` with a known word in place of each unknown one; ``None`` if there is nothing to correct.

    A word is compared with those that begin with the same two letters, or with these in the other order. ``few`` says
    that pages have all the words, though few: then a rare word is replaced by one that is far more frequent.
    """
    readable, found = plain_words(words)
    corrected, as_typed, end, unknown = "", "", 0, 0
    for start, forms in found:
        others = await forms_of(index, forms[0], await languages_of(index))
        pages = max([await _pages_with(index, form) for form in (*forms, *others)])
        if pages > (_RARE if few else 0):
            continue
        if (unknown := unknown + 1) > _MOST_UNKNOWN:
            break
        meant = await _nearest(index, forms[0], _MORE_FREQUENT * pages)
        if meant is not None:
            corrected += readable[end:start] + meant
            as_typed += f'{readable[end:start]}"{forms[0]}"'
            end = start + len(forms[0])
    return Suggestion(corrected + readable[end:], as_typed + readable[end:]) if corrected else None


async def _pages_with(index: Index, word: str) -> int:
    """On how many pages the rarest part of a word is; ``std::vector`` has two."""
    rows = [await index.query(INDEX["word"], {"term": term}) for term in tokenize(word)]
    return min((of_term[0]["doc"] if of_term else 0 for of_term in rows), default=1)


async def _nearest(index: Index, word: str, least_pages: int) -> str | None:
    terms = tokenize(word)
    if len(terms) != 1 or not terms[0].isalpha() or len(terms[0]) < _LEAST_LETTERS:
        return None
    (term,) = terms
    pages: dict[str, int] = {}
    for prefix in dict.fromkeys((term[:2], term[1::-1])):
        rows = await index.query(
            INDEX["words_like"],
            {
                "prefix": prefix,
                "after": prefix + _LAST,
                "least": len(term) - _SHORTER_OR_LONGER,
                "most": len(term) + _SHORTER_OR_LONGER,
            },
        )
        pages |= {row["term"]: row["doc"] for row in rows if row["term"] != term and row["doc"] >= least_pages}
    alike = process.extract(term, pages.keys(), scorer=Indel.normalized_similarity, score_cutoff=_ALIKE, limit=None)
    near = [other for other, similarity, _ in alike if similarity >= alike[0][1] - _AS_ALIKE]
    return as_shown(max(near, key=lambda other: (pages[other], other))) if near else None
