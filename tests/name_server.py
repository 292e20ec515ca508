"""A small DNS server over UDP on loopback, whose answers a function decides (RFC 1035)."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, cast

A, SOA, AAAA = 1, 6, 28
NOERROR, SERVFAIL, NXDOMAIN = 0, 2, 3
_BUFFER = 4 << 20  # octets: a burst of queries must not be lost


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer about a name after ``delay_s``: addresses or a code, and the time for which they hold."""

    addresses: tuple[str, ...] = ()
    ttl_s: int = 300
    code: int = NOERROR
    delay_s: float = 0.0


class NameServer(asyncio.DatagramProtocol):
    """Answers with ``reply_for(name)``; ``None`` is no answer. Counts the queries for each name."""

    def __init__(self, reply_for: Callable[[str], Reply | None]) -> None:
        self.asked = Counter[str]()
        self._reply_for = reply_for
        self._transport: asyncio.DatagramTransport | None = None

    @property
    def address(self) -> str:
        """The address and port, as c-ares takes them."""
        assert self._transport is not None
        host, port = self._transport.get_extra_info("sockname")
        return f"{host}:{port}"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, sender: tuple[str | Any, int]) -> None:
        assert self._transport is not None
        name, end = _question(data)
        self.asked[name] += 1
        reply = self._reply_for(name)
        if reply is not None:
            message = _message(data, end, reply)
            if reply.delay_s:
                asyncio.get_running_loop().call_later(reply.delay_s, self._transport.sendto, message, sender)
            else:
                self._transport.sendto(message, sender)


@asynccontextmanager
async def name_server(
    reply_for: Callable[[str], Reply | None], address: tuple[str, int] = ("127.0.0.1", 0)
) -> AsyncIterator[NameServer]:
    """Serve inside the context."""
    endpoint = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
    endpoint.bind(address)
    endpoint.setblocking(False)
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(lambda: NameServer(reply_for), sock=endpoint)
    try:
        yield server
    finally:
        transport.close()


def _question(query: bytes) -> tuple[str, int]:
    """The name in the question, in lower case, and where the question ends."""
    labels, at = [], 12
    while size := query[at]:
        labels.append(query[at + 1 : at + 1 + size].decode("latin-1").lower())
        at += size + 1
    return ".".join(labels), at + 5


def _message(query: bytes, end: int, reply: Reply) -> bytes:
    kind = int.from_bytes(query[end - 4 : end - 2])
    packed = [ip_address(text).packed for text in reply.addresses]
    answers = [_record(kind, data, reply.ttl_s) for data in packed if len(data) == {A: 4, AAAA: 16}.get(kind)]
    # Without an answer, the minimum of the SOA record says how long that holds (RFC 2308, 5).
    times = (1, 3600, 600, 86400, reply.ttl_s)
    authority = [] if answers else [_record(SOA, b"\0\0" + b"".join(n.to_bytes(4) for n in times), reply.ttl_s)]
    counts = (1).to_bytes(2) + len(answers).to_bytes(2) + len(authority).to_bytes(2) + bytes(2)
    flags = (0x8180 | reply.code).to_bytes(2)
    return query[:2] + flags + counts + query[12:end] + b"".join(answers + authority)


def _record(kind: int, data: bytes, ttl_s: int) -> bytes:
    """A record about the name in the question, to which octet 12 of the message points."""
    return b"\xc0\x0c" + kind.to_bytes(2) + (1).to_bytes(2) + ttl_s.to_bytes(4) + len(data).to_bytes(2) + data
