"""The description of one hostile behaviour: what its host answers, and how the crawl must end there."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from crawler.demo.pages import Page

#: Stands for the port of the servers, in every answer and in the URLs of ``ends``. It is as long as a port.
PORT = "@PORT"
#: A healthy site, and a URL there that its robots.txt forbids.
HEALTHY = f"http://healthy00.test:{PORT}"
FORBIDDEN = "/private/delete?id=1"

OK = b"HTTP/1.1 200 OK\r\n"
HTML = OK + b"Content-Type: text/html\r\n"


@dataclass(frozen=True, slots=True)
class End:
    """The expected end of a URL: its state, one of some reason codes, and a part of its reason sentence."""

    state: str
    codes: frozenset[str]
    says: str = ""

    def __str__(self) -> str:
        return f"{self.state}/{'|'.join(sorted(self.codes))}" + (f" ({self.says!r})" if self.says else "")


def failed(*codes: str, says: str = "") -> End:
    return End("failed", frozenset(codes), says)


def excluded(*codes: str, says: str = "") -> End:
    return End("excluded", frozenset(codes), says)


def queued(*codes: str, says: str = "") -> End:
    return End("queued", frozenset(codes), says)


FETCHED = End("fetched", frozenset({"fetched"}))
NOINDEX = End("fetched", frozenset({"noindex"}))
UNREAD = End("fetched", frozenset({"unread"}))
#: The parser may or may not manage the page within its limits; both are fine.
FETCHED_OR_UNREAD = End("fetched", frozenset({"fetched", "unread"}))
SITEMAP = End("fetched", frozenset({"sitemap"}))
REDIRECTED = End("redirected", frozenset({"redirect"}))
GIVEN_UP = failed("robots_given_up")


@dataclass(slots=True)
class Exchange:
    """One request and its answer, or one connection on which nothing was read yet.

    ``before`` counts the earlier requests for the same URL. ``sent_at`` is the server's time just before the last
    octets were sent, ``gone_at`` the time at which the client closed the connection.
    """

    writer: asyncio.StreamWriter
    port: int
    host: str = ""
    path: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    before: int = 0
    status: int = 0
    sent_at: float = 0.0
    gone_at: float | None = None

    async def send(self, *octets: bytes) -> None:
        self.sent_at = time.monotonic()
        for some in octets:
            self.writer.write(some)
        await self.writer.drain()

    async def flood(self, block: bytes, every_s: float = 0.005) -> None:
        """Send the block until the client leaves."""
        while True:
            await self.send(block)
            await asyncio.sleep(every_s)

    async def hang(self) -> None:
        """Send nothing until the client leaves."""
        await asyncio.sleep(3600)

    def reset(self) -> None:
        """Break the connection off with a RST."""
        linger = struct.pack("ii", 1, 0)
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.writer.transport.abort()


Handler = Callable[[Exchange], Awaitable[None]]
#: An answer that keeps the connection, octets after which the server closes it, or a function that does both.
Reply = Page | bytes | Handler
Site = Mapping[str, Reply]
NOTHING: Site = MappingProxyType({})


def sends(*parts: bytes | float, reset: bool = False, hang: bool = False) -> Handler:
    """A handler that sends octets and waits seconds, and then closes, resets, or keeps the connection."""

    async def handler(exchange: Exchange) -> None:
        for part in parts:
            if isinstance(part, bytes):
                await exchange.send(part)
            else:
                await asyncio.sleep(part)
        if reset:
            exchange.reset()
        elif hang:
            await exchange.hang()

    return handler


def drips(head: bytes, drop: bytes, every_s: float = 0.2) -> Handler:
    """A handler that sends ``head`` at once, and then ``drop`` again and again, slowly."""

    async def handler(exchange: Exchange) -> None:
        await exchange.send(head)
        await exchange.flood(drop, every_s)

    return handler


def floods(head: bytes, block: bytes) -> Handler:
    """A handler that sends ``head``, and then ``block`` without end, at 10 MB a second or so."""
    return drips(head, block * max(1, 65_536 // len(block)), 0.006)


def answer(body: bytes, *headers: bytes, status: bytes = b"200 OK", kind: bytes = b"text/html") -> bytes:
    """A whole answer, after which the server closes the connection."""
    lines = [b"HTTP/1.1 " + status, b"Content-Type: " + kind, b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join([*lines, b"Connection: close", b"", body])


class Crawl(Enum):
    """The crawls of one run of the hostile web. Each has a store of its own."""

    MAIN = "main"
    #: Ends by its time limit alone: of hosts that want to be left alone for a year. Names with malformed answers of DNS
    #: are here too, because c-ares then repeats every other query to the same server.
    ENDLESS = "endless"
    RUP = "rup"  # no crawl: of hosts that `crawler rup` asks
    GUARDED = "guarded"  # without --allow-private: of names with addresses of private networks


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What one host does, and what must come out.

    ``ends`` has the expected end of each URL, by its path on this host or as a whole URL. ``site`` has the answers by
    path with query, by path, or by "*"; without an entry for /robots.txt, everything is allowed. ``at_accept`` acts on
    each connection before a request is read. ``titles`` are the titles that pages must have. The server must see at
    most ``most_requests`` requests, and none that begins with one of ``never``.

    ``certificate`` names the certificate of a host that speaks TLS. ``dns`` answers queries for the host's name in
    place of a fixed address. ``quick``: the behaviour takes part in the short form. ``crawl`` is the crawl that it
    belongs to.
    """

    name: str
    what: str
    ends: Mapping[str, End]
    site: Site = field(default_factory=dict)
    seeds: tuple[str, ...] = ("/",)
    titles: Mapping[str, str | None] = field(default_factory=dict)
    never: tuple[str, ...] = ()
    most_requests: int = 12
    at_accept: Handler | None = None
    certificate: str = ""
    dns: Callable[[bytes, str], bytes | None] | None = None
    quick: bool = False
    crawl: Crawl = Crawl.MAIN

    @property
    def host(self) -> str:
        return f"{self.name}.test"

    def url(self, path: str, port: int) -> str:
        """The URL of a path of this host; a whole URL stays, with its port filled in."""
        if path.startswith("/"):
            path = f"{'https' if self.certificate else 'http'}://{self.host}:{PORT}{path}"
        return path.replace(PORT, str(port))


def crawl_of(end: End) -> Crawl:
    """The crawl of a host whose start page comes to this end."""
    return Crawl.ENDLESS if end.state == "queued" else Crawl.MAIN


def page_behaviour(name: str, what: str, reply: Reply, end: End, *, quick: bool = False) -> Behaviour:
    """A behaviour of the host's start page."""
    return Behaviour(name, what, {"/": end}, {"/": reply}, quick=quick, crawl=crawl_of(end))
