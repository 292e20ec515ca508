"""Sends requests over the connections of a connector, each exactly once.

The session of the HTTP library does more: it follows redirects, keeps cookies, repeats requests, compresses bodies and
reports to tracers. The crawler wants none of that, and it would take longer than all else that a request needs here.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

import aiohttp
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.streams import StreamReader
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from crawler.fetch.connection import current_transfer
from crawler.fetch.connector import Connector
from crawler.fetch.tls import Tls
from crawler.url import host_of

#: Octets of a status line or header, and headers in one answer. On real sites, cookies alone take 9,000 octets.
MAX_FIELD_BYTES = 32_768
MAX_HEADERS = 256

ORIGINS_KEPT = 2_000
_TARGET = re.compile(r"[!-~]+")


class Response(NamedTuple):
    """An answer whose header section is complete. ``connection`` is to be released or closed by the caller.

    It goes back to the connector when it is released, if the body was received in full, and is closed otherwise.
    """

    status: int
    fields: CIMultiDictProxy[str]  # with octets that are no UTF-8 as surrogates, so for comparisons only
    raw_headers: tuple[tuple[bytes, bytes], ...]
    content: StreamReader
    connection: aiohttp.connector.Connection


class _Origin(NamedTuple):
    """The recipient of the requests to one site: the value of ``Host``, and the key of its connections."""

    authority: str
    key: ConnectionKey


class Session:
    """Sends requests with the same ``headers``; those of a single request are added, or replace them.

    ``may_send`` is called when the connection of a request stands, just before the request is written. If it returns
    false, the request is cancelled. ``proxy`` is the URL of an HTTP proxy; empty: none.
    """

    def __init__(
        self,
        connector: Connector,
        tls: Tls,
        timeouts: aiohttp.ClientTimeout,
        headers: Mapping[str, str],
        may_send: Callable[[], bool],
        proxy: str,
    ) -> None:
        self._connector = connector
        self._tls = tls
        self._timeouts = timeouts
        self._headers = dict(headers)
        self._usual_lines = _lines(self._headers)
        self._may_send = may_send
        self._proxy = URL(proxy) if proxy else None
        self._origin = lru_cache(ORIGINS_KEPT)(self._new_origin)

    def authority(self, site: str) -> str:
        """The value of ``Host`` in requests to a site. Raises :class:`aiohttp.InvalidURL`."""
        return self._origin(site).authority

    async def request(self, site: str, path: str, headers: dict[str, str], form: bytes | None = None) -> Response:
        """Send a GET for a path of a site, or a POST of a ``form``, and return its final answer without the body.

        Raises the errors of the HTTP library, and :class:`aiohttp.ClientError` for errors of the system. After an error
        or a cancellation the connection is closed.
        """
        origin = self._origin(site)
        connection = self._connector.reused(origin.key) or await self._connect(site)
        try:
            protocol = connection.protocol
            assert protocol is not None, "the connection was made just now"
            protocol.set_response_params(
                read_until_eof=True,
                auto_decompress=False,
                read_timeout=self._timeouts.sock_read,
                max_line_size=MAX_FIELD_BYTES,
                max_field_size=MAX_FIELD_BYTES,
                max_headers=MAX_HEADERS,
            )
            if not self._may_send():
                raise asyncio.CancelledError
            transport = protocol.transport
            if transport is None or transport.is_closing():
                raise aiohttp.ClientConnectionResetError("the connection closed before the request was written")
            target = site + path if self._proxy is not None and not origin.key.is_ssl else path
            transport.write(self._written(target, origin.authority, headers, form))
            protocol.start_timeout()
            message, content = await protocol.read()
        except BaseException:
            connection.close()
            raise
        return Response(message.code, message.headers, message.raw_headers, content, connection)

    async def close(self) -> None:
        """Close the connections."""
        await self._connector.close()

    def _written(self, target: str, authority: str, headers: dict[str, str], form: bytes | None) -> bytes:
        """A request as it is sent (RFC 9112, 2.1)."""
        if not _TARGET.fullmatch(target):
            raise ValueError("a request target is printable ASCII without blanks")
        lines = _lines(self._headers | headers) if headers else self._usual_lines
        if form is None:
            return f"GET {target} HTTP/1.1\r\nHost: {authority}\r\n{lines}\r\n".encode()
        length = f"Content-Length: {len(form)}\r\n"
        return f"POST {target} HTTP/1.1\r\nHost: {authority}\r\n{lines}{length}\r\n".encode() + form

    async def _connect(self, site: str) -> aiohttp.connector.Connection:
        """A new connection to a site."""
        async with current_transfer().connecting():
            try:
                return await self._connector.connect(self._connecting(site), traces=[], timeout=self._timeouts)
            except TimeoutError as error:
                raise aiohttp.ConnectionTimeoutError(f"no connection to {site}") from error
            except aiohttp.ClientError:
                raise
            except OSError as error:
                raise aiohttp.ClientOSError(*error.args) from error

    def _new_origin(self, site: str) -> _Origin:
        request = self._connecting(site)
        return _Origin(request.url.host_port_subcomponent or "", request.connection_key)

    def _connecting(self, site: str) -> aiohttp.ClientRequest:
        """A request to a site, from which the connector takes what it needs to know for a connection."""
        url = URL(f"{site}/", encoded=True)
        return aiohttp.ClientRequest(
            "GET",
            url,
            loop=asyncio.get_running_loop(),
            proxy=self._proxy,
            ssl=self._tls.context(host_of(site)) if url.scheme == "https" else True,
            proxy_headers=CIMultiDict(self._headers) if self._proxy else None,
        )


def _lines(headers: Mapping[str, str]) -> str:
    """Header fields as they are sent. Raises :class:`ValueError` for a value that would end its line."""
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    if lines.count("\n") != len(headers) or lines.count("\r") != len(headers) or "\0" in lines:
        raise ValueError("a header field holds a line break or NUL")
    return lines
