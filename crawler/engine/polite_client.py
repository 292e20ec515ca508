"""Single requests outside a crawl, on its store: robots.txt first, at the pace that the store remembers, logged.

Every request is committed before the next one is sent, with the pause that it asks for; a crash in between keeps the
pause too (``politeness_group.visited_by``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from crawler.clock import Clock
from crawler.engine.gate import Fetcher, FetchPermit, Gate
from crawler.engine.lease import Lease
from crawler.engine.outbox import Outbox
from crawler.engine.progress import Progress
from crawler.engine.robots_cache import RobotsKeeper, RobotsNeeds
from crawler.errors import LeaseLost
from crawler.frontier.decide import Fetch
from crawler.frontier.politeness import Pace, PolitenessSettings, group_name
from crawler.model import FetchResult, Request, RobotsAction, RobotsCopy
from crawler.robots.readings import SiteRules
from crawler.store.protocols import ClaimedSite, ClaimLimits, RequestRow, RobotsNews, Store
from crawler.url import split

_NOTHING_TO_CLAIM = ClaimLimits(groups=0)
_ROBOTS_ID = "SELECT max(robots_copy) AS number FROM robots_answers WHERE site = ?"


_LOOK_EVERY_S = 1.0  # for a site that a worker of a crawl is at


@dataclass(frozen=True, slots=True)
class Closed:
    """Nothing was sent: why the site may not be asked, or not now."""

    why: str


class PoliteClient:
    """Sends what it is given, one request after the other."""

    def __init__(
        self,
        store: Store,
        fetcher: Fetcher,
        clock: Clock,
        politeness: PolitenessSettings,
        robots: RobotsNeeds,
        lease: Lease,
    ) -> None:
        self._store = store
        self._clock = clock
        self._group_by = politeness.group
        self._pending = Outbox()
        self._visited: set[str] = set()  # groups to give back
        self._gate = Gate(fetcher, clock, politeness, 1, self._log, lease=lease)
        visited = self._visited.add
        self._robots = RobotsKeeper(
            robots, self._gate, store, clock, self._commit_robots, visited, Progress(clock.now()).met
        )

    async def send(self, request: Request) -> FetchResult | Closed:
        """Ask robots.txt where that is due, wait for the site's turn, send. Redirects are not followed.

        Raises :class:`crawler.errors.StoreError`; what was sent is logged even where that is a lease that was lost.
        """
        place = split(request.url)
        group = group_name(place.site, self._group_by)
        site = await self._site(place.site)
        self._gate.enter(group, await self._store.group_pace(group))
        try:
            while True:
                copy = await self._robots.in_force(site, group)
                rules = await self._robots.rules(site.name, copy)
                allowed = permission(site.name, copy, rules, place.path)
                if isinstance(allowed, Closed):
                    return allowed
                await self._visit(place.site)
                delay_s = None if rules is None else rules.crawl_delay_s
                line = None if allowed.verdict is None else allowed.verdict.line
                permit = FetchPermit(site.id, group, copy.expires_at, site.robots_id, line, delay_s)
                result = await self._gate.send(request, permit)
                if result is not None:  # else robots.txt ran out while it waited
                    return result
        finally:
            pace = self._gate.leave(group)
            self._visited.add(group)
            await self._commit({group: pace})

    async def _visit(self, site: str) -> int:
        """The number of a site, once nobody else is at it."""
        while (number := await self._store.visit(site)) is None:
            await self._clock.sleep(_LOOK_EVERY_S)
        return number

    async def _site(self, name: str) -> ClaimedSite:
        number = await self._visit(name)
        copy, delay_s = await self._store.robots_copy(name), await self._store.crawl_delay(name)
        rows = await self._store.query(_ROBOTS_ID, (name,))
        return ClaimedSite(number, name, copy, rows[0]["number"], delay_s)

    def _log(self, row: RequestRow, group: str, pace: Pace) -> None:
        self._pending.requests.append(row)
        self._pending.paces[group] = pace

    async def _commit_robots(self, news: RobotsNews, group: str) -> int | None:
        self._pending.robots.append(replace(news, sitemaps=()))
        robots_ids = await self._commit({group: self._gate.pace(group)})
        return robots_ids[news.site_id]

    async def _commit(self, paces: dict[str, Pace]) -> dict[int, int]:
        pending, self._pending = self._pending, Outbox()
        pending.paces |= paces
        pending.visited, self._visited = self._visited, set()
        now = self._clock.now()
        try:
            result = await self._store.commit(pending.turn(now, _NOTHING_TO_CLAIM, 0.0))
        except LeaseLost as lost:
            if not lost.committed:
                await self._store.commit_late(pending.late(now))
            raise
        self._gate.stored(pending.paces)
        return result.robots_ids


def permission(site: str, copy: RobotsCopy, rules: SiteRules | None, path: str) -> Fetch | Closed:
    """Whether robots.txt lets ``path`` be asked for now. Pure."""
    match copy.action:
        case RobotsAction.FREE:
            return Fetch(None)
        case RobotsAction.PARSE:
            assert rules is not None, "a parsed robots.txt has rules"
            verdict = rules.verdict(path)
            if verdict.allowed:
                return Fetch(verdict)
            why = f"closes {path.partition('?')[0]} (line {verdict.line}, {verdict.text.strip()}): it is not asked"
        case RobotsAction.RESTRICTED:
            why = f"closes the whole site ({copy.status}): nothing is asked there"
        case RobotsAction.UNREACHABLE:
            return Closed(f"{site}: {copy.note or copy.status}")
        case RobotsAction.DEFER | RobotsAction.GIVEN_UP:
            why = f"cannot be had ({copy.status}): nothing is asked there meanwhile, try again later"
        case _:
            assert_never(copy.action)
    return Closed(f"{site}/robots.txt {why}")
