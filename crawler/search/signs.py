"""Finds which words of a query the index knows with their signs: ``--no-ff``, ``-9``, ``@media``, ``__init__``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from crawler.search.query import Phrase, words_with_signs

if TYPE_CHECKING:
    from crawler.store.sections import Store


async def known_with_signs(
    store: Store, words: str, statement: str, match: Callable[[Phrase], str | None]
) -> frozenset[str]:
    """The words of a query that some page writes with the same signs.

    ``statement`` has a row if a page matches ``:match``, the value of ``match`` for a phrase.
    """
    known = [word for word in words_with_signs(words) if await store.query(statement, {"match": match(Phrase(word))})]
    return frozenset(known)
