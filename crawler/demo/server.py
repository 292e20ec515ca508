"""Serve described sites on loopback: one address and one port, distinguished by the ``Host`` header."""

from __future__ import annotations

import asyncio
import time
from typing import Self

from aiohttp import web

from crawler.demo.pages import Fault, FictionalWeb, Hit, Page, retry_after_s, status_of

ADDRESS = "127.0.0.1"

_HANG_S = 3600.0


class LoopbackServer:
    """An async context manager. ``port`` is known inside it; ``web.sites`` may change at any time.

    A request starts in the log when the server has read it, and ends before the server writes its last bytes. So a
    pause between two requests in the log is never shorter than the client's pause.
    """

    def __init__(self, web: FictionalWeb | None = None) -> None:
        self.web = web or FictionalWeb()
        self.port = 0

    async def __aenter__(self) -> Self:
        server = web.Server(self._handle, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.2)
        await self._runner.setup()
        await web.TCPSite(self._runner, ADDRESS, 0).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._runner.cleanup()

    def url(self, host: str, path: str = "/") -> str:
        """The URL of a path on ``host``."""
        return f"http://{host}:{self.port}{path}"

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        started_at = time.monotonic()
        host, path = request.host.partition(":")[0].lower(), request.raw_path
        headers = {name.lower(): value for name, value in request.headers.items()}
        page = self.web.answer(host, path, headers)
        agent, status = headers.get("user-agent", ""), 0
        try:
            await asyncio.sleep(_HANG_S if page.fault is Fault.HANG else page.delay_s)
            status = status_of(page)
        finally:  # also if the client disconnects, which cancels the handler
            hit = Hit(host, path, started_at, time.monotonic(), status, agent, retry_after_s(page))
            self.web.log.append(hit)
        return _send(request, page)


def _send(request: web.BaseRequest, page: Page) -> web.StreamResponse:
    if page.fault is not None:
        assert request.transport is not None
        if page.fault is not Fault.RESET:
            request.transport.write(page.octets if page.fault is Fault.RAW else _cut(page))
        request.transport.close()
    return web.Response(status=page.status, headers=page.all_headers, body=page.octets)


def _cut(page: Page) -> bytes:
    lines = [f"HTTP/1.1 {page.status} Cut", f"Content-Length: {len(page.octets)}"]
    lines += [f"{name}: {value}" for name, value in page.all_headers]
    return "\r\n".join([*lines, "", ""]).encode() + page.octets[: len(page.octets) // 2]
