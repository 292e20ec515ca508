"""The stems of words (Snowball, https://snowballstem.org), by the languages of an index."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

#: The algorithms by the primary subtag of the language (BCP 47).
ALGORITHMS = {
    "ar": "arabic", "ca": "catalan", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish",
    "et": "estonian", "eu": "basque", "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian",
    "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian", "nb": "norwegian", "ne": "nepali",
    "nl": "dutch", "nn": "norwegian", "no": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian",
    "sr": "serbian", "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
_LEAST_SHARE = 0.05
_UNSTATED = "en"


def stemmed_languages(pages: Mapping[str, int]) -> list[str]:
    """The languages in which the words of an index are stemmed: those with a stemmer that at least 5 % of it have.

    ``pages`` counts the pages of each language; those that state none count as English.
    """
    counted = dict(pages)
    counted[_UNSTATED] = counted.get(_UNSTATED, 0) + counted.pop("", 0)
    least = _LEAST_SHARE * sum(counted.values())
    return sorted(language for language, n in counted.items() if language in ALGORITHMS and n and n >= least)


@lru_cache(maxsize=100_000)  # Snowball in Python takes 0.1 ms a word
def stem(language: str, word: str) -> str:
    """The stem of a word in small letters; ``language`` is one of :data:`ALGORITHMS`."""
    return str(_stemmer(ALGORITHMS[language]).stemWord(word))


@cache
def _stemmer(algorithm: str) -> Any:
    import snowballstemmer  # not before a word is stemmed: it loads all its languages

    return snowballstemmer.stemmer(algorithm)
