"""The words of an index: which a query means, in which forms and spelling, and on how many pages they are.

The index has words as they are written, so phrases and prefixes match what was typed. A word of a query gets its forms
from the words with the same stem, as ``stories`` for ``story``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from rapidfuzz import process
from rapidfuzz.distance import Indel

from crawler.errors import UsageError
from crawler.search.index_file import INDEX, Index
from crawler.search.query import MAX_QUERY_CHARS, Phrase, Query, parse_query, plain_words, words_with_signs
from crawler.search.stems import ALGORITHMS, stem
from crawler.search.tokenizer import as_shown, tokenize

#: A prefix is replaced if its words, counted once for each page that has them, are more than this: the index joins the
#: pages of all words of a prefix each time it reads them. And the number of words that replace it.
WIDE, MOST_WORDS = 40_000, 10

_LAST = "\U0010ffff"
_ALL = 1 << 60

_LEAST_LETTERS = 3  # of a word that has forms
_COMPARED, _MOST_FORMS = 60, 8  # the most frequent words that begin like a stem; forms of a word besides itself

_LEAST_CORRECTED = 4  # letters
_ALIKE = 0.75  # one wrong letter in a word of four, two in one of eight
_LONGER = 2  # letters, or shorter
_AS_ALIKE = 0.05  # of words that are less alike than the best by this at most, the one on most pages is meant
_MOST_UNKNOWN = 8  # words of one query that are compared: each reads a part of the vocabulary
#: A word on so few pages may be misspelt there, if a word like it is on so many times as many.
_RARE, _MORE_FREQUENT = 2, 20

_LEAST_COMPLETED, _MOST_COMPLETIONS = 2, 8


class TooWide(UsageError):
    """A query leaves out all pages with one of very many words."""


class Suggestion(NamedTuple):
    """A query in another spelling. ``as_typed`` is the query that searches for the words as they were typed."""

    words: str
    as_typed: str


class Vocabulary:
    """The words of an index. Words have forms in one ``language``, or else in the languages of the index."""

    def __init__(self, index: Index, language: str | None = None) -> None:
        self._index = index
        self._languages = [language] if language in ALGORITHMS else str(index.state["languages"]).split()

    async def query(self, text: str) -> Query:
        """The query of a user. It has the words that some page writes with the same signs, and the forms of words."""
        signed = words_with_signs(text)
        known = [word for word in signed if await self._index.query(INDEX["knows"], {"match": str(Phrase(word))})]
        query = parse_query(text, known)
        words = []
        for word, *others in query.words:
            forms = [] if word.is_prefix else await self._forms(word.text)
            words.append((word, *others, *map(Phrase, forms)))
        return replace(query, words=tuple(words))

    async def pages_with(self, phrase: Phrase) -> int:
        """At least as many pages as have the phrase: the number of those with the rarest of its words."""
        *words, last = tokenize(phrase.text) or [""]
        pages = [await self._pages(word, word) for word in words]
        return min([await self._pages(last, last + _LAST if phrase.is_prefix else last), *pages])

    async def without_wide_prefixes(self, query: Query) -> Query:
        """The query with the most frequent words in place of each prefix that has too many words.

        Raises :class:`TooWide` for such a prefix among the words that no page may have.
        """
        for excluded in query.excluded:
            if await self._in_place_of(excluded):
                raise TooWide(f"-{excluded.text}* leaves out the pages of very many words; write more letters")
        words = [await self._in_place_of(forms[0]) or forms for forms in query.words]
        narrow = list[Phrase]()
        for phrase in query.phrases:
            if forms := await self._in_place_of(phrase):
                words.append(forms)
            else:
                narrow.append(phrase)
        return replace(query, phrases=tuple(narrow), words=tuple(words))

    async def suggestion(self, text: str, *, few: bool) -> Suggestion | None:
        """The query ``text`` with a known word in place of each unknown one; ``None`` if there is nothing to correct.

        A word is compared with those that begin with the same two letters, or with these in the other order. ``few``
        says that pages have all the words, though few: then a rare word is replaced by one that is far more frequent.
        """
        readable, found = plain_words(text)
        corrected, as_typed, end, unknown = "", "", 0, 0
        for start, forms in found:
            others = [*forms, *await self._forms(forms[0])]
            pages = max([await self.pages_with(Phrase(form)) for form in others])
            if pages > (_RARE if few else 0):
                continue
            if (unknown := unknown + 1) > _MOST_UNKNOWN:
                break
            if meant := await self._nearest(forms[0], _MORE_FREQUENT * pages):
                corrected += readable[end:start] + meant
                as_typed += f'{readable[end:start]}"{forms[0]}"'
                end = start + len(forms[0])
        return Suggestion(corrected + readable[end:], as_typed + readable[end:]) if corrected else None

    async def completions(self, text: str) -> list[str]:
        """Queries that begin like ``text``, each with one of the most frequent words in place of its last word."""
        before, blank, begun = text.rpartition(" ")
        terms = tokenize(begun) if len(text) <= MAX_QUERY_CHARS and begun.isalnum() else []
        if len(terms) != 1 or len(terms[0]) < _LEAST_COMPLETED:
            return []
        return [f"{before}{blank}{as_shown(word)}" for word in await self._like(terms[0], _MOST_COMPLETIONS)]

    async def _like(self, prefix: str, most: int = _ALL) -> dict[str, int]:
        """The most frequent words that begin so, and how many pages have each."""
        values = {"prefix": prefix, "after": prefix + _LAST, "most": most}
        return {row["term"]: row["doc"] for row in await self._index.query(INDEX["frequent_words"], values)}

    async def _pages(self, first: str, last: str) -> int:
        """The sum of the pages of all words from one to another."""
        (row,) = await self._index.query(INDEX["count_words"], {"first": first, "last": last})
        return int(row["pages"])

    async def _in_place_of(self, phrase: Phrase) -> tuple[Phrase, ...]:
        """What stands for a phrase whose last word is a prefix of too many words; empty for any other phrase."""
        terms = tokenize(phrase.text)
        if not phrase.is_prefix or not terms or await self._pages(terms[-1], terms[-1] + _LAST) <= WIDE:
            return ()
        *before, prefix = terms
        return tuple(Phrase(as_shown(" ".join((*before, term)))) for term in await self._like(prefix, MOST_WORDS))

    async def _forms(self, word: str) -> list[str]:
        """The other forms of a word, the most frequent first; none for a word with signs or digits.

        A stem begins like its words, except for its last letter (``stori``), so only words that begin so are compared.
        """
        term = _letters_of(word, _LEAST_LETTERS)
        found: list[str] = []
        for language in self._languages if term else ():
            common = stem(language, term)
            like = await self._like(common[: max(_LEAST_LETTERS, len(common) - 1)], _COMPARED)
            found += [other for other in like if other != term and stem(language, other) == common]
        return list(dict.fromkeys(found))[:_MOST_FORMS]

    async def _nearest(self, word: str, least_pages: int) -> str:
        """The word on so many pages that is spelled most like another; empty if none is alike."""
        term = _letters_of(word, _LEAST_CORRECTED)
        pages = await self._like(term[:2]) | await self._like(term[1::-1]) if term else {}
        others = [o for o in pages if o != term and pages[o] >= least_pages and abs(len(o) - len(term)) <= _LONGER]
        alike = process.extract(term, others, scorer=Indel.normalized_similarity, score_cutoff=_ALIKE, limit=None)
        near = [other for other, similarity, _ in alike if similarity >= alike[0][1] - _AS_ALIKE]
        return as_shown(max(near, key=lambda other: (pages[other], other), default=""))


def _letters_of(word: str, least: int) -> str:
    """The word as the index has it, if it is one of so many letters and nothing else; else nothing."""
    terms = tokenize(word)
    return terms[0] if len(terms) == 1 and terms[0].isalpha() and len(terms[0]) >= least else ""
