"""Make untrusted text safe to show: no terminal escapes, no lone surrogates, bounded length."""

from __future__ import annotations

import json


def printable(text: str) -> str:
    """The text on one line, with U+FFFD for each control character or invisible character."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in text)


def printable_lines(text: str) -> str:
    """As :func:`printable`, for a text of several lines."""
    return text if text.isprintable() else "\n".join(map(printable, text.split("\n")))


def escaped_json(document: str) -> str:
    """A JSON document with ``\\u`` escapes for the characters that are not printable. It means the same."""
    if document.isprintable():
        return document
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in document)


def shown(text: str, most: int = 200) -> str:
    """A :func:`printable` text for messages, cut after ``most`` characters."""
    return printable(text if len(text) <= most else text[:most] + "…")
