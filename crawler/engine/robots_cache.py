"""robots.txt first, always: brings the copy in force, asking the site where there is none or it has run out."""

from __future__ import annotations

import asyncio
import math
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace

from crawler.clock import Clock
from crawler.engine import operator_log
from crawler.engine.gate import Blocked, FetchPermit, Gate
from crawler.errors import CrawlerError, Fault
from crawler.frontier.operator import BLOCKED
from crawler.frontier.politeness import GroupBy, Pace, group_name
from crawler.model import Failed, FetchResult, Purpose, Reading, Request, RobotsAction, RobotsCopy
from crawler.reasons import ErrorKind
from crawler.robots.mirrors import Cycle, Main, main_of
from crawler.robots.readings import SiteRules, read
from crawler.robots.response import Follow, RobotsSettings, interpret
from crawler.robots.text import parse
from crawler.store.protocols import HORIZON_S, AgentLine, ClaimedSite, RobotsNews, Store
from crawler.url import split

#: The headers that say how long an answer holds, and whether it is whole; kept, so that an audit can judge it again.
_KEPT = frozenset(("cache-control", "expires", "date", "age", "retry-after", "content-range"))
_RULES_KEPT = 10_000  # in a crowd each site is claimed anew for every request
_RULES_KEPT_BYTES = 64 << 20  # of memory, reckoned as measured: within a fifth for large files
_BYTES_PER_FILE, _BYTES_PER_RULE, _BYTES_PER_OCTET = 2000, 256, 8
_LARGE_BYTES = 32 << 10  # a larger file takes tens of milliseconds, one of 512 KiB 0.3 s: read in a thread
_LOOK_EVERY_S = 10.0
_TRIES_ABROAD, _TRY_ABROAD_EVERY_S = 20, 0.1


class _Busy(Exception):
    """Another worker is at the site that a robots.txt is redirected to."""


@dataclass(frozen=True, slots=True)
class RobotsNeeds:
    """What asking for robots.txt takes."""

    settings: RobotsSettings
    token: str
    group_by: GroupBy
    knows_host: Callable[[str], bool]


