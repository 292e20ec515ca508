"""Reads pages in child processes, so that no page can hold up the event loop or exhaust the crawler's memory.

The tree construction that the HTML Standard prescribes is quadratic in places, and lexbor cannot be interrupted:
0.5 MB of nested ``<div>`` take it 40 s. No cheap test tells which pages are harmless, so every page is read in a child
process (:mod:`crawler.engine.parser_process`), in which its time and memory are bounded.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self, cast

from crawler.engine import operator_log
from crawler.engine.messages import Unpacker, framed
from crawler.engine.page_messages import MAX_CPU_S, MAX_MEMORY_BYTES, OUT_OF_MEMORY, Question, unpack_answer
from crawler.errors import CrawlerError, Fault
from crawler.model import Fetched, Headers, PageFacts, Reading
from crawler.page.headers import unread_page

_PROCESS = "crawler.engine.parser_process"
_HTML_TYPES = ("", "text/html", "application/xhtml+xml")
_MOST_PARSERS = 4

# Of the documents that have been handed to the pool and not answered: when there are so many, no further page should be
# requested. Those already requested are accepted.
_MAX_DOCUMENTS = 64
_MAX_BYTES = 32 << 20
# Documents sent to one process ahead of its answers. A process without any is sent one of any size.
_DOCUMENTS_AHEAD = 8
_BYTES_AHEAD = 1 << 20

# A process ends itself when a page takes too much processor time. One that does not work at all, or cannot start, makes
# no progress between several looks in a row; then it is killed. A single look can be late, when the machine has slept.
_LOOK_EVERY_S = 10.0
_LOOKS_WITHOUT_PROGRESS = 2
_MAX_FAILED_STARTS = 3
# Of processes that were reading the document, and that exceeded no limit. A document with more is answered as unread.
_MAX_DEATHS = 1
_END_WITHIN_S = 5.0
# The signal by which the system ends a process at the limit of processor time; ``None`` if it has no such limit.
_OUT_OF_TIME = -signal.SIGPROF if hasattr(signal, "SIGPROF") else None
# glibc then returns the memory of a large tree to the system, but keeps enough for the tree of an ordinary page, which
# saves nine in ten page faults. Other C libraries ignore these.
_MALLOC = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(4 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(8 << 20),
    "MALLOC_TOP_PAD_": str(1 << 20),
}


class ParserFailed(CrawlerError):
    """No parser process can be started on this machine."""


class PageReader(Protocol):
    """The part of the pool that the engine uses."""

    #: Cleared while so much is waiting to be read that no further page should be requested.
    has_room: asyncio.Event

    async def ready(self) -> None:
        """Return when a document can be read at once, or when no process can be started."""
        ...

    async def read(self, document: Fetched) -> PageFacts:
        """Read a fetched document."""
        ...


class ReadingOptions(NamedTuple):
    """How a crawl reads its pages.

    Directives are interpreted for the product token and the reading. The last field says whether the digest of the
    visible text is wanted.
    """

    token: str
    reading: Reading
    hash_text: bool = False


def default_parsers(workers: int) -> int:
    """The number of parser processes of one worker, unless the settings say otherwise.

    All workers of this machine share one less than its processors, at least 1 and at most 4.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    processors = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return max(1, min(_MOST_PARSERS, processors - 1) // workers)


class ParserPool:
    """Reads documents in at most ``parsers`` child processes. An async context manager.

    The first process is started by :meth:`start` or for the first document, a further one when a document has to wait
    because each process there is has enough ahead. Each process answers in the order in which it was asked.

    * A document is answered once. If a process exceeds its limit of processor time or memory, the document that it was
      reading is answered as unread. If a process ends otherwise, it was killed from outside, or a bug ended it: the
      document is sent to another process, and answered as unread if that process does not survive it either.
    * The documents behind it go to another process in any case.
    * A reader that is cancelled leaves its document behind; the answer to it is discarded.
    * Closing the pool kills the processes and cancels the readers.
    """

    def __init__(self, options: ReadingOptions, parsers: int = 1) -> None:
        self.has_room = asyncio.Event()
        self.has_room.set()
        self._options = options
        self._max_parsers = parsers
        self._parsers: list[_Parser] = []
        self._start: asyncio.Task[None] | None = None  # of the one process that is being started
        self._failed_starts = 0  # in a row
        self._waiting: deque[_Document] = deque()  # not sent to any process yet
        self._documents = 0  # not answered yet, waiting or sent
        self._bytes = 0
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def start(self) -> None:
        """Start the first process, which gets ready while the caller fetches the first document."""
        if self._start is None and not self._parsers:
            self._start = asyncio.create_task(self._start_parser())

    async def ready(self) -> None:
        """Return when a process is ready, or when none could be started."""
        self.start()
        if self._start is not None and not any(parser.ready.done() for parser in self._parsers):
            await asyncio.wait([self._start])

    async def read(self, document: Fetched, options: ReadingOptions | None = None) -> PageFacts:
        """Read a fetched document; one that is not HTML is read by its headers and digested.

        An unread document counts as NOINDEX and NOFOLLOW, with the reason in its note.
        ``options`` replace those of the pool. Raises :class:`Fault` for a bug of the crawler that the document brought
        to light, :class:`ParserFailed` if no process can be started, and :class:`asyncio.CancelledError` if the pool
        is closed.
        """
        options = options or self._options
        answered = await self._ask(question_about(document, options).packed())
        if isinstance(answered, _Unread):
            return await asyncio.to_thread(_unread, document, answered.why, options)
        facts = unpack_answer(answered)
        if isinstance(facts, str):
            raise Fault(facts)
        return facts

    async def close(self) -> None:
        """Kill the processes and cancel the readers that still wait. No-op if the pool is closed."""
        self._is_closed = True
        if self._start is not None:
            self._start.cancel()
            await asyncio.gather(self._start, return_exceptions=True)
        for document in (*self._waiting, *(each for parser in self._parsers for each in parser.documents)):
            document.answer.cancel()
        self._waiting.clear()
        if ending := [parser.ended for parser in self._parsers]:
            for parser in self._parsers:
                parser.kill()
            await asyncio.wait(ending, timeout=_END_WITHIN_S)

    async def _ask(self, question: bytes) -> bytes | _Unread:
        if self._is_closed:
            raise asyncio.CancelledError
        document = _Document(question, asyncio.get_running_loop().create_future())
        self._waiting.append(document)
        self._count(1, len(question))
        self._send_waiting()
        try:
            return await document.answer
        finally:
            self._count(-1, -len(question))

    def _count(self, documents: int, size: int) -> None:
        self._documents += documents
        self._bytes += size
        if self._documents < _MAX_DOCUMENTS and self._bytes < _MAX_BYTES:
            self.has_room.set()
        else:
            self.has_room.clear()

    def _send_waiting(self) -> None:
        """Send waiting documents to the processes that have least ahead; start a process if none can take more."""
        while self._waiting:
            if self._waiting[0].answer.done():  # its reader was cancelled
                self._waiting.popleft()
                continue
            free = [parser for parser in self._parsers if parser.can_take_more()]
            if not free:
                if self._start is None and len(self._parsers) < self._max_parsers and not self._is_closed:
                    self._start = asyncio.create_task(self._start_parser())
                return
            min(free, key=_Parser.load).send(self._waiting.popleft())

    async def _start_parser(self) -> None:
        """Start one process and wait until it is ready."""
        try:
            parser = _Parser(self._send_waiting)
            try:
                await parser.start()
            except OSError as error:
                self._failed_start(f"{error.strerror or error}")
                return
            self._parsers.append(parser)
            parser.ended.add_done_callback(lambda _: self._ended(parser))
            await asyncio.wait([parser.ready, parser.ended], return_when=asyncio.FIRST_COMPLETED)
            if not parser.ready.done():
                self._failed_start(parser.why_ended())
                return
            self._failed_starts = 0
        finally:
            self._start = None
            if not self._is_closed:
                self._send_waiting()

    def _failed_start(self, why: str) -> None:
        self._failed_starts += 1
        if self._failed_starts >= _MAX_FAILED_STARTS:
            self._failed_starts = 0
            error = ParserFailed(f"no process that reads pages can be started: {why}")
            for document in self._waiting:
                if not document.answer.done():
                    document.answer.set_exception(error)
            self._waiting.clear()

    def _ended(self, parser: _Parser) -> None:
        """A process has ended: its documents are sent to another process, except one that may not be read again."""
        self._parsers.remove(parser)
        is_unread = False
        if parser.documents:
            current = parser.documents[0]
            current.deaths += 1
            if is_unread := parser.exceeded_limit() or current.deaths > _MAX_DEATHS:
                parser.documents.popleft()
                if not current.answer.done():
                    current.answer.set_result(_Unread(parser.why_ended()))
        self._waiting.extendleft(reversed(parser.documents))
        if not self._is_closed:
            operator_log.parser_ended(parser.why_ended(), unread=is_unread)
            self._send_waiting()


@dataclass(slots=True, eq=False)
class _Document:
    """A document on its way to an answer."""

    question: bytes  # the message to the process, which contains the document
    answer: asyncio.Future[bytes | _Unread]
    deaths: int = 0  # of processes that were reading the document


class _Unread(NamedTuple):
    why: str


def question_about(document: Fetched, options: ReadingOptions) -> Question:
    """The question to a parser process about a fetched document, with the body as it was received."""
    token, reading, hash_text = options
    body = document.gzipped if document.plain is None else document.plain
    assert body is not None
    return Question(
        is_html=document.content_type in _HTML_TYPES,
        is_gzipped=document.plain is None,
        hash_text=hash_text,
        charset=document.charset,
        url=document.url,
        headers=document.headers,
        token=token,
        reading=reading.value,
        now=document.finished_at,
        body=body,
    )


def _unread(document: Fetched, why: str, options: ReadingOptions) -> PageFacts:
    token, reading, _ = options
    known = unread_page(
        why, url=document.url, headers=document.headers, token=token, reading=reading, now=document.finished_at
    )
    body = document.body
    return replace(known, body_sha256=sha256(body).digest(), body_bytes=len(body))


class _Parser(asyncio.SubprocessProtocol):
    """One child process; ``on_answers`` is called when it can take more documents."""

    def __init__(self, on_answers: Any) -> None:
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        self.documents: deque[_Document] = deque()  # sent and not answered, in order
        self._bytes = 0  # of these
        self._on_answers = on_answers
        self._unpacker = Unpacker()
        self._progress = 0  # messages received
        self._was_stuck = False

    async def start(self) -> None:
        """Start the process. Raises :class:`OSError` if the system cannot."""
        loop = asyncio.get_running_loop()
        await loop.subprocess_exec(
            lambda: self,
            *(sys.executable, "-m", _PROCESS),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=None,
            env=os.environ | _MALLOC,
            start_new_session=True,  # Ctrl-C is sent to the crawler alone, which ends its children
        )

    def can_take_more(self) -> bool:
        """Whether another document may be sent ahead."""
        if not self.ready.done() or self.ended.done():
            return False
        return not self.documents or (len(self.documents) < _DOCUMENTS_AHEAD and self._bytes < _BYTES_AHEAD)

    def load(self) -> tuple[int, int]:
        """The work that the process has ahead: bytes, documents."""
        return self._bytes, len(self.documents)

    def send(self, document: _Document) -> None:
        """Send a document to be read after those sent before."""
        self.documents.append(document)
        self._bytes += len(document.question)
        self._stdin.write(framed(document.question))

    def kill(self) -> None:
        """End the process at once."""
        with suppress(ProcessLookupError):
            self._transport.kill()

    def exceeded_limit(self) -> bool:
        """Whether the process has ended because a document took too much processor time or memory."""
        return self._transport.get_returncode() in (OUT_OF_MEMORY, _OUT_OF_TIME)

    def why_ended(self) -> str:
        """Why the process has ended, for people."""
        code = self._transport.get_returncode()
        if self._was_stuck:
            return f"the parser did not answer within {_LOOK_EVERY_S * _LOOKS_WITHOUT_PROGRESS:g} s"
        if code == OUT_OF_MEMORY:
            return f"the parser needed more than {MAX_MEMORY_BYTES >> 20} MB of memory"
        if code == _OUT_OF_TIME:
            return f"the parser needed more than {MAX_CPU_S:g} s of processor time"
        if code is not None and code < 0:
            return f"the parser process was killed by {signal.Signals(-code).name}"
        return f"the parser process ended with exit code {code}"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self._stdin = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))
        # Not in start(): the process may end before start() returns.
        self._timer = asyncio.get_running_loop().call_later(_LOOK_EVERY_S, self._look, 0, 0)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        for message in self._unpacker.feed(data):
            self._progress += 1
            if not self.ready.done():
                self.ready.set_result(None)
                continue
            document = self.documents.popleft()
            self._bytes -= len(document.question)
            if not document.answer.done():  # else its reader was cancelled
                document.answer.set_result(message)
        self._on_answers()

    def connection_lost(self, error: Exception | None) -> None:
        self._timer.cancel()
        self.ended.set_result(None)

    def _look(self, progress: int, looks: int) -> None:
        """Kill the process if it has owed an answer for several looks in a row."""
        owes = bool(self.documents) or not self.ready.done()
        looks = looks + 1 if owes and self._progress == progress else 0
        if looks > _LOOKS_WITHOUT_PROGRESS:
            self._was_stuck = True
            self.kill()
        self._timer = asyncio.get_running_loop().call_later(_LOOK_EVERY_S, self._look, self._progress, looks)


class BlockingReader:
    """Reads pages in a parser process for a caller without an event loop. A context manager."""

    def __enter__(self) -> Self:
        self._runner = asyncio.Runner()
        self._pool = self._runner.run(_new_pool())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.run(self._pool.close())
        self._runner.close()

    def read(
        self, body: bytes, *, url: str, headers: Headers, charset: str | None, token: str, reading: Reading, now: float
    ) -> PageFacts:
        """As :func:`crawler.page.html.read_page`; a page that exceeds the limits is unread, with a note."""
        page = Fetched(url, now, now, headers, content_type="text/html", charset=charset, plain=body)
        return self._runner.run(self._pool.read(page, ReadingOptions(token, reading)))


async def _new_pool() -> ParserPool:
    return ParserPool(ReadingOptions("", Reading.STRICT))
