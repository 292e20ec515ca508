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
        spaced = [[(_spaced(form.text), form.is_prefix) for form in each] for each in words]
        forms = [[text.rstrip() if is_prefix else text for text, is_prefix in each if text.strip()] for each in spaced]
        self._words = list(zip(forms, weights, strict=True))
        self._all = sum(weight for _, weight in self._words) or 1.0

    def share(self, title: str, url: str) -> float:
        """The share of the words, by their weights, that the names of a page have: from 0 to 1."""
        names = clean(f"{title} {unquote(urlsplit(url).path)}")
        said = _spaced(f"{names} {_BETWEEN_PARTS.sub(' ', names)}")
        return sum(weight for forms, weight in self._words if any(form in said for form in forms)) / self._all

    def share_of_title(self, title: str) -> float:
        """The share of the letters of a title that are in the words: from 0 to 1."""
        said = rest = _spaced(clean(title))
        for form in sorted((form for forms, _ in self._words for form in forms), key=len, reverse=True):
            rest = rest.replace(form, " ")
        letters, others = (len(text.replace(" ", "")) for text in (said, rest))
        return (letters - others) / max(letters, 1)


def _spaced(text: str) -> str:
    """The words of a text, with a blank before and after each."""
    return f" {'  '.join(tokenize(text))} "
