"""The question to a parser process about one sitemap, the answer, and the limits on one sitemap.

The crawler itself decompresses no sitemap: a few kilobytes of gzip may hold 50 MB.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec

from crawler.engine.messages import Question
from crawler.fetch.decoding import gzip_beginning
from crawler.model import Fetched
from crawler.page.headers import HTML_TYPES
from crawler.reasons import RequestError
from crawler.sitemaps.findings import Sitemap, SitemapKind, SitemapLimits

#: Processor time that one sitemap may take, in seconds. One of 50,000 URLs takes a third of a second.
MAX_CPU_S = 2.0
#: A sitemap with more octets on the wire is read as a slow document.
LARGE_BYTES = 1 << 16
LIMITS = SitemapLimits()


class SitemapFacts(msgspec.Struct, frozen=True):
    """The contents of a sitemap, and the digest of its body without content coding."""

    sitemap: Sitemap
    body_sha256: bytes = b""
    wall: str = ""  # the bot defence that answered in its place, with the evidence; empty if none did
    broken: RequestError | None = None  # why there is no body


_NOTHING = Sitemap(SitemapKind.UNKNOWN)


class SitemapQuestion(Question[SitemapFacts], frozen=True, tag=True):
    """A sitemap or feed to be read, with the body as it was received."""

    content_type: str
    is_html: bool  # its wall is looked for
    is_gzipped: bool  # its content coding is gzip

    judges_domain = False

    @property
    def is_slow(self) -> bool:
        """A large one is read as a slow document."""
        return len(self.body) > LARGE_BYTES

    def read(self) -> SitemapFacts:
        """The contents of the sitemap."""
        from crawler.page.walls import wall_in_body
        from crawler.sitemaps.read import read_sitemap

        body, has_more = self.body, False
        if self.is_gzipped:
            decoded = gzip_beginning(body, LIMITS.max_bytes)
            if isinstance(decoded, RequestError):
                return SitemapFacts(_NOTHING, broken=decoded)
            body, has_more = decoded
        digest = sha256(body).digest()
        if self.is_html and not has_more and (wall := wall_in_body(body)) is not None:
            return SitemapFacts(_NOTHING, digest, wall=str(wall))
        sitemap = read_sitemap(body, url=self.url, content_type=self.content_type, limits=LIMITS)
        return SitemapFacts(sitemap, digest)

    def unread(self, why: str) -> SitemapFacts:
        """The facts of a sitemap without entries. The digest is that of the body as received."""
        return SitemapFacts(Sitemap(SitemapKind.UNKNOWN, notes=(f"not read: {why}",)), sha256(self.body).digest())

    @classmethod
    def answers(cls) -> Any:
        """See :class:`Question`."""
        return SitemapFacts


def question_about_sitemap(document: Fetched) -> SitemapQuestion:
    """The question about a fetched sitemap."""
    body = document.gzipped if document.plain is None else document.plain
    assert body is not None
    kind = document.content_type
    return SitemapQuestion(MAX_CPU_S, document.url, body, kind, kind in HTML_TYPES, document.plain is None)
