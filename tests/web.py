"""The web for end-to-end tests: described or random sites on loopback, served from a thread."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from crawler.demo.pages import FictionalWeb, Hit, Page, Site, plain
from crawler.demo.server import ADDRESS, LoopbackServer
from crawler.url import host_of, split
from tests.threaded import Threaded


class LoopbackWeb(Threaded):
    """A context manager that serves ``sites`` by host name. ``sites`` may change meanwhile.

    The server has its own thread and loop, so the crawler under test may run here or in another process.
    Give it ``resolve`` (one ``PATTERN=ADDRESS`` for each top-level name in use) and allow private addresses.
    """

    resolve = f"*.test={ADDRESS}"

    def __init__(self, sites: Mapping[str, Site] | None = None) -> None:
        super().__init__()
        self.web = FictionalWeb(dict(sites or {}))
        self._server = LoopbackServer(self.web)

    async def _serve(self) -> None:
        async with self._server:
            self._ready.set()
            await self._stop.wait()

    @property
    def port(self) -> int:
        return self._server.port

    @property
    def sites(self) -> dict[str, Site]:
        return self.web.sites

    @property
    def log(self) -> list[Hit]:
        """A copy of the access log in the order in which answers ended, with times of ``time.monotonic``."""
        return list(self.web.log)

    def hits(self, host: str) -> list[Hit]:
        """The requests to one host, in the order of their starts."""
        return self.web.hits(host)

    def robots_hits(self, host: str) -> list[Hit]:
        """Every request for a host's /robots.txt."""
        return [hit for hit in self.hits(host) if hit.path == "/robots.txt"]

    def url(self, host: str, path: str = "/") -> str:
        return self._server.url(host, path)


@dataclass(frozen=True, slots=True)
class RandomWeb:
    """A web made from a seed, and the result of a complete, polite crawl of it.

    ``depths`` holds every page URL that such a crawl asks for, with its distance from the seeds in links;
    ``forbidden`` the URLs that robots.txt closes though allowed pages link to them.
    """

    sites: dict[str, Site]
    seeds: tuple[str, ...]
    links: dict[str, tuple[str, ...]]
    depths: dict[str, int]
    forbidden: frozenset[str]


def random_web(
    seed: int,
    hosts: int = 4,
    pages_per_host: int = 20,
    *,
    links_per_page: int = 5,
    across: float = 0.2,
    closed: float = 0.1,
    port: int = 80,
) -> RandomWeb:
    """A web of ``hosts`` sites (``h0.web.test`` …); the same arguments give the same web.

    ``across`` is the share of links that lead to other hosts, ``closed`` the share of pages below
    ``/closed/``, which every robots.txt disallows. Each host's start page is a seed.
    """
    chance = random.Random(seed)
    authorities = [f"h{n}.web.test" + (f":{port}" if port != 80 else "") for n in range(hosts)]
    pages = [
        [f"http://{authority}/"]
        + [f"http://{authority}/{_folder(chance, closed)}p{n}.html" for n in range(1, pages_per_host)]
        for authority in authorities
    ]
    links: dict[str, tuple[str, ...]] = {}
    for own in pages:
        for url in own:
            rows = [chance.choice(pages) if chance.random() < across else own for _ in range(links_per_page)]
            links[url] = tuple(chance.choice(row) for row in rows)
    seeds = tuple(own[0] for own in pages)
    depths = _depths(seeds, links)
    forbidden = frozenset(target for url in depths for target in links[url] if "/closed/" in target)
    return RandomWeb(_as_sites(links), seeds, links, depths, forbidden)


def _folder(chance: random.Random, closed: float) -> str:
    return "closed/" if chance.random() < closed else chance.choice(("", "a/", "b/"))


def _depths(seeds: tuple[str, ...], links: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    depths = dict.fromkeys(seeds, 0)
    waiting = deque(seeds)
    while waiting:
        url = waiting.popleft()
        for target in links[url]:
            if target not in depths and "/closed/" not in target:
                depths[target] = depths[url] + 1
                waiting.append(target)
    return depths


def _as_sites(links: Mapping[str, tuple[str, ...]]) -> dict[str, Site]:
    sites: dict[str, dict[str, Page]] = {}
    for url, targets in links.items():
        pages = sites.setdefault(host_of(url), {"/robots.txt": plain("User-agent: *\nDisallow: /closed/\n")})
        rows = "".join(f"<li><a href='{target}'>{target}</a>" for target in targets)
        pages[split(url).path] = Page(f"<!doctype html><title>{url}</title><ul>{rows}</ul>")
    return dict(sites)
