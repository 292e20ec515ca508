"""A visit: what is decided of a claimed URL, the request for it, and what follows from the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from crawler.frontier.decide import Fetch, Outcome, Queued, after_fetch, before_fetch
from crawler.frontier.scope import Scope
from crawler.loops import sitemaps
from crawler.loops.budget import Budget
from crawler.loops.gate import Gate, Warrant
from crawler.loops.manners import Manners
from crawler.loops.reader import PageReader
from crawler.loops.robots import RobotsKeeper
from crawler.model import Fetched, FetchResult, Kind, Purpose, Request
from crawler.store.interface import ClaimedSite, Store
from crawler.url import split


class Visits:
    """The visits of one crawl. ``book`` gets what each comes to, ``spared`` is told where no page came of one."""

    def __init__(
        self,
        store: Store,
        manners: Manners,
        scope: Scope,
        gate: Gate,
        robots: RobotsKeeper,
        budget: Budget,
        book: Callable[[Outcome], None],
        spared: Callable[[], None],
    ) -> None:
        self._store = store
        self._manners = manners
        self._scope = scope
        self._gate = gate
        self._robots = robots
        self._budget = budget
        self._book = book
        self._spared = spared
        self._reader = PageReader(manners.robots.token, manners.robots.settings.reading)

    def close(self) -> None:
        """End the process that reads heavy pages."""
        self._reader.close()

    async def visit(self, queued: Queued, site: ClaimedSite, group: str) -> None:
        assert site.copy is not None
        rules = self._robots.rules(site.name, site.copy)
        main = None if rules is None or rules.main_site is None else self._robots.main_of(site.name)
        decision = before_fetch(queued, site.copy, rules, split(queued.url).path, self._scope, main)
        match decision:
            case Outcome():
                self._book(decision)
            case Fetch(verdict):
                line = None if verdict is None else verdict.line
                delay_s = None if rules is None else rules.crawl_delay_s
                expires_at = site.copy.expires_at
                await self._fetch(queued, Warrant(site.id, group, expires_at, site.robots_id, line, delay_s))
            case _:
                assert_never(decision)

    async def _fetch(self, queued: Queued, warrant: Warrant) -> None:
        if not self._budget.take():
            return
        request = Request(queued.url, Purpose.PAGE, max_bytes=self._manners.crawl.max_body_bytes)
        if queued.kind is Kind.SITEMAP:
            request = sitemaps.request_for(queued.url)
        outcome = None
        try:
            result = await self._gate.send(request, warrant)
            if result is not None:  # else it is still queued; the next claim asks robots.txt first
                outcome = await self._what_follows(queued, result)
        finally:
            if outcome is None or outcome.page is None:
                self._budget.give_back()
                self._spared()
        if outcome is not None:
            self._book(outcome)

    async def _what_follows(self, queued: Queued, result: FetchResult) -> Outcome:
        if queued.kind is Kind.SITEMAP and isinstance(result, Fetched):
            return await sitemaps.read(queued, result, self._robots, self._scope, self._store)
        facts = await self._reader.read(result) if isinstance(result, Fetched) else None
        return after_fetch(queued, result, facts, self._scope, self._manners.retry)
