"""Bounds the cost of ``wor*``: a prefix that very many words begin with stands for the most frequent of them.

The index joins the pages of all words of a prefix each time it reads them: 0.15 s for two letters in 100,000 pages.
"""

from __future__ import annotations

from dataclasses import replace

from crawler.errors import UsageError
from crawler.search.index_file import INDEX, Index
from crawler.search.query import Phrase, Query
from crawler.search.tokenizer import as_shown, tokenize

#: A prefix is replaced if its words, counted once for each page that has them, are more than this.
WIDE = 40_000
#: The number of words that replace it.
MOST_WORDS = 10
_LAST = "\U0010ffff"


class TooWide(UsageError):
    """A query leaves out all pages with one of very many words."""


async def without_wide_prefixes(index: Index, query: Query) -> Query:
    """The query with the most frequent words in place of each prefix that has too many words.

    Raises :class:`TooWide` for such a prefix among the words that no page may have.
    """
    for excluded in query.excluded:
        if await _frequent(index, excluded):
            raise TooWide(f"-{excluded.text}* leaves out the pages of very many words; write more letters")
    words = [await _frequent(index, forms[0]) or forms for forms in query.words]
    narrow = list[Phrase]()
    for phrase in query.phrases:
        if forms := await _frequent(index, phrase):
            words.append(forms)
        else:
            narrow.append(phrase)
    return replace(query, phrases=tuple(narrow), words=tuple(words))


async def pages_with(index: Index, phrase: Phrase) -> int:
    """At least as many pages as have the phrase: the number of those with the rarest of its words."""
    *words, last = tokenize(phrase.text) or [""]
    prefix = {"prefix": last, "after": last + _LAST}
    name, values = ("words_of_prefix", prefix) if phrase.is_prefix else ("word", {"term": last})
    found = [await index.query(INDEX[name], values), *[await index.query(INDEX["word"], {"term": w}) for w in words]]
    return min((rows[0][0] or 0) if rows else 0 for rows in found)


async def _frequent(index: Index, phrase: Phrase) -> tuple[Phrase, ...]:
    """What stands for a phrase whose last word is a prefix of too many words; empty for any other phrase."""
    terms = tokenize(phrase.text)
    if not phrase.is_prefix or not terms:
        return ()
    *before, prefix = terms
    words = {"prefix": prefix, "after": prefix + _LAST}
    (counted,) = await index.query(INDEX["words_of_prefix"], words)
    if (counted["pages"] or 0) <= WIDE:
        return ()
    frequent = await index.query(INDEX["frequent_words"], {**words, "most": MOST_WORDS})
    return tuple(Phrase(as_shown(" ".join((*before, row["term"])))) for row in frequent)
