"""Parses a query, and writes it as an FTS5 expression (https://www.sqlite.org/fts5.html, section 3).

A query consists of ``word`` (:mod:`crawler.search.vocabulary` adds its forms), ``wor*``, ``"a phrase"``, ``-word``, and
``-"a phrase"``. A word that contains punctuation is a phrase of its parts; C++, C# and .NET are words. ``--no-ff``,
``-9``, ``@media`` and ``__init__`` are words with their signs if the index knows them so. Else the signs are ignored,
and ``-word`` excludes pages if it stands beside other words. The expression quotes all input, so it has no syntax of
the user.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from crawler.errors import UsageError
from crawler.page.main_text import clean
from crawler.search.tokenizer import for_tokenizer

MAX_QUERY_CHARS = 2_000
MAX_ITEMS = 64

_ITEM = re.compile(r'(?P<minus>(?:-(?!-))?)(?:"(?P<phrase>[^"]*)(?:"|$)(?P<star>\*?)|(?P<word>[^\s"]+))')
_SIGNS = re.compile(r"--?|@|__")
#: Operators of other search engines.
_FIELD = re.compile(r"(?:site|title|url|inurl|intitle|filetype):(?=.)", re.IGNORECASE)
_QUOTES = str.maketrans(dict.fromkeys("“”„‟«»", '"'))


@dataclass(frozen=True, slots=True)
class Phrase:
    """Consecutive words, as typed. If ``is_prefix``, the last word may be longer."""

    text: str
    is_prefix: bool = False

    def __str__(self) -> str:
        """The phrase as an FTS5 expression."""
        return f'"{for_tokenizer(self.text)}"' + "*" * self.is_prefix


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query: phrases, other words with their forms, and phrases that a page must not contain.

    The first form of a word is the word as typed; it counts twice in the ranking if there are others. ``in_a_row`` has
    for each word the phrase of it and the next one, which raises the score; ``None`` if one of them is a prefix.
    """

    phrases: tuple[Phrase, ...]
    words: tuple[tuple[Phrase, ...], ...]
    excluded: tuple[Phrase, ...]
    in_a_row: tuple[Phrase | None, ...] = ()

    def with_all(self, fields: str = "", in_a_row: bool = True) -> str:
        """The expression for pages that contain everything.

        With ``in_a_row``, BM25 ranks pages with the words in a row, and with the words as typed, higher. Without, the
        same pages match in less time. ``fields`` are the columns of FTS5 in which the words are to be; excluded words
        are in none.
        """
        return self._restricted(" AND ".join((*map(str, self.phrases), *self._each(in_a_row))), fields)

    def with_some(self, selecting: Collection[int], common: Collection[Phrase] = ()) -> str:
        """The expression for pages with all phrases and at least one of the words with the numbers ``selecting``.

        BM25 ranks by all words and phrases but the forms ``common``; all of them stand as often in the expression.
        """
        each = self._each(in_a_row=True)
        some = " OR ".join(each[number] for number in selecting)
        phrases = [*map(str, self.phrases)]
        counted = enumerate(self._each(in_a_row=True, without=common))
        others = [expression for number, expression in counted if expression and number not in selecting]
        if not others:
            return self._restricted(" AND ".join((*phrases, f"({some})")), "")
        both = f"({some}) AND ({' OR '.join((some, *others, *others))})"
        return self._restricted(" AND ".join((*phrases, *phrases, both)), "")

    def with_word(self, number: int, selecting: Collection[int]) -> str:
        """The expression for pages with the word of this number that have one of the words ``selecting``."""
        each = self._each(in_a_row=False)
        return f"({' OR '.join(each[other] for other in selecting)}) AND {each[number]}"

    def with_any(self) -> str:
        """The expression that matches everything to be marked."""
        return " OR ".join((*map(str, self.phrases), *self._each(in_a_row=False)))

    def _each(self, in_a_row: bool, without: Collection[Phrase] = ()) -> list[str]:
        """The expression for each word. A page with the phrase of two words has the first of them."""
        pairs = self.in_a_row if in_a_row else ()
        words = [weighed(forms) if in_a_row else forms for forms in self.words]
        return [
            _any([*(form for form in forms if form not in without), *filter(None, (pair,))])
            for forms, pair in zip_longest(words, pairs)
        ]

    def _restricted(self, expression: str, fields: str) -> str:
        if fields:
            expression = f"{{{fields}}} : ({expression})"
        return f"({expression}) NOT ({' OR '.join(map(str, self.excluded))})" if self.excluded else expression


