"""The web server of the dashboard: the page, the live stream, search and why, orders, and metrics."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from aiohttp import web

from crawler.cli.http_listener import BrowserGuard, listening
from crawler.clock import Clock
from crawler.dashboard import metrics
from crawler.dashboard.access import POLICY, AccessGuard, Handler
from crawler.dashboard.event_stream import MOST_VIEWERS, MOST_VIEWS_EACH, Feed
from crawler.dashboard.snapshot import SnapshotReader
from crawler.errors import CrawlerError, StoreError, UsageError
from crawler.frontier.operator import Command
from crawler.inspect.why import explain, explanation_rows
from crawler.search.results import search
from crawler.settings.keys import terminal_name
from crawler.settings.settings import Settings
from crawler.settings.stores import existing_store, order
from crawler.url import NotCrawlable, canonicalise

if TYPE_CHECKING:
    from crawler.store.sections import Store

_LOG = logging.getLogger("crawler.dashboard")

_MOST_RESULTS = 10
_MAX_REQUEST_BYTES = 16 * 1024


@asynccontextmanager
async def serving(settings: Settings, host: str, port: int, token: str, clock: Clock) -> AsyncIterator[int]:
    """Serve the dashboard of the store in ``settings`` while inside; yields the port (the chosen one for port 0).

    Raises :class:`UsageError` if the address cannot be used, or if there is no such store.
    """
    async with existing_store(settings) as live, existing_store(settings) as asked:
        reader = SnapshotReader(live, settings.store.db)
        feed = Feed(reader, clock)
        pages = _Pages(settings, asked, feed, reader, clock)
        app = web.Application(
            middlewares=[AccessGuard(token).check, _errors_as_json], client_max_size=_MAX_REQUEST_BYTES
        )
        BrowserGuard(POLICY).protect(app)
        app.on_shutdown.append(lambda app: feed.close())
        app.add_routes(pages.routes())
        async with listening(app, host, port, grace_s=2.0, cancel_abandoned=True) as (_, taken), feed.running():
            yield taken


@web.middleware
async def _errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer an error with its message: 503 if the store fails, 400 for a mistake of the user."""
    try:
        return await handler(request)
    except StoreError as error:
        _LOG.warning("%s: %s", request.path, error)
        return web.json_response({"error": str(error)}, status=503)
    except CrawlerError as error:
        return web.json_response({"error": error.message(terminal_name)}, status=400)
    except NotCrawlable as error:
        return web.json_response({"error": str(error)}, status=400)


def _file(name: str, package: str = "crawler.dashboard") -> bytes:
    return (files(package) / name).read_bytes()


def _static(body: bytes, content_type: str) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=body, content_type=content_type, charset="utf-8")

    return answer


class _Pages:
    def __init__(self, settings: Settings, store: Store, feed: Feed, reader: SnapshotReader, clock: Clock) -> None:
        self._settings, self._store, self._feed, self._reader, self._clock = settings, store, feed, reader, clock
        self._viewers: Counter[str] = Counter()  # of the live stream, by address
        self._asking = asyncio.Lock()  # one query of a user at a time, to limit the load on a large store

    def routes(self) -> list[web.RouteDef]:
        style = _file("style.css", "crawler.report") + _file("style.css")
        return [
            web.get("/", _static(_file("page.html"), "text/html")),
            web.get("/style.css", _static(style, "text/css")),
            web.get("/script.js", _static(_file("script.js"), "text/javascript")),
            web.get("/live", self.live),
            web.get("/metrics", self.metrics),
            web.get("/why", self.why),
            web.get("/search", self.search),
            web.post("/control", self.control),
        ]

    async def live(self, request: web.Request) -> web.StreamResponse:
        viewer = request.remote or ""
        if sum(self._viewers.values()) >= MOST_VIEWERS:
            raise web.HTTPServiceUnavailable(text=f"there are {MOST_VIEWERS} viewers already\n")
        if self._viewers[viewer] >= MOST_VIEWS_EACH:
            raise web.HTTPTooManyRequests(text=f"{viewer} has {MOST_VIEWS_EACH} views open already\n")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
        frames = self._feed.frames()
        self._viewers[viewer] += 1
        try:
            await response.prepare(request)
            with suppress(ConnectionResetError):  # the viewer has left
                async for frame in frames:
                    await response.write(frame)
        finally:
            self._viewers[viewer] -= 1
            await frames.aclose()
        return response

    async def metrics(self, request: web.Request) -> web.Response:
        text = metrics.exposition(await self._feed.snapshot(whole=True), self._reader.tally)
        return web.Response(body=text.encode(), headers={"Content-Type": metrics.CONTENT_TYPE})

    async def why(self, request: web.Request) -> web.Response:
        text = request.query.get("url", "").strip()
        url = canonicalise(text if "://" in text else f"http://{text}")
        async with self._asking:
            known = await explain(self._store, url, now=self._clock.now())
        rows = explanation_rows(known, self._settings.store.db)
        return web.json_response({"url": url, "rows": [[label, str(value)] for label, value in rows]})

    async def search(self, request: web.Request) -> web.Response:
        async with self._asking:
            found = await search(
                self._store,
                self._settings.store.db,
                request.query.get("words", ""),
                now=self._clock.now(),
                limit=_MOST_RESULTS,
            )
        return web.json_response(asdict(found))

    async def control(self, request: web.Request) -> web.Response:
        asked = await _json(request)
        said, site = asked.get("command"), asked.get("site", "")
        if said not in list(Command):
            raise UsageError("command: must be one of " + ", ".join(Command))
        if not isinstance(site, str):
            raise UsageError("site: must be a string, like example.org")
        command = Command(said)
        name = command.name_of(site)
        given = await order(self._settings, command, name, self._clock)
        return web.json_response({"order": given.id, "name": name})


async def _json(request: web.Request) -> dict[str, Any]:
    try:
        asked = json.loads(await request.read())
    except (ValueError, RecursionError):
        asked = None
    if not isinstance(asked, dict):
        raise UsageError("send a JSON object")
    return asked
