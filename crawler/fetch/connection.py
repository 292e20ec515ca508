"""One connection: counts the octets that arrive for each request, and closes the connection at a bound.

The HTTP library bounds one field and one header section. A server can still send interim answers, chunk extensions,
trailers and header fields without end, and the library parses them all. So :class:`Connection` stands before its
parser. It gives the parser one header section at a time, and the octets after it separately. The bounds of a request:

- the header sections of all its answers together: :data:`MAX_HEAD_BYTES`;
- interim answers (1xx, RFC 9110, 15.2): :data:`MAX_INTERIM`;
- a header section, from its first octet to its end: :data:`MAX_HEAD_S`;
- the framing of its body (chunk sizes, chunk extensions, trailers; RFC 9112, 7.1): :data:`FRAMING_BYTES`, and one octet
  for :data:`BODY_PER_FRAMING` octets of the body. That bounds the number of chunks, each of which costs the parser as
  much as many octets do.

The reader of the body bounds the body itself. An answer that comes in many small pieces is read seldom, so that the
system collects the pieces: after :data:`FREE_READS` reads of less than :data:`SMALL_READ` octets on average, the
connection rests for :data:`REST_S` after each. The time of the event loop that the octets of a request took is
measured (``loop_s`` of :class:`Transfer`). Octets behind a complete answer belong to no request. They close the
connection and do not change the answer (RFC 9112, 9.2).

The class overrides private parts of the library: ``_drain_tail`` calls ``data_received``, which calls
``_reschedule_timeout`` and, for each message, ``feed_data``, and ``resume_reading`` calls
``_resume_transport_reading``. ``_drop_timeout`` ends the wait for data, and ``_on_read_timeout`` is called by the one
timer of a connection, which rings at the first limit on the time of its answer. Tests fail if the library changes this.
"""

from __future__ import annotations

import asyncio
import math
import re
import select
import ssl
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import partial
from time import perf_counter
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import RawResponseMessage
from aiohttp.streams import StreamReader

from crawler.fetch.tls import facts_of, keep_session
from crawler.model import Request, TlsFacts
from crawler.reasons import ErrorKind, RequestError

#: Returns for how many seconds the event loop may have kept waiting what it runs now. Time limits do not count that.
LagNow = Callable[[], float]

MAX_HEAD_BYTES = 262_144
MAX_INTERIM = 16
MAX_HEAD_S = 10.0
FRAMING_BYTES = 262_144
BODY_PER_FRAMING = 16
SMALL_READ = 1_024
FREE_READS = 64
REST_S = 0.05

_EMPTY_LINES = re.compile(rb"[\r\n]*")
_KEEP_ALIVE = re.compile(r"\btimeout\s*=\s*([0-9]{1,9})\b", re.IGNORECASE)
#: Octets from which the end of a header section is recognised if it arrives in two pieces: ``x\r\n\r`` and ``\n``.
_EDGE = 4


def no_lag() -> float:
    """The lag of an event loop that is not measured: none."""
    return 0.0


class BoundExceeded(aiohttp.ClientError):
    """A server has sent more for a request than the bounds permit; ``problem`` says which bound."""

    def __init__(self, problem: RequestError) -> None:
        super().__init__(problem.sentence)
        self.problem = problem


