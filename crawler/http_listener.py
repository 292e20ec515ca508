"""Serve an aiohttp application on an address."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from crawler.errors import Argument, UsageError


@asynccontextmanager
async def listening(
    app: web.Application, host: str, port: int, *, grace_s: float, cancel_abandoned: bool = False
) -> AsyncIterator[tuple[str, int]]:
    """Serve ``app`` inside the context. Yields the host and the port, which the system chooses if ``port`` is 0.

    On exit, requests in progress get ``grace_s`` seconds to finish. With ``cancel_abandoned``, a request whose client
    has closed the connection is cancelled. Raises :class:`UsageError` if the address is
    unavailable.
    """
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=grace_s, handler_cancellation=cancel_abandoned)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            where = Argument("listen", f"{host}:{port}")
            if error.errno == errno.EADDRINUSE:
                raise UsageError(where, ": is in use; choose another port with ", Argument("listen")) from None
            raise UsageError(where, f": {error.strerror or error}") from None
        yield str(runner.addresses[0][0]), int(runner.addresses[0][1])
    finally:
        await runner.cleanup()
