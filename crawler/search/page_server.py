"""Serves the search page: HTML, JSON and the OpenSearch description at one address. It only reads.

The server does not use the ``Host`` header or any ``Forwarded`` header, and all links to itself are relative, so it may
be served by a proxy under any name and path. The OpenSearch description must have an absolute address, which is given
at the start.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from crawler.clock import Clock
from crawler.errors import UsageError
from crawler.http_listener import listening
from crawler.search.index_backend import SQL
from crawler.search.page_view import PAGE_HITS, POLICY, Asked, description, last_page_of, render
from crawler.search.query import parse_query
from crawler.search.results import SearchResult, require_index, search
from crawler.settings.settings import Settings
from crawler.settings.stores import existing_store
from crawler.store.protocols import StoreReader

_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",  # other sites are not to learn the words
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Robots-Tag": "noindex, nofollow",
    "Cache-Control": "no-store",
    "Server": "crawler",
}
_ROBOTS = "User-agent: *\nDisallow: /\n"
_MOST_WAITING = 32  # searches; each takes some hundredths of a second
_RETRY_AFTER_S = 5
_MAX_REQUEST_BYTES = 1024


@asynccontextmanager
async def serving_search(
    settings: Settings, host: str, port: int, clock: Clock, *, name: str, base_url: str | None
) -> AsyncIterator[int]:
    """Serve the search page of the store in ``settings`` while inside; yields the port (the chosen one for port 0).

    ``name`` is the title of the page. ``base_url`` is the address at which users reach the page, if it is not that of
    this server. Raises :class:`UsageError` if the address cannot be used, or if there is no such store or no index in
    it.
    """
    async with existing_store(settings) as store:
        await require_index(store)
        page = _SearchPage(store, clock, name)
        app = web.Application(client_max_size=_MAX_REQUEST_BYTES)
        app.on_response_prepare.append(_add_headers)
        app.add_routes([web.get("/robots.txt", _robots), web.get("/", page.answer)])
        if base_url is not None and (path := urlsplit(base_url).path) not in ("", "/"):
            app.add_routes([web.get(path, page.answer)])
        async with listening(app, host, port, grace_s=2.0, cancel_abandoned=True) as (_, taken):
            shown = f"[{host}]" if ":" in host else host
            page.base_url = base_url or f"http://{shown}:{taken}/"
            yield taken


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_HEADERS)


async def _robots(request: web.Request) -> web.Response:
    return web.Response(text=_ROBOTS)


class _SearchPage:
    def __init__(self, store: StoreReader, clock: Clock, name: str) -> None:
        self._store, self._clock, self._name = store, clock, name
        self.base_url = ""
        self._searching = asyncio.Lock()  # a store reads for one query at a time
        self._waiting = 0

    async def answer(self, request: web.Request) -> web.Response:
        wanted = _format(request)
        if wanted == "opensearch":
            text = description(self._name, self.base_url)
            return web.Response(text=text, content_type="application/opensearchdescription+xml")
        if self._waiting >= _MOST_WAITING:
            raise web.HTTPServiceUnavailable(
                text="too many searches at once; try again in a moment\n", headers={"Retry-After": str(_RETRY_AFTER_S)}
            )
        asked = Asked.of(request.query)
        self._waiting += 1
        try:
            async with self._searching:
                (counted,) = await self._store.query(SQL["count_pages"])
                result, error = await self._search(asked)
        finally:
            self._waiting -= 1
        varies = {"Vary": "Accept"}
        if wanted == "json":
            return web.json_response(_as_json(asked, result, error), status=200 if result else 400, headers=varies)
        html = render(asked, result, name=self._name, pages=counted["pages"], sites=counted["sites"], error=error)
        return web.Response(text=html, content_type="text/html", status=400 if error else 200, headers=varies)

    async def _search(self, asked: Asked) -> tuple[SearchResult | None, str]:
        """The result, or why there is none. The messages of the commands are not shown: they name the store."""
        if not asked.words:
            return None, ""
        now = self._clock.now()
        try:
            parse_query(asked.words)
        except UsageError as error:
            return None, str(error)
        try:
            found = await search(
                self._store,
                asked.words,
                now=now,
                limit=PAGE_HITS,
                offset=(asked.page - 1) * PAGE_HITS,
                filters=asked.filters(now),
                facets=True,
            )
        except UsageError:
            if asked.similar_to:
                return None, "This site or this page is not in the index."
            return None, "This site is not in the index." if asked.site else "There is no index at the moment."
        return found, ""


def _format(request: web.Request) -> str:
    """``html``, ``json`` or ``opensearch``: by ``format``, else JSON for a client that asks for it and not for HTML."""
    given = request.query.get("format", "")
    if given in ("html", "json", "opensearch"):
        return given
    accept = request.headers.get("Accept", "").lower()
    return "json" if "application/json" in accept and "text/html" not in accept else "html"


def _as_json(asked: Asked, result: SearchResult | None, error: str) -> dict[str, Any]:
    if result is None:
        return {"error": error or "give words in the parameter q"}
    values = asdict(result)
    is_current = not values.pop("note")
    next_page = asked.page + 1 if asked.page < last_page_of(asked, result) else None
    return {"query": asked.words, "page": asked.page, "next_page": next_page, "is_current": is_current, **values}
