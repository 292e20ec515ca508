"""Records the octets of a request and its answer, as they went over the connection.

With TLS, the decrypted octets are recorded. :class:`crawler.fetch.connection.Connection` bounds what is received.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from crawler.fetch.connection import Connection, Transfer, current_transfer
from crawler.model import Exchange, Request, TlsFacts


class Tape(Transfer):
    """A transfer that keeps the octets of the request and of its final answer.

    ``knows_address`` is false behind a proxy: the peer of the connection is not the server.
    """

    is_kept = True

    def __init__(self, request: Request, started_at: float, ends_at: float, *, knows_address: bool) -> None:
        super().__init__(request, started_at, ends_at)
        self._knows_address = knows_address
        self._address = ""
        self.complete = False  # whether the answer was received to its end, as HTTP delimits it
        self._sent: list[bytes] = []
        self._kept: list[bytes] = []
        self._hidden: list[bytes] = []

    def hide(self, headers: Mapping[str, str]) -> None:
        """Leave these headers out of the recorded request: their values are secret."""
        self._hidden = [f"{name}: {value}\r\n".encode() for name, value in headers.items()]

    def begin(self, *, reused: bool = False, tls: TlsFacts | None = None, peer: str = "") -> None:
        """Forget what went to a proxy and came from it."""
        super().begin(reused=reused, tls=tls, peer=peer)
        self._sent.clear()
        self._kept.clear()

    def send(self, data: bytes, peer: str) -> None:
        """Keep octets of the request, which go to the address ``peer``."""
        self._sent.append(bytes(data))
        if self._knows_address:
            self._address = peer

    def receive(self, data: bytes) -> None:
        """Count and keep octets of the answer."""
        super().receive(data)
        self._kept.append(data)

    def drop_interim(self) -> None:
        """Forget the octets of an interim answer."""
        self._kept.clear()

    def exchange(self) -> Exchange | None:
        """The recorded exchange; ``None`` if nothing was sent."""
        if not self._sent:
            return None
        answer = b"".join(self._kept).lstrip(b"\r\n")  # parsers ignore these (RFC 9112, 2.2)
        sent = b"".join(self._sent)
        for line in self._hidden:
            sent = sent.replace(line, b"")
        return Exchange(sent, answer, self._address, self.complete)


class RecordedConnection(Connection):
    """A connection that keeps on the tape of the current task what the task sends."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Put a recorder before the transport."""
        super().connection_made(cast(asyncio.Transport, _RecordingTransport(transport)))


class _RecordingTransport:
    def __init__(self, transport: Any) -> None:
        self._transport = transport

    def write(self, data: bytes) -> None:
        tape = current_transfer()
        if isinstance(tape, Tape):
            tape.send(data, (self._transport.get_extra_info("peername") or ("",))[0])
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
