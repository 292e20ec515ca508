"""Serves the search page: HTML, JSON and the OpenSearch description at one address. It only reads.

The server uses no ``Forwarded`` header, and the ``Host`` header only to refuse names that are not its own. All links to
itself are relative, so a proxy may serve it under the name of ``--base-url`` and any path. The OpenSearch description
must have an absolute address, which is given at the start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from aiohttp import web

from crawler.cli.http_listener import BrowserGuard, listening
from crawler.clock import Clock
from crawler.errors import QueryInterrupted, StoreError, UsageError
from crawler.search.index_file import NoIndex, index_path, open_index
from crawler.search.page_view import PAGE_HITS, POLICY, Asked, description, last_page_of, render
from crawler.search.results import MOST_S, SearchResult, TookTooLong, UnknownFilter, search
from crawler.search.vocabulary import Vocabulary
from crawler.settings.settings import Settings
from crawler.settings.stores import existing_store

if TYPE_CHECKING:
    from crawler.store.sections import Store

_LOG = logging.getLogger(__name__)

_FORMATS = ("html", "json", "opensearch", "completions")
_ROBOTS = "User-agent: *\nDisallow: /\n"
_LONGEST_WAIT_S = 5.0  # of a search for those before it, each of which may take as long
_RETRY_AFTER_S = 5
_RETRY_WITHOUT_INDEX_S = 60
_LONGEST_COMPLETION_S = 0.5
_MAX_REQUEST_BYTES = 1024
_UNAVAILABLE = 503


@asynccontextmanager
async def serving_search(
    settings: Settings, host: str, port: int, clock: Clock, *, name: str, base_url: str | None
) -> AsyncIterator[int]:
    """Serve the search page of the store in ``settings`` while inside; yields the port (the chosen one for port 0).

    ``name`` is the title of the page. ``base_url`` is the address at which users reach the page, if it is not that of
    this server. Raises :class:`UsageError` if the address cannot be used, or if there is no such store.
    """
    async with existing_store(settings) as store:
        page = _SearchPage(store, settings.store.db, await index_path(store, settings.store.db), clock, name)
        app = web.Application(client_max_size=_MAX_REQUEST_BYTES)
        base_host = None if base_url is None else urlsplit(base_url).hostname
        BrowserGuard(POLICY, filter(None, (host.lower(), base_host))).protect(app)
        app.on_response_prepare.append(_add_headers)
        app.add_routes([web.get("/robots.txt", _robots), web.get("/", page.answer)])
        if base_url is not None and (path := urlsplit(base_url).path) not in ("", "/"):
            app.add_routes([web.get(path, page.answer)])
        async with listening(app, host, port, grace_s=2.0, cancel_abandoned=True) as (_, taken):
            shown = f"[{host}]" if ":" in host else host
            page.base_url = base_url or f"http://{shown}:{taken}/"
            yield taken


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers["X-Robots-Tag"] = "noindex, nofollow"


async def _robots(request: web.Request) -> web.Response:
    return web.Response(text=_ROBOTS)


class _Refusal(NamedTuple):
    """Why there is no result, for people, and the status of the answer. 0 seconds: to try again is of no use."""

    status: int
    error: str = ""
    retry_after_s: int = 0


def _refusal(error: Exception) -> _Refusal:
    """The messages of the commands are not shown where they name the store."""
    match error:
        case NoIndex():
            return _Refusal(_UNAVAILABLE, "There is no index at the moment; try again later.", _RETRY_WITHOUT_INDEX_S)
        case TimeoutError():
            return _Refusal(_UNAVAILABLE, "too many searches at once; try again in a moment", _RETRY_AFTER_S)
        case TookTooLong() | QueryInterrupted():
            return _Refusal(_UNAVAILABLE, str(error), _RETRY_AFTER_S)
        case UnknownFilter():
            return _Refusal(400, "This site or this page is not in the index.")
        case StoreError():
            _LOG.warning("a search failed: %s", error)
            return _Refusal(_UNAVAILABLE, "The search does not answer at the moment; try again later.", _RETRY_AFTER_S)
    return _Refusal(400, str(error))


class _SearchPage:
    def __init__(self, store: Store, db: str, file: Path, clock: Clock, name: str) -> None:
        self._store, self._db, self._file, self._clock, self._name = store, db, file, clock, name
        self.base_url = ""
        self._searching = asyncio.Lock()  # a store reads for one query at a time
        self._pages = self._sites = 0  # in the index

    async def answer(self, request: web.Request) -> web.Response:
        wanted = _format(request)
        if wanted == "opensearch":
            text = description(self._name, self.base_url)
            return web.Response(text=text, content_type="application/opensearchdescription+xml")
        if wanted == "completions":
            return await self._complete(request.query.get("q", ""))
        asked, result, refusal = Asked(request.query.get("q", "")), None, _Refusal(200)
        try:
            asked = Asked.of(request.query)
            result = await self._result(asked)
        except (UsageError, StoreError, QueryInterrupted, TimeoutError) as error:
            refusal = _refusal(error)
        headers = {"Vary": "Accept"}
        if refusal.retry_after_s:
            headers["Retry-After"] = str(refusal.retry_after_s)
        if wanted == "json" and result is not None:
            return web.json_response(_as_json(asked, result), headers=headers)
        if wanted == "json":
            why = {"error": refusal.error or "give words in the parameter q"}
            return web.json_response(why, status=max(refusal.status, 400), headers=headers)
        html = render(asked, result, name=self._name, pages=self._pages, sites=self._sites, error=refusal.error)
        return web.Response(text=html, content_type="text/html", status=refusal.status, headers=headers)

    async def _complete(self, text: str) -> web.Response:
        """The completions of a query, as OpenSearch suggestions; none if there is no index."""
        found: list[str] = []
        with suppress(NoIndex, QueryInterrupted, StoreError):
            async with open_index(self._file, _LONGEST_COMPLETION_S) as index:
                found = await Vocabulary(index).completions(text)
        return web.json_response([text, found], content_type="application/x-suggestions+json")

    async def _result(self, asked: Asked) -> SearchResult | None:
        """The result; ``None`` without words. Raises :class:`TimeoutError` if the searches before it take long."""
        async with asyncio.timeout(_LONGEST_WAIT_S):
            await self._searching.acquire()
        try:
            self._file = await index_path(self._store, self._db)  # a run may have set another one
            async with open_index(self._file, MOST_S) as index:
                self._pages, self._sites = index.state["pages"], index.state["sites"]
            if not asked.words:
                return None
            now, offset = self._clock.now(), (asked.page - 1) * PAGE_HITS
            return await search(
                self._store,
                self._db,
                asked.words,
                now=now,
                limit=PAGE_HITS,
                offset=offset,
                filters=asked.filters(now),
                facets=True,
            )
        finally:
            self._searching.release()


def _format(request: web.Request) -> str:
    """One of ``_FORMATS``: by ``format``, else JSON for a client that asks for it and not for HTML, else HTML."""
    given = request.query.get("format", "")
    if given in _FORMATS:
        return given
    accept = request.headers.get("Accept", "").lower()
    return "json" if "application/json" in accept and "text/html" not in accept else "html"


def _as_json(asked: Asked, result: SearchResult) -> dict[str, Any]:
    values = asdict(result)
    is_current = not values.pop("note")
    next_page = asked.page + 1 if asked.page < last_page_of(asked, result) else None
    return {"query": asked.words, "page": asked.page, "next_page": next_page, "is_current": is_current, **values}
