"""The question to a parser process about one sitemap, the answer, and the limits on one sitemap.

The crawler itself decompresses no sitemap: a few kilobytes of gzip may hold 50 MB.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

import msgspec

from crawler.fetch.decoding import gzip_beginning
from crawler.model import Fetched
from crawler.reasons import RequestError
from crawler.sitemaps.findings import Sitemap, SitemapKind, SitemapLimits

#: Processor time that one sitemap may take, in seconds. One of 50,000 URLs takes a third of a second.
MAX_CPU_S = 2.0
#: A sitemap with more octets on the wire is read as a slow document.
LARGE_BYTES = 1 << 16
LIMITS = SitemapLimits()


class SitemapQuestion(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A sitemap or feed to be read. The system ends a process that takes more than ``max_cpu_s`` of processor time."""

    max_cpu_s: float
    url: str
    content_type: str
    is_html: bool  # its wall is looked for
    is_gzipped: bool  # its content coding is gzip
    body: bytes


class SitemapFacts(msgspec.Struct, frozen=True):
    """The contents of a sitemap, and the digest of its body without content coding."""

    sitemap: Sitemap
    body_sha256: bytes = b""
    wall: str = ""  # the bot defence that answered in its place, with the evidence; empty if none did
    broken: RequestError | None = None  # why there is no body


#: The answer in a message: the facts, or a bug. Raises :class:`msgspec.DecodeError` if there is none.
unpack_sitemap: Callable[[bytes], SitemapFacts | str] = msgspec.msgpack.Decoder(SitemapFacts | str).decode
_NOTHING = Sitemap(SitemapKind.UNKNOWN)


def question_about_sitemap(document: Fetched, *, is_html: bool) -> SitemapQuestion:
    """The question about a fetched sitemap, with the body as it was received."""
    body = document.gzipped if document.plain is None else document.plain
    assert body is not None
    return SitemapQuestion(MAX_CPU_S, document.url, document.content_type, is_html, document.plain is None, body)


def read_sitemap_of(question: SitemapQuestion) -> SitemapFacts:
    """Read a sitemap. Raises :class:`MemoryError` if the parser runs out of memory."""
    from crawler.page.walls import wall_in_body
    from crawler.sitemaps.read import read_sitemap

    body, has_more = question.body, False
    if question.is_gzipped:
        decoded = gzip_beginning(body, LIMITS.max_bytes)
        if isinstance(decoded, RequestError):
            return SitemapFacts(_NOTHING, broken=decoded)
        body, has_more = decoded
    digest = sha256(body).digest()
    if question.is_html and not has_more and (wall := wall_in_body(body)) is not None:
        return SitemapFacts(_NOTHING, digest, wall=str(wall))
    sitemap = read_sitemap(body, url=question.url, content_type=question.content_type, limits=LIMITS)
    return SitemapFacts(sitemap, digest)


def unread_sitemap(question: SitemapQuestion, why: str) -> SitemapFacts:
    """The facts of a sitemap that could not be read within the limits. The digest is that of the body as received."""
    notes = (f"not read: {why}",)
    return SitemapFacts(Sitemap(SitemapKind.UNKNOWN, notes=notes), sha256(question.body).digest())
