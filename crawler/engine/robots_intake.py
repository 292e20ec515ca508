"""The consequences of a new robots copy, before anything is requested under it."""

from __future__ import annotations

from crawler.engine import sitemaps
from crawler.engine.crawl_policy import CrawlPolicy
from crawler.engine.gate import Gate
from crawler.engine.outbox import Outbox
from crawler.engine.sampling_frame import Sample
from crawler.frontier.scope import Scope, adopt_mains
from crawler.robots.readings import SiteRules
from crawler.store.rows import RobotsNews


def admits_site(scope: Scope, site: str) -> bool:
    """Whether ``scope`` admits a site."""
    return scope.refusal(f"{site}/", 0, is_seed=True) is None


class CrawlRobotsIntake:
    """The :class:`crawler.engine.robots_cache.RobotsIntake` of a crawl.

    Mirrors enter the scope, sitemaps are queued, and the copy waits for the next commit.
    """

    def __init__(self, *, outbox: Outbox, gate: Gate, policy: CrawlPolicy, scope: Scope, sample: Sample) -> None:
        self._outbox = outbox
        self._gate = gate
        self._policy = policy
        self._scope = scope
        self._sample = sample

    async def commit(self, news: RobotsNews, rules: SiteRules | None, group: str) -> int | None:
        """Put the copy into the outbox and wait for the commit; the task is cancelled if the gate closes."""
        news = self._with_sitemaps(news, rules)
        return await self._gate.wait_while_open(self._outbox.add_robots(news, group, self._gate.pace(group)))

    def hand_in(self, news: RobotsNews, rules: SiteRules | None) -> None:
        """Put the copy into the outbox."""
        self._outbox.add_robots_elsewhere(self._with_sitemaps(news, rules))

    def _with_sitemaps(self, news: RobotsNews, rules: SiteRules | None) -> RobotsNews:
        adopt_mains(self._scope, [(news.site, news.main_site)])
        offers = list(news.sitemaps)
        if self._policy.discovery.sitemaps and self._sample.admits_sitemaps:
            offers += sitemaps.to_ask_for(news, rules, self._scope)
        if self._policy.updates.rup:
            offers += sitemaps.rupinfo_to_ask_for(news, self._scope)
        return news._replace(sitemaps=tuple(offers))
