"""Received texts as lines: decoding, removal of an HTML wrapper, joining of folded lines.

Every function is linear in the size of the text, and none raises.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from itertools import islice

#: The readers read this many lines of a text; consecutive blank lines count once.
MAX_LINES = 400_000

_LINE = re.compile(r"([^\r\n]++)(?:\r\n|\r|\n)?|[\r\n]++")
_BREAK = re.compile(r"</?(?:br|p|div|li|tr|pre|h[1-6]|title|body)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"<[!/?A-Za-z][^<>]*>")
_UTF16 = {"utf-16": "utf-16", "utf-16le": "utf-16-le", "utf-16be": "utf-16-be"}


def decode(octets: bytes, charset: str = "") -> str:
    """Decode as UTF-8, or as Latin-1 if that fails. The words of this protocol are ASCII in every common charset."""
    try:
        return octets.decode(_UTF16.get(charset.lower(), "utf-8")).removeprefix("\ufeff")
    except UnicodeDecodeError:
        return octets.decode("latin-1")


def unwrap(text: str) -> str:
    """The text of an HTML document, with line ends instead of tags that break lines; any other text unchanged."""
    if not text.lstrip().startswith("<"):
        return text
    return html.unescape(_TAG.sub("", _BREAK.sub("\n", text)))


def unfold(text: str, begins: Callable[[str], object]) -> Iterator[str]:
    """Yield logical lines that are not blank, from the first :data:`MAX_LINES` lines.

    A line that begins with white space continues the line before it, unless that line is blank or ``begins`` accepts
    the line itself.
    """
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
    """Whether a text has more than :data:`MAX_LINES` lines."""
    return len(text) > MAX_LINES and next(islice(_LINE.finditer(text), MAX_LINES, None), None) is not None
