"""The town fits its descriptions: expected pages are reachable, and so are forbidden ones."""

from __future__ import annotations

import re
from collections import deque

import aiohttp
import pytest

from crawler.demo.pages import FictionalWeb, Page
from crawler.demo.town import (
    ARCHIVE,
    CALENDAR,
    GAZETTE,
    LIBRARY,
    MIRROR,
    MUSEUM,
    MUSEUM_CRAWL_DELAY_S,
    OLD,
    WWW,
    TownSite,
    build_town,
)
from crawler.demo.web import SETTINGS, DemoWeb
from crawler.model import header
from crawler.settings.loading import settings_from
from crawler.url import NotCrawlable, canonicalise, host_of, split

TOWN = build_town(lambda host, path: f"http://{host}{path}")
ENDLESS = {CALENDAR}


class Walk:
    """Follows every link from the town's start page; an obedient walk leaves alone what it should."""

    def __init__(self, *, obedient: bool) -> None:
        self.obedient = obedient
        self.web = FictionalWeb({site.host: site.pages for site in TOWN})
        self.towns = {site.host: site for site in TOWN}
        self.asked: set[tuple[str, str]] = set()
        self.waiting = deque([f"http://{WWW}/"])
        while self.waiting:
            self.visit(self.waiting.popleft())

    def visit(self, url: str) -> None:
        host, path = host_of(url), split(url).path
        if self.obedient and host == MIRROR and path != "/robots.txt":
            self.asked.add((MIRROR, "/robots.txt"))
            return self.visit(url.replace(MIRROR, LIBRARY))
        if (host, path) in self.asked or (host in ENDLESS and len(self.asked_of(host)) >= 20):
            return None
        self.waiting.append(f"http://{host}/robots.txt")
        if self.obedient and any(promise.breaks(path) for promise in self.towns[host].promises):
            return None
        self.asked.add((host, path))
        return self.read(url, self.web.answer(host, path, {}))

    def read(self, url: str, page: Page) -> None:
        text = page.octets.decode("latin-1")
        if self.obedient:
            if "nofollow'>" in text.partition("<body")[0]:
                return
            text = re.sub(r"<a rel=nofollow [^>]*>", "", text)
        found = re.findall(r"<a [^>]*href='([^']*)'", text)
        for target in (*found, header(page.headers, "Location") or ""):
            try:
                self.waiting.append(canonicalise(target, url))
            except NotCrawlable:
                assert target.startswith("mailto:")

    def asked_of(self, host: str) -> set[str]:
        return {path for asked, path in self.asked if asked == host}


@pytest.mark.parametrize("site", TOWN, ids=lambda site: site.host)
def test_an_obedient_walk_finds_exactly_what_is_expected(site: TownSite) -> None:
    asked = Walk(obedient=True).asked_of(site.host)
    assert site.expected <= asked if site.host in ENDLESS else site.expected == asked


@pytest.mark.parametrize("site", TOWN, ids=lambda site: site.host)
def test_a_careless_walk_breaks_every_promise(site: TownSite) -> None:
    asked = Walk(obedient=False).asked_of(site.host)
    for promise in site.promises:
        assert any(promise.breaks(path) for path in asked), promise.what
        assert not any(promise.breaks(path) for path in site.expected), promise.what


def test_the_town_is_small_and_soon_crawled() -> None:
    settings = settings_from(SETTINGS, source="test")
    most = settings.limits.max_pages_per_site
    assert most is not None
    assert 60 <= sum(len(site.expected) for site in TOWN) + most <= 150
    for site in TOWN:
        pause_s = MUSEUM_CRAWL_DELAY_S if site.host == MUSEUM else settings.politeness.delay_s
        slow_s = sum(page.delay_s for page in site.pages.values() if isinstance(page, Page))
        assert len(site.expected) * pause_s + slow_s * (1 + settings.politeness.slow_factor) < 10, site.host
        assert len(site.expected) <= most, site.host


def test_the_calendar_never_ends() -> None:
    page, path = 0, "/2026/11/"
    web = FictionalWeb({site.host: site.pages for site in TOWN})
    while page < 50:
        body = web.answer(CALENDAR, path, {}).octets.decode()
        path = re.findall(r"href='(/[^']*)'", body)[0]
        page += 1
    assert path == "/2031/01/"
    assert web.answer(CALENDAR, "/rooms/hall/hall/stairs/", {}).status == 200


async def test_the_town_is_served_under_its_names() -> None:
    async with DemoWeb() as town, aiohttp.ClientSession() as client:

        async def get(host: str, path: str) -> aiohttp.ClientResponse:
            url = f"http://127.0.0.1:{town.port}{path}"
            answer = await client.get(url, headers={"Host": f"{host}:{town.port}"}, allow_redirects=False)
            await answer.read()
            return answer

        assert town.seeds == [f"http://{WWW}:{town.port}/"]
        assert [(await get(GAZETTE, "/robots.txt")).status for _ in range(3)] == [503, 503, 200]
        assert (await get(ARCHIVE, "/robots.txt")).status == 403
        assert (await get(OLD, "/robots.txt")).headers["Location"] == town.url(WWW, "/robots.txt")
        assert f"Host: {LIBRARY}:{town.port}\n" in await (await get(MIRROR, "/robots.txt")).text()
        poem = await get(LIBRARY, "/poeme.html")
        assert poem.headers["Content-Type"] == "text/html"
        assert "Près de l'étang" in (await poem.read()).decode("latin-1")
        assert len(town.web.log) == 7


async def test_broken_promises_and_missed_pages_are_counted() -> None:
    async with DemoWeb() as town, aiohttp.ClientSession() as client:
        everything = town.missed()
        for path in ("/private/", "/private/budget.html", "/minutes.html", "/private/open-letter.html"):
            url = f"http://127.0.0.1:{town.port}{path}"
            async with client.get(url, headers={"Host": f"council.demo.test:{town.port}"}) as answer:
                assert answer.status == 200
        broken = {(kept.site, kept.promise): kept.requests for kept in town.kept() if kept.requests}
        assert broken == {("council.demo.test", "the council closed /private/ except one letter"): 2}
        done = {town.url("council.demo.test", path) for path in ("/minutes.html", "/private/open-letter.html")}
        assert everything - town.missed() == done
