"""Connections that carry one answer to each request, and nothing that nobody asked for."""

from __future__ import annotations

import select
from typing import Any

import aiohttp


class Connector(aiohttp.TCPConnector):
    """Takes no connection again on which something came since the last answer.

    It would be taken for the answer to the next request, and each later answer for that to the request after it (RFC
    9112, 6.3 and 9.2). The HTTP library looks whether a connection still stands, but not at this, and has no public
    place for it: ``_get`` is its own, and tests hold on to it.
    """

    async def _get(self, *args: Any) -> Any:
        while (connection := await super()._get(*args)) is not None:
            protocol = connection.protocol
            assert protocol is not None
            if not protocol.should_close and not _has_unread(protocol.transport):
                return connection
            connection.close()
        return None


def _has_unread(transport: Any) -> bool:
    """Whether something waits in the system that the event loop has had no time to read."""
    poll = select.poll()
    poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
    return bool(poll.poll(0))
