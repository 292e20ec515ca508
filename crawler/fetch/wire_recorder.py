"""Records the octets of a request and its answer: a tee between the socket and the HTTP parser.

A connection carries one request at a time, without pipelining. So all octets between the first octet of a request and
the end of its fetch belong to that request. With TLS, the decrypted octets are recorded. The HTTP library has no public
interface for this. This module uses the private ``_factory``, which makes the protocol of a connection, and overrides
the private ``_drain_tail``; tests fail if the library changes either.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, cast

from aiohttp.client_proto import ResponseHandler

from crawler.fetch.connector import Connector
from crawler.model import Exchange

_INFORMATIONAL = re.compile(rb"HTTP/1\.[01] 1[0-9][0-9][ \r].*?\r?\n\r?\n", re.DOTALL)


class Tape:
    """The octets of one request and its answer so far."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.received: list[bytes] = []
        self.address = ""
        self.complete = False  # whether the answer was received to its end, as HTTP delimits it
        self.stopped = False

    def exchange(self) -> Exchange | None:
        """The recorded exchange; ``None`` if nothing was sent."""
        if not self.sent:
            return None
        answer = b"".join(self.received).lstrip(b"\r\n")  # parsers ignore these (RFC 9112, 2.2)
        while informational := _INFORMATIONAL.match(answer):
            answer = answer[informational.end() :]
        return Exchange(b"".join(self.sent), answer, self.address, self.complete)


_tape: ContextVar[Tape | None] = ContextVar("tape", default=None)


@contextmanager
def taping() -> Iterator[Tape]:
    """Record the request that the current task sends inside the context."""
    tape = Tape()
    token = _tape.set(tape)
    try:
        yield tape
    finally:
        _tape.reset(token)
        tape.stopped = True


class TeeConnector(Connector):
    """A connector whose connections record on the tape of the task that sends a request."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        connection: type[ResponseHandler] = _Connection
        self._factory = partial(connection, loop=self._loop)


class _Connection(ResponseHandler):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._tape: Tape | None = None
        self._early: list[bytes] = []  # octets that arrived before a request; the library bounds them
        self._fed_again = False  # whether the library is passing earlier octets again

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, _Transport(transport, self)))

    def sends(self, tape: Tape) -> None:
        """From now on, record on ``tape``: its request is sent on this connection."""
        if self._tape is None:
            tape.received += self._early
        self._tape = tape

    def data_received(self, data: bytes) -> None:
        if self._fed_again:
            pass
        elif self._tape is None:
            self._early.append(data)
        elif not self._tape.stopped:
            self._tape.received.append(data)
        super().data_received(data)

    def _drain_tail(self) -> None:
        self._fed_again = True
        try:
            super()._drain_tail()
        finally:
            self._fed_again = False


class _Transport:
    """A transport that records what is written to it."""

    def __init__(self, transport: Any, connection: _Connection) -> None:
        self._transport = transport
        self._connection = connection

    def write(self, data: bytes) -> None:
        tape = _tape.get()
        if tape is not None:
            if not tape.sent:
                tape.address = (self._transport.get_extra_info("peername") or ("",))[0]
                self._connection.sends(tape)
            tape.sent.append(bytes(data))
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