class RobotsKeeper:
    """Robots copies and their rules for the sites being worked on."""

    def __init__(
        self,
        needs: RobotsNeeds,
        gate: Gate,
        store: Store,
        clock: Clock,
        commit: Callable[[RobotsNews, str], Awaitable[int | None]],
        visited: Callable[[str], None],
        met: Callable[[Exception], str],
    ) -> None:
        self._needs = needs
        self._gate = gate
        self._store = store
        self._clock = clock
        self._commit = commit
        self._visited = visited
        self._met = met  # counts a bug of ours and tells it
        self._visits: Counter[str] = Counter()  # under way, by group
        self._looked_at = -math.inf
        self._unsettled: set[str] = set()  # whose copies are being committed
        self._mains: dict[str, str] = {}  # mirrors and what they name: few, next to the sites crawled
        self._rules_bytes = 0
        self._rules: OrderedDict[tuple[str, bytes], tuple[SiteRules, int]] = OrderedDict()  # with their memory

    @property
    def reading(self) -> Reading:
        return self._needs.settings.reading

    async def in_force(self, site: ClaimedSite, group: str) -> RobotsCopy:
        """The copy that applies to ``site`` now; it is committed before any page is asked for under it."""
        if site.name in self._mains:
            await self._catch_up()
        if site.copy is not None and not await self._must_ask(site.copy):
            return site.copy
        copy, answer, rules = await self._asked(site, group)
        if copy.action is not RobotsAction.DEFER:  # while its robots.txt cannot be had, a site's last word counts
            site.crawl_delay_s = None if rules is None else rules.crawl_delay_s
        self._gate.heed_crawl_delay(group, site.id, answer, site.crawl_delay_s)
        main_site = None if rules is None else rules.main_site
        if copy.action is RobotsAction.DEFER:
            main_site = self._mains.get(site.name)
        operator_log.robots_decided(site.name, site.copy, copy)
        site.copy = copy = self._lasting(copy, group)
        if main_site is None:
            self._mains.pop(site.name, None)
        else:
            self._mains[site.name] = main_site
        news = RobotsNews(site.id, site.name, copy, site.crawl_delay_s, main_site, _agent_lines(rules))
        said = tuple((name, value) for name, value in answer.headers if name.lower() in _KEPT)
        news = replace(news, answered_by=answer.url, headers=said)
        self._unsettled.add(site.name)
        try:
            site.robots_id = await self._commit(news, group)
        finally:
            self._unsettled.discard(site.name)
        return copy

    async def remember(self) -> None:
        """Take up the mirrors that earlier runs have learnt of."""
        self.learn(await self._store.main_sites())

    def learn(self, mirrors: Iterable[tuple[str, str]]) -> None:
        """Take up what other workers have learnt of: (mirror, main site)."""
        self._mains.update(mirrors)

    async def _catch_up(self) -> None:
        """Now and then, forget the mirrors that other workers have found to be none any more."""
        if self._store.lease_s is None or self._clock.now() < self._looked_at + _LOOK_EVERY_S:
            return
        self._looked_at = self._clock.now()
        known = {mirror: main for mirror, main in self._mains.items() if mirror not in self._unsettled}
        there = {mirror for mirror, _ in await self._store.main_sites()}
        for mirror in known.keys() - there:
            if self._mains.get(mirror) == known[mirror]:  # nothing was heard of it meanwhile
                del self._mains[mirror]

    def main_of(self, site: str) -> Main | Cycle:
        """Where the chain of ``Host`` claims from ``site`` leads, as far as is known."""
        return main_of(site, self._mains.get)

    async def sitemaps_of(self, site: str) -> tuple[str, ...] | None:
        """The sitemaps that a site's robots.txt names; ``None`` where that file is not known."""
        copy = await self._store.robots_copy(site)
        rules = None if copy is None else await self.rules(site, copy)
        return None if rules is None else rules.sitemaps

    def _lasting(self, copy: RobotsCopy, group: str) -> RobotsCopy:
        """A copy that would run out before the pause after it is over, as one that does not: else no page ever came."""
        next_at = self._gate.pace(group).next_at
        if copy.action is RobotsAction.DEFER or copy.expires_at > next_at:
            return copy
        return replace(copy, expires_at=next_at + self._needs.settings.min_fresh_s)

    async def rules(self, site: str, copy: RobotsCopy) -> SiteRules | None:
        """The reading of a copy that is a file; ``None`` where the answer alone decides."""
        if copy.action is not RobotsAction.PARSE:
            return None
        key = (site, copy.sha256)
        if key in self._rules:
            self._rules.move_to_end(key)
            return self._rules[key][0]
        if len(copy.body) > _LARGE_BYTES:
            rules = await asyncio.to_thread(self._read, site, copy)
        else:
            rules = self._read(site, copy)
        if key in self._rules:  # by somebody else, while the thread read
            return rules
        size = _BYTES_PER_FILE + _BYTES_PER_RULE * rules.size + _BYTES_PER_OCTET * len(copy.body)
        self._rules[key] = (rules, size)
        self._rules_bytes += size
        while len(self._rules) > _RULES_KEPT or (self._rules_bytes > _RULES_KEPT_BYTES and len(self._rules) > 1):
            _, (_, size) = self._rules.popitem(last=False)
            self._rules_bytes -= size
        return rules

    def _read(self, site: str, copy: RobotsCopy) -> SiteRules:
        file = parse(copy.body, max_bytes=self._needs.settings.max_bytes)
        return read(file, token=self._needs.token, reading=self.reading, site=site, knows_host=self._needs.knows_host)

    async def _must_ask(self, copy: RobotsCopy) -> bool:
        """Whether a copy has run out. A deferred site may have been claimed a little before its time: waits for it."""
        if copy.action is not RobotsAction.DEFER or copy.retry_at is None:
            return self._clock.now() >= copy.expires_at
        while 0 < (early_s := copy.retry_at - self._clock.now()) < 2 * HORIZON_S:
            await self._gate.idle(self._clock.sleep(early_s))
        return early_s <= 0

    async def _asked(self, site: ClaimedSite, group: str) -> tuple[RobotsCopy, FetchResult, SiteRules | None]:
        """What robots.txt says now. A bug of ours that this brings to light defers the site, whatever held before."""
        seen = [f"{site.name}/robots.txt"]
        try:
            copy, answer = await self._ask(site, group, seen)
            return copy, answer, await self.rules(site.name, copy)
        except (CrawlerError, Blocked):
            raise
        except Exception as error:
            now, detail = self._clock.now(), self._met(error)
            settings = replace(self._needs.settings, stale_if_error=False)
            failed = Failed(seen[-1], now, now, kind=ErrorKind.FAULT, detail=detail)
            unread = interpret(failed, settings=settings, previous=site.copy, hops=0, seen=(), now=now)
            assert isinstance(unread, RobotsCopy)
            return unread, failed, None

    async def _ask(self, site: ClaimedSite, group: str, seen: list[str]) -> tuple[RobotsCopy, FetchResult]:
        """Fetch /robots.txt, redirects followed over any host, each at its own host's pace; with the last answer.
        ``seen`` gets the URLs."""
        heard: FetchResult | None = None
        while True:
            answer = await self._send(seen[-1], site, group, first=len(seen) == 1)
            if isinstance(answer, Failed) and answer.kind is ErrorKind.FAULT:
                raise Fault(answer.detail)
            now = self._clock.now()
            if isinstance(answer, str):  # nothing was sent: the site's robots.txt cannot be had for now
                answer = Failed(seen[-1], now, now, kind=ErrorKind.CONNECT, detail=answer)
            else:
                heard = answer
            meaning = interpret(
                answer, settings=self._needs.settings, previous=site.copy, hops=len(seen) - 1, seen=tuple(seen), now=now
            )
            if isinstance(meaning, RobotsCopy):
                return meaning, heard or answer
            assert isinstance(meaning, Follow)
            seen.append(meaning.url)

    async def _send(self, url: str, site: ClaimedSite, group: str, *, first: bool) -> FetchResult | str:
        """The answer, or why another site is not to be asked now."""
        previous = site.copy if first else None
        request = Request(
            url,
            Purpose.ROBOTS,
            max_bytes=self._needs.settings.max_bytes,
            truncate=True,
            any_type=True,
            etag=previous.etag if previous else None,
            last_modified=previous.last_modified if previous else None,
        )
        host_site = split(url).site
        if host_site == site.name:
            answer = await self._gate.send(request, FetchPermit(site.id, group))
        else:
            try:
                answer = await self._send_abroad(request, host_site, site.id)
            except Blocked:  # the site itself is not
                return f"{host_site} is {BLOCKED}"
            except _Busy:
                return f"{host_site} is being asked by another worker"
        assert answer is not None, "a permit for robots.txt does not run out"
        return answer

    async def _send_abroad(self, request: Request, host_site: str, site_id: int) -> FetchResult | None:
        """A hop to another site, which may be worked on at the same time: at its pace, its Crawl-delay kept."""
        group = group_name(host_site, self._needs.group_by)
        self._gate.enter(group, Pace())  # first, so that nothing is forgotten while the store is asked
        self._visits[group] += 1
        try:
            number = await self._admission(host_site)
            delay_s = await self._store.crawl_delay(host_site)
            self._gate.keep(group, await self._store.group_pace(group))
            return await self._gate.send(
                request, FetchPermit(number, group, crawl_delay_s=delay_s, for_site_id=site_id)
            )
        finally:
            self._gate.leave(group)
            self._visits[group] -= 1
            if not self._visits[group]:
                del self._visits[group]
                self._visited(group)

    async def _admission(self, host_site: str) -> int:
        """The number of a site that may be asked once, as no other worker is at it.

        Raises :class:`_Busy` where one is for long: two that wait for each other's sites would wait for ever.
        """
        for _ in range(_TRIES_ABROAD):
            number = await self._store.visit(host_site)
            if number is not None:
                return number
            await self._gate.idle(self._clock.sleep(_TRY_ABROAD_EVERY_S))
        raise _Busy

    def is_visiting(self, group: str) -> bool:
        """Whether a request for a robots.txt elsewhere is under way in a group, or about to be."""
        return group in self._visits


def _agent_lines(rules: SiteRules | None) -> tuple[AgentLine, ...]:
    """The correct ``Mobile-agent-server`` lines of a file, as the store keeps them."""
    if rules is None:
        return ()
    servers = zip(rules.servers.latest_first, rules.servers.paths, strict=True)
    lines = [AgentLine(server.line, path, server.url) for server, path in servers if server.line is not None]
    return tuple(reversed(lines))
