"""Makes connections, and does not reuse one on which a server sent data without a request."""

from __future__ import annotations

import select
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler

from crawler.fetch.connection import current_transfer
from crawler.fetch.time_limit import LagNow, time_limit


class Connector(aiohttp.TCPConnector):
    """Closes idle connections that the next request must not use, instead of reusing them.

    These are connections to an address at which the request may not be (``Request.may_connect``), because the name has
    other addresses meanwhile, and connections on which data arrived after the last answer.
    The client would take such data for the answer to the next request, and each later answer for that to the request
    after it (RFC 9112, 6.3 and 9.2). The HTTP library checks only whether an idle connection is still open. It has no
    public method to override, so this class overrides the private ``_get``, ``_wrap_create_connection`` and
    ``_resolve_host``; tests fail if the library changes them. The private ``_factory`` makes the protocol of each
    connection.
    """

    def __init__(
        self,
        connection_type: Callable[..., ResponseHandler],
        before_connecting: Callable[[Sequence[str]], Awaitable[None]],
        lag_now_s: LagNow,
        **options: Any,
    ) -> None:
        """``before_connecting`` gets the addresses of a host, before the connector tries them.

        Time limits of connections do not count the lag of the event loop, which ``lag_now_s`` returns.
        """
        super().__init__(**options)
        self._before_connecting = before_connecting
        self._lag_now_s = lag_now_s
        self._factory = partial(connection_type, loop=self._loop, lag_now_s=lag_now_s)

    async def _get(self, *args: Any) -> Any:
        while (connection := await super()._get(*args)) is not None:
            protocol = connection.protocol
            assert protocol is not None
            if not protocol.should_close and not _has_unread(protocol.transport) and _may_use(protocol.transport):
                return connection
            connection.close()
        return None

    async def _wrap_create_connection(self, *args: Any, timeout: aiohttp.ClientTimeout, **options: Any) -> Any:
        async with time_limit(timeout.sock_connect, self._lag_now_s):
            return await super()._wrap_create_connection(*args, timeout=aiohttp.ClientTimeout(), **options)

    async def _resolve_host(self, *args: Any, **options: Any) -> Any:
        found = await super()._resolve_host(*args, **options)
        await self._before_connecting([result["host"] for result in found])
        return found


def _may_use(transport: Any) -> bool:
    """Whether the request of the current task may be sent to the address of this connection."""
    may_connect = current_transfer().may_connect
    return may_connect is None or may_connect(str(transport.get_extra_info("peername")[0]))


def _has_unread(transport: Any) -> bool:
    """Whether the system holds received data that the event loop has not read yet."""
    poll = select.poll()
    poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
    return bool(poll.poll(0))
