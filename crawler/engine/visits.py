"""A visit: what is decided of a claimed URL, the request for it, and what follows from the answer."""

from __future__ import annotations

from typing import Protocol, assert_never

from crawler.clock import Clock
from crawler.engine.answers import Answers
from crawler.engine.crawl_policy import CrawlPolicy
from crawler.engine.gate import Blocked, FetchPermit, Gate
from crawler.engine.page_budget import Budget
from crawler.engine.progress import Progress
from crawler.engine.robots_cache import RobotsKeeper
from crawler.errors import CrawlerError
from crawler.frontier.decide import Fetch, Outcome, Queued, after_fault, before_fetch
from crawler.frontier.revisit_outcome import after_refusal
from crawler.frontier.scope import Scope
from crawler.model import Fetched, Kind
from crawler.store.protocols import ClaimedSite
from crawler.url import split


class _Books(Protocol):
    progress: Progress

    def book(self, outcome: Outcome) -> None: ...

    def spared(self) -> None: ...


class Visits:
    """The visits of one crawl; ``books`` gets what each comes to."""

    def __init__(
        self,
        policy: CrawlPolicy,
        scope: Scope,
        clock: Clock,
        gate: Gate,
        robots: RobotsKeeper,
        answers: Answers,
        budget: Budget,
        books: _Books,
    ) -> None:
        self._policy = policy
        self._scope = scope
        self._clock = clock
        self._gate = gate
        self._robots = robots
        self._answers = answers
        self._budget = budget
        self._books = books

    async def visit(self, queued: Queued, site: ClaimedSite, group: str) -> None:
        """Decide on a URL, fetch it where that is the decision, and book what came of it.

        A bug of ours that this brings to light fails the URL: the others need not wait until it is mended.
        """
        try:
            await self._visit(queued, site, group)
        except (CrawlerError, Blocked):
            raise
        except Exception as error:
            failed = after_fault(queued, self._books.progress.met(error))
            self._books.book(after_refusal(failed, self._policy.revisit, self._clock.now()))

    async def _visit(self, queued: Queued, site: ClaimedSite, group: str) -> None:
        assert site.copy is not None
        rules = await self._robots.rules(site.name, site.copy)
        main = None if rules is None or rules.main_site is None else self._robots.main_of(site.name)
        decision = before_fetch(queued, site.copy, rules, split(queued.url).path, self._scope, main)
        match decision:
            case Outcome():
                self._books.book(after_refusal(decision, self._policy.revisit, self._clock.now()))
            case Fetch(verdict):
                line = None if verdict is None else verdict.line
                delay_s = None if rules is None else rules.crawl_delay_s
                expires_at = site.copy.expires_at
                await self._fetch(queued, FetchPermit(site.id, group, expires_at, site.robots_id, line, delay_s))
            case _:
                assert_never(decision)

    async def _fetch(self, queued: Queued, permit: FetchPermit) -> None:
        if counted := queued.seen is None and self._budget.is_limited:
            await self._gate.pause(permit.group)  # first: meanwhile another group may have this page
            if not await self._gate.idle(self._budget.take()):
                return
        fetched = False
        try:
            result = await self._gate.send(self._answers.request(queued), permit)
            fetched = isinstance(result, Fetched) and queued.kind is Kind.PAGE
        finally:
            if counted:
                self._budget.give_back(fetched=fetched)
                if not fetched:
                    self._books.spared()
        if result is not None:  # else it is still queued; the next claim asks robots.txt first
            self._books.book(await self._answers.outcome(queued, result))
