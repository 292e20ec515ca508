"""An archive that is written during the crawl: the parts of each answer that it gets, and the time.

An answer that ends a request is recorded at once. For pages and sitemaps it must first be known whether their owner
allows a copy, so :func:`of_document` is called when they have been read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from crawler.engine.gate import Fetcher
from crawler.engine.outbox import Outbox
from crawler.errors import StoreFull
from crawler.frontier.decide import Queued
from crawler.model import Failed, Fetched, FetchResult, Kind, PageFacts, Preference, Purpose, Recorded, Request
from crawler.reasons import ErrorKind
from crawler.store.retrying import while_full

_ASKED = "the page asks that no copy is kept"


class Recorder(Protocol):
    """Writes recorded requests. When :meth:`record` returns, they are on disk.

    Raises :class:`crawler.errors.StoreError` if that fails, and :class:`crawler.errors.StoreFull` if the disk is full;
    then nothing of the batch is recorded.
    """

    async def record(self, batch: Sequence[Recorded]) -> None: ...


async def record_all(recorder: Recorder | None, batch: Sequence[Recorded], waits: Callable[[StoreFull], bool]) -> None:
    """Record ``batch``; no-op without a recorder or without anything to record.

    If the disk is full, the batch is tried again while ``waits`` returns true.
    """
    if recorder is not None and batch:
        await while_full(lambda: recorder.record(batch), waits)


class RecordingFetcher:
    """A fetcher that puts every answer whose body need not be read first into the outbox, for the archive."""

    def __init__(self, fetcher: Fetcher, outbox: Outbox) -> None:
        self._fetcher = fetcher
        self._outbox = outbox

    async def fetch(self, request: Request) -> FetchResult:
        """Fetch and record."""
        answer = await self._fetcher.fetch(request)
        if request.purpose in (Purpose.ROBOTS, Purpose.TDMREP, Purpose.LICENSE) and isinstance(answer, Fetched):
            self._outbox.add_record(Recorded(answer, request.purpose))
        elif request.purpose is Purpose.SOFT_404:
            self._outbox.add_record(Recorded(answer, request.purpose, "the answer to a path that cannot exist"))
        elif not isinstance(answer, Fetched):
            self._outbox.add_record(Recorded(answer, request.purpose, _why_unread(answer)))
        return answer


def of_document(queued: Queued, answer: Fetched, facts: PageFacts, stated: tuple[Preference, ...] = ()) -> Recorded:
    """The record of a page or sitemap that was read: its headers alone if it says NOINDEX or NOARCHIVE.

    The same holds for a page that refuses a declared purpose. ``stated`` are the preferences in robots.txt.
    """
    purpose = Purpose.SITEMAP if queued.kind is Kind.SITEMAP else Purpose.PAGE
    left_out = "" if facts.index and facts.archive else _ASKED
    if facts.withheld:
        left_out = f"the page refuses a declared use: {facts.withheld}"
    if facts.wall:
        left_out = f"no page, but a wall: {facts.wall}"
    if facts.unkept:
        left_out = f"not kept by the caller: {facts.unkept}"
    return Recorded(answer, purpose, left_out, queued.depth, (*facts.preferences, *stated))


def of_broken(answer: Failed) -> Recorded:
    """The record of a page whose body could not be decoded: its headers alone."""
    return Recorded(answer, Purpose.PAGE, _why_unread(answer))


def _why_unread(answer: FetchResult) -> str:
    """Why a body is not recorded: redirects and errors are not read, so it is not known whether a copy is allowed."""
    if isinstance(answer, Failed) and answer.kind is not ErrorKind.HTTP:
        return answer.error.sentence
    return "not a page: its body was not read"
