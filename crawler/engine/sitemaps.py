"""Sitemaps: the ones that a site is asked for, and the consequences of their answers. They are hints, like links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from crawler.engine.crawl_policy import CrawlPolicy
from crawler.engine.rules_cache import RulesCache
from crawler.engine.sampling_frame import Sample
from crawler.engine.sitemap_messages import LIMITS, SitemapFacts
from crawler.frontier.decide import Outcome, Queued, after_sitemap
from crawler.frontier.hints import hints_in
from crawler.frontier.offers import Offer
from crawler.frontier.rup_offer import rupinfo_of
from crawler.frontier.scope import Scope, adopt_mains
from crawler.model import Fetched, Kind, Purpose, Request, RobotsAction, State
from crawler.reasons import Reason, ReasonCode
from crawler.robots.readings import SiteRules
from crawler.sitemaps.findings import Sitemap, SitemapKind
from crawler.sitemaps.trust import Trust
from crawler.store.rows import RobotsNews
from crawler.url import split

if TYPE_CHECKING:
    from crawler.store.sections import Store

_MAX_NAMED = 500  # sitemaps taken from one robots.txt: it may name 20,000, on any host


class SiteOffers:
    """Takes a new robots copy of a site into the scope, if it names a main site, and offers sitemaps and a rupinfo."""

    def __init__(self, policy: CrawlPolicy, scope: Scope, sample: Sample) -> None:
        self._policy = policy
        self._scope = scope
        self._sample = sample

    def admits(self, site: str) -> bool:
        """Whether the scope lets the crawl ask a site, if that is the main site of a mirror."""
        return self._scope.refusal(f"{site}/", 0, is_seed=True) is None

    def added_to(self, news: RobotsNews, rules: SiteRules | None) -> RobotsNews:
        """``news`` with offers; none while no robots.txt is in force.

        The sitemaps are those that robots.txt names, or else /sitemap.xml. ``rules`` are those of the file, ``None`` if
        there is no file.
        """
        adopt_mains(self._scope, [(news.site, news.main_site)])
        if news.copy.action not in (RobotsAction.PARSE, RobotsAction.FREE):
            return news
        offers = list[Offer]()
        if self._policy.discovery.sitemaps and self._sample.admits_sitemaps:
            urls = (rules.sitemaps if rules is not None else ()) or (f"{news.site}/sitemap.xml",)
            offers += [
                Offer(url, 0, self._scope.refusal(url, 0, is_seed=True), kind=Kind.SITEMAP) for url in urls[:_MAX_NAMED]
            ]
        if self._policy.updates.rup:
            offers.append(rupinfo_of(news.site, self._scope))
        return news._replace(sitemaps=tuple(offers))


def request_for(url: str) -> Request:
    """The request for a sitemap: of any content type, as far as the limits go. A parser process decompresses it."""
    limit = LIMITS.max_bytes
    return Request(url, Purpose.SITEMAP, max_bytes=limit, truncate=True, any_type=True, keep_gzip=True, only_gzip=True)


async def outcome_of(
    queued: Queued,
    result: Fetched,
    facts: SitemapFacts,
    rules_cache: RulesCache,
    scope: Scope,
    store: Store,
    *,
    hinting: bool = False,
) -> Outcome:
    """The outcome of a sitemap: an offer for each URL that it may speak for. If ``hinting``, its dates become hints.

    Raises :class:`crawler.errors.StoreError`.
    """
    if facts.wall:
        return Outcome(queued, State.FAILED, Reason(ReasonCode.WALL, facts.wall), is_walled=True)
    sitemap = facts.sitemap
    named = {site: await rules_cache.sitemaps_of(site) for site in _sites_to_trust(queued, sitemap, scope)}
    way = await store.way_to(queued.id)  # a robots.txt that names an index also speaks for the sitemaps in the index
    outcome = after_sitemap(queued, result, sitemap, Trust(queued.url, named.get, tuple(way)), scope)
    source = "feed" if sitemap.kind in (SitemapKind.RSS, SitemapKind.ATOM) else "sitemap"
    return replace(outcome, hints=hints_in(outcome.offers, source)) if hinting else outcome


def _sites_to_trust(queued: Queued, sitemap: Sitemap, scope: Scope) -> set[str]:
    """The sites whose robots.txt may let the sitemap speak for them: its own, and those of listed URLs in scope.

    Each costs a query of the store, and a sitemap may list a URL on each of 50,000 sites.
    """
    urls = [entry.url for entry in sitemap.entries if scope.refusal(entry.url, queued.depth + 1) is None]
    urls += [url for url in sitemap.sitemaps if scope.refusal(url, queued.depth, is_seed=True) is None]
    return {split(url).site for url in (queued.url, *urls)}
