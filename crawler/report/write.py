"""Writes the report to its file."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from crawler.atomic_files import AtomicFiles
from crawler.errors import UsageError, requiring
from crawler.report.gather import Facts


def require_html(out: Path) -> Path:
    """``out``, if it is the name of an HTML file in an existing folder. A store named by mistake is not overwritten.

    Raises :class:`UsageError`, also if the extra ``report`` is not installed.
    """
    with requiring("report", "`crawler report`"):
        import_module("jinja2")
    if out.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{out}: the report is an HTML file; name it like report.html")
    if not out.parent.is_dir():
        raise UsageError(f"{out}: the folder {out.parent} does not exist; make it first")
    return out


def write(out: Path, facts: Facts) -> int:
    """Write the report and return its size in bytes. The file appears whole or not at all.

    Raises :class:`UsageError` if the file cannot be written.
    """
    from crawler.report.rendering import render

    document = render(facts)
    with AtomicFiles() as files:
        files.open(out).file.write(document)
    return len(document)
