"""Texts of strangers for people: no terminal gets an escape, no database a lone surrogate, no message runs on."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text on one line, U+FFFD for each character that does something or cannot be seen."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in text)


def shown(text: str, most: int = 200) -> str:
    """A :func:`printable` text for messages, cut behind ``most`` characters."""
    return printable(text if len(text) <= most else text[:most] + "…")
