"""Make untrusted text safe to show: no terminal escapes, no lone surrogates, bounded length."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text on one line, with U+FFFD for each control character or invisible character."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in text)


def shown(text: str, most: int = 200) -> str:
    """A :func:`printable` text for messages, cut after ``most`` characters."""
    return printable(text if len(text) <= most else text[:most] + "…")
