"""Prepares text for the tokenizer of FTS5, and splits the words of a query as that tokenizer does."""

from __future__ import annotations

import re
import sqlite3
from functools import cache

from crawler.store.statements import load_statements

#: The tokenizer of every index: https://www.sqlite.org/fts5.html, section 4.3.1.
TOKENIZER = "unicode61 remove_diacritics 2"

_SQL = load_statements("crawler.search", "tokenizer.sql")
# Scripts that separate no words by blanks, or that inflect words by suffixes: Thai, Lao, Myanmar, Khmer, kana,
# bopomofo, ideographs, Hangul.
_UNSPACED = re.compile(
    "[\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
_ZERO_WIDTH_SPACE = "\u200b"  # separates words for the tokenizer


# C++, C#, F#, .NET: their signs would be blanks to the tokenizer, and the rest a word that is found everywhere.
_SIGNS = re.compile(
    r"[+#.](?:(?<=\b[a-zA-Z]\+)\+(?![+#])|(?<=\b[a-zA-Z]#)(?![+#])|(?<!\w\.)(?<=\.)(?=(?:NET|Net|net)\b))"
)
_HINTS = ("++", "#", ".NET", ".Net", ".net")  # a text without any is not searched: that takes 0.05 ms a kilobyte
# Signs before a word: --no-ff, -9, @media, __init__. They are a word of their own, in front of the word. So the word is
# found with them and without.
_LEADING = re.compile(
    r"[-@_](?:(?<![\w\-@./:]-)(?<=-)-?(?=[a-zA-Z0-9])|(?<![\w\-.]@)(?<=@)(?=[a-zA-Z])|(?<!\w_)(?<=_)_(?=[a-zA-Z]))"
)
# Private characters, which no text has and the tokenizer takes for letters, in place of the signs of such names.
_AS_LETTERS = {ord(sign): chr(0xF8000 + ord(sign)) for sign in "+#.-@_"}
_AS_SIGNS = {ord(letter): chr(sign) for sign, letter in _AS_LETTERS.items()} | {ord(_ZERO_WIDTH_SPACE): None}


def for_tokenizer(text: str) -> str:
    """A :func:`clean <crawler.page.main_text.clean>` text with the words that the tokenizer shall find.

    Each character of an unspaced script is a word: a word of such a script is then found as a phrase of its characters.
    The names of programming languages are words with their signs, and signs before a word are words. :func:`as_shown`
    undoes it.
    """
    text = _LEADING.sub(_as_word, text)
    if any(hint in text for hint in _HINTS):
        text = _SIGNS.sub(_as_letters, text)
    if text.isascii():
        return text
    return _UNSPACED.sub(rf"{_ZERO_WIDTH_SPACE}\g<0>{_ZERO_WIDTH_SPACE}", text)


def _as_letters(signs: re.Match[str]) -> str:
    """The letters for the signs of a name. C++ is found in C++17, too."""
    return signs[0].translate(_AS_LETTERS) + ("" if signs[0] == "." else _ZERO_WIDTH_SPACE)


def _as_word(signs: re.Match[str]) -> str:
    return signs[0].translate(_AS_LETTERS) + _ZERO_WIDTH_SPACE


def as_shown(text: str) -> str:
    """The text that :func:`for_tokenizer` was given."""
    return text if text.isascii() else text.translate(_AS_SIGNS)


def tokenize(text: str) -> list[str]:
    """The words of a :func:`clean <crawler.page.main_text.clean>` text, in order, without case and diacritics."""
    return for_tokenizer(text).translate(_FOLDED).split()


class _Folded(dict[int, str]):
    """Maps a character to what the tokenizer makes of it: a character, nothing, or a blank between two words.

    FTS5 is asked once for each character that occurs. Asking it for every text takes six times as long.
    """

    def __missing__(self, code: int) -> str:
        character = "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)
        db = _tokenizer()
        db.execute(_SQL["put_text"], {"code": code, "text": f"a{character}b"})
        terms = [term for (term,) in db.execute(_SQL["terms"], {"code": code})]
        self[code] = terms[0][1:-1] if len(terms) == 1 else " "
        return self[code]


_FOLDED = _Folded()


@cache
def _tokenizer() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", check_same_thread=False)
    db.executescript(_SQL["create_tables"].format(tokenizer=TOKENIZER))
    return db
