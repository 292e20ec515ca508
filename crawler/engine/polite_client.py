"""Single requests outside a crawl, on its store: after robots.txt, at the pace that the store remembers, logged.

Every request is committed before the next one is sent, with the pause that it asks for. A crash in between keeps the
pause, too: its group is claimed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from crawler.clock import Clock
from crawler.engine.alarm import Alarm
from crawler.engine.crawl_policy import RobotsPolicy
from crawler.engine.gate import AddressBook, Fetcher, FetcherSide, FetchPermit, Gate
from crawler.engine.lease import Lease
from crawler.engine.loop_lag import LoopLag
from crawler.engine.outbox import Outbox
from crawler.engine.parser_pool import PageReader
from crawler.engine.permission import Closed, permission
from crawler.engine.progress import Progress
from crawler.engine.robots_cache import RobotsCache
from crawler.engine.workbench import Workbench
from crawler.errors import LeaseLost
from crawler.frontier.politeness import PolitenessSettings, group_name
from crawler.model import FetchResult, Request
from crawler.store.rows import ClaimedSite, RobotsTarget
from crawler.url import split

if TYPE_CHECKING:
    from crawler.store.sections import Store

_CHECK_EVERY_S = 1.0  # at a site that a worker of a crawl has claimed
_CHECKS = 30  # at a site that a robots.txt waits for

T = TypeVar("T")


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
        reader: PageReader,
    ) -> None:
        """``book`` has the addresses that requests are counted at; ``None`` for a fetcher without addresses.

        ``reader`` reads large robots.txt files.
        """
        self._store = store
        self._clock = clock
        self._group_by = politeness.group
        self._alarm = Alarm()
        self._outbox = Outbox(clock, self._alarm)
        # The operator starts an auxiliary run, at whatever hour.
        at_any_hour = replace(politeness, hours=(), sites=tuple(rule._replace(hours="") for rule in politeness.sites))
        side = FetcherSide(fetcher=fetcher, reader=reader, lease=lease, lag=LoopLag(clock), book=book)
        self._gate = Gate(side, clock, Workbench(at_any_hour, slots=1), self._outbox)
        progress = Progress(clock.now())
        self._robots_cache = RobotsCache(robots, self._gate, store, clock, self._outbox, reader, progress)

    async def send(self, request: Request) -> FetchResult | Closed:
        """Request robots.txt if that is due, wait until the site may be asked, send. Redirects are not followed.

        Raises :class:`crawler.errors.StoreError`. What was sent is logged even if the lease was lost.
        """
        await self._robots_cache.main_sites.remember()
        while True:
            name = split(request.url).site
            while (number := await self._store.claim_group(name)) is None:
                await self._clock.sleep(_CHECK_EVERY_S)
            said = await self._at(number, name, partial(self._sent, request))
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
            rules = await self._robots_cache.rules_cache.rules(site.name, copy)
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
                further = await self._at(number, target.site, partial(self._robots_cache.answer, target))
                if further is None:
                    return
                await self._answer(further)
            await self._clock.sleep(_CHECK_EVERY_S)

    async def _at(self, number: int, name: str, work: Callable[[ClaimedSite, str], Coroutine[Any, Any, T]]) -> T:
        """The result of ``work`` on a site. Its group, which was claimed by its ``number``, is released at the end."""
        group = group_name(name, self._group_by)
        site = await self._robots_cache.store_site(name)
        self._gate.bench.enter(group, await self._store.group_pace(group))
        working = asyncio.create_task(work(site, group))
        working.add_done_callback(lambda _: self._alarm.ring())
        try:
            while not working.done():
                await self._alarm.wait(None)
                if self._alarm.is_urgent:
                    await self._commit()
            return await working
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            self._outbox.release(number, group, self._gate.leave(group))
            await self._commit()

    async def _commit(self) -> None:
        """Commit the contents of the outbox."""
        contents = self._outbox.next_batch()
        contents.now = self._clock.now()
        try:
            result = await self._store.commit(contents)
        except LeaseLost as lost:
            if not lost.committed:
                await self._store.commit_late(contents)
            raise
        self._outbox.committed(result.robots_ids)
        self._outbox.finish(contents)
