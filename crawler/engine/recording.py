"""An archive kept while crawling: what of each answer goes into it, and when.

An answer that ends a request is heard here, and recorded at once; but of pages and sitemaps it must first be known
whether their owner allows a copy, so :func:`of_document` is asked when they have been read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from crawler.engine.gate import Fetcher
from crawler.frontier.decide import Queued
from crawler.model import Failed, Fetched, FetchResult, Kind, PageFacts, Purpose, Recorded, Request
from crawler.reasons import ErrorKind

_ASKED = "the page asks that no copy is kept"


class Recorder(Protocol):
    """Where recorded requests go. What it was given is on the disk when it returns.

    Raises :class:`crawler.errors.StoreError` where that fails.
    """

    async def record(self, batch: Sequence[Recorded]) -> None: ...


async def record_all(recorder: Recorder | None, batch: Sequence[Recorded]) -> None:
    """Where there is a recorder, and something to record."""
    if recorder is not None and batch:
        await recorder.record(batch)


class Listening:
    """A fetcher that hands every answer that nobody need read first to ``heard``."""

    def __init__(self, fetcher: Fetcher, heard: Callable[[Recorded], None]) -> None:
        self._fetcher = fetcher
        self._heard = heard

    async def fetch(self, request: Request) -> FetchResult:
        answer = await self._fetcher.fetch(request)
        if request.purpose is Purpose.ROBOTS and isinstance(answer, Fetched):
            self._heard(Recorded(answer, request.purpose))
        elif not isinstance(answer, Fetched):
            self._heard(Recorded(answer, request.purpose, _why_unread(answer)))
        return answer


def of_document(queued: Queued, answer: Fetched, facts: PageFacts) -> Recorded:
    """A page or sitemap that was read: headers alone where it says NOINDEX or NOARCHIVE."""
    purpose = Purpose.SITEMAP if queued.kind is Kind.SITEMAP else Purpose.PAGE
    return Recorded(answer, purpose, "" if facts.index and facts.archive else _ASKED, queued.depth)


def _why_unread(answer: FetchResult) -> str:
    """Nobody reads the bodies of redirects and errors, so nobody knows whether they may be kept."""
    if isinstance(answer, Failed) and answer.kind is not ErrorKind.HTTP:
        return answer.error.sentence
    return "not a page: its body was not read"
