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
from crawler.engine.backlog import Backlog
from crawler.engine.fair_queue import FairQueue, Place
from crawler.engine.messages import Unpacker, framed
from crawler.engine.page_messages import (
    FAST_CPU_S,
    MAX_CPU_S,
    MAX_MEMORY_BYTES,
    OUT_OF_MEMORY,
    Question,
    unpack_answer,
)
from crawler.engine.robots_messages import RobotsQuestion
from crawler.engine.robots_reading import unpack_rules
from crawler.errors import CrawlerError, Fault
from crawler.model import Fetched, Headers, PageFacts, Reading
from crawler.page.headers import HTML_TYPES, PDF, unread_page
from crawler.robots.readings import SiteRules, unread_rules
from crawler.url import host_of, registrable_domain

_PROCESS = "crawler.engine.parser_process"
_MOST_PARSERS = 4

# Ordinary documents sent to one process ahead of its answers. A process without any is sent one of any size.
_DOCUMENTS_AHEAD = 8
_BYTES_AHEAD = 1 << 18
# While a domain is known for slow pages, larger documents are read among the slow ones.
_LARGE_BYTES = 1 << 18
# The least that a document counts among the others that wait, in bytes.
_LEAST_COST = 1 << 10

# Domains that are known for slow pages, and those known for others; those of which this was learnt last are kept.
_MAX_DOMAINS = 10_000
# A domain that is not known for slow pages may request pages up to this multiple of the limits.
_KNOWN_TIMES = 2

# This many of the domains that wait for room are looked at whenever a document has been answered, and this often.
_WOKEN_AT_ONCE = 4
_WAKE_AGAIN_S = 0.02

# A process ends itself when a page takes too much processor time. One that does not work at all, or cannot start, makes
# no progress between several looks in a row; then it is killed. A single look can be late, when the machine has slept.
_LOOK_EVERY_S = 10.0
_LOOKS_WITHOUT_PROGRESS = 2
_MAX_FAILED_STARTS = 3
# Of processes that were reading the document alone, and that exceeded no limit. The last one leaves it unread.
_MOST_DEATHS_ALONE = 2
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


class RobotsReader(Protocol):
    """The part of the pool that reads large robots.txt files."""

    async def read_robots(self, question: RobotsQuestion) -> SiteRules:
        """The rules of a file. A file that is too costly to read closes its site."""
        ...


class PageReader(RobotsReader, Protocol):
    """The part of the pool that the engine uses."""

    def has_room(self, domain: str) -> bool:
        """Whether a further page of a registered domain should be requested, by what waits to be read."""
        ...

    async def room(self, domain: str) -> None:
        """Wait until :meth:`has_room` is true, or was a moment ago."""
        ...

    async def read(self, document: Fetched, *, alone: bool = False) -> PageFacts:
        """Read a fetched document; in a process that has no other document meanwhile if it is to be read ``alone``."""
        ...


class ReadingOptions(NamedTuple):
    """How a crawl reads its pages.

    Directives are interpreted for the product token and the reading. The last field says whether the hosts of a
    page's resources are wanted.
    """

    token: str
    reading: Reading
    resources: bool = False


