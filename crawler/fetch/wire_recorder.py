"""What goes over a connection, kept octet by octet for whoever asked for it: a tee between socket and HTTP parser.

A connection has one request at a time (nothing is pipelined), so what is written and read from a request's first octet
until its fetch ends belongs to it. Behind TLS that is the decrypted stream. The HTTP library has no public place for
this: ``_factory``, which makes a connection's protocol, and ``_drain_tail`` are its own, and tests hold on to both.
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
    """One request's octets, while they go to and fro."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.received: list[bytes] = []
        self.address = ""
        self.complete = False  # the answer came to its end, as HTTP delimits it
        self.stopped = False

    def exchange(self) -> Exchange | None:
        """What is on it; ``None`` where nothing was sent."""
        if not self.sent:
            return None
        answer = b"".join(self.received).lstrip(b"\r\n")  # which parsers pass over (RFC 9112, 2.2)
        while informational := _INFORMATIONAL.match(answer):
            answer = answer[informational.end() :]
        return Exchange(b"".join(self.sent), answer, self.address, self.complete)


_tape: ContextVar[Tape | None] = ContextVar("tape", default=None)


@contextmanager
def taping() -> Iterator[Tape]:
    """A tape on which the request goes that the current task sends meanwhile."""
    tape = Tape()
    token = _tape.set(tape)
    try:
        yield tape
    finally:
        _tape.reset(token)
        tape.stopped = True


class TeeConnector(Connector):
    """A connector whose connections write on the tape of the task that sends."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        connection: type[ResponseHandler] = _Connection
        self._factory = partial(connection, loop=self._loop)


class _Connection(ResponseHandler):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._tape: Tape | None = None
        self._early: list[bytes] = []  # what a server sends before it is asked; the library bounds it
        self._fed_again = False  # by the library, with octets that came before

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, _Transport(transport, self)))

    def sends(self, tape: Tape) -> None:
        """The request of this tape goes out here."""
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
    """A transport that tells what is written to it."""

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
