"""The built-in web of ``crawler demo``: the town of Aldermere, served on loopback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from crawler.demo.pages import Hit
from crawler.demo.server import ADDRESS, LoopbackServer
from crawler.demo.town import WWW, TownSite, build_town


@dataclass(frozen=True, slots=True)
class DemoPace:
    """Settings that crawl the whole town in about ten seconds, with the names of the crawler's settings.

    Real sites are never crawled at this pace. The limits on depth and on pages a site end the trap.
    """

    delay_s: float = 0.1
    slow_factor: float = 1.0
    backoff_first_s: float = 0.5
    timeout_s: float = 5.0
    concurrency: int = 16
    max_depth: int = 15
    max_pages_per_site: int = 30


@dataclass(frozen=True, slots=True)
class Kept:
    """A promise to a site, and the number of requests that broke it."""

    host: str
    what: str
    requests: int


class DemoWeb(LoopbackServer):
    """Serve the town inside ``async with``. Afterwards ``log`` and ``kept()`` describe the requests.

    The crawler needs ``resolve`` beside ``seeds``, because the town's host names exist nowhere else. Every host is
    within the seeds' registered domain.
    """

    resolve = (("*.demo.test", ADDRESS),)
    pace = DemoPace()
    sites: tuple[TownSite, ...] = ()

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self.sites = build_town(self.url)
        self.web.sites.update((site.host, site.pages) for site in self.sites)
        return self

    @property
    def seeds(self) -> list[str]:
        return [self.url(WWW)]

    @property
    def log(self) -> list[Hit]:
        """Every request, in the order in which the answers ended. Times are on the monotonic clock."""
        return self.web.log

    def kept(self) -> list[Kept]:
        """Every promise, with the number of requests that broke it."""
        return [
            Kept(site.host, promise.what, len([hit for hit in self.web.hits(site.host) if promise.breaks(hit.path)]))
            for site in self.sites
            for promise in site.promises
        ]

    def missed(self) -> set[str]:
        """The URLs that a complete crawl requests and this crawl did not."""
        asked = {(hit.host, hit.path) for hit in self.log}
        wanted = {(site.host, path) for site in self.sites for path in site.expected}
        return {self.url(host, path) for host, path in wanted - asked}