def default_parsers(workers: int) -> int:
    """The number of parser processes of one worker, unless the settings say otherwise.

    All workers of this machine share one less than its processors, at least 1 and at most 4.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    processors = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return max(1, min(_MOST_PARSERS, processors - 1) // workers)


class ParserPool:
    """Reads documents in child processes: ordinary ones in at most ``parsers``. An async context manager.

    The first process is started by :meth:`start` or for the first document, a further one when a document has to wait
    because each process there is has enough ahead. Each process answers in the order in which it was asked.

    * A document is answered once. If a process exceeds its limit of processor time or memory, the document that it was
      reading is answered as unread. If a process ends otherwise, it was killed from outside, or a bug ended it: the
      document is read again, alone in a process, and answered as unread when two processes have ended that read it
      alone.
    * The documents behind it go to another process in any case.
    * A reader that is cancelled leaves its document behind; the answer to it is discarded.
    * Closing the pool kills the processes and cancels the readers.

    No page of one registered domain holds up the pages of another for longer than ``FAST_CPU_S`` of processor time and
    the start of a process:

    * A document that takes longer than that is slow. Its process is ended, and its reading is repeated with the whole
      limit, alone in a process. Further documents of its domain are slow too, until one has been read faster.
      As long as there is such a domain, large documents of all domains are slow, because most slow ones are large.
    * Slow documents leave one process to the others. When there are any, the pool has one process more than
      ``parsers``.
    * A domain should request another page only while its documents are less than a third of what may still wait
      (:meth:`has_room`, :class:`Backlog`), and the slow ones are counted by themselves. If slow documents of many
      domains wait, those whose pages were read fast before still have room: for them, twice as many may wait.
    * Ordinary documents wait in a queue that is fair to the domains by the size of their documents, slow ones in a
      queue that is fair by number (:class:`FairQueue`). The system divides its processors among the processes.
    """

    def __init__(self, options: ReadingOptions, parsers: int = 1) -> None:
        self._options = options
        self._max_parsers = parsers
        self._parsers: list[_Parser] = []
        self._start: asyncio.Task[None] | None = None  # of the one process that is being started
        self._failed_starts = 0  # in a row
        self._ordinary = _Lane()
        self._slow = _Lane()
        self._slow_domains: dict[str, None] = {}
        self._fast_domains: dict[str, None] = {}
        self._without_room: dict[str, asyncio.Event] = {}  # domains that wait for it, the longest first
        self._wake_timer: asyncio.TimerHandle | None = None  # set while domains wait for room
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

    async def read(self, document: Fetched, options: ReadingOptions | None = None, *, alone: bool = False) -> PageFacts:
        """Read a fetched document; one that is not HTML is read by its headers and digested.

        A document that is to be read ``alone`` is treated as a slow one. An unread document counts as NOINDEX and
        NOFOLLOW, with the reason in its note.
        ``options`` replace those of the pool. Raises :class:`Fault` for a bug of the crawler that the document brought
        to light, :class:`ParserFailed` if no process can be started, and :class:`asyncio.CancelledError` if the pool
        is closed.
        """
        options = options or self._options
        answered = await self._ask(question_about(document, options), alone=alone)
        if isinstance(answered, _Unread):
            return await asyncio.to_thread(_unread, document, answered.why, options)
        facts = unpack_answer(answered)
        if isinstance(facts, str):
            raise Fault(facts)
        return facts

    async def read_robots(self, question: RobotsQuestion) -> SiteRules:
        """The rules of a robots.txt, which is read as a slow document. One that exceeds the limits closes its site.

        Raises as :meth:`read`.
        """
        answered = await self._ask(question)
        if isinstance(answered, _Unread):
            return unread_rules(Reading(question.reading), answered.why)
        rules = await asyncio.to_thread(unpack_rules, answered)
        if isinstance(rules, str):
            raise Fault(rules)
        return rules

    async def close(self) -> None:
        """Kill the processes and cancel the readers that still wait. No-op if the pool is closed."""
        self._is_closed = True
        if self._wake_timer is not None:
            self._wake_timer.cancel()
        if self._start is not None:
            self._start.cancel()
            await asyncio.gather(self._start, return_exceptions=True)
        for lane in (self._ordinary, self._slow):
            for document in lane.documents:
                document.answer.cancel()
        if ending := [parser.ended for parser in self._parsers]:
            for parser in self._parsers:
                parser.kill()
            await asyncio.wait(ending, timeout=_END_WITHIN_S)

    async def _ask(self, question: Question | RobotsQuestion, *, alone: bool = False) -> bytes | _Unread:
        if self._is_closed:
            raise asyncio.CancelledError
        loop = asyncio.get_running_loop()
        domain = registrable_domain(host_of(question.url))
        document = _Document(question, domain, loop.create_future(), is_alone=alone)
        document.is_slow = self._is_slow(document)
        self._lane(document).enter(document)
        self._note_room()
        self._send_waiting()
        try:
            answer = await document.answer
            if document.is_robots:  # it says nothing about the pages of its domain
                return answer
            is_fast = not document.is_slow or loop.time() - document.sent_at < FAST_CPU_S
            if is_fast and document.is_slow:
                self._slow_domains.pop(domain, None)
            if is_fast and domain not in self._slow_domains and isinstance(answer, bytes):
                _remember(self._fast_domains, domain)
            return answer
        finally:
            self._lane(document).leave(document)
            self._note_room()

    def _is_slow(self, document: _Document) -> bool:
        if document.is_robots or document.is_alone:
            return True
        return document.domain in self._slow_domains or (bool(self._slow_domains) and document.bytes > _LARGE_BYTES)

    def _lane(self, document: _Document) -> _Lane:
        return self._slow if document.is_slow else self._ordinary

    def has_room(self, domain: str) -> bool:
        """See :class:`PageReader`."""
        times = _KNOWN_TIMES if domain in self._fast_domains else 1
        return self._ordinary.backlog.has_room(domain) and self._slow.backlog.has_room(domain, times)

    async def room(self, domain: str) -> None:
        """See :class:`PageReader`."""
        if not self.has_room(domain):
            await self._without_room.setdefault(domain, asyncio.Event()).wait()

    def _note_room(self) -> None:
        """Wake a few of the domains that wait for room, if they have it, those first that have waited longest.

        Thousands may wait, and a document that has been answered makes room for one. If all woke, nearly all would find
        no room, each time. Those that are woken may bring no document, so others are looked at soon afterwards, too.
        """
        for _ in range(min(_WOKEN_AT_ONCE, len(self._without_room))):
            domain = next(iter(self._without_room))
            event = self._without_room.pop(domain)
            if self.has_room(domain):
                event.set()
            else:
                self._without_room[domain] = event  # behind all others
        if self._without_room and self._wake_timer is None and not self._is_closed:
            self._wake_timer = asyncio.get_running_loop().call_later(_WAKE_AGAIN_S, self._wake_again)

    def _wake_again(self) -> None:
        self._wake_timer = None
        self._note_room()

    def _send_waiting(self) -> None:
        """Send waiting documents to the processes that may take them; start a process if none may."""
        for lane, choose in ((self._ordinary, self._for_ordinary), (self._slow, self._for_slow)):
            while (document := lane.next()) is not None and (parser := choose(document)) is not None:
                lane.waiting.pop()
                parser.send(document)
        most = self._max_parsers + bool(self._slow.documents)
        waits = self._ordinary.waiting or self._slow.waiting
        if waits and self._start is None and len(self._parsers) < most and not self._is_closed:
            self._start = asyncio.create_task(self._start_parser())

    def _for_ordinary(self, document: _Document) -> _Parser | None:
        """The process for an ordinary document: of those that may take it, that with least ahead."""
        free = [parser for parser in self._parsers if parser.can_take(document)]
        if sum(bool(parser.documents) and not parser.is_slow() for parser in self._parsers) >= self._max_parsers:
            free = [parser for parser in free if parser.documents]
        return min(free, key=_Parser.load, default=None)

    def _for_slow(self, document: _Document) -> _Parser | None:
        """The process for a slow document: one without any, unless it is the last that reads no slow one."""
        if len(self._parsers) - sum(parser.is_slow() for parser in self._parsers) < 2:
            return None
        free = (parser for parser in self._parsers if not parser.documents and parser.can_take(document))
        return next(free, None)

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
            for lane in (self._ordinary, self._slow):
                while (document := lane.next()) is not None:
                    lane.waiting.pop()
                    document.answer.set_exception(error)

    def _ended(self, parser: _Parser) -> None:
        """A process has ended: its documents are sent to another process, except one that may not be read again."""
        self._parsers.remove(parser)
        documents, is_unread, is_slow, why = parser.documents, False, False, parser.why_ended()
        if documents:
            current = documents[0]
            is_slow = parser.is_out_of_time() and not current.is_slow
            if parser.exceeded_limit():
                is_unread = not is_slow
            else:
                current.deaths_alone += current.is_slow
                current.is_alone = True
                is_unread = current.deaths_alone >= _MOST_DEATHS_ALONE
            if is_unread:
                documents.popleft()
                if not current.answer.done():
                    current.answer.set_result(_Unread(why))
        for document in documents:
            assert document.place is not None
            self._lane(document).waiting.put_back(document.domain, document.place, document)
        if is_slow:
            self._note_slow(current.domain)
        else:
            self._move_slow()
        if not is_slow and not self._is_closed:
            operator_log.parser_ended(why, unread=is_unread)
        if not self._is_closed:
            self._send_waiting()

    def _note_slow(self, domain: str) -> None:
        """A domain has a slow document."""
        self._fast_domains.pop(domain, None)
        _remember(self._slow_domains, domain)
        self._move_slow()

    def _move_slow(self) -> None:
        """Find out again which of the ordinary documents that wait are slow."""
        for document in self._ordinary.waiting.take(self._is_slow):
            if not document.answer.done():  # else its reader was cancelled
                self._ordinary.leave(document)
                document.is_slow = True
                self._slow.enter(document)
        self._note_room()


def _remember(domains: dict[str, None], domain: str) -> None:
    """Put ``domain`` behind all others; the first one is forgotten if they are too many."""
    domains.pop(domain, None)
    domains[domain] = None
    if len(domains) > _MAX_DOMAINS:
        del domains[next(iter(domains))]


@dataclass(slots=True, eq=False)
class _Document:
    """A document on its way to an answer."""

    question: Question | RobotsQuestion
    domain: str
    answer: asyncio.Future[bytes | _Unread]
    is_alone: bool = False  # a process has ended with it, or a worker: it is to be read alone
    is_slow: bool = False  # read alone in a process, with the whole limit of processor time
    deaths_alone: int = 0  # of processes that were reading the document alone, and that exceeded no limit
    sent_at: float = 0.0  # by the clock of the event loop
    place: Place | None = None  # in the queue of its lane

    @property
    def is_robots(self) -> bool:
        return isinstance(self.question, RobotsQuestion)

    @property
    def bytes(self) -> int:
        return len(self.question.body)

    @property
    def max_cpu_s(self) -> float:
        """The processor time that a process may take for the document, in seconds."""
        return self.question.max_cpu_s if self.is_slow else FAST_CPU_S

    @property
    def cost(self) -> int:
        """An ordinary document takes time in proportion to its size. The size of a slow one tells nothing."""
        return 1 if self.is_slow else max(_LEAST_COST, self.bytes)


class _Lane:
    """The documents of one kind, ordinary or slow, that were not answered yet."""

    def __init__(self) -> None:
        self.documents: set[_Document] = set()
        self.backlog = Backlog()  # of these
        self.waiting: FairQueue[_Document] = FairQueue()  # of these, not sent to any process; and cancelled ones

    def enter(self, document: _Document) -> None:
        """Add a document, which then waits."""
        self.documents.add(document)
        self.backlog.add(document.domain, document.bytes)
        document.place = self.waiting.add(document.domain, document.cost, document)

    def leave(self, document: _Document) -> None:
        """Remove a document."""
        self.documents.remove(document)
        self.backlog.remove(document.domain, document.bytes)

    def next(self) -> _Document | None:
        """The next document that waits, if any."""
        while self.waiting:
            if not (document := self.waiting.peek()).answer.done():
                return document
            self.waiting.pop()  # its reader was cancelled
        return None


class _Unread(NamedTuple):
    why: str


def question_about(document: Fetched, options: ReadingOptions) -> Question:
    """The question to a parser process about a fetched document, with the body as it was received."""
    token, reading, resources = options
    body = document.gzipped if document.plain is None else document.plain
    assert body is not None
    return Question(
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

    def is_slow(self) -> bool:
        """Whether the process is reading a slow document. It has no other then."""
        return bool(self.documents) and self.documents[0].is_slow

    def can_take(self, document: _Document) -> bool:
        """Whether a document may be sent, behind those sent before."""
        if not self.ready.done() or self.ended.done() or self.is_slow():
            return False
        has_room = len(self.documents) < _DOCUMENTS_AHEAD and self._bytes + document.bytes <= _BYTES_AHEAD
        return not self.documents or has_room

    def load(self) -> tuple[int, int]:
        """The work that the process has ahead: bytes, documents."""
        return self._bytes, len(self.documents)

    def send(self, document: _Document) -> None:
        """Send a document to be read after those sent before."""
        document.sent_at = asyncio.get_running_loop().time()
        self.documents.append(document)
        self._bytes += document.bytes
        self._stdin.write(framed(document.question._replace(max_cpu_s=document.max_cpu_s).packed()))

    def kill(self) -> None:
        """End the process at once."""
        with suppress(ProcessLookupError):
            self._transport.kill()

    def is_out_of_time(self) -> bool:
        """Whether the process has ended because a document took too much processor time."""
        return self._transport.get_returncode() == _OUT_OF_TIME

    def exceeded_limit(self) -> bool:
        """Whether the process has ended because a document took too much processor time or memory."""
        return self.is_out_of_time() or self._transport.get_returncode() == OUT_OF_MEMORY

    def why_ended(self) -> str:
        """Why the process has ended, for people."""
        code = self._transport.get_returncode()
        if self._was_stuck:
            return f"the parser did not answer within {_LOOK_EVERY_S * _LOOKS_WITHOUT_PROGRESS:g} s"
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
        # Not in start(): the process may end before start() returns.
        self._timer = asyncio.get_running_loop().call_later(_LOOK_EVERY_S, self._look, 0, 0)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        for message in self._unpacker.feed(data):
            self._progress += 1
            if not self.ready.done():
                self.ready.set_result(None)
                continue
            document = self.documents.popleft()
            self._bytes -= document.bytes
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

    def read_robots(self, question: RobotsQuestion) -> SiteRules:
        """As :meth:`ParserPool.read_robots`."""
        return self._runner.run(self._pool.read_robots(question))


async def _new_pool() -> ParserPool:
    return ParserPool(ReadingOptions("", Reading.STRICT))
