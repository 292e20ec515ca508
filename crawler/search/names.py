"""Which words of a query the names of a page have: its title and the path of its URL, with parts of compound words.

BM25 hardly tells a page about a thing from a long page that mentions it often: a word is worth little more in the title
than twenty times in the text. The parts of ``GtkColorChooserDialog`` are words here, which they are not in the index.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from urllib.parse import unquote, urlsplit

from crawler.page.main_text import clean
from crawler.search.query import Phrase
from crawler.search.tokenizer import tokenize

_BETWEEN_PARTS = re.compile("(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class Named:
    """The words of a query, each with its forms, and their weights."""

    def __init__(self, words: Iterable[Sequence[Phrase]], weights: Iterable[float]) -> None:
        forms = [
            [f" {' '.join(tokenize(form.text))}{'' if form.is_prefix else ' '}" for form in each] for each in words
        ]
        self._words = list(zip(forms, weights, strict=True))
        self._all = sum(weight for _, weight in self._words) or 1.0

    def share(self, title: str, url: str) -> float:
        """The share of the words, by their weights, that the names of a page have: from 0 to 1."""
        names = clean(f"{title} {unquote(urlsplit(url).path)}")
        parts = _BETWEEN_PARTS.sub(" ", names)
        said = f" {' '.join(tokenize(f'{names} {parts}'))} "
        return sum(weight for forms, weight in self._words if any(form in said for form in forms)) / self._all
