"""The robots.txt of each site: the copy in force, requested from the site if there is none or it has run out."""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from crawler.clock import Clock
from crawler.engine import operator_log
from crawler.engine.caution import NORMAL, Visit
from crawler.engine.gate import Blocked, FetchPermit, Gate
from crawler.engine.outbox import Outbox
from crawler.errors import CrawlerError, Fault
from crawler.frontier.operator import BLOCKED
from crawler.frontier.politeness import GroupBy, Pace, group_name
from crawler.model import Failed, FetchResult, Purpose, Reading, Request, RobotsAction, RobotsCopy
from crawler.reasons import ErrorKind
from crawler.robots.mirrors import Cycle, Main, main_of
from crawler.robots.readings import SiteRules, read
from crawler.robots.response import Follow, RobotsSettings, interpret
from crawler.robots.text import parse
from crawler.store.protocols import HORIZON_S, AgentLine, ClaimedSite, Frontier, RobotsNews
from crawler.url import split

#: The headers that say how long an answer holds, and whether it is whole. An audit judges the answer by them again.
_KEPT = frozenset(("cache-control", "expires", "date", "age", "retry-after", "content-range"))
_RULES_KEPT = 10_000  # with many sites, each is claimed anew for every request
_RULES_KEPT_BYTES = 64 << 20  # of memory, estimated: within a fifth for large files
_BYTES_PER_FILE, _BYTES_PER_RULE, _BYTES_PER_OCTET = 2000, 256, 8
_LARGE_BYTES = 32 << 10  # a larger file takes tens of milliseconds, one of 512 KiB 0.3 s: it is read in a thread
_LOOK_EVERY_S = 10.0
_TRIES_ABROAD, _TRY_ABROAD_EVERY_S = 20, 0.1


class _Busy(Exception):
    """Another worker has claimed the site that a robots.txt is redirected to."""


@dataclass(frozen=True, slots=True)
class RobotsNeeds:
    """The settings and collaborators for requesting and reading robots.txt."""

    settings: RobotsSettings
    token: str
    group_by: GroupBy
    knows_host: Callable[[str], bool]


class RobotsIntake(Protocol):
    """Commits robots copies."""

    async def commit(self, news: RobotsNews, rules: SiteRules | None, group: str) -> int | None:
        """Commit a copy, with its ``rules`` if it is a file, and with the pace that the gate has for ``group``.

        Returns the number that the store has given the copy.
        """
        ...


class FaultCounter(Protocol):
    """Counts bugs of the crawler."""

    def count_fault(self, error: Exception) -> str:
        """Count a bug, and describe it on one line."""
        ...


