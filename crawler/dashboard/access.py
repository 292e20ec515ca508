"""Access to the dashboard: the token, and the checks against requests that other sites make in the user's browser."""

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
    """Checks every request. With a token, a request must carry it; without one, ``Host`` must be a loopback name.

    A page of another site can make a browser send requests to the dashboard, and can map its own name to the address of
    the dashboard (DNS rebinding). Against rebinding, the check of ``Host`` helps, or the cookie, which a browser sends
    only to the name that set it. Against requests from other sites, a request that changes something must come from the
    dashboard's own origin.
    """

    def __init__(self, token: str | None) -> None:
        self._token = token

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The aiohttp middleware. It answers 401 or 403 with a line of text if the request is refused."""
        host = _host(request)
        if self._token is None:
            if not is_loopback(host):
                return _refused(
                    403, "this dashboard answers only to names of its own machine, such as http://127.0.0.1/"
                )
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
        """Turn the token in the query into a cookie, and redirect to the start page so that it leaves the address line.

        The redirect ignores the requested path: a path such as ``//evil.example/`` would lead to another site.
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
        """Compare in constant time."""
        assert self._token is not None
        return hmac.compare_digest(given.encode(errors="replace"), self._token.encode())


def _cookie(request: web.Request) -> str:
    """A name with the port: browsers share cookies between the ports of a host."""
    socket = request.transport.get_extra_info("sockname") if request.transport else None
    return f"crawler-dashboard-{socket[1] if socket else 0}"


def _host(request: web.Request) -> str:
    """The host name in ``Host``; empty if there is none, or if it is malformed."""
    try:
        return urlsplit(f"//{request.headers.get('Host', '')}").hostname or ""
    except ValueError:
        return ""


def _is_own(request: web.Request) -> bool:
    """Whether the request comes from the dashboard's own page.

    Browsers name the origin of a request, and send JSON to another site only after a preflight request.
    """
    origin = request.headers.get("Origin")
    if origin is not None and origin.partition("://")[2] != request.headers.get("Host"):
        return False
    if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        return False
    return request.content_type == "application/json"


def _refused(status: int, why: str) -> web.Response:
    return web.Response(status=status, text=f"{why}\n")


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Add the security headers to every response: the page loads only its own files, and no site may frame it."""
    response.headers.update(HEADERS)
