"""Texts of strangers, on their way to lines: decoding, an HTML wrapper taken off, folded lines joined.

Everything is linear in the size of the text, and nothing raises.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable

_LINE_END = re.compile(r"\r\n|\r|\n")
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


def unfold(text: str, begins: Callable[[str], object]) -> list[str]:
    """Logical lines: one that begins with white space continues the last, unless it ``begins`` something itself."""
    lines: list[list[str]] = []
    for line in _LINE_END.split(text):
        content = line.strip()
        if content and line[0] in " \t" and lines and lines[-1][0] and not begins(content):
            lines[-1].append(content)
        else:
            lines.append([content])
    return [" ".join(parts) for parts in lines]


def shown(text: str, most: int = 200) -> str:
    """A bounded, printable form of hostile text for messages."""
    cut = text if len(text) <= most else text[:most] + "…"
    return "".join(c if c.isprintable() else "\ufffd" for c in cut)
