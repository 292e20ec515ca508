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
from crawler.search.completions import completions
from crawler.search.index_file import INDEX, NoIndex, index_path, open_index
from crawler.search.page_view import PAGE_HITS, POLICY, Asked, description, last_page_of, render
from crawler.search.results import MOST_S, SearchResult, TookTooLong, UnknownFilter, search
from crawler.settings.settings import Settings
from crawler.settings.stores import existing_store

if TYPE_CHECKING:
    from crawler.store.sections import Store

_LOG = logging.getLogger(__name__)

_FORMATS = ("html", "json", "opensearch", "completions")
_ROBOTS = "User-agent: *\nDisallow: /\n"
_MOST_WAITING = 32  # searches; each takes some hundredths of a second
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


def _too_many() -> web.HTTPServiceUnavailable:
    return web.HTTPServiceUnavailable(
        text="too many searches at once; try again in a moment\n", headers={"Retry-After": str(_RETRY_AFTER_S)}
    )


class _SearchPage:
    def __init__(self, store: Store, db: str, file: Path, clock: Clock, name: str) -> None:
        self._store, self._db, self._file, self._clock, self._name = store, db, file, clock, name
        self.base_url = ""
        self._searching = asyncio.Lock()  # a store reads for one query at a time
        self._waiting = 0

    async def answer(self, request: web.Request) -> web.Response:
        wanted = _format(request)
        if wanted == "opensearch":
            text = description(self._name, self.base_url)
            return web.Response(text=text, content_type="application/opensearchdescription+xml")
        if wanted == "completions":
            return await self._complete(request.query.get("q", ""))
        if self._waiting >= _MOST_WAITING:
            raise _too_many()
        asked = Asked.of(request.query)
        self._waiting += 1
        try:
            await self._wait_for_turn()
            try:
                pages, sites, result = await self._result(asked)
            finally:
                self._searching.release()
        finally:
            self._waiting -= 1
        headers, status, error = {"Vary": "Accept"}, 200, ""
        if isinstance(result, _Refusal):
            status, error = result.status, result.error
            if result.retry_after_s:
                headers["Retry-After"] = str(result.retry_after_s)
            result = None
        if wanted == "json":
            status = status if result or error else 400
            return web.json_response(_as_json(asked, result, error), status=status, headers=headers)
        html = render(asked, result, name=self._name, pages=pages, sites=sites, error=error)
        return web.Response(text=html, content_type="text/html", status=status, headers=headers)

    async def _complete(self, text: str) -> web.Response:
        """The completions of a query, as OpenSearch suggestions; none if there is no index."""
        found: list[str] = []
        with suppress(NoIndex, QueryInterrupted, StoreError):
            async with open_index(self._file, _LONGEST_COMPLETION_S) as index:
                found = await completions(index, text)
        return web.json_response([text, found], content_type="application/x-suggestions+json")

    async def _wait_for_turn(self) -> None:
        """Take the lock of the store. Raises 503 if the searches before this one take long."""
        try:
            async with asyncio.timeout(_LONGEST_WAIT_S):
                await self._searching.acquire()
        except TimeoutError:
            raise _too_many() from None

    async def _result(self, asked: Asked) -> tuple[int, int, SearchResult | _Refusal | None]:
        """How many pages and sites are in the index, and the result; ``None`` without words.

        The messages of the commands are not shown: they name the store.
        """
        pages = sites = 0
        try:
            self._file = await index_path(self._store, self._db)  # a run may have set another one
            async with open_index(self._file, MOST_S) as index:
                ((pages, sites),) = await index.query(INDEX["count_pages"])
            return pages, sites, await self._search(asked) if asked.words else None
        except NoIndex:
            text = "There is no index at the moment; try again later."
            return pages, sites, _Refusal(_UNAVAILABLE, text, _RETRY_WITHOUT_INDEX_S)
        except (TookTooLong, QueryInterrupted) as error:
            return pages, sites, _Refusal(_UNAVAILABLE, str(error), _RETRY_AFTER_S)
        except StoreError as error:
            _LOG.warning("a search failed: %s", error)
            text = "The search does not answer at the moment; try again later."
            return pages, sites, _Refusal(_UNAVAILABLE, text, _RETRY_AFTER_S)
        except UnknownFilter:
            where = "This site or this page" if asked.similar_to else "This site"
            return pages, sites, _Refusal(400, f"{where} is not in the index.")
        except UsageError as error:
            return pages, sites, _Refusal(400, str(error))

    async def _search(self, asked: Asked) -> SearchResult:
        now = self._clock.now()
        return await search(
            self._store,
            self._db,
            asked.words,
            now=now,
            limit=PAGE_HITS,
            offset=(asked.page - 1) * PAGE_HITS,
            filters=asked.filters(now),
            facets=True,
        )


class _Refusal(NamedTuple):
    """Why a search has no result, for people, and the status of the answer. 0 seconds: to try again is of no use."""

    status: int
    error: str
    retry_after_s: int = 0


def _format(request: web.Request) -> str:
    """One of ``_FORMATS``: by ``format``, else JSON for a client that asks for it and not for HTML, else HTML."""
    given = request.query.get("format", "")
    if given in _FORMATS:
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
