"""Texts of strangers, on their way to lines: decoding, an HTML wrapper taken off, folded lines joined.

Everything is linear in the size of the text, and nothing raises.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from itertools import islice

#: Lines of a text that are read; blank ones in a row are one.
MAX_LINES = 400_000

_LINE = re.compile(r"([^\r\n]++)(?:\r\n|\r|\n)?|[\r\n]++")
_BREAK = re.compile(r"</?(?:br|p|div|li|tr|pre|h[1-6]|title|body)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"<[!/?A-Za-z][^<>]*>")
_UTF16 = {"utf-16": "utf-16", "utf-16le": "utf-16-le", "utf-16be": "utf-16-be"}


def decode(octets: bytes, charset: str = "") -> str:
    """Text from octets: UTF-8, else each octet a letter. What this protocol says is ASCII in every common charset."""
    try:
        return octets.decode(_UTF16.get(charset.lower(), "utf-8")).removeprefix("\ufeff")
    except UnicodeDecodeError:
        return octets.decode("latin-1")


def unwrap(text: str) -> str:
    """The text of an HTML document, tags that break lines being line ends; any other text as it is."""
    if not text.lstrip().startswith("<"):
        return text
    return html.unescape(_TAG.sub("", _BREAK.sub("\n", text)))


def unfold(text: str, begins: Callable[[str], object]) -> Iterator[str]:
    """Logical lines that are not blank, of the first :data:`MAX_LINES`: one that begins with white space continues the
    last, unless a blank one is between them or it ``begins`` something itself."""
    parts: list[str] = []
    for match in islice(_LINE.finditer(text), MAX_LINES):
        line = match[1] or ""
        content = line.strip()
        if not content or line[0] not in " \t" or begins(content):
            if parts:
                yield " ".join(parts)
            parts = []
        if content:
            parts.append(content)
    if parts:
        yield " ".join(parts)


def is_cut(text: str) -> bool:
    """Whether a text has more lines than are read."""
    return len(text) > MAX_LINES and next(islice(_LINE.finditer(text), MAX_LINES, None), None) is not None
