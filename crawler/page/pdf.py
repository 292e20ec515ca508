"""Reads the text of PDF files with pdfium. Needs the extra ``documents``.

pdfium is C++ and may take long for a hostile file, or crash: the crawl reads files in parser processes, which are
bounded. pdfium reads a file in the same way each time, so a file that was read there can be read again elsewhere.
"""

from __future__ import annotations

import ctypes
import re
import threading
from dataclasses import dataclass
from typing import Any

from crawler.page.links import collapse

#: The first pages of a file are read: an ordinary page takes some milliseconds.
MAX_PAGES = 200
MAX_TITLE_CHARS = 1_000
_PDFIUM = threading.Lock()  # pdfium may be called by one thread at a time
# What pdfium writes for a hyphen within a word that continues on the next line.
_HYPHEN = re.compile("[\x02\ufffe\u00ad]\\s*")


@dataclass(frozen=True, slots=True)
class PdfText:
    """The title in the metadata of a file, and the text of each page."""

    title: str | None
    pages: tuple[str, ...]


def read_pdf(body: bytes, max_chars: int) -> PdfText | None:
    """The text of the first pages of a PDF file, up to about ``max_chars`` characters.

    ``None`` for a damaged or encrypted file. Raises :class:`ModuleNotFoundError` if pypdfium2 is not installed.
    """
    import pypdfium2

    with _PDFIUM:
        return _read(pypdfium2, body, max_chars)


def _read(pypdfium2: Any, body: bytes, max_chars: int) -> PdfText | None:
    try:
        document = pypdfium2.PdfDocument(body)
    except pypdfium2.PdfiumError:
        return None
    try:
        title = collapse(document.get_metadata_value("Title"), MAX_TITLE_CHARS)
        pages: list[str] = []
        size = 0
        for number in range(min(len(document), MAX_PAGES)):
            text = _page(document, number)
            pages.append(text[: max_chars - size])
            size += len(text)
            if size >= max_chars:
                break
        return PdfText(title or None, tuple(pages))
    except (pypdfium2.PdfiumError, ctypes.ArgumentError):
        return None
    finally:
        document.close()


def _page(document: Any, number: int) -> str:
    page = document[number]
    try:
        text = page.get_textpage()
        try:
            return _HYPHEN.sub("", text.get_text_range())
        finally:
            text.close()
    finally:
        page.close()
