"""``crawler run --refresh``: queues visits of known URLs, whenever they would be due."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from crawler.clock import SystemClock
from crawler.engine.readmission import visit_again
from crawler.errors import UsageError
from crawler.frontier.operator import blockable, covered, names_page
from crawler.inspect.why import scope_of
from crawler.session.crawl_session import require_draw_kept
from crawler.settings.settings import Settings
from crawler.settings.stores import existing_store
from crawler.store.statements import load_statements
from crawler.url import ROBOTS_PATH, NotCrawlable, canonicalise, split

if TYPE_CHECKING:
    from crawler.store.sections import Store

_SQL = load_statements("crawler.run")


async def queue_refresh(settings: Settings, names: Sequence[str]) -> int:
    """Queue a visit of each visited URL that ``names`` name, or of all; returns how many are queued.

    A name is a site (``a.example``, ``https://a.example``) or a URL (``https://a.example/``). The robots.txt of each
    site that is visited as a whole, and one that is named, is read again before the next page. Raises
    :class:`UsageError` for a name that the store does not know, and if the store holds a sample that left pages out.
    """
    clock = SystemClock()
    async with existing_store(settings, read_only=False) as store:
        await require_draw_kept(store, settings)
        sites, urls = await _named(store, names)
        now = clock.now()
        await store.expire_robots_of(sites, now)
        if names:
            await store.forget_refusals(sites, now)
        scope, per_site = await scope_of(store, settings, now), settings.limits.max_pages_per_site
        return await visit_again(store, scope, urls, settings.revisit, per_site, now)


async def _named(store: Store, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The sites whose robots.txt is to be read again, and the URLs to visit.

    The URLs are the visited ones that ``names`` name, and the unvisited ones that are named one by one.
    """
    known = [row["site"] for row in await store.query(_SQL["sites"])]
    if not names:
        return known, await _visited(store, "visited")
    anew: list[str] = []
    wanted: dict[str, None] = {}
    for name in names:
        try:
            if names_page(name):
                url = canonicalise(name)
                site, path = split(url)
                if path == ROBOTS_PATH and site in known:
                    anew.append(site)
                    continue
                if await store.find(url) is None:
                    raise UsageError(f"{url}: the store does not know it; without --refresh it is a new seed")
                wanted[url] = None
                continue
            sites = covered(blockable(name), known)
        except NotCrawlable as error:
            raise UsageError(f"--refresh: {error}") from None
        if not sites:
            raise UsageError(f"--refresh: the store knows no site {name}")
        anew += sites
        for site in sites:
            wanted |= dict.fromkeys(await _visited(store, "visited_of_site", site=site))
    return anew, list(wanted)


async def _visited(store: Store, statement: str, **parameters: str) -> list[str]:
    async with aclosing(store.rows(_SQL[statement], parameters)) as rows:
        return [row.url async for row in rows]
