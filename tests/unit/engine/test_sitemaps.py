"""The outcome of a sitemap: which sites' robots.txt are looked up for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from crawler.engine.sitemap_messages import question_about_sitemap
from crawler.engine.sitemaps import outcome_of
from crawler.frontier.decide import Queued
from crawler.frontier.scope import Scope, ScopeSettings
from crawler.model import Fetched, Kind
from tests.reading import ReaderInProcess


async def test_a_robots_txt_is_looked_up_only_for_sites_in_scope() -> None:
    asked = []

    async def sitemaps_of(site: str) -> tuple[str, ...] | None:
        asked.append(site)
        return ("http://a.test/s.xml",)

    async def way_to(_: int) -> list[str]:
        return []

    urls = ["http://a.test/1", "http://b.test/2", *(f"http://h{n}.other/" for n in range(1000))]
    body = "<urlset>" + "".join(f"<url><loc>{url}</loc></url>" for url in urls) + "</urlset>"
    queued = Queued(1, "http://a.test/s.xml", 1, 0, kind=Kind.SITEMAP)
    result = Fetched(queued.url, 0.0, 1.0, content_type="text/xml", plain=body.encode())
    cache: Any = SimpleNamespace(sitemaps_of=sitemaps_of)
    store: Any = SimpleNamespace(way_to=way_to)
    scope = Scope(ScopeSettings(), ["http://a.test/", "http://b.test/"])
    facts = await ReaderInProcess().ask(question_about_sitemap(result))
    outcome = await outcome_of(queued, result, facts, cache, scope, store)
    assert [offer.url for offer in outcome.offers] == urls[:2]
    assert sorted(asked) == ["http://a.test", "http://b.test"]
