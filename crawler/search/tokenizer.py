"""The words of a text as FTS5's tokenizer tells them apart, for an index that is not FTS5's.

So that a page is found by the same words in either kind of store, and the words marked in an excerpt are those found.
"""

from __future__ import annotations

import sqlite3
from functools import cache

from crawler.search.page_text import parted

#: The tokenizer of every index here: https://www.sqlite.org/fts5.html, section 4.3.1.
TOKENIZER = "unicode61 remove_diacritics 2"


class _Folded(dict[int, str]):
    """What becomes of each character: itself or another, nothing, or the blank between two words.

    The tokenizer is asked once about each that turns up; asked for every text, it takes six times as long.
    """

    def __missing__(self, code: int) -> str:
        letter = "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)
        db = _tokenizer()
        db.execute("INSERT OR REPLACE INTO t (rowid, x) VALUES (?, ?)", (code, f"a{letter}b"))
        found = db.execute("SELECT term FROM word WHERE doc = ?", (code,)).fetchall()
        self[code] = found[0][0][1:-1] if len(found) == 1 else " "
        return self[code]


@cache
def _tokenizer() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", check_same_thread=False)
    db.executescript(f"""
        CREATE VIRTUAL TABLE t USING fts5(x, tokenize = '{TOKENIZER}');
        CREATE VIRTUAL TABLE word USING fts5vocab(t, 'instance');
    """)
    return db


_FOLDED = _Folded()


def words(text: str) -> list[str]:
    """The words of a :func:`crawler.search.page_text.clean` text, in their order, case and diacritics folded."""
    return parted(text).translate(_FOLDED).split()