def weighed(forms: tuple[Phrase, ...]) -> tuple[Phrase, ...]:
    """The forms of a word, the one that was typed twice: BM25 adds what each of them scores."""
    return forms if len(forms) == 1 else (forms[0], *forms)


def _any(forms: Sequence[Phrase]) -> str:
    either = " OR ".join(map(str, forms))
    return either if len(forms) < 2 else f"({either})"


def words_with_signs(text: str) -> list[str]:
    """The words of a query that begin with signs, with them; the first :data:`MAX_ITEMS`."""
    items = (item["minus"] + item["word"] for item in _ITEM.finditer(_readable(text)) if item["word"])
    return [word for word in items if _SIGNS.match(word) and not word.endswith("*")][:MAX_ITEMS]


def parse_query(text: str, known: Collection[str] = ()) -> Query:
    """Parse the input of a user. ``known`` are the :func:`words_with_signs` that the index knows so.

    Raises :class:`UsageError` if it has no word to search for, or too many.
    """
    if len(text) > MAX_QUERY_CHARS:
        raise UsageError(f"a query of {len(text):,} characters; at most {MAX_QUERY_CHARS:,} are allowed")
    phrases: list[Phrase] = []
    words: list[tuple[Phrase, ...]] = []
    excluded: list[Phrase] = []
    typed: list[str | None] = []  # each of the words; None for a prefix
    dashed: list[str] = []
    for item in _ITEM.finditer(_readable(text)):
        phrase, word = item["phrase"], item["word"]
        said = phrase if word is None else word
        if not any(char.isalnum() for char in said):
            continue
        if word is not None and (field := _FIELD.match(word)):
            raise UsageError(
                f"{field[0]} is no operator; filter by site with --site or on the page, or put it in quotes"
            )
        is_prefix = said.endswith("*") if phrase is None else bool(item["star"])
        exactly = Phrase(said.rstrip("*"), is_prefix)
        if item["minus"] and word is not None and not is_prefix and f"-{word}" not in known:
            dashed.append(word)
        elif item["minus"] and (phrase is not None or is_prefix):
            excluded.append(exactly)
        elif item["minus"] or said in known:
            words.append((Phrase(item["minus"] + said),))
            typed.append(item["minus"] + said)
        elif phrase is not None:
            phrases.append(exactly)
        elif is_prefix:
            words.append((exactly,))
            typed.append(None)
        else:
            words.append(_forms(_SIGNS.sub("", said, count=1) if _SIGNS.match(said) else said))
            typed.append(words[-1][0].text)
    if phrases or words:
        excluded += map(Phrase, dashed)
    else:
        words += map(_forms, dashed)
        typed += dashed
    if not phrases and not words:
        raise UsageError(f"no word to search for in {text[:100]!r}" + (": it only excludes" if excluded else ""))
    if len(phrases) + len(words) + len(excluded) > MAX_ITEMS:
        raise UsageError(f"a query of more than {MAX_ITEMS} words and phrases; remove some")
    in_a_row = tuple(Phrase(f"{one} {two}") if one and two else None for one, two in pairwise(typed))
    return Query(tuple(phrases), tuple(words), tuple(excluded), in_a_row)


def plain_words(text: str) -> tuple[str, list[tuple[int, list[str]]]]:
    """The input of a user as it is read, and the words in it without star, quotes and minus.

    Each word stands with its place in the text and its forms; the first form is the word as typed.
    """
    readable = _readable(text)
    items = (item for item in _ITEM.finditer(readable) if item["word"] and not item["minus"])
    plain = (item for item in items if not item["word"].endswith("*"))
    return readable, [(item.start("word"), [form.text for form in _forms(item["word"])]) for item in plain]


def _readable(text: str) -> str:
    return clean(text.encode(errors="replace").decode()).translate(_QUOTES)


def _forms(word: str) -> tuple[Phrase, ...]:
    """A word as typed, and other ways to write it."""
    return (Phrase(word), Phrase(".NET")) if word.lower() == "net" else (Phrase(word),)
