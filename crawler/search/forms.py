"""Adds to each word of a query its forms: the words of the index with the same stem, as ``stories`` for ``story``.

So the index has plain words only, and phrases and prefixes match what was typed. A stem begins like its words, except
for its last letter (``stori``), so only words that begin so are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crawler.search.index_file import INDEX, Index
from crawler.search.query import Phrase, Query
from crawler.search.stems import ALGORITHMS, stem
from crawler.search.tokenizer import tokenize

_LEAST_LETTERS = 3
_COMPARED = 60  # the most frequent words that begin like the stem
_MOST_FORMS = 8  # of a word, besides itself; of them the most frequent
_LAST = "\U0010ffff"


async def with_forms(index: Index, query: Query, language: str | None) -> Query:
    """The query with the forms of each word that is no prefix, in ``language`` or else in those of the index."""
    languages = [language] if language in ALGORITHMS else await languages_of(index)
    words = []
    for forms in query.words:
        others = [] if forms[0].is_prefix else await forms_of(index, forms[0].text, languages)
        words.append((*forms, *map(Phrase, others)))
    return replace(query, words=tuple(words))


async def languages_of(index: Index) -> list[str]:
    """The languages of the index."""
    rows = await index.query(INDEX["state"])
    return str(rows[0]["languages"]).split() if rows else []


async def forms_of(index: Index, word: str, languages: Sequence[str]) -> list[str]:
    """The other forms of a word in the index, the most frequent first; none for a word with signs or digits."""
    terms = tokenize(word)
    if len(terms) != 1 or not terms[0].isalpha() or len(terms[0]) < _LEAST_LETTERS:
        return []
    (term,) = terms
    found: list[str] = []
    for language in languages:
        common = stem(language, term)
        prefix = common[: max(_LEAST_LETTERS, len(common) - 1)]
        values = {"prefix": prefix, "after": prefix + _LAST, "most": _COMPARED}
        like = [row["term"] for row in await index.query(INDEX["frequent_words"], values)]
        found += [other for other in like if other != term and stem(language, other) == common]
    return list(dict.fromkeys(found))[:_MOST_FORMS]
