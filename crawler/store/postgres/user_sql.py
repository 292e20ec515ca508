"""The names in a statement of the user, and the check that it does no more than read the views.

A transaction that only reads still calls functions that read files of the server, end connections, wait, or lock rows.
So the words of a statement are compared with the functions that PostgreSQL itself calls volatile. They include every
function that does more than compute a value from its arguments and from tables. Names of the system's own catalogs and
functions begin with ``pg_``.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"(?P<ignored>\s+|--[^\r\n]*|/\*(?:[^*/]|\*(?!/)|/(?!\*))*\*/"  # without comments inside comments
    r"|E'(?:[^'\\]|''|\\.)*'|(?:U&)?'(?:[^']|'')*')"
    r"|(?P<unread>U&\"|\$[a-z0-9_\u0080-\U0010ffff]*\$|/\*)"
    r"|\"(?P<quoted>(?:[^\"]|\"\")*)\""
    r"|(?P<unclosed>['\"])"
    r"|(?P<word>[a-z_\u0080-\U0010ffff][a-z0-9_$\u0080-\U0010ffff]*)"
    r"|(?P<end>;)|(?P<other>.)",
    re.DOTALL | re.IGNORECASE | re.ASCII,
)
_BEGINS = {"select", "with", "values", "table"}
#: Volatile functions that return a number, a time or an identifier, and change nothing.
HARMLESS = frozenset({"bernoulli", "clock_timestamp", "gen_random_uuid", "random", "system", "timeofday"})
#: Words that read a setting of the server, and functions that read the table whose name is their argument.
_REFUSED = re.compile(r"pg_.*|information_schema|current_setting|.*_to_xml.*", re.DOTALL)


class NotReading(ValueError):
    """A statement does more than read. The text says what, as the end of a sentence."""


def words_of(sql: str) -> set[str]:
    """The words of one query outside of texts and comments, in lower case.

    Raises :class:`NotReading` for a statement that does not begin as a query, for several statements, for words that
    are not needed to read the views, and for forms of quoting in which a word could hide.
    """
    words: list[str] = []
    has_ended = False
    for token in _TOKEN.finditer(sql):
        if token["ignored"] is not None:
            continue
        if token["unread"] is not None or token["unclosed"] is not None:
            raise NotReading(f"without the quoting {token[0]!r}")
        if has_ended:
            raise NotReading("as one statement")
        has_ended = token["end"] is not None
        word = token["word"] if token["quoted"] is None else token["quoted"].replace('""', '"')
        if word is not None:
            words.append(word.lower())
        if not words and token["other"] != "(":
            raise NotReading("in the first word")
    if not words or words[0] not in _BEGINS:
        raise NotReading("in the first word")
    for word in words:
        if _REFUSED.fullmatch(word):
            raise NotReading(f"without {word}")
    return set(words)
