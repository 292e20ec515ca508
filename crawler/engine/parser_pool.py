"""Reads pages and sitemaps in child processes, so that none can hold up the event loop or exhaust the crawler's memory.

The tree construction that the HTML Standard prescribes is quadratic in places, and lexbor cannot be interrupted:
0.5 MB of nested ``<div>`` take it 40 s. No cheap test tells which pages are harmless, so every page is read in a child
process (:mod:`crawler.engine.parser_process`), in which its time and memory are bounded. Which document is read next is
decided by :mod:`crawler.engine.parser_queue`.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self, cast

import msgspec

from crawler.engine import operator_log
from crawler.engine.body_memory import BodyMemory
from crawler.engine.messages import MAX_ANSWER_BYTES, MessageTooLong, Question, T, Unpacker, framed
from crawler.engine.page_messages import FAST_CPU_S, MAX_CPU_S, MAX_MEMORY_BYTES, OUT_OF_MEMORY, PageQuestion
from crawler.engine.parser_queue import Document, Kind, ParserQueue, State
from crawler.engine.sandbox import environment
from crawler.errors import CrawlerError
from crawler.model import Fetched, Headers, PageFacts, Reading
from crawler.page.headers import HTML_TYPES, PDF
from crawler.shortages import SYSTEM_IS_FULL
from crawler.url import host_of, registered_domain

_PROCESS = "crawler.engine.parser_process"
_MOST_PARSERS = 4

# Documents sent to an ordinary process ahead of its answers. A process without any is sent one of any size. What has
# been sent cannot be passed.
_DOCUMENTS_AHEAD = 8
_OCTETS_AHEAD = 1 << 18

# The process for slow documents has this niceness. Beside an ordinary process it then gets a quarter of a processor.
_NICENESS = 5

# A process ends itself when a page takes too much processor time. One that does not work at all, or cannot start, makes
# no progress between several checks in a row; then it is killed. A single check can be late, if the machine slept.
_CHECK_EVERY_S = 10.0
_CHECKS_WITHOUT_PROGRESS = 2
_MAX_FAILED_STARTS = 3
# The errors of a system that has no file, no memory or no process left; then a process is started again in a while.
_NO_PROCESS = SYSTEM_IS_FULL | {errno.EMFILE, errno.EAGAIN}
_START_AGAIN_S = 1.0
# Of processes that read the document and no other, and that exceeded no limit: then the document is answered as unread.
_MAX_DEATHS_ALONE = 2
_END_WITHIN_S = 5.0
# The signal by which the system ends a process at the limit of processor time; ``None`` if it has no such limit.
_OUT_OF_TIME = -signal.SIGPROF if hasattr(signal, "SIGPROF") else None


class ParserFailed(CrawlerError):
    """No parser process can be started on this machine."""


class PageReader(Protocol):
    """The part of the pool that the engine uses."""

    def has_room(self, domain: str) -> bool:
        """Whether a further page of a registered domain should be requested, by what waits to be read."""
        ...

    async def read(self, document: Fetched, *, is_alone: bool = False, shingles: bool = False) -> PageFacts:
        """Read a fetched document, ``is_alone`` in a process that reads no other meanwhile.

        ``shingles`` asks for those of its text.
        """
        ...

    async def ask(self, question: Question[T], *, is_alone: bool = False) -> T:
        """The answer to a question about any other document, which may be that it is too costly to read."""
        ...


class ReadingOptions(NamedTuple):
    """How a crawl reads its pages.

    Directives are interpreted for the product token and the reading. The last field says whether the hosts of a
    page's resources are wanted.
    """

    token: str
    reading: Reading
    resources: bool = False


_NO_PAGES = ReadingOptions("", Reading.STRICT)  # of a pool that is asked for no page of a crawl


def default_parsers(workers: int) -> int:
    """The number of parser processes of one worker, unless the settings say otherwise.

    All workers of this machine share one less than its processors, at least 1 and at most 4.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    processors = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return max(1, min(_MOST_PARSERS, processors - 1) // workers)


class _Unread(NamedTuple):
    why: str


class ParserPool:
    """Reads documents in child processes: at most ``parsers``, and one for slow documents. An async context manager.

    The first process is started by :meth:`start` or for the first document, a further one when a document has to wait
    because each process there is has enough ahead, and the one for slow documents for the first of them. Each process
    answers in the order in which it was asked.

    * A document is answered once. If a process exceeds its limit of processor time or memory, or sends what is no
      answer, the document that it was reading is answered as unread. If a process ends otherwise, it was killed from
      outside, or a bug ended it: the document is read again, alone in a process, and it is unread if two processes that
      read it alone do not survive it.
    * The documents behind it go to another process in any case.
    * A reader that is cancelled leaves its document behind; the answer to it is discarded.
    * Closing the pool kills the processes and cancels the readers.

    No page of one registered domain holds up the pages of another for longer than ``FAST_CPU_S`` of processor time and
    the start of a process: a document that takes longer is slow. Its process is ended, and its reading is repeated with
    the whole limit in the process for slow documents, which reads one document at a time.
    """

    def __init__(self, options: ReadingOptions = _NO_PAGES, parsers: int = 1) -> None:
        """``options`` are those of :meth:`read`."""
        self._options = options
        self._max_parsers = parsers
        self._parsers: list[_Parser] = []
        self._starts: dict[bool, asyncio.Task[None]] = {}  # by whether the process is the one for slow documents
        self._failed_starts = 0  # in a row
        self._confined_by = ""  # what confines the processes, when one was ready
        self._queue = ParserQueue[_Document]()
        #: The memory for the large bodies of answers until they have been read here.
        self.memory = BodyMemory(lambda domain: self._queue.kind(domain) is Kind.PROVEN)
        self._unanswered: set[_Document] = set()
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def start(self) -> None:
        """Start the first process, which gets ready while the caller fetches the first document."""
        if not self._parsers:
            self._start(is_apart=False)

    async def read(self, document: Fetched, *, is_alone: bool = False, shingles: bool = False) -> PageFacts:
        """Read a fetched document; one that is not HTML is read by its headers and digested.

        An unread document counts as NOINDEX and NOFOLLOW, with the reason in its note. A document that ``is_alone`` is
        read in a process that reads no other meanwhile. ``shingles`` asks for those of its text.

        Raises :class:`Fault` for a bug of the crawler that the document brought to light, :class:`ParserFailed` if no
        process can be started, and :class:`asyncio.CancelledError` if the pool is closed.
        """
        return await self.ask(question_about(document, self._options, shingles=shingles), is_alone=is_alone)

    async def ask(self, question: Question[T], *, is_alone: bool = False) -> T:
        """The answer to a question about a document. One that exceeds the limits is answered as unread.

        Raises as :meth:`read`; the question may have other exceptions for an unread document, and for a bug.
        """
        answer = await self._answer(question, is_alone=is_alone or question.is_slow)
        if isinstance(answer, _Unread):
            return await asyncio.to_thread(question.unread, answer.why)
        if isinstance(answer, str):
            raise question.fault(answer)
        return cast("T", answer)

    async def close(self) -> None:
        """Kill the processes and cancel the readers that still wait. No-op if the pool is closed."""
        self._is_closed = True
        starts = tuple(self._starts.values())
        for start in starts:
            start.cancel()
        await asyncio.gather(*starts, return_exceptions=True)
        for document in self._unanswered:
            document.answer.cancel()
        if ending := [parser.ended for parser in self._parsers]:
            for parser in self._parsers:
                parser.kill()
            await asyncio.wait(ending, timeout=_END_WITHIN_S)

    # --- documents ----------------------------------------------------------------------------

    async def _answer(self, question: Question[Any], *, is_alone: bool) -> object:
        if self._is_closed:
            raise asyncio.CancelledError
        document = _Document(
            domain=registered_domain(host_of(question.url)),
            octets=len(question.body),
            is_alone=is_alone,
            judges_domain=question.judges_domain,
            question=question,
            answer=asyncio.get_running_loop().create_future(),
        )
        self._queue.enter(document)
        self._unanswered.add(document)
        self._send_waiting()
        try:
            return await document.answer
        finally:
            self._unanswered.remove(document)
            self._queue.leave(document, is_fast=document.is_fast, took_s=document.took_s)

    def _send_waiting(self) -> None:
        """Send waiting documents to the processes that may take them; start a process if none may."""
        for is_apart in (False, True):
            while (document := self._queue.first(apart=is_apart)) is not None:
                free = [parser for parser in self._parsers if parser.is_apart is is_apart and parser.accepts(document)]
                if not free:
                    self._start(is_apart=is_apart)
                    break
                self._queue.dequeue(document)
                min(free, key=_Parser.load).send(document)

    def has_room(self, domain: str) -> bool:
        """See :class:`PageReader`."""
        return self._queue.has_room(domain) and self.memory.has_room(domain)

    # --- processes ----------------------------------------------------------------------------

    def _start(self, *, is_apart: bool) -> None:
        """Start a process, unless one is being started, or there are as many as may be."""
        most = 1 if is_apart else self._max_parsers
        there = sum(parser.is_apart is is_apart for parser in self._parsers)
        if is_apart not in self._starts and there < most and not self._is_closed:
            self._starts[is_apart] = asyncio.create_task(self._start_parser(is_apart=is_apart))

    async def _start_parser(self, *, is_apart: bool) -> None:
        """Start one process and wait until it is ready."""
        try:
            parser = _Parser(self._send_waiting, is_apart=is_apart)
            try:
                await parser.start()
            except OSError as error:
                if error.errno in _NO_PROCESS:  # other programs may give some back
                    operator_log.parser_waits(f"{error.strerror}")
                    await asyncio.sleep(_START_AGAIN_S)
                else:
                    self._failed_start(f"{error.strerror or error}")
                return
            self._parsers.append(parser)
            parser.ended.add_done_callback(lambda _: self._ended(parser))
            either: list[asyncio.Future[Any]] = [parser.ready, parser.ended]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not parser.ready.done():
                self._failed_start(parser.why_ended())
                return
            self._failed_starts = 0
            if not self._confined_by:
                self._confined_by = parser.ready.result()
                operator_log.parser_confined(self._confined_by)
        finally:
            del self._starts[is_apart]
            if not self._is_closed:
                self._send_waiting()

    def _failed_start(self, why: str) -> None:
        self._failed_starts += 1
        if self._failed_starts >= _MAX_FAILED_STARTS:
            self._failed_starts = 0
            error = ParserFailed(f"no process that reads pages can be started: {why}")
            for is_apart in (False, True):
                while (document := self._queue.first(apart=is_apart)) is not None:
                    self._queue.dequeue(document)
                    if not document.answer.done():  # else its reader was cancelled
                        document.answer.set_exception(error)

    def _ended(self, parser: _Parser) -> None:
        """A process has ended. The description of the class says what becomes of its documents."""
        self._parsers.remove(parser)
        documents = [document for document in parser.documents if document.state is not State.OVER]
        current = parser.documents[0] if parser.documents else None
        is_too_slow = is_unread = False
        if documents and documents[0] is current:
            del documents[0]
            is_too_slow = parser.is_out_of_time() and not current.is_apart
            current.deaths_alone += current.is_apart
            if is_unread := not is_too_slow and (parser.exceeded_limit() or current.deaths_alone >= _MAX_DEATHS_ALONE):
                current.is_fast = False if parser.exceeded_limit() else None
                if not current.answer.done():
                    current.answer.set_result(_Unread(parser.why_ended()))
            else:
                self._queue.read_apart(current, is_slow=is_too_slow)
        for document in documents:
            self._queue.put_back(document)
        if not is_too_slow and not self._is_closed:
            operator_log.parser_ended(parser.why_ended(), unread=is_unread)
        parser.documents.clear()  # its transport refers to it, so it is freed by the garbage collector alone
        if not self._is_closed:
            self._send_waiting()


@dataclass(slots=True, eq=False, kw_only=True)
class _Document(Document):
    """A document on its way to an answer."""

    question: Question[Any]
    answer: asyncio.Future[object]
    deaths_alone: int = 0  # of processes that were reading the document alone, and exceeded no limit
    sent_at: float = 0.0  # by the clock of the event loop
    took_s: float | None = None  # to read it
    is_fast: bool | None = None  # how it was read, when it was

    @property
    def max_cpu_s(self) -> float:
        """The processor time that a process may take for the document, in seconds."""
        return self.question.max_cpu_s if self.is_apart else FAST_CPU_S

    def resolve(self, message: bytes, took_s: float) -> None:
        """The document was read. Raises :class:`msgspec.DecodeError` if the message is no answer."""
        if self.answer.done():
            return  # its reader was cancelled
        self.answer.set_result(self.question.unpack(message))
        self.took_s = took_s
        self.is_fast = not self.is_apart or took_s < FAST_CPU_S


class _Parser(asyncio.SubprocessProtocol):
    """One child process; ``on_answers`` is called when it can take more documents.

    The process that ``is_apart`` is sent one document at a time.
    """

    def __init__(self, on_answers: Callable[[], None], *, is_apart: bool) -> None:
        loop = asyncio.get_running_loop()
        self.is_apart = is_apart
        self.is_over = False  # the process has ended, is ending, or is to be ended: it is sent nothing more
        self.ready: asyncio.Future[str] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        self.documents: deque[_Document] = deque()  # sent and not answered, in order
        self._octets = 0  # of these
        self._answered_at = 0.0  # by the clock of the event loop
        self._on_answers = on_answers
        self._unpacker = Unpacker()
        self._progress = 0  # messages received
        self._killed_because = ""
        self._is_trusted = True  # False: it sent what is no answer

    async def start(self) -> None:
        """Start the process. Raises :class:`OSError` if the system cannot."""
        loop = asyncio.get_running_loop()
        await loop.subprocess_exec(
            lambda: self,
            *(sys.executable, "-m", _PROCESS),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=None,
            env=environment(os.environ),
            start_new_session=True,  # Ctrl-C is sent to the crawler alone, which ends its children
        )

    def accepts(self, document: _Document) -> bool:
        """Whether a document may be sent, behind those sent before."""
        if self.is_over or not self.ready.done() or self.is_cut_off():
            return False
        if not self.documents:
            return True
        has_room = len(self.documents) < _DOCUMENTS_AHEAD and self._octets + document.octets <= _OCTETS_AHEAD
        return has_room and not self.is_apart

    def is_cut_off(self) -> bool:
        """Whether the pipe to the process is closing: one turn of the loop before :meth:`pipe_connection_lost`."""
        return self._stdin.is_closing()

    def load(self) -> tuple[int, int]:
        """The work that the process has ahead: octets, documents."""
        return self._octets, len(self.documents)

    def send(self, document: _Document) -> None:
        """Send a document to be read after those sent before."""
        document.sent_at = asyncio.get_running_loop().time()
        self.documents.append(document)
        self._octets += document.octets
        self._stdin.writelines(framed(*document.question.packed(document.max_cpu_s)))

    def kill(self) -> None:
        """End the process at once."""
        with suppress(ProcessLookupError):
            self._transport.kill()

    def is_out_of_time(self) -> bool:
        """Whether the process has ended because a document took too much processor time."""
        return self._transport.get_returncode() == _OUT_OF_TIME

    def exceeded_limit(self) -> bool:
        """Whether the process has ended because of a document: of its time, its memory, or the answer to it."""
        return self.is_out_of_time() or self._transport.get_returncode() == OUT_OF_MEMORY or not self._is_trusted

    def why_ended(self) -> str:
        """Why the process has ended, for people."""
        code = self._transport.get_returncode()
        if self._killed_because:
            return self._killed_because
        if code == OUT_OF_MEMORY:
            return f"the parser needed more than {MAX_MEMORY_BYTES >> 20} MB of memory"
        if code == _OUT_OF_TIME:
            most_s = self.documents[0].max_cpu_s if self.documents else MAX_CPU_S
            return f"the parser needed more than {most_s:g} s of processor time"
        if code is not None and code < 0:
            return f"the parser process was killed by {signal.Signals(-code).name}"
        return f"the parser process ended with exit code {code}"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self._stdin = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))
        if self.is_apart:
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, self._transport.get_pid(), _NICENESS)
        # Not in start(): the process may end before start() returns.
        self._timer = asyncio.get_running_loop().call_later(_CHECK_EVERY_S, self._check, 0, 0)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if not self._is_trusted:
            return
        try:
            messages = self._unpacker.feed(data)
            if messages and not self.ready.done():
                self._progress += 1
                self.ready.set_result(messages.pop(0).decode(errors="replace"))
            for message in messages:
                self._note_answer(message)
        except MessageTooLong:
            self._distrust(f"the parser sent more than {MAX_ANSWER_BYTES >> 20} MB")
        except (IndexError, msgspec.DecodeError):
            self._distrust("the parser sent what is no answer")
        self._on_answers()

    def _note_answer(self, message: bytes) -> None:
        now = asyncio.get_running_loop().time()
        document = self.documents[0]
        document.resolve(message, now - max(document.sent_at, self._answered_at))
        self.documents.popleft()
        self._octets -= document.octets
        self._answered_at = now
        self._progress += 1

    def _distrust(self, why: str) -> None:
        """A page may have taken the process over."""
        self._is_trusted, self._killed_because = False, why
        self.is_over = True
        self.kill()

    def pipe_connection_lost(self, fd: int, error: Exception | None) -> None:
        """The process has closed its input or output. Most likely it is ending: it is sent nothing more."""
        self.is_over = True

    def connection_lost(self, error: Exception | None) -> None:
        self.is_over = True
        self._timer.cancel()
        self.ended.set_result(None)

    def _check(self, progress: int, checks: int) -> None:
        """Kill the process if it has owed an answer for several checks in a row."""
        owes = bool(self.documents) or self.is_over or not self.ready.done()
        checks = checks + 1 if owes and self._progress == progress else 0
        if checks > _CHECKS_WITHOUT_PROGRESS:
            self._killed_because = f"the parser did not answer within {_CHECK_EVERY_S * _CHECKS_WITHOUT_PROGRESS:g} s"
            self.kill()
        self._timer = asyncio.get_running_loop().call_later(_CHECK_EVERY_S, self._check, self._progress, checks)


def question_about(document: Fetched, options: ReadingOptions, *, shingles: bool = False) -> PageQuestion:
    """The question to a parser process about a fetched document, with the body as it was received."""
    token, reading, resources = options
    body = document.gzipped if document.plain is None else document.plain
    assert body is not None
    return PageQuestion(
        max_cpu_s=MAX_CPU_S,
        is_html=document.content_type in HTML_TYPES,
        is_pdf=document.content_type == PDF,
        is_gzipped=document.plain is None,
        resources=resources,
        charset=document.charset,
        url=document.url,
        headers=document.headers,
        token=token,
        reading=reading.value,
        now=document.finished_at,
        body=body,
        unchecked=document.unchecked,
        shingles=shingles,
    )


class BlockingReader:
    """Reads pages in a parser process for a caller without an event loop. A context manager."""

    def __enter__(self) -> Self:
        self._runner = asyncio.Runner()
        self._pool = ParserPool()
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
        return self.ask(question_about(page, ReadingOptions(token, reading)))

    def ask(self, question: Question[T]) -> T:
        """As :meth:`ParserPool.ask`."""
        return self._runner.run(self._pool.ask(question))
