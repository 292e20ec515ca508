"""Reads a document in a parser process, for a :class:`~crawler.engine.page_messages.PageQuestion`."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from msgspec.structs import replace

from crawler.model import PageFacts
from crawler.page.charset import encoding_of
from crawler.page.headers import header_facts
from crawler.page.html import read_page
from crawler.reasons import RequestError

if TYPE_CHECKING:
    from crawler.engine.page_messages import PageQuestion


def read_document(question: PageQuestion) -> PageFacts:
    """Read a document as it was received. Raises :class:`MemoryError` if the parser runs out of memory."""
    decoded = question.decoded()
    if isinstance(decoded, RequestError):
        return PageFacts(broken=decoded)
    body, is_one_gzip = decoded
    facts = _read(question, body)
    return facts if is_one_gzip else replace(facts, is_one_gzip=False)


def _read(question: PageQuestion, body: bytes) -> PageFacts:
    """Read a decoded document."""
    about = question.about
    if question.is_html:
        about |= {"resources": question.resources, "shingles": question.shingles}
        return read_page(body, charset=question.charset, **about)
    charset = encoding_of(question.charset) if question.charset else None
    facts = replace(header_facts(**about), charset=charset, body_sha256=sha256(body).digest(), body_bytes=len(body))
    return _with_pdf(facts, body) if question.is_pdf else facts


def _with_pdf(facts: PageFacts, body: bytes) -> PageFacts:
    """The facts with the title of a PDF file. The text is read to learn that it can be read within the limits."""
    from crawler.page.main_text import MAX_TEXT_CHARS  # few crawls take PDF files
    from crawler.page.pdf import read_pdf

    try:
        read = read_pdf(body, MAX_TEXT_CHARS)
    except ModuleNotFoundError:
        return facts
    if read is None:
        return replace(facts, note="not a readable PDF file")
    return replace(facts, title=read.title if facts.index else None)
