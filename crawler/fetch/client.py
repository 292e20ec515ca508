"""Sends requests and reads answers, within limits, over aiohttp."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from types import TracebackType
from typing import NamedTuple, Protocol, Self, TypedDict
from urllib.parse import urlencode

import aiohttp
from aiohttp.streams import StreamReader
from msgspec.structs import replace

from crawler.clock import Clock
from crawler.errors import CrawlerError, fault
from crawler.fetch.address_guard import refusal, refusal_behind_proxy, refusal_of_port
from crawler.fetch.connection import Connection, LagNow, Transfer, current_transfer, no_lag
from crawler.fetch.connector import Connector
from crawler.fetch.decoding import ACCEPT_ENCODING, ENDS_EARLY, ONLY_GZIP, Decoder, coding_of, decoder_of, too_large
from crawler.fetch.failures import (
    BODY_ERRORS,
    BROKEN_OFF,
    CLOSING,
    FETCH_ERRORS,
    AddressRefused,
    before_answer,
    in_body,
    was_closing,
)
from crawler.fetch.idle_connections import MOST_IDLE, IdleConnections
from crawler.fetch.open_files import available, share
from crawler.fetch.own_network import is_own
from crawler.fetch.resolver import Resolver
from crawler.fetch.session import ORIGINS_KEPT, Response, Session
from crawler.fetch.tls import Tls
from crawler.fetch.wire_recorder import RecordedConnection, Tape
from crawler.model import (
    Failed,
    Fetched,
    FetchResult,
    Headers,
    NotModified,
    Purpose,
    Redirected,
    Request,
    TlsFacts,
    header,
    header_values,
)
from crawler.page.headers import HTML_TYPES
from crawler.page.walls import MAX_WALL_BYTES, REFUSING, Wall, wall_in_body, wall_in_headers
from crawler.reasons import ErrorKind, RequestError
from crawler.url import address_for, host_of, is_loopback, split, without_userinfo

#: A body beyond this number of octets is large: it needs memory of its own (:class:`Memory`).
LARGE_OCTETS = 1 << 18
#: Answers to these are read after they were returned, and keep their memory until then.
_READ_LATER = (Purpose.PAGE, Purpose.SITEMAP)

_JSON = "application/json"
#: The statuses by which a server refuses a request for its signature (Web Bot Auth, "Requesting a Message Signature").
_SIGN_OTHERWISE = frozenset({401, 403})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
#: Successes without a document, or with a part of one (RFC 9110, 15.3.5 to 15.3.7).
_NO_DOCUMENT = {
    204: "so there is no page",
    205: "so there is no page",
    206: "though no range was requested",
}
#: A validator that can be sent back as it was received. The HTTP library raises on control characters and encodes
#: octets above 0x7f again. Many servers accept at most 8,192 octets of headers, so a long validator could cost an
#: answer.
_VALIDATOR = re.compile(r"[\x20-\x7e]{1,1000}")
#: A server sends this type if it knows none for a file (RFC 9110, 8.3), as nginx does for one named `.html`.
_NO_TYPE = "application/octet-stream"
_HTML_PATH = re.compile(r"[^?#]*\.x?html?(?:$|[?#])", re.IGNORECASE)
_CHARSET = re.compile(r"(?:^|;)\s*charset\s*=\s*[\"']?([^\s;\"']+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """How to fetch. ``user_agent`` and ``from_email`` are sent as they are (RFC 9110, 10.1.5 and 10.1.2)."""

    user_agent: str
    from_email: str | None
    accept_types: tuple[str, ...] = ("text/html", "application/xhtml+xml")
    connect_timeout_s: float = 10  # one address: TCP and TLS
    read_timeout_s: float = 30  # silence before or between bytes
    total_timeout_s: float = 120  # from connecting to the last byte; also for a look-up of the name
    resolve: tuple[tuple[str, str], ...] = ()  # (pattern, address); see ``url.address_for``
    allow_private: bool = False
    proxy: str = ""  # the URL of an HTTP proxy, without a user name
    ca_file: str = ""  # a PEM file of authorities that count beside those of the system
    unverified: tuple[str, ...] = ()  # patterns of hosts whose certificates are not verified
    loopback_only: bool = False
    concurrency: int = 64  # requests in flight in all
    headers: tuple[tuple[str, str], ...] = ()  # sent with every request; see :func:`crawler.api.arguments.headers`
    # By host: fields with secret values. Only its https site gets them, or any if the host is loopback.
    site_headers: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    keep_exchanges: bool = False  # what went over the connections, in ``Answer.exchange``


def secret_headers(url: str, settings: FetchSettings) -> Mapping[str, str]:
    """The fields with secret values for a URL: over TLS to the default port alone, but for loopback hosts."""
    host = host_of(url)
    headers = settings.site_headers.get(host, {})
    is_own = split(url).site == f"https://{host}"
    return headers if is_own or is_loopback(address_for(host, settings.resolve) or host) else {}


class Signer(Protocol):
    """Signs requests, so that a server can tell who sent them."""

    def headers(self, method: str, url: str, authority: str, fields: Mapping[str, str], now: float) -> dict[str, str]:
        """The headers that sign a request with ``fields`` to ``authority`` (RFC 9421, 2.2.3) at ``now`` (epoch s)."""
        ...

    def heed(self, url: str, accept_signature: str, fields: Mapping[str, str], now: float) -> bool:
        """Note the value of ``Accept-Signature`` in an answer; true if the next request is signed in another way."""
        ...


class Memory(Protocol):
    """The memory for large bodies, each from before it is received until it has been read."""

    most_waiting: int  # requests that wait for it, beside those that hold slots

    async def hold(self, request: Request, octets: int) -> None:
        """Wait for the memory of the body of a request, which may have so many octets."""
        ...

    def shrink(self, group: str, octets: int) -> None:
        """The body of ``group`` has been received, and takes so many octets."""
        ...

    def release(self, group: str) -> None:
        """The body of ``group``, if there is one, has been read, or is not wanted."""
        ...


class NoBound:
    """For callers that send few requests at once."""

    most_waiting = 0

    async def hold(self, request: Request, octets: int) -> None:
        return None

    def shrink(self, group: str, octets: int) -> None:
        return None

    def release(self, group: str) -> None:
        return None


class HttpFetcher:
    """Fetches URLs. An async context manager, to be entered in the event loop that it serves."""

    def __init__(
        self,
        settings: FetchSettings,
        clock: Clock,
        may_send: Callable[[], bool] = lambda: True,
        lag_now_s: LagNow = no_lag,
        signer: Signer | None = None,
        memory: Memory | None = None,
    ) -> None:
        """Create a client that has no session yet.

        The client calls ``may_send`` when the connection of a request stands, just before it writes the request:
        connecting may take long, and the process may have been stopped meanwhile. If it returns false, the request is
        cancelled.
        Limits on connecting and on the silence of a server are longer by the lag of the event loop, which
        ``lag_now_s`` returns. If there is a ``signer``, it signs each request. A large body of a page or a sitemap
        keeps its part of ``memory`` until the caller releases it, or sends another request of its group. Raises
        :class:`crawler.errors.UsageError` if the file of authorities cannot be read.
        """
        self._may_send = may_send
        self._signer = signer
        self._memory: Memory = NoBound() if memory is None else memory
        self._lag_now_s = lag_now_s
        self._settings = settings
        self._clock = clock
        self._tls = Tls(settings.ca_file, settings.unverified)
        self._decoding = asyncio.Lock()  # a decoder at work holds a window of up to 16 MB
        self._accepted = frozenset((*settings.accept_types, ""))
        self._refused_site = lru_cache(ORIGINS_KEPT)(self._refusal_of_site)
        self._timeouts = aiohttp.ClientTimeout(
            total=settings.total_timeout_s, sock_connect=settings.connect_timeout_s, sock_read=settings.read_timeout_s
        )

    async def __aenter__(self) -> Self:
        files = share(available(), self._settings.concurrency + self._memory.most_waiting, MOST_IDLE)
        self._loop = asyncio.get_running_loop()
        self._idle = IdleConnections(self._loop, files.idle)
        self._resolver = Resolver(
            self._settings.resolve, self._settings.total_timeout_s, make_room=self._idle.close_least_useful
        )
        connector = Connector(
            RecordedConnection if self._settings.keep_exchanges else Connection,
            self._before_connecting,
            self._lag_now_s,
            self._idle,
            limit=files.requests,
            resolver=self._resolver,
            use_dns_cache=False,  # the resolver has one
            socket_factory=self._new_socket,
        )
        headers = dict(self._settings.headers) | {
            "User-Agent": self._settings.user_agent,
            "Accept": ", ".join(self._settings.accept_types),
            "Accept-Encoding": ACCEPT_ENCODING,
        }
        if self._settings.from_email:
            headers["From"] = self._settings.from_email
        self._headers = headers
        self._session = Session(connector, self._tls, self._timeouts, headers, self._may_send, self._settings.proxy)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()
        await self._resolver.close()

    @property
    def book(self) -> Resolver | None:
        """The addresses of hosts, while this client is entered; ``None`` if a proxy chooses them."""
        return None if self._settings.proxy else self._resolver

    @property
    def connections(self) -> IdleConnections:
        """The idle connections, while this client is entered."""
        return self._idle

    async def fetch(self, request: Request) -> FetchResult:
        """Send one request and read its answer.

        Failures of the server or the network, and bugs that the answer reveals, are in the result. Raises nothing but
        :class:`asyncio.CancelledError`, and :class:`crawler.errors.UsageError` if the system permits no connection.
        """
        request = _with_usable_validators(request)
        times = self._clock.now(), self._loop.time() + self._settings.total_timeout_s
        if self._settings.keep_exchanges:
            transfer: Transfer = Tape(request, *times, knows_address=not self._settings.proxy)
        else:
            transfer = Transfer(request, *times)
        self._memory.release(request.group)
        is_read_later = False
        try:
            with transfer:
                result = await self._ask(transfer)
            is_read_later = isinstance(result, Fetched) and request.purpose in _READ_LATER
        except CrawlerError:
            raise
        except Exception as error:
            # The message may contain a secret.
            told = fault(error) if request.shown_url is None else type(error).__name__
            result = Failed(**self._about(transfer), kind=ErrorKind.FAULT, detail=told)
        finally:
            if not is_read_later:
                self._memory.release(request.group)
        return replace(result, exchange=transfer.exchange()) if isinstance(transfer, Tape) else result

    def _about(self, transfer: Transfer, headers: Headers = (), ended_at: float | None = None) -> _About:
        """What every result says of its request, of the connection and of the answer so far."""
        return {
            "url": transfer.request.url,
            "started_at": transfer.started_at,
            "finished_at": self._clock.now() if ended_at is None else ended_at,
            "headers": headers,
            "wire_bytes": transfer.received,
            "tls": transfer.tls,
            "address": "" if self._settings.proxy else transfer.peer,
            "loop_s": transfer.loop_s,
        }

    async def _ask(self, transfer: Transfer) -> FetchResult:
        request, site, path = transfer.request, *split(transfer.request.url)
        if refused := self._refused_site(site):
            return Failed(**self._about(transfer), kind=ErrorKind.ADDRESS, detail=refused)
        form = None if request.form is None else urlencode(request.form).encode("ascii")
        try:
            response = await self._session.request(site, path, self._extra_headers(transfer), form)
        except FETCH_ERRORS as error:
            problem = before_answer(error, host_of(request.url), self._timeouts, transfer)
            if request.form is None and was_closing(error, transfer):
                problem = CLOSING
                self._idle.note_use(transfer.key, is_lost=True)
            about, is_unsent = self._about(transfer), not transfer.begun
            return Failed(**about, kind=problem.kind, detail=problem.detail, unsent=is_unsent)
        if transfer.reused:
            self._idle.note_use(transfer.key, is_lost=False)
        try:
            return await self._answer(response, transfer)
        finally:
            if isinstance(transfer, Tape):
                transfer.complete = response.content.is_eof()
            response.connection.release()

    def _refusal_of_site(self, site: str) -> str | None:
        """Why no request may be sent to a site, by its port, or by its name if only a proxy knows its address."""
        refused, settings = refusal_of_port(site), self._settings
        if refused is not None or not settings.proxy:
            return refused
        allow_private, loopback_only = settings.allow_private, settings.loopback_only
        return refusal_behind_proxy(host_of(site), allow_private=allow_private, loopback_only=loopback_only)

    async def _answer(self, response: Response, transfer: Transfer) -> FetchResult:
        """The result for a response, by its status and headers. The body is read only if it is wanted."""
        request, status = transfer.request, response.status
        # Latin-1 keeps every octet, and makes no surrogates, which databases refuse.
        headers = tuple([(name.decode("latin-1"), value.decode("latin-1")) for name, value in response.raw_headers])
        if (wall := wall_in_headers(status, headers)) is not None:
            return self._walled(headers, transfer, status, wall)
        if self._must_sign_otherwise(request, status, headers):
            about, detail = self._about(transfer, headers), _status_line(status)
            return Failed(**about, kind=ErrorKind.SIGNATURE, status=status, detail=detail)
        nothing = _NO_DOCUMENT.get(status) if request.purpose in (Purpose.PAGE, Purpose.SITEMAP) else None
        if 200 <= status < 300 and nothing is None:
            return await self._fetched(response, headers, transfer)
        content_type, _ = _content_type(headers, request.url)
        says = b""  # of an error, if it may be a wall or name a price
        if (status in REFUSING and content_type in HTML_TYPES) or (status == 402 and content_type == _JSON):
            says = await self._beginning(response, headers, transfer)
        if says and status != 402 and (wall := wall_in_body(says)) is not None:
            return self._walled(headers, transfer, status, wall)
        about = self._about(transfer, headers)
        location = without_userinfo(_ascii(header(headers, "Location") or "")) if status in _REDIRECTS else ""
        if location:
            return Redirected(**about, status=status, location=location)
        if status == 304 and (request.etag or request.last_modified):
            return NotModified(**about)
        if status in (401, 402, 403) and request.purpose in _READ_LATER:
            from crawler.page.payment import licence_asked, price_asked  # few crawls need it: it brings the HTML parser

            if price := price_asked(headers, says) if status == 402 else licence_asked(headers):
                return Failed(**about, kind=ErrorKind.PAYMENT, status=status, detail=price)
        detail = _status_line(status)
        if nothing is not None:
            detail += f", {nothing}"
        elif status in _REDIRECTS:
            detail += ", without a Location"
        return Failed(**about, kind=ErrorKind.HTTP, status=status, detail=detail)

    def _must_sign_otherwise(self, request: Request, status: int, headers: Headers) -> bool:
        """Whether an answer refuses a request because of its signature, and the same request can be signed as asked."""
        if self._signer is None or not (asked := ", ".join(header_values(headers, "accept-signature"))):
            return False
        is_new = self._signer.heed(request.url, asked, self._headers, self._clock.now())
        return is_new and status in _SIGN_OTHERWISE and not request.fresh

    def _walled(self, headers: Headers, transfer: Transfer, status: int, wall: Wall) -> Failed:
        """The result of a request that a bot defence has answered."""
        return Failed(**self._about(transfer, headers), kind=ErrorKind.WALL, status=status, detail=str(wall))

    async def _beginning(self, response: Response, headers: Headers, transfer: Transfer) -> bytes:
        """The body of an error, if it is as short as a wall. One that is longer, or cannot be had, says nothing."""
        short = replace(transfer.request, max_bytes=MAX_WALL_BYTES, truncate=True, keep_gzip=False, only_gzip=False)
        body = await self._body(short, response, headers, transfer)
        return b"" if isinstance(body, RequestError) or body.overflowed else body.plain or b""

    async def _fetched(self, response: Response, headers: Headers, transfer: Transfer) -> Fetched | Failed:
        request = transfer.request
        content_type, charset = _content_type(headers, request.url)
        objection = self._objection(request, content_type, response)
        body = objection or await self._body(request, response, headers, transfer)
        # The time that decoding takes is not the server's. A body that is refused ends when its connection is closed.
        ended_at = body.received_at if isinstance(body, _Body) and not body.overflowed else None
        about = self._about(transfer, headers, ended_at)
        if isinstance(body, RequestError):
            return Failed(**about, kind=body.kind, status=response.status, detail=body.detail)
        fetched = Fetched(
            **about,
            status=response.status,
            content_type=content_type,
            charset=charset,
            plain=body.plain,
            gzipped=body.gzipped,
            truncated=body.overflowed,
            unchecked=None if body.gzipped is None else request.max_bytes,
        )
        if request.purpose not in _READ_LATER and content_type in HTML_TYPES:  # a parser process judges the others
            wall = wall_in_body(fetched.body)
            if wall is not None:
                return self._walled(headers, transfer, response.status, wall)
        return fetched

    def _objection(self, request: Request, content_type: str, response: Response) -> RequestError | None:
        """The reason not to read the body, if the headers give one."""
        if content_type not in self._accepted and not request.any_type:
            return RequestError(ErrorKind.UNWANTED_TYPE, content_type[:100])
        length = response.fields.get("Content-Length")
        if length is not None and not request.truncate and int(length) > request.max_bytes:
            return too_large(f"is announced with {int(length):,} bytes", request.max_bytes)
        return None

    async def _body(
        self, request: Request, response: Response, headers: Headers, transfer: Transfer
    ) -> _Body | RequestError:
        try:
            coding, decoder = _coding(request, response), None
            is_kept = request.keep_gzip and coding == ONLY_GZIP
            expected = _expected_bytes(request, response, is_coded=bool(coding) and not is_kept)
            pieces, size = await self._receive(response.content, request, transfer, expected)
            received_at = self._clock.now()
            if not coding or (is_kept and not 0 < size <= request.max_bytes):
                body = _Body(b"".join(pieces)[: request.max_bytes], None, size > request.max_bytes, received_at)
            elif is_kept:
                body = _Body(None, b"".join(pieces), False, received_at)
            else:
                # A small body may decode to a large one. It is decoded again when it has the memory.
                most = request.max_bytes if size > LARGE_OCTETS else min(LARGE_OCTETS, request.max_bytes)
                decoder = decoder_of(coding)
                body = await self._decode(pieces, decoder, most, received_at)
                if body.overflowed and most < request.max_bytes:
                    await self._memory.hold(request, request.max_bytes)
                    decoder = decoder_of(coding)
                    body = await self._decode(pieces, decoder, request.max_bytes, received_at)
        except BODY_ERRORS as error:
            return in_body(error, host_of(request.url), self._timeouts)
        self._memory.shrink(request.group, body.held_bytes + (transfer.received if transfer.is_kept else 0))
        if body.overflowed:
            return body if request.truncate else too_large("is longer", request.max_bytes)
        if decoder is not None and response.content.total_bytes and not decoder.complete():
            return ENDS_EARLY
        if _was_reset(response, headers):
            return BROKEN_OFF
        return body

    async def _receive(
        self, content: StreamReader, request: Request, transfer: Transfer, expected: int
    ) -> tuple[list[bytes], int]:
        """A body as it is sent, until its end or until it is longer than permitted, and its length so far.

        Behind the first :data:`LARGE_OCTETS`, nothing is received until there is memory for all of it: ``expected``
        octets. The limit on the time of the request does not count that wait. Raises the errors of the HTTP library.
        """
        if content.is_eof() and content.total_bytes <= LARGE_OCTETS:  # nothing to wait for
            body = content.read_nowait()
            return [body] if body else [], len(body)
        pieces: list[bytes] = []
        size, holds = 0, False
        while size <= request.max_bytes and (piece := await content.readany()):
            pieces.append(piece)
            size += len(piece)
            if size > LARGE_OCTETS and not holds:
                holds = True
                with transfer.own_wait():
                    await self._memory.hold(request, expected * (1 + transfer.is_kept))
        return pieces, size

    async def _decode(self, coded: list[bytes], decoder: Decoder, max_bytes: int, received_at: float) -> _Body:
        """Decode the pieces of a body until its end, or until there are more than ``max_bytes``.

        Raises :class:`~crawler.fetch.decoding.BadCoding` for broken data.
        """
        decoded: list[bytes] = []
        wire = size = 0
        async with self._decoding:
            for piece in coded:
                if wire:
                    await asyncio.sleep(0)  # other tasks get their turn between the pieces of a long body
                wire += len(piece)
                decoded.append(decoder.feed(piece, max_bytes - size + 1))
                size += len(decoded[-1])
                if size > max_bytes:
                    break
        return _Body(b"".join(decoded)[:max_bytes], None, size > max_bytes or wire > max_bytes, received_at)

    def _extra_headers(self, transfer: Transfer) -> dict[str, str]:
        """The headers that are particular to this request. A tape does not keep those with a secret value."""
        request, extra = transfer.request, dict[str, str]()
        if request.any_type:
            extra["Accept"] = "*/*"
        if request.only_gzip:
            extra["Accept-Encoding"] = ONLY_GZIP
        if request.etag:
            extra["If-None-Match"] = request.etag
        if request.last_modified:
            extra["If-Modified-Since"] = request.last_modified
        if request.form is not None:
            extra["Content-Type"] = "application/x-www-form-urlencoded"
        if self._signer is not None:
            method, authority = (
                "GET" if request.form is None else "POST",
                self._session.authority(split(request.url).site),
            )
            fields = self._headers | extra
            extra |= self._signer.headers(method, request.url, authority, fields, self._clock.now())
        if self._settings.site_headers:
            secret = secret_headers(request.url, self._settings)
            transfer.hide(secret)
            extra |= secret
        return extra

    def _refusal(self, address: str) -> str | None:
        return refusal(
            address,
            allow_private=self._settings.allow_private,
            loopback_only=self._settings.loopback_only,
            is_own=is_own,
            nat64=self._resolver.nat64,
        )

    async def _before_connecting(self, addresses: Sequence[str]) -> None:
        """Learn the prefixes of NAT64 before a connection to an IPv6 address that would otherwise be permitted."""
        if self._settings.allow_private or self._settings.proxy:
            return
        if any(":" in address and self._refusal(address) is None for address in addresses):
            await self._resolver.learn_nat64()

    def _new_socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        """Make the socket of a connection. The address guard is here: this is the last call that knows the address."""
        family, kind, protocol, _, where = address
        reason = None if self._settings.proxy else self._refusal(str(where[0]))
        transfer = current_transfer()
        if reason:
            transfer.refusals += (reason,)
            raise AddressRefused(reason)
        transfer.permitted = True
        return socket.socket(family, kind, protocol)


def _with_usable_validators(request: Request) -> Request:
    """``request`` without validators that cannot be sent. Without a validator, a request is unconditional."""
    if request.etag is None and request.last_modified is None:
        return request
    etag, last_modified = (
        value if value and _VALIDATOR.fullmatch(value) else None for value in (request.etag, request.last_modified)
    )
    return replace(request, etag=etag, last_modified=last_modified)


class _About(TypedDict):
    url: str
    started_at: float
    finished_at: float
    headers: Headers
    wire_bytes: int
    tls: TlsFacts | None
    address: str
    loop_s: float


class _Body(NamedTuple):
    plain: bytes | None  # the decoded body; None if ``gzipped`` holds it
    gzipped: bytes | None  # the body as received, not decoded
    overflowed: bool  # the body was longer than allowed
    received_at: float  # the end of its transfer, in seconds since the epoch

    @property
    def held_bytes(self) -> int:
        """The number of octets in memory."""
        return len(self.plain or self.gzipped or b"")


def _coding(request: Request, response: Response) -> str:
    fields = response.fields
    coded, transferred = fields.getall("Content-Encoding", ()), fields.getall("Transfer-Encoding", ())
    return coding_of(tuple(coded), tuple(transferred), only_gzip=request.only_gzip)


def _expected_bytes(request: Request, response: Response, *, is_coded: bool) -> int:
    """How many octets a large body may take, as it is sent and decoded."""
    length = response.fields.get("Content-Length")
    sent = request.max_bytes if length is None else min(int(length), request.max_bytes)
    return sent + (request.max_bytes if is_coded else 0)


def _was_reset(response: Response, headers: Headers) -> bool:
    """Whether a body that ends with its connection (RFC 9112, 6.3) ended in a reset."""
    connection = response.connection.protocol
    if connection is None or not isinstance(connection.exception(), OSError):
        return False
    return header(headers, "Content-Length") is None and header(headers, "Transfer-Encoding") is None


def _content_type(headers: Headers, url: str) -> tuple[str, str | None]:
    """The bare type and the charset of a Content-Type; ``url`` is that of the request.

    :data:`_NO_TYPE` counts as missing if the path has the ending of an HTML document.
    """
    bare, charset = _media_type(header(headers, "Content-Type") or "")
    return ("" if bare == _NO_TYPE and _HTML_PATH.match(url) else bare), charset


@lru_cache(maxsize=128)  # a field has at most 32 KiB
def _media_type(value: str) -> tuple[str, str | None]:
    """The bare type and the charset of a field. A value without a type counts as missing."""
    bare, _, parameters = value.partition(";")
    bare = bare.strip(" \t").lower()
    charset = _CHARSET.search(parameters) if parameters else None
    return bare if "/" in bare else "", charset[1] if charset else None


def _ascii(location: str) -> str:
    """``location`` with octets above 0x7f as %xx; servers send these, though RFC 3986 does not allow them."""
    if location.isascii():
        return location
    return "".join(c if c.isascii() else f"%{ord(c):02X}" for c in location)


def _status_line(status: int) -> str:
    """The status with the phrase of the standard, not that of the server: ``404 Not Found``."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"{status}, which is not a status of HTTP"
