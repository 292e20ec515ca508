"""The question to a parser process about one page, and the limits on one page."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from msgspec.structs import replace

from crawler.engine.messages import Question
from crawler.fetch.decoding import decode_gzip
from crawler.gunzip import gunzip
from crawler.model import Headers, PageFacts, Reading
from crawler.page.headers import unread_page
from crawler.reasons import RequestError

#: Processor time that one page may take, in seconds. An ordinary page of 1 MB takes 0.05.
MAX_CPU_S = 0.7
#: Processor time after which the reading of a page is broken off, to be repeated where no other page waits for it.
FAST_CPU_S = 0.2
#: Address space of a parser process. About 40 MB are taken before the first page. One of 10 MB with 100,000 links and
#: some words at each takes up to 240 MB, and nearly all of :data:`MAX_CPU_S`.
MAX_MEMORY_BYTES = 256 << 20
#: Exit code of a parser process whose page exceeded the memory limit.
OUT_OF_MEMORY = 12


class PageQuestion(Question[PageFacts], frozen=True, tag=True):
    """A fetched document, with the body as it was received. ``now`` is in epoch seconds."""

    is_html: bool
    is_pdf: bool
    is_gzipped: bool
    resources: bool
    charset: str | None  # of the Content-Type header
    headers: Headers
    token: str
    reading: str
    now: float
    unchecked: int | None = None  # the body is one member of gzip, unless this bounds the decoded body
    shingles: bool = False

    def read(self) -> PageFacts:
        """The facts of the document."""
        from crawler.engine.page_reading import read_document  # only a parser process reads pages

        return read_document(self)

    def unread(self, why: str) -> PageFacts:
        """An unread document counts as NOINDEX and NOFOLLOW, with the reason in its note."""
        known = unread_page(why, **self.about)
        decoded = self.decoded()
        if isinstance(decoded, RequestError):
            return replace(known, broken=decoded)
        body, is_one_gzip = decoded
        return replace(known, body_sha256=sha256(body).digest(), body_bytes=len(body), is_one_gzip=is_one_gzip)

    @classmethod
    def answers(cls) -> Any:
        """See :class:`Question`."""
        return PageFacts

    @property
    def about(self) -> dict[str, Any]:
        """What the readers of any document need to know of it."""
        reading = Reading(self.reading)
        return {"url": self.url, "headers": self.headers, "token": self.token, "reading": reading, "now": self.now}

    def decoded(self) -> tuple[bytes, bool] | RequestError:
        """The body without its content coding, and whether it was one member of gzip; or why it cannot be decoded."""
        if self.unchecked is not None:
            return decode_gzip(self.body, self.unchecked)
        return gunzip(self.body) if self.is_gzipped else self.body, True
