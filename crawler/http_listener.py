"""Serve an aiohttp application on an address."""

from __future__ import annotations

import errno
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from crawler.errors import Argument, UsageError, fault
from crawler.terminal_text import shown

_SHOWN_CHARS = 200


@asynccontextmanager
async def listening(
    app: web.Application, host: str, port: int, *, grace_s: float, cancel_abandoned: bool = False
) -> AsyncIterator[tuple[str, int]]:
    """Serve ``app`` inside the context. Yields the host and the port, which the system chooses if ``port`` is 0.

    On exit, requests in progress get ``grace_s`` seconds to finish. With ``cancel_abandoned``, a request whose client
    has closed the connection is cancelled. A handler that raises an error answers 500. Its error is one log record of
    the level error, and a malformed request is one of the level debug; neither has a traceback.
    Raises :class:`UsageError` if the address is unavailable.
    """
    runner = web.AppRunner(
        app, access_log=None, logger=_Log(), shutdown_timeout=grace_s, handler_cancellation=cancel_abandoned
    )
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


class _Log(logging.LoggerAdapter[logging.Logger]):
    """The log of the HTTP library. The library logs each malformed request as an exception of its own."""

    def __init__(self) -> None:
        super().__init__(logging.getLogger("crawler.http"), {})

    def exception(self, msg: object, *args: object, exc_info: Any = None, **kwargs: Any) -> None:
        """Log an error of a handler, or the malformed request that the HTTP library could not read."""
        if isinstance(exc_info, HttpProcessingError):
            self.debug("a malformed request: %s", shown(" ".join(exc_info.message.split()), _SHOWN_CHARS))
        else:
            error = exc_info if isinstance(exc_info, Exception) else sys.exception()
            self.error("%s%s", str(msg) % args, f": {fault(error)}" if isinstance(error, Exception) else "")
