"""Finds which words of a query the index knows with their signs: ``--no-ff``, ``-9``, ``@media``, ``__init__``."""

from __future__ import annotations

from crawler.search.index_file import INDEX, Index
from crawler.search.query import Phrase, words_with_signs


async def known_with_signs(index: Index, words: str) -> frozenset[str]:
    """The words of a query that some page writes with the same signs."""
    known = [
        word for word in words_with_signs(words) if await index.query(INDEX["knows"], {"match": str(Phrase(word))})
    ]
    return frozenset(known)
