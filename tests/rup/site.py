"""A site on loopback: a web server for a folder, with ``crawler rup serve`` behind it."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import urlopen

from aiohttp import ClientSession, web

from tests.command import Started, start, until
from tests.ports import reserved_port
from tests.rup.post import Post

_PROXIED = ("/rupinfo.txt", "/rupinfo.tex", "/rup")


@dataclass
class TreeSite:
    """``asked`` has the method and path of every request; ``octets`` counts the bytes of the answers."""

    root: Path
    db: Path
    smtp: Post
    port: int = field(default_factory=reserved_port)
    rup_port: int = field(default_factory=reserved_port)
    asked: list[str] = field(default_factory=list)
    octets: int = 0
    process: Started | None = None

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def open_rup(self) -> None:
        """Start ``crawler rup serve``, and wait until it answers."""
        self.process = start(
            "rup", "serve", "--root", self.root, "--base-url", f"{self.base}/", "--db", self.db,
            "--listen", f"127.0.0.1:{self.rup_port}",
            "--smtp", f"127.0.0.1:{self.smtp.port}", "--latencies", "second,minute,day",
            "--scan-every", "0.1",
        )  # fmt: skip
        until(self._answers, "rup serve")

    def _answers(self) -> bool:
        try:
            with urlopen(f"http://127.0.0.1:{self.rup_port}/rupinfo.txt", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def close_rup(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.communicate(timeout=300)
            self.process = None

    def tree(self) -> dict[str, str]:
        """Path -> text of every page in the folder; a folder's start page has the folder's path."""
        found = {f"/{path.relative_to(self.root)}": path.read_text() for path in self.root.rglob("*.html")}
        return {path.removesuffix("index.html"): text for path, text in found.items()}


@contextmanager
def serving(site: TreeSite) -> Iterator[TreeSite]:
    """Serve the tree, and forward ``/rup`` and ``/rupinfo.txt`` to the server."""
    ready, ended = threading.Event(), threading.Event()

    async def handle(request: web.Request) -> web.StreamResponse:
        site.asked.append(f"{request.method} {request.path_qs}")
        if request.path in _PROXIED:
            async with ClientSession() as session:
                url = f"http://127.0.0.1:{site.rup_port}{request.path_qs}"
                kept = {
                    name: request.headers[name] for name in ("User-Agent", "Content-Type") if name in request.headers
                }
                try:
                    async with session.request(request.method, url, data=await request.read(), headers=kept) as answer:
                        body, kind = await answer.read(), answer.content_type
                        site.octets += len(body)
                        return web.Response(status=answer.status, body=body, content_type=kind)
                except OSError:
                    return web.Response(status=502)
        file = site.root / request.path.strip("/") / ("index.html" if request.path.endswith("/") else "")
        if not file.is_file():
            return web.Response(status=404)
        stat = file.stat()
        tag = f"{stat.st_mtime_ns:x}-{stat.st_size:x}"
        headers = {"ETag": f'"{tag}"', "Content-Type": "text/html"}
        if request.headers.get("If-None-Match") == f'"{tag}"':
            return web.Response(status=304, headers=headers)
        octets = file.read_bytes()
        site.octets += len(octets)
        return web.Response(body=octets, headers=headers)

    async def run() -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", site.port).start()
        ready.set()
        await asyncio.to_thread(ended.wait)
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    try:
        assert ready.wait(300)
        yield site
    finally:
        site.close_rup()
        ended.set()
        thread.join()
