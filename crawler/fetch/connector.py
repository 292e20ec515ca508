"""Makes connections, and does not reuse an idle one on which a server sent data without a request."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import aiohttp
from aiohttp.abc import ResolveResult
from aiohttp.client_proto import ResponseHandler

from crawler.fetch.connection import Connection, LagNow, current_transfer
from crawler.fetch.failures import AddressUnknown
from crawler.fetch.idle_connections import IdleConnections
from crawler.fetch.open_files import LOOK_AGAIN_S, no_connections
from crawler.fetch.resolver import numeric
from crawler.shortages import SYSTEM_IS_FULL

_LOG = logging.getLogger("crawler.fetch")

#: Seconds in which a server may answer the end of TLS on a connection that is closed.
_TLS_END_S = 1.0


class Connector(aiohttp.TCPConnector):
    """Makes the connections of a client. :attr:`idle` has those without a request.

    A connection is made to the ``address`` of its request, if it has one, without another look-up. It closes idle
    connections that the next request must not use, instead of reusing them. These are connections to another address,
    and connections on which data arrived after the last answer.
    The client would take such data for the answer to the next request, and each later answer for that to the request
    after it (RFC 9112, 6.3 and 9.2). The HTTP library checks only whether an idle connection is still open, and keeps
    all of them for the same time. It has no public method to override, so this class overrides the private
    ``_release``, ``_close``, ``_wrap_create_connection`` and ``_resolve_host``; tests fail if the library changes them.
    The private ``_factory`` makes the protocol of each connection.

    If the system has no file or no memory, idle connections are closed, and the connection is tried again until the
    system has; no time limit counts that. If this process may not open a further file, the connection is tried again
    until its time is over. Then :class:`crawler.errors.UsageError` is raised: the site has not failed.
    """

    def __init__(
        self,
        connection_type: Callable[..., ResponseHandler],
        before_connecting: Callable[[Sequence[str]], Awaitable[None]],
        lag_now_s: LagNow,
        idle: IdleConnections,
        **options: Any,
    ) -> None:
        """``before_connecting`` gets the addresses of a host, before the connector tries them.

        Time limits of connections do not count the lag of the event loop, which ``lag_now_s`` returns.
        """
        super().__init__(**options)
        self.idle = idle
        self._before_connecting = before_connecting
        self._lag_now_s = lag_now_s
        self._factory = partial(connection_type, loop=self._loop, lag_now_s=lag_now_s)

    def reused(self, key: Any) -> aiohttp.connector.Connection | None:
        """An idle connection that the request of the current task may be sent on; ``None`` if there is none."""
        transfer = current_transfer()
        transfer.key, request, address = key, transfer.request, transfer.request.address
        if request.fresh:
            return None
        while (idle := self.idle.take(request.group, key)) is not None:
            usable = idle.is_connected() and not idle.should_close
            if usable and not idle.has_unread() and (not address or address == idle.peer):
                self._acquired.add(idle)
                return aiohttp.connector.Connection(self, key, idle, self._loop)
            idle.close()
        return None

    def _release(self, key: Any, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        if self._closed:
            return
        self._release_acquired(key, protocol)
        if not isinstance(protocol, Connection):
            protocol.close()
        elif should_close or protocol.should_close:
            protocol.end_tls(resumable=protocol.exception() is None)  # the server closes after each answer
            protocol.close()
        else:
            self.idle.add(key, protocol)

    def _close(self, *, abort_ssl: bool = False) -> list[Awaitable[object]]:
        waiters = super()._close(abort_ssl=abort_ssl)
        for connection in self.idle.clear():
            closed = connection.closed
            connection.end_tls(resumable=False)
            connection.abort()
            if closed is not None:
                waiters.append(closed)
        return waiters

    async def _wrap_create_connection(self, *args: Any, timeout: aiohttp.ClientTimeout, **options: Any) -> Any:
        if options.get("ssl"):
            options["ssl_shutdown_timeout"] = _TLS_END_S
        is_waiting = False
        while True:
            try:
                return await self._connect_in_time(*args, timeout=timeout, **options)
            except aiohttp.ClientConnectorError as error:
                if error.os_error.errno not in SYSTEM_IS_FULL:
                    raise
                if not is_waiting:
                    _LOG.warning("waits: the system permits no further connection (%s)", error.os_error.strerror)
                is_waiting = True
            self.idle.close_least_useful()
            with current_transfer().own_wait():
                await asyncio.sleep(LOOK_AGAIN_S)

    async def _connect_in_time(self, *args: Any, timeout: aiohttp.ClientTimeout, **options: Any) -> Any:
        refused: OSError | None = None  # this process may not open another file
        assert timeout.sock_connect is not None, "the settings bound it"
        try:
            async with time_limit(timeout.sock_connect, self._lag_now_s):
                while True:
                    try:
                        refused = None
                        return await super()._wrap_create_connection(*args, timeout=aiohttp.ClientTimeout(), **options)
                    except aiohttp.ClientConnectorError as error:
                        if error.os_error.errno != errno.EMFILE:
                            raise
                        refused = error.os_error
                    self.idle.close_least_useful()
                    await asyncio.sleep(LOOK_AGAIN_S)
        except TimeoutError:
            if refused is None:
                raise
            raise no_connections(refused) from None

    async def _resolve_host(self, host: str, port: int, *args: Any, **options: Any) -> list[ResolveResult]:
        address = current_transfer().request.address
        found = [numeric(host, address, port)] if address else await super()._resolve_host(host, port, *args, **options)
        if address == "":
            raise AddressUnknown(f"{host} has an address by now")
        await self._before_connecting([result["host"] for result in found])
        return found


@asynccontextmanager
async def time_limit(limit_s: float, lag_now_s: LagNow) -> AsyncIterator[None]:
    """Cancel the context after ``limit_s`` seconds and raise :class:`TimeoutError`.

    If the loop is late then, the limit is longer by the lag, once: data may have arrived long before.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as deadline:
        timer = loop.call_later(limit_s, lambda: deadline.reschedule(loop.time() + lag_now_s()))
        try:
            yield
        finally:
            timer.cancel()