class Transfer:
    """One request and the octets that have arrived for it.

    A context manager: the octets of the request that the current task sends inside the context are counted.
    """

    is_kept = False  # whether these octets are kept, beside the body

    def __init__(self, request: Request, started_at: float = 0.0, ends_at: float = math.inf) -> None:
        """``started_at`` is in seconds since the epoch.

        The answer must be complete at ``ends_at``, by the clock of the event loop.
        """
        self.request = request
        self.started_at = started_at
        self.refusals: tuple[str, ...] = ()  # by the address guard, of addresses that the request has tried
        self.permitted = False  # whether the guard permitted any address
        self.key: Hashable = None  # of the connector, for connections to the origin
        self.begun = False  # whether there is a connection for the request
        self.reused = False  # whether that connection has carried a request before
        self.tls: TlsFacts | None = None  # of that connection
        self.peer = ""  # the address at its other end
        self.received = 0  # octets, after TLS
        self.reads = 0  # in which these came
        self.loop_s = 0.0  # of the event loop, for these
        self._ends_at = ends_at
        self._own_wait_since = math.inf  # by the same clock
        self._connecting: asyncio.Timeout | None = None

    def left_s(self, now: float) -> float:
        """The seconds that are left for the answer at ``now``, by the clock of the event loop."""
        return self._ends_at - min(now, self._own_wait_since)

    @asynccontextmanager
    async def connecting(self) -> AsyncIterator[None]:
        """The context in which a connection is made. Raises :class:`TimeoutError` when the answer must be complete.

        From then on, the connection itself looks at the time.
        """
        async with asyncio.timeout_at(self._ends_at) as self._connecting:
            yield
        self._connecting = None

    @contextmanager
    def own_wait(self) -> Iterator[None]:
        """A context in which the crawler lets the server wait: the answer has so much more time."""
        loop, connecting = asyncio.get_running_loop(), self._connecting
        self._own_wait_since = loop.time()
        if connecting is not None:
            connecting.reschedule(None)
        try:
            yield
        finally:
            self._ends_at += loop.time() - self._own_wait_since
            self._own_wait_since = math.inf
            if connecting is not None:
                connecting.reschedule(self._ends_at)

    def __enter__(self) -> None:
        self._token = _current.set(self)

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)

    def hide(self, headers: Mapping[str, str]) -> None:
        """The request has these headers, which are not to be kept. No-op: nothing is kept."""

    def begin(self, *, reused: bool = False, tls: TlsFacts | None = None, peer: str = "") -> None:
        """A connection carries the request now. Forgets what arrived so far: the answer of a proxy to CONNECT."""
        self.begun = True
        self.reused = reused
        self.tls = tls
        self.peer = peer
        self.received = self.reads = 0

    def receive(self, data: bytes) -> None:
        """Count octets that have arrived for the request."""
        self.received += len(data)

    def drop_interim(self) -> None:
        """The octets received last were those of an interim answer."""


_current: ContextVar[Transfer] = ContextVar("transfer")


def current_transfer() -> Transfer:
    """The transfer of the current task. Raises :class:`LookupError` outside of its context."""
    return _current.get()


