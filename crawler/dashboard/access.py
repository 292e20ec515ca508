"""Access to the dashboard: the token, and the check that an order comes from the dashboard's own page."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

#: The Content-Security-Policy: the page loads only its own files.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class AccessGuard:
    """Checks every request: it must carry the token, and an order must come from the dashboard's own page.

    Other users of the machine can reach a port on loopback, so the token is required there too. A browser sends the
    cookie only to the name that set it, and not with requests of other sites, so any name may lead to the dashboard
    (:class:`crawler.cli.http_listener.BrowserGuard`).
    """

    def __init__(self, token: str) -> None:
        self._token = token

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The aiohttp middleware. It answers 401 or 403 with a line of text if the request is refused."""
        if (given := request.query.get("token")) is not None and request.method == "GET":
            return self._let_in(request, given)
        if not self._knows(request):
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
        return hmac.compare_digest(given.encode(errors="replace"), self._token.encode())


def _cookie(request: web.Request) -> str:
    """A name with the port: browsers share cookies between the ports of a host."""
    socket = request.transport.get_extra_info("sockname") if request.transport else None
    return f"crawler-dashboard-{socket[1] if socket else 0}"


def _is_own(request: web.Request) -> bool:
    """Whether the request comes from the dashboard's own page.

    Browsers name the origin of a request, and send JSON to another site only after a preflight request.
    """
    origin = request.headers.get("Origin")
    if origin is not None and origin.partition("://")[2] != request.headers.get("Host"):
        return False
    return request.content_type == "application/json"


def _refused(status: int, why: str) -> web.Response:
    return web.Response(status=status, text=f"{why}\n")
