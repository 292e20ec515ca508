"""Puts the report into its file, whole or not at all."""

from __future__ import annotations

from pathlib import Path

from crawler.atomic_files import Drafts
from crawler.errors import UsageError
from crawler.report.facts import Facts
from crawler.report.page import document


def require_html(out: Path) -> Path:
    """``out``, if a report may be called so and its folder is there; a store named by mistake is not written over.

    Raises :class:`UsageError`.
    """
    if out.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{out}: the report is an HTML file; name it like report.html")
    if not out.parent.is_dir():
        raise UsageError(f"{out}: the folder {out.parent} does not exist; make it first")
    return out


def write(out: Path, facts: Facts) -> int:
    """Write the report; its size in bytes. Raises :class:`UsageError` where it cannot be written."""
    text = document(facts)
    with Drafts() as drafts:
        drafts.open(out).file.write(text)
    return len(text)