class RobotsCache:
    """Robots copies and their rules, for the sites that are worked on.

    Invariant: when :meth:`in_force` returns a copy, that copy is committed. So the store knows the copy that any later
    request is sent under.
    """

    def __init__(
        self,
        needs: RobotsNeeds,
        gate: Gate,
        store: Frontier,
        clock: Clock,
        intake: RobotsIntake,
        outbox: Outbox,
        faults: FaultCounter,
    ) -> None:
        self._needs = needs
        self._gate = gate
        self._store = store
        self._clock = clock
        self._intake = intake
        self._outbox = outbox
        self._faults = faults
        self._looked_at = -math.inf
        self._unsettled: set[str] = set()  # sites whose copies are being committed
        self._mains: dict[str, str] = {}  # main sites by mirror: few, compared with the sites crawled
        self._rules_bytes = 0
        self._rules: OrderedDict[tuple[str, bytes], tuple[SiteRules, int]] = OrderedDict()  # with their size in bytes

    @property
    def reading(self) -> Reading:
        return self._needs.settings.reading

    async def in_force(self, site: ClaimedSite, group: str, visit: Visit = NORMAL) -> RobotsCopy:
        """The copy that applies to ``site`` now, requested if the one known has run out.

        A new copy is processed as a part of ``visit``, until it is committed; then ``site`` heeds it. Cancellation
        leaves the copy known before in force. Raises :class:`crawler.errors.StoreError` and
        :class:`crawler.engine.gate.Blocked`.
        """
        if site.name in self._mains:
            await self._catch_up()
        if site.copy is not None and not await self._must_ask(site.copy):
            return site.copy
        copy, answer, rules = await self._asked(site, group, visit)
        crawl_delay_s = None if rules is None else rules.crawl_delay_s
        if copy.action is RobotsAction.DEFER:  # the delay of the last robots.txt that was fetched counts
            crawl_delay_s = site.crawl_delay_s
        self._gate.heed_crawl_delay(group, site.id, answer, crawl_delay_s)
        main_site = None if rules is None else rules.main_site
        if copy.action is RobotsAction.DEFER:
            main_site = self._mains.get(site.name)
        operator_log.robots_decided(site.name, site.copy, copy)
        copy = self._valid_after_pause(copy, group)
        if main_site is None:
            self._mains.pop(site.name, None)
        else:
            self._mains[site.name] = main_site
        news = RobotsNews(site.id, site.name, copy, crawl_delay_s, main_site, _agent_lines(rules))
        said = tuple((name, value) for name, value in answer.headers if name.lower() in _KEPT)
        news = replace(news, answered_by=answer.url, headers=said)
        self._unsettled.add(site.name)
        try:
            site.heed(copy, await self._intake.commit(news, rules, group), crawl_delay_s)
        finally:
            self._unsettled.discard(site.name)
        return copy

    async def remember(self) -> None:
        """Load the mirrors that earlier runs have found."""
        self.learn(await self._store.main_sites())

    def learn(self, mirrors: Iterable[tuple[str, str]]) -> None:
        """Add mirrors that other workers have found, as pairs (mirror, main site)."""
        self._mains.update(mirrors)

    async def _catch_up(self) -> None:
        """Every ten seconds, drop the mirrors that other workers have found to be none any more."""
        if self._store.lease_s is None or self._clock.now() < self._looked_at + _LOOK_EVERY_S:
            return
        self._looked_at = self._clock.now()
        known = {mirror: main for mirror, main in self._mains.items() if mirror not in self._unsettled}
        there = {mirror for mirror, _ in await self._store.main_sites()}
        for mirror in known.keys() - there:
            if self._mains.get(mirror) == known[mirror]:  # this worker has not learnt of it again meanwhile
                del self._mains[mirror]

    def main_of(self, site: str) -> Main | Cycle:
        """The end of the chain of ``Host`` claims that begins at ``site``, as far as it is known."""
        return main_of(site, self._mains.get)

    async def sitemaps_of(self, site: str) -> tuple[str, ...] | None:
        """The sitemaps that a site's robots.txt names; ``None`` if that file is not known."""
        known = await self._store.site(site)
        rules = None if known is None or known.copy is None else await self.rules(site, known.copy)
        return None if rules is None else rules.sitemaps

    def _valid_after_pause(self, copy: RobotsCopy, group: str) -> RobotsCopy:
        """``copy``, valid until the pause after it is over: otherwise no page could ever be requested under it."""
        next_at = self._gate.pace(group).next_at
        if copy.action is RobotsAction.DEFER or copy.expires_at > next_at:
            return copy
        return replace(copy, expires_at=next_at + self._needs.settings.min_fresh_s)

    async def rules(self, site: str, copy: RobotsCopy, visit: Visit = NORMAL) -> SiteRules | None:
        """The rules of a copy that is a file, read as a part of ``visit``; ``None`` if the answer alone decides."""
        if copy.action is not RobotsAction.PARSE:
            return None
        key = (site, copy.sha256)
        if key in self._rules:
            self._rules.move_to_end(key)
            return self._rules[key][0]
        await visit.begin_processing()
        if len(copy.body) > _LARGE_BYTES:
            rules = await asyncio.to_thread(self._read, site, copy)
        else:
            rules = self._read(site, copy)
        if key in self._rules:  # another task read the file meanwhile
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
        """Whether a copy has run out. Waits for the time of a deferred site that was claimed a little early."""
        if copy.action is not RobotsAction.DEFER or copy.retry_at is None:
            return self._clock.now() >= copy.expires_at
        while 0 < (early_s := copy.retry_at - self._clock.now()) < 2 * HORIZON_S:
            await self._gate.idle(self._clock.sleep(early_s))
        return early_s <= 0

    async def _asked(
        self, site: ClaimedSite, group: str, visit: Visit
    ) -> tuple[RobotsCopy, FetchResult, SiteRules | None]:
        """The copy, the last answer and the rules of robots.txt now. A bug that comes to light defers the site."""
        seen = [f"{site.name}/robots.txt"]
        try:
            copy, answer = await self._ask(site, group, seen, visit)
            return copy, answer, await self.rules(site.name, copy, visit)
        except (CrawlerError, Blocked):
            raise
        except Exception as error:
            now, detail = self._clock.now(), self._faults.count_fault(error)
            settings = replace(self._needs.settings, stale_if_error=False)
            failed = Failed(seen[-1], now, now, kind=ErrorKind.FAULT, detail=detail)
            unread = interpret(failed, settings=settings, previous=site.copy, hops=0, seen=(), now=now)
            assert isinstance(unread, RobotsCopy)
            return unread, failed, None

    async def _ask(
        self, site: ClaimedSite, group: str, seen: list[str], visit: Visit
    ) -> tuple[RobotsCopy, FetchResult]:
        """Fetch /robots.txt over any redirects, each host at its own pace. Returns the copy and the last answer.

        ``seen`` gets the URLs.
        """
        heard: FetchResult | None = None
        while True:
            await visit.end_processing()
            answer = await self._send(seen[-1], site, group, first=len(seen) == 1)
            await visit.begin_processing()
            if isinstance(answer, Failed) and answer.kind is ErrorKind.FAULT:
                raise Fault(answer.detail)
            now = self._clock.now()
            if isinstance(answer, str):  # nothing was sent: the robots.txt cannot be fetched now
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
        """The answer, or the reason why another site may not be asked now."""
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
            except Blocked:  # the other site is, not the one that the robots.txt is for
                return f"{host_site} is {BLOCKED}"
            except _Busy:
                return f"{host_site} is held by another worker"
        assert answer is not None, "a permit for robots.txt does not run out"
        return answer

    async def _send_abroad(self, request: Request, host_site: str, site_id: int) -> FetchResult | None:
        """Send a request to another site, which another task may work on: at that site's pace and ``Crawl-delay``."""
        group = group_name(host_site, self._needs.group_by)
        self._gate.enter(group, Pace())  # before the store is asked: the gate must not forget the group meanwhile
        self._outbox.begin_reservation(group)
        try:
            number = await self._admission(host_site)
            host = await self._store.site(host_site)
            delay_s = None if host is None else host.crawl_delay_s
            self._gate.keep(group, await self._store.group_pace(group))
            return await self._gate.send(
                request, FetchPermit(number, group, crawl_delay_s=delay_s, for_site_id=site_id)
            )
        finally:
            self._gate.leave(group)
            self._outbox.end_reservation(group)

    async def _admission(self, host_site: str) -> int:
        """The number of a site that no other worker has claimed: it may be asked once.

        Raises :class:`_Busy` if another worker keeps the site: two workers that wait for each other's sites would wait
        forever.
        """
        for _ in range(_TRIES_ABROAD):
            number = await self._store.reserve(host_site)
            if number is not None:
                return number
            await self._gate.idle(self._clock.sleep(_TRY_ABROAD_EVERY_S))
        raise _Busy


def _agent_lines(rules: SiteRules | None) -> tuple[AgentLine, ...]:
    """The correct ``Mobile-agent-server`` lines of a file, as the store keeps them."""
    if rules is None:
        return ()
    servers = zip(rules.servers.latest_first, rules.servers.paths, strict=True)
    lines = [AgentLine(server.line, path, server.url) for server, path in servers if server.line is not None]
    return tuple(reversed(lines))
