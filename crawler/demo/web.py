"""The built-in web of ``crawler demo``: the town of Aldermere, served on loopback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from crawler.demo.pages import Hit
from crawler.demo.server import ADDRESS, LoopbackServer
from crawler.demo.town import WWW, TownSite, build_town


@dataclass(frozen=True, slots=True)
class DemoPace:
    """Settings with which the whole town is crawled in about ten seconds, named as the crawler's own are.

    Real sites are never asked at this pace. The depth or the pages per site end the trap.
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
    """How many requests went where a site had said that none should go: 0, or a promise was broken."""

    host: str
    what: str
    requests: int


class DemoWeb(LoopbackServer):
    """Serves the town inside ``async with``; afterwards ``log`` and ``kept()`` say what was asked of it.

    ``resolve`` goes to the crawler with ``seeds``: the town's names exist nowhere else. Everything is
    within the seeds' registrable domain.
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
        """Every request, in the order in which the answers ended; times on the monotonic clock."""
        return self.web.log

    def kept(self) -> list[Kept]:
        """Every promise, with the number of requests that broke it."""
        return [
            Kept(site.host, promise.what, len([hit for hit in self.web.hits(site.host) if promise.breaks(hit.path)]))
            for site in self.sites
            for promise in site.promises
        ]

    def missed(self) -> set[str]:
        """URLs that a complete crawl asks for and this one did not."""
        asked = {(hit.host, hit.path) for hit in self.log}
        wanted = {(site.host, path) for site in self.sites for path in site.expected}
        return {self.url(host, path) for host, path in wanted - asked}