class Connection(ResponseHandler):
    """The protocol of a connection, within the bounds of this module.

    A connection carries one request at a time. ``set_response_params`` begins a request. Its answer is ``None`` until
    the header section of the final answer is complete. :attr:`group` is the politeness group of the last request, and
    :attr:`keep_alive_s` the time for which the server keeps the idle connection, if its last answer says it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, lag_now_s: LagNow = no_lag) -> None:
        super().__init__(loop)
        self.group = ""
        self.key: Hashable = None  # of the connector, while it is idle
        self.idle_since = self.idle_until = 0.0  # by the clock of the loop
        self.tls: ssl.SSLObject | None = None
        self._tls_facts: TlsFacts | None = None
        self.peer = ""
        self.keep_alive_s: float | None = None
        self._lag_now_s = lag_now_s
        self._poll: select.poll | None = None
        self._waits_since = math.inf  # for data, by the clock of the loop
        self._transfer: Transfer | None = None
        self._answer: StreamReader | None = None  # the body of the final answer
        self._head_bytes = 0
        self._interim = 0
        self._edge = b""  # the last octets of an incomplete header section
        self._head_since = math.inf  # when the first octets of an incomplete header section came
        self._rest: asyncio.TimerHandle | None = None  # until reading goes on

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin a connection; its TLS handshake is over."""
        super().connection_made(transport)
        self.tls = transport.get_extra_info("ssl_object")
        self._tls_facts = facts_of(transport)
        self.peer = (transport.get_extra_info("peername") or ("",))[0]

    def has_unread(self) -> bool:
        """Whether the system holds received data of this open connection that the event loop has not read yet."""
        if self._poll is None:
            assert self.transport is not None, "the connection is open"
            self._poll = select.poll()
            self._poll.register(self.transport.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(self._poll.poll(0))

    def end_tls(self, *, resumable: bool) -> None:
        """Keep the session for another connection if it is to be ``resumable``. Called before the connection closes."""
        if self.tls is not None and resumable:
            keep_session(self.tls)
        self.tls = None

    def set_response_params(self, **params: Any) -> None:
        """Begin the request of the current task."""
        reused = self._transfer is not None
        self._transfer = _current.get()
        self._transfer.begin(reused=reused, tls=self._tls_facts, peer=self.peer)
        self.group = self._transfer.request.group
        self._answer = None
        self._head_bytes = self._interim = 0
        self._edge, self._head_since = b"", math.inf
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        """Count ``data``, and give it to the parser if it is within the bounds."""
        transfer = self._transfer
        if transfer is None:  # the server speaks first: the library keeps some octets for the first request
            super().data_received(data)
            return
        if self._exception is not None or self.transport is None:
            return
        began = perf_counter()
        self._receive(data, transfer)
        transfer.loop_s += perf_counter() - began
        transfer.reads += 1
        if transfer.reads > FREE_READS and transfer.received < transfer.reads * SMALL_READ:
            self._begin_rest()

    def _receive(self, data: bytes, transfer: Transfer) -> None:
        if self._answer is None:
            data = self._receive_head(data, transfer)
            if self._answer is None or not data:
                return
        if data and self._answer.is_eof():
            self._should_close = True
            assert self.transport is not None, "data_received has looked"
            self.transport.close()
            return
        transfer.receive(data)
        super().data_received(data)
        body = self._answer.total_bytes
        framing, most = transfer.received - self._head_bytes - body, FRAMING_BYTES + body // BODY_PER_FRAMING
        # While reading is paused, the parser holds octets of the body that it has not counted yet.
        if framing > most and not self._reading_paused and not self._answer.is_eof():
            detail = f"the body has more than {most:,} bytes of framing for its first {body:,} bytes"
            self._refuse(ErrorKind.PROTOCOL, detail)

    def _begin_rest(self) -> None:
        """Read nothing for a while: what arrives meanwhile is read at once."""
        if self._rest is None and self.transport is not None and not self.transport.is_closing():
            self._pause_transport_reading()
            self._rest = self._loop.call_later(REST_S, self._end_rest)

    def _end_rest(self) -> None:
        self._rest = None
        if not self._reading_paused and not self._buffer_paused:
            self._resume_transport_reading()

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Read on after a pause. The library calls this without a pause too, for each piece of a body that is taken."""
        if self._reading_paused:
            super().resume_reading(resume_parser)

    def _resume_transport_reading(self) -> None:
        if self._rest is None:
            super()._resume_transport_reading()

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        """Take a message from the parser. Only the first final answer reaches the client."""
        message, body = data
        if self._answer is not None:
            self._should_close = True
        elif 100 <= message.code < 200 and message.code != 101:
            self._interim += 1
        else:
            self._answer = body
            self.keep_alive_s = _keep_alive_s(message.headers.get("Keep-Alive"))
            super().feed_data(data, size)

    def _reschedule_timeout(self) -> None:
        """Begin the wait for data anew. The library would replace the timer each time; here it looks when it rings."""
        self._waits_since = self._loop.time()
        if self._read_timeout_handle is None:
            self._on_read_timeout()

    def _drop_timeout(self) -> None:
        """Wait for no data. The timer stays for the next request of the connection, which is likely to come soon."""
        self._waits_since = math.inf

    def _on_read_timeout(self, *, is_patient: bool = True) -> None:
        """End the request if one of its limits is over, and set the timer to the first of them otherwise.

        If the own loop is late, data may have arrived long before: the timer rings once more after the lag. Data that
        come before the first request have no limit, and set no timer.
        """
        self._read_timeout_handle = None
        if self._waits_since == math.inf or self._transfer is None:
            return
        now = self._loop.time()
        whole_s = self._transfer.left_s(now)
        silent_s = self._waits_since + (self._read_timeout or math.inf) - now
        head_s = self._head_since + MAX_HEAD_S - now
        left_s = min(whole_s, silent_s, head_s)
        if left_s > 0:
            self._read_timeout_handle = self._loop.call_later(left_s, self._on_read_timeout)
        elif whole_s <= 0:
            self.set_exception(TimeoutError())
        elif is_patient and (lag_s := self._lag_now_s()) > 0:
            look_again = partial(self._on_read_timeout, is_patient=False)
            self._read_timeout_handle = self._loop.call_later(min(lag_s, whole_s), look_again)
        elif head_s <= 0:
            self._refuse(ErrorKind.TIMEOUT, f"the headers of the answer were not complete after {MAX_HEAD_S:g} s")
        else:
            super()._on_read_timeout()

    def set_exception(self, exc: BaseException, exc_cause: BaseException = aiohttp.helpers._EXC_SENTINEL) -> None:
        """End the request with ``exc``, in its body too: the library would let the reader of the body wait.

        The library wakes the reader at the end of a chunk. The reader then waits again and does not check for an
        exception, so the exception is set a second time, after the reader has begun to wait.
        """
        super().set_exception(exc, exc_cause)
        body, self._payload = self._answer, None  # so ``connection_lost`` does not replace the exception
        if body is not None and not body.is_eof() and body.exception() is None:
            body.set_exception(exc, exc_cause)
            self._loop.call_soon(body.set_exception, exc, exc_cause)

    def connection_lost(self, exc: BaseException | None) -> None:
        """End the request if its answer is not complete, and break the cycles of references.

        A TLS connection has some 45 kB outside Python. The garbage collector, which runs rarely, would free it much
        later.
        """
        for timer in (self._rest, self._read_timeout_handle):
            if timer is not None:
                timer.cancel()
        self._rest = self._read_timeout_handle = None
        if exc is None:  # the server has closed the connection, and is likely to be asked again
            self.end_tls(resumable=True)
        super().connection_lost(exc)
        self.tls = self._answer = None

    def _receive_head(self, data: bytes, transfer: Transfer) -> bytes:
        """Give the parser header sections one by one, up to that of the final answer. Returns the octets after it."""
        text = self._edge + data
        given, begin = len(self._edge), 0
        while self._answer is None and given < len(text):
            end = _end_of_head(text, begin)
            piece = text[given : end or len(text)]
            transfer.receive(piece)
            self._head_bytes += len(piece)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._refuse(ErrorKind.PROTOCOL, f"the answer has more than {MAX_HEAD_BYTES:,} bytes of headers")
                return b""
            given += len(piece)
            interim = self._interim
            super().data_received(piece)
            if self._exception is not None:
                return b""
            if self._interim > interim:
                transfer.drop_interim()
                self.start_timeout()  # the library stops it at the end of any message
                if self._interim > MAX_INTERIM:
                    self._refuse(ErrorKind.PROTOCOL, f"the server sent more than {MAX_INTERIM} interim answers")
                    return b""
            if end:
                begin, self._head_since = end, math.inf
        self._edge = text[max(begin, len(text) - _EDGE) :]
        if self._answer is None and self._edge and self._head_since == math.inf:
            self._head_since = self._loop.time()
            if self._read_timeout_handle is not None:
                self._read_timeout_handle.cancel()
            self._on_read_timeout()
        return text[given:]

    def _refuse(self, kind: ErrorKind, detail: str) -> None:
        """Fail the request and close the connection without waiting for the server."""
        self.set_exception(BoundExceeded(RequestError(kind, detail)))
        if self.transport is not None:
            self.transport.abort()


def _keep_alive_s(value: str | None) -> float | None:
    """The seconds for which a server keeps an idle connection; ``None`` if it does not say so.

    ``Keep-Alive: timeout=5, max=100`` (RFC 2068, 19.7.1.1; RFC 9112, appendix C.2.2) is a hint that many servers send.
    """
    told = value and _KEEP_ALIVE.search(value)
    return float(told[1]) if told else None


def _end_of_head(text: bytes, begin: int) -> int:
    """The place behind the empty line that ends a header section (RFC 9112, 2.1); 0 if it has not arrived.

    Empty lines before the status line do not count (RFC 9112, 2.2).
    """
    empty = _EMPTY_LINES.match(text, begin)
    assert empty is not None
    crlf = text.find(b"\n\r\n", empty.end())
    lf = text.find(b"\n\n", empty.end(), len(text) if crlf < 0 else crlf)
    if lf >= 0:
        return lf + 2
    return crlf + 3 if crlf >= 0 else 0
