"""Single requests outside a crawl, on its store: after robots.txt, at the pace that the store remembers, logged.

Every request is committed before the next one is sent, with the pause that it asks for. A crash in between keeps the
pause, too: its group is claimed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from crawler.clock import Clock
from crawler.engine.alarm import Alarm
from crawler.engine.crawl_policy import RobotsPolicy
from crawler.engine.gate import AddressBook, Fetcher, FetchPermit, Gate, Transport
from crawler.engine.lease import Lease
from crawler.engine.main_sites import MainSites
from crawler.engine.outbox import Outbox
from crawler.engine.parser_pool import RobotsReader
from crawler.engine.permission import Closed, permission
from crawler.engine.progress import Progress
from crawler.engine.robots_cache import RobotsCache
from crawler.engine.rules_cache import RulesCache
from crawler.engine.workbench import Workbench
from crawler.errors import LeaseLost
from crawler.frontier.politeness import Pace, PolitenessSettings, group_name
from crawler.model import FetchResult, Request
from crawler.robots.readings import SiteRules
from crawler.store.rows import ClaimedSite, RobotsNews, RobotsTarget
from crawler.url import split

if TYPE_CHECKING:
    from crawler.store.sections import Store

_CHECK_EVERY_S = 1.0  # at a site that a worker of a crawl has claimed
_CHECKS = 30  # at a site that a robots.txt waits for


class PoliteClient:
    """Sends requests, one after the other.

    Invariant: when :meth:`send` returns or raises, the requests it sent are committed, and no group is kept from the
    crawl.
    """

    def __init__(
        self,
        store: Store,
        fetcher: Fetcher,
        clock: Clock,
        politeness: PolitenessSettings,
        robots: RobotsPolicy,
        lease: Lease,
        book: AddressBook | None,
        reader: RobotsReader,
    ) -> None:
        """``book`` has the addresses that requests are counted at; ``None`` for a fetcher without addresses.

        ``reader`` reads large robots.txt files.
        """
        self._store = store
        self._clock = clock
        self._group_by = politeness.group
        outbox = Outbox(clock, Alarm())
        self._outbox = outbox
        # The operator starts an auxiliary run, at whatever hour.
        at_any_hour = replace(politeness, hours=(), sites=tuple(rule._replace(hours="") for rule in politeness.sites))
        bench = Workbench(at_any_hour, slots=1)
        self._gate = Gate(Transport(fetcher=fetcher, lease=lease, book=book), clock, bench, outbox)
        self._commits = _Commits(store, clock, outbox, self._gate, bench)
        self._main_sites = MainSites(store, clock, outbox)
        self._rules_cache = RulesCache(robots, self._gate, store, self._main_sites, reader)
        self._robots_cache = RobotsCache(
            policy=robots,
            gate=self._gate,
            store=store,
            clock=clock,
            intake=self._commits,
            may_ask=lambda site: False,
            progress=Progress(clock.now()),
            main_sites=self._main_sites,
            rules_cache=self._rules_cache,
            outbox=outbox,
        )

    async def send(self, request: Request) -> FetchResult | Closed:
        """Request robots.txt if that is due, wait until the site may be asked, send. Redirects are not followed.

        Raises :class:`crawler.errors.StoreError`. What was sent is logged even if the lease was lost.
        """
        await self._main_sites.remember()
        while True:
            name = split(request.url).site
            while (number := await self._store.claim_group(name)) is None:
                await self._clock.sleep(_CHECK_EVERY_S)
            async with self._claimed(number, name) as (site, group):
                said = await self._sent(request, site, group)
            if not isinstance(said, RobotsTarget):
                return said
            await self._answer(said)

    async def _sent(self, request: Request, site: ClaimedSite, group: str) -> FetchResult | Closed | RobotsTarget:
        """As :meth:`send`, or the URL of another site that the robots.txt of ``site`` waits for."""
        path = split(request.url).path
        while True:
            copy = await self._robots_cache.in_force(site, group)
            if isinstance(copy, RobotsTarget):
                return copy
            rules = await self._rules_cache.rules(site.name, copy)
            allowed = permission(site.name, copy, rules, path)
            if isinstance(allowed, Closed):
                return allowed
            permit = FetchPermit.under(site, group, copy, rules, allowed)
            result = await self._gate.send(request, permit)
            if result is not None:  # else the robots copy ran out while the request waited
                return result

    async def _answer(self, target: RobotsTarget) -> None:
        """Get a URL that a robots.txt waits for, and before it those that its own robots.txt waits for.

        If a worker of a crawl has claimed the site for long, the robots.txt has waited in vain.
        """
        for _ in range(_CHECKS):
            if (number := await self._store.claim_group(target.site)) is not None:
                async with self._claimed(number, target.site) as (site, group):
                    further = await self._robots_cache.answer(target, site, group)
                if further is None:
                    return
                await self._answer(further)
            await self._clock.sleep(_CHECK_EVERY_S)

    @asynccontextmanager
    async def _claimed(self, number: int, name: str) -> AsyncIterator[tuple[ClaimedSite, str]]:
        """A context in which a site is worked on. Its group is claimed, and released at the end."""
        group = group_name(name, self._group_by)
        site = await self._robots_cache.store_site(name)
        self._gate.enter(group, await self._store.group_pace(group))
        try:
            yield site, group
        finally:
            await self._commits.all_of({group: self._gate.leave(group)}, [number])


class _Commits:
    """Commits the results of the requests of a :class:`PoliteClient` at once."""

    def __init__(self, store: Store, clock: Clock, outbox: Outbox, gate: Gate, bench: Workbench) -> None:
        self._store = store
        self._clock = clock
        self._outbox = outbox
        self._gate = gate
        self._bench = bench

    async def commit(self, news: RobotsNews, rules: SiteRules | None, group: str) -> int | None:
        """Commit a robots copy. The sitemaps that it names are left to the crawl."""
        self._outbox.add_robots(news, group, self._gate.pace(group))
        robots_ids = await self.all_of({})
        return robots_ids[news.site_id]

    def hand_in(self, news: RobotsNews, rules: SiteRules | None) -> None:
        """Leave a robots copy to the next commit."""
        self._outbox.add_robots_elsewhere(news)

    async def all_of(self, paces: Mapping[str, Pace], released: Sequence[int] = ()) -> Mapping[int, int]:
        """Commit the contents of the outbox, ``paces``, and the release of groups.

        Returns the numbers of robots copies, by site.
        """
        contents = self._outbox.next_batch()
        contents.paces |= paces
        contents.released += released
        contents.now = self._clock.now()
        try:
            result = await self._store.commit(contents)
        except LeaseLost as lost:
            if not lost.committed:
                await self._store.commit_late(contents)
            raise
        self._bench.stored(contents.paces)
        self._outbox.committed(result.robots_ids)
        return result.robots_ids
