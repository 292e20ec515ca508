"""Who may use the dashboard: the token, and the checks that keep other people's pages from using it in your browser."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp import web

from crawler.url import is_loopback

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Server": "crawler",
}


class Guard:
    """Lets a request through, or answers it. With a token, who has it may; without, who asks by a name of this machine.

    A page of another site can make a browser send requests here, and can give its own name this address (DNS
    rebinding). Against the second, ``Host`` must be a loopback name where no token is asked for (a cookie with the
    token is sent to the name it came from alone). Against the first, what changes something must come from this very
    origin.
    """

    def __init__(self, token: str | None) -> None:
        self._token = token

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """aiohttp's middleware: 400, 401 and 403 are told in a line of text."""
        host = _host(request)
        if self._token is None:
            if not is_loopback(host):
                return _refused(403, "this dashboard answers to names of its own machine only: http://127.0.0.1/")
        elif (given := request.query.get("token")) is not None and request.method == "GET":
            return self._let_in(request, given)
        elif not self._knows(request):
            return _refused(
                401, "the token is missing or wrong: open the address that the dashboard printed at its start"
            )
        if request.method not in ("GET", "HEAD") and not _is_own(request):
            return _refused(403, "this must come from the dashboard's own page, as application/json")
        return await handler(request)

    def _let_in(self, request: web.Request, given: str) -> web.StreamResponse:
        """The address with the token, opened once: it becomes a cookie, and leaves the address line.

        To the page itself, wherever it was asked for: a path may be another site's address (``//evil.example/``).
        """
        if not self._is_token(given):
            return _refused(401, "the token is wrong: open the address that the dashboard printed at its start")
        answer = web.Response(status=303, headers={"Location": "/"})
        answer.set_cookie(_cookie(request), given, httponly=True, samesite="Strict", path="/")
        return answer

    def _knows(self, request: web.Request) -> bool:
        scheme, _, bearer = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self._is_token(bearer.strip())
        return self._is_token(request.cookies.get(_cookie(request), ""))

    def _is_token(self, given: str) -> bool:
        """In a time that does not tell how much of it is right."""
        assert self._token is not None
        return hmac.compare_digest(given.encode(errors="replace"), self._token.encode())


def _cookie(request: web.Request) -> str:
    """Cookies know no ports: each dashboard of a machine needs a name of its own."""
    socket = request.transport.get_extra_info("sockname") if request.transport else None
    return f"crawler-dashboard-{socket[1] if socket else 0}"


def _host(request: web.Request) -> str:
    """By which name this is asked; empty for none, or for what is no name."""
    try:
        return urlsplit(f"//{request.headers.get('Host', '')}").hostname or ""
    except ValueError:
        return ""


def _is_own(request: web.Request) -> bool:
    """Whether no other site's page sent this. A browser says whence, and JSON it sends to others only after asking."""
    origin = request.headers.get("Origin")
    if origin is not None and origin.partition("://")[2] != request.headers.get("Host"):
        return False
    if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        return False
    return request.content_type == "application/json"


def _refused(status: int, why: str) -> web.Response:
    return web.Response(status=status, text=f"{why}\n")


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """For every answer: nothing runs, loads or frames but what is ours."""
    response.headers.update(HEADERS)
