"""Completes the last word of a query from the words of the index, as the user types."""

from __future__ import annotations

from crawler.search.index_file import INDEX, Index
from crawler.search.query import MAX_QUERY_CHARS
from crawler.search.tokenizer import as_shown, tokenize

_LEAST_LETTERS = 2
_MOST = 8
_LAST = "\U0010ffff"


async def completions(index: Index, text: str) -> list[str]:
    """Queries that begin like ``text``, each with one of the most frequent words in place of its last word."""
    before, blank, begun = text.rpartition(" ")
    terms = tokenize(begun) if len(text) <= MAX_QUERY_CHARS else []
    if len(terms) != 1 or len(terms[0]) < _LEAST_LETTERS or not begun.isalnum():
        return []
    values = {"prefix": terms[0], "after": terms[0] + _LAST, "most": _MOST}
    return [f"{before}{blank}{as_shown(row['term'])}" for row in await index.query(INDEX["frequent_words"], values)]
