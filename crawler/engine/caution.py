"""Caution: the URL whose answer is being processed is named in the store, for groups whose worker died.

While a group is in caution, its answers are processed under one lock of this process, and the store names the URL
until its outcome is committed. So if the process dies, the next worker knows which URL it was. See
``docs/decisions/0026-urls-whose-worker-died.md``.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Protocol, Self

from crawler.engine.gate import Gate
from crawler.engine.outbox import Outbox
from crawler.engine.parser_pool import PageReader
from crawler.frontier.decide import Queued


class UrlMarker(Protocol):
    """The section of the store that takes the mark."""

    async def mark_url(self, url_id: int | None) -> None:
        """Commit which URL this worker processes now; ``None``: none."""
        ...


class Visit:
    """The visit to one URL. A visit without caution: nothing is marked.

    The code that talks to a site calls :meth:`begin_processing` before it reads anything that the site has sent, and
    :meth:`end_processing` before it waits for the network. Both may be called more than once.
    """

    async def begin_processing(self) -> None:
        """Note that the code that follows processes data that the site has sent."""

    async def end_processing(self) -> None:
        """Note that the code that follows waits for the network, or works on another URL."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.end_processing()


#: A visit that no group in caution asks for.
NORMAL = Visit()


class MarkedVisit(Visit):
    """The visit to a URL of a group in caution.

    Invariant: between :meth:`begin_processing` and the end of :meth:`end_processing`, the store names this URL, and no
    other visit in caution is processed by this process. The outcome of the visit is committed within.

    The time between these moments must be short, because a kill by the operator within it counts against the URL. So a
    visit waits for the page reader to be ready before it marks the URL.

    If the task is cancelled meanwhile, the mark stays until the next visit is processed or the worker ends in order:
    the last commit of the worker has the outcome of the visit.
    """

    def __init__(
        self, url_id: int, lock: asyncio.Lock, store: UrlMarker, gate: Gate, outbox: Outbox, reader: PageReader
    ) -> None:
        self._url_id = url_id
        self._lock = lock
        self._reader = reader
        self._store = store
        self._gate = gate
        self._outbox = outbox
        self._is_processing = False  # then this visit holds the lock

    async def begin_processing(self) -> None:
        if self._is_processing:
            return
        # Not through the gate: an answer that is here is processed, although the gate has closed since.
        await self._reader.ready()
        await self._lock.acquire()
        self._is_processing = True
        await self._store.mark_url(self._url_id)

    async def end_processing(self) -> None:
        if not self._is_processing:
            return
        await self._gate.wait_while_open(self._outbox.flush())
        await self._store.mark_url(None)
        self._release()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None or issubclass(kind, Exception):  # else the task is cancelled
                await self.end_processing()
        finally:
            self._release()

    def _release(self) -> None:
        if self._is_processing:
            self._is_processing = False
            self._lock.release()


class Caution:
    """Makes the visits of a crawl."""

    def __init__(self, store: UrlMarker, gate: Gate, outbox: Outbox, reader: PageReader) -> None:
        self._reader = reader
        self._store = store
        self._gate = gate
        self._outbox = outbox
        self._lock = asyncio.Lock()

    def visit(self, queued: Queued, *, in_caution: bool) -> Visit:
        """The visit to ``queued``, whose group is ``in_caution`` or not."""
        if not in_caution:
            return NORMAL
        return MarkedVisit(queued.id, self._lock, self._store, self._gate, self._outbox, self._reader)
