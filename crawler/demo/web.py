"""The built-in web of ``crawler demo``: the town of Aldermere, served on loopback."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Self

from crawler.demo.server import ADDRESS, LoopbackServer
from crawler.demo.town import WWW, TownSite, build_town

#: Settings that crawl the whole town in about ten seconds; the limits on depth and on pages a site end the trap. Real
#: sites are never crawled at this pace. The town's host names exist nowhere else.
SETTINGS: Mapping[str, object] = {
    "fetch.resolve": [f"*.demo.test={ADDRESS}"],
    "fetch.allow_private": True,
    "fetch.retries": 1,
    "fetch.retry_pause": 0.5,
    "fetch.total_timeout": 5.0,
    "politeness.delay": 0.1,
    "politeness.slow_factor": 1.0,
    "politeness.backoff_first": 0.5,
    "robots.retry_first": 0.5,
    "limits.concurrency": 16,
    "limits.max_depth": 15,
    "limits.max_pages_per_site": 30,
}


class Kept(NamedTuple):
    """A promise to a site, and the number of requests that broke it."""

    site: str  # its host
    promise: str
    requests: int


class DemoWeb(LoopbackServer):
    """Serve the town inside ``async with``. Every host is within the registered domain of the seeds."""

    sites: tuple[TownSite, ...] = ()

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self.sites = build_town(self.url)
        self.web.sites.update((site.host, site.pages) for site in self.sites)
        return self

    @property
    def seeds(self) -> list[str]:
        return [self.url(WWW)]

    def kept(self) -> list[Kept]:
        """Every promise, with the number of requests that broke it."""
        return [
            Kept(site.host, promise.what, len([hit for hit in self.web.hits(site.host) if promise.breaks(hit.path)]))
            for site in self.sites
            for promise in site.promises
        ]

    def missed(self) -> set[str]:
        """The URLs that a complete crawl requests and this crawl did not."""
        asked = {(hit.host, hit.path) for hit in self.web.log}
        wanted = {(site.host, path) for site in self.sites for path in site.expected}
        return {self.url(host, path) for host, path in wanted - asked}
