"""Serve an aiohttp application on an address, and guard a page for people against other sites in their browsers."""

from __future__ import annotations

import errno
import ipaddress
import logging
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler

from crawler.errors import Argument, StoreError, UsageError, fault
from crawler.terminal_text import shown

_LOG = logging.getLogger("crawler.http")
_SHOWN_CHARS = 200
_BEGUN = web.RequestKey("begun", web.StreamResponse)
_BUG = "500: a bug in this program kept it from answering. The log of the program names it; please report it.\n"
_STORE_FAILED = "503: the database of this program failed. The log of the program says how; please try again later.\n"


_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Server": "crawler",
}


class BrowserGuard:
    """Guards a page for people against the pages of other sites that their browsers show.

    * A page of another site can make a browser send requests. They are refused by ``Sec-Fetch-Site`` (W3C Fetch
      Metadata, 2.3), except navigations: a link may lead here, and its site does not see the answer.
    * Such a page can map its own name to this address (DNS rebinding), and is of the same site then. So a request
      must name an address or ``localhost``, or one of ``names``. Without ``names``, requests may name any host: then
      the page needs other protection, such as a token.
    * No site may frame the page or read it, and sites do not learn its address; ``policy`` is its
      Content-Security-Policy.
    """

    def __init__(self, policy: str, names: Iterable[str] | None = None) -> None:
        self._headers = _HEADERS | {"Content-Security-Policy": policy}
        self._names = None if names is None else {"localhost", *names}

    def protect(self, app: web.Application) -> None:
        """Check all requests of an application, and set the headers of its answers."""
        app.middlewares.insert(0, self._check)
        app.on_response_prepare.append(self._add_headers)

    @web.middleware
    async def _check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none") and not _navigates(request):
            raise web.HTTPForbidden(text="a page of another site sent this request\n")
        if self._names is not None and not self._is_own(request.headers.get("Host", "")):
            raise web.HTTPForbidden(text="this page has another name; --base-url tells it by which one it is reached\n")
        return await handler(request)

    def _is_own(self, host: str) -> bool:
        name = _name_of(f"//{host}")
        if name is None or self._names is None or name in self._names:
            return name is not None
        try:
            return bool(ipaddress.ip_address(name))
        except ValueError:
            return False

    async def _add_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(self._headers)


def _navigates(request: web.Request) -> bool:
    """Whether the user goes to the page by a link of another site."""
    return request.method in ("GET", "HEAD") and request.headers.get("Sec-Fetch-Mode") == "navigate"


def _name_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


@asynccontextmanager
async def listening(
    app: web.Application, host: str, port: int, *, grace_s: float, cancel_abandoned: bool = False
) -> AsyncIterator[tuple[str, int]]:
    """Serve ``app`` inside the context. Yields the host and the port, which the system chooses if ``port`` is 0.

    On exit, requests in progress get ``grace_s`` seconds to finish. With ``cancel_abandoned``, a request whose client
    has closed the connection is cancelled. A handler that raises an error answers 500 with a sentence, and 503 if the
    store fails. The error is one log record of the level error with the method and the path of the request, and a
    malformed request is one of the level debug; neither has a traceback.
    Raises :class:`UsageError` if the address is unavailable.
    """
    app.middlewares.insert(0, _answer_faults)
    app.on_response_prepare.append(_note_answer)
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


@web.middleware
async def _answer_faults(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer an error of a handler in plain words, unless its answer has begun: then the connection is closed."""
    try:
        return await handler(request)
    except (web.HTTPException, HttpProcessingError, ConnectionError):
        raise
    except web.RequestPayloadError:
        raise web.HTTPBadRequest(text="400: the body of the request is malformed.\n") from None
    except Exception as error:
        is_store = isinstance(error, StoreError)
        why = f"{error}" if is_store else f"a bug: {fault(error)}"
        _LOG.error("%s %s failed: %s", request.method, shown(request.path, _SHOWN_CHARS), shown(why))
        if _BEGUN in request:
            if request.transport is not None:
                request.transport.abort()
            return request[_BEGUN]
        return web.Response(status=503 if is_store else 500, text=_STORE_FAILED if is_store else _BUG)


async def _note_answer(request: web.Request, response: web.StreamResponse) -> None:
    request[_BEGUN] = response


class _Log(logging.LoggerAdapter[logging.Logger]):
    """The log of the HTTP library. The library logs each malformed request as an exception of its own."""

    def __init__(self) -> None:
        super().__init__(_LOG, {})

    def exception(self, msg: object, *args: object, exc_info: Any = None, **kwargs: Any) -> None:
        """Log an error of a handler, or the malformed request that the HTTP library could not read."""
        if isinstance(exc_info, HttpProcessingError):
            self.debug("a malformed request: %s", shown(" ".join(exc_info.message.split()), _SHOWN_CHARS))
        else:
            error = exc_info if isinstance(exc_info, Exception) else sys.exception()
            self.error("%s%s", str(msg) % args, f": {fault(error)}" if isinstance(error, Exception) else "")
