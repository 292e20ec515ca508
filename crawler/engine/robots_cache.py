"""The robots.txt of each site: the copy in force, requested from the site if there is none or it has run out."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import replace
from typing import Protocol

from crawler.clock import Clock
from crawler.engine import operator_log
from crawler.engine.crawl_policy import RobotsPolicy
from crawler.engine.gate import Gate, GivenBack, Unsent
from crawler.engine.main_sites import MainSites
from crawler.engine.progress import Progress
from crawler.engine.reservations import Reservations
from crawler.engine.robots_requests import CopyInForce, Inquiry, ObtainedCopy, RobotsRequests
from crawler.engine.rules_cache import RulesCache
from crawler.errors import CrawlerError
from crawler.model import Failed, Fetched, RobotsAction, RobotsCopy
from crawler.reasons import ErrorKind
from crawler.robots.readings import SiteRules
from crawler.robots.response import interpret
from crawler.robots.text import SMALL_BYTES
from crawler.store.protocols import HORIZON_S, AgentLine, ClaimedSite, Frontier, RobotsNews
from crawler.url import ROBOTS_PATH, host_of, registrable_domain

#: The headers that say how long an answer holds, and whether it is whole. An audit judges the answer by them again.
_KEPT = frozenset(("cache-control", "expires", "date", "age", "retry-after", "content-range"))
_UNREAD_KEPT = 10_000  # answers with large files that wait to be read


class RobotsIntake(Protocol):
    """Commits robots copies."""

    def admits(self, site: str) -> bool:
        """Whether another site may be asked whether it is the main site of a mirror."""
        ...

    async def commit(self, news: RobotsNews, rules: SiteRules | None, group: str) -> int | None:
        """Commit a copy, with its ``rules`` if it is a file, and with the pace that the gate has for ``group``.

        Returns the number that the store has given the copy.
        """
        ...


class RobotsCache:
    """The copy in force of each site that is worked on.

    Invariants:

    1. When :meth:`in_force` returns a copy, that copy is committed. So the store knows the copy that any later request
       is sent under.
    2. The pause of a site prolongs only a copy that was requested for it.
    3. The text of a large file (``SMALL_BYTES``) is put into the store when it has arrived. If two others are being
       read then, the group is given back, and the file is read at a later claim. The answer is remembered until then,
       so the site is not asked again.
    """

    def __init__(
        self,
        policy: RobotsPolicy,
        gate: Gate,
        store: Frontier,
        clock: Clock,
        intake: RobotsIntake,
        progress: Progress,
        main_sites: MainSites,
        rules_cache: RulesCache,
        reservations: Reservations,
    ) -> None:
        self._settings = policy.settings
        self._gate = gate
        self._store = store
        self._clock = clock
        self._intake = intake
        self._progress = progress
        self._main_sites = main_sites
        self._rules_cache = rules_cache
        self._requests = RobotsRequests(policy, gate, store, clock, reservations, rules_cache, self._current)
        self._unread: OrderedDict[str, ObtainedCopy] = OrderedDict()  # by site, without the texts

    async def in_force(self, site: ClaimedSite, group: str, siblings: Collection[ClaimedSite] = ()) -> RobotsCopy:
        """The copy that applies to ``site`` now, requested if the one known has run out.

        When a new copy is committed, ``site`` heeds it. ``siblings`` are the sites of the claim: one of them that a
        redirect leads to heeds its new copy too. Cancellation leaves the copy known before in force. Raises
        :class:`crawler.errors.StoreError` and, for a request to ``site`` itself, :class:`crawler.engine.gate.Blocked`
        and :class:`crawler.engine.gate.GivenBack`.
        """
        return (await self._current(Inquiry(site, {site.name: group}, siblings))).copy

    async def _current(self, inquiry: Inquiry) -> CopyInForce:
        """As :meth:`in_force`, for the site that a claim or a redirect leads to."""
        site = inquiry.site
        await self._main_sites.catch_up(site.name)
        if site.copy is not None and not await self._must_ask(site.copy):
            return CopyInForce(site.copy, is_new=False)
        try:
            return await self._renewed(inquiry)
        finally:
            self._requests.end(site.name)

    async def _must_ask(self, copy: RobotsCopy) -> bool:
        """Whether a copy has run out. Waits for the time of a deferred site that was claimed a little early."""
        if copy.action is not RobotsAction.DEFER or copy.retry_at is None:
            return self._clock.now() >= copy.expires_at
        while 0 < (early_s := copy.retry_at - self._clock.now()) < 2 * HORIZON_S:
            await self._gate.wait_while_open(self._clock.sleep(early_s))
        return early_s <= 0

    async def _renewed(self, inquiry: Inquiry) -> CopyInForce:
        """A new copy, committed."""
        site, group = inquiry.site, inquiry.group
        obtained, rules = await self._obtained(inquiry)
        copy, answer, answered_by, is_new = obtained
        named = None if rules is None else rules.named_site
        if named is not None and self._main_sites.can_be_confirmed(site.name, named):
            self._main_sites.judge(site.name, named, is_confirmed=await self._is_confirmed(named, inquiry))
            rules = await self._rules_cache.rules(site.name, copy)
        crawl_delay_s = None if rules is None else rules.crawl_delay_s
        if copy.action is RobotsAction.DEFER:  # the delay of the last robots.txt that was fetched counts
            crawl_delay_s = site.crawl_delay_s
        self._gate.heed_crawl_delay(group, site.id, answer, crawl_delay_s)
        operator_log.robots_decided(site.name, site.copy, copy)
        if is_new:
            copy = self._valid_after_pause(copy, group)
        said = answer.headers if answered_by == answer.url else ()
        with self._main_sites.declared(site.name, copy, rules) as (main_site, refuted):
            news = RobotsNews(
                site.id,
                site.name,
                copy,
                crawl_delay_s,
                main_site,
                _agent_lines(rules),
                answered_by=answered_by,
                headers=tuple((name, value) for name, value in said if name.lower() in _KEPT),
                refuted=refuted,
            )
            site.heed(copy, await self._intake.commit(news, rules, group), crawl_delay_s)
        self._requests.committed(site, obtained)
        return CopyInForce(copy, is_new)

    async def _is_confirmed(self, named: str, inquiry: Inquiry) -> bool:
        """Whether the ``Host`` line of a site that names ``named`` is to be heeded.

        It is if both have one registered domain. Else ``named`` must name itself as the main site. The crawl asks it,
        if ``named`` is within the scope.
        """
        if registrable_domain(host_of(inquiry.site.name)) == registrable_domain(host_of(named)):
            return True
        copy = await self._requests.copy_of(named, inquiry, may_ask=self._intake.admits(named))
        rules = None if copy is None else await self._rules_cache.rules(named, copy)
        return rules is not None and rules.says_main

    def _valid_after_pause(self, copy: RobotsCopy, group: str) -> RobotsCopy:
        """A new ``copy``, valid until the pause after it is over: otherwise no page could ever be requested under it.

        A copy that another site has had for a while is not prolonged: that site is asked again after the pause.
        """
        next_at = self._gate.pace(group).next_at
        if copy.action is RobotsAction.DEFER or copy.expires_at > next_at:
            return copy
        return replace(copy, expires_at=next_at + self._settings.min_fresh_s)

    async def _obtained(self, inquiry: Inquiry) -> tuple[ObtainedCopy, SiteRules | None]:
        """A new copy and its rules. A bug that comes to light defers the site."""
        site = inquiry.site
        seen = [f"{site.name}{ROBOTS_PATH}"]
        try:
            obtained = self._unread.pop(site.name, None)
            if obtained is None or self._clock.now() >= obtained.copy.expires_at:
                obtained = await self._without_large_text(await self._requests.ask(inquiry, seen))
            try:
                self._rules_cache.require_reader(site.name, obtained.copy, inquiry.group)
            except GivenBack:
                self._unread[site.name] = obtained
                if len(self._unread) > _UNREAD_KEPT:
                    self._unread.popitem(last=False)
                raise
            rules = await self._rules_cache.rules(site.name, obtained.copy)
            if rules is not None and rules.unread:
                note = f"{rules.unread}: the whole site is closed"
                obtained = obtained._replace(copy=replace(obtained.copy, note=note))
            return obtained, rules
        except (CrawlerError, Unsent):
            raise
        except Exception as error:
            now, detail = self._clock.now(), self._progress.count_fault(error)
            settings = replace(self._settings, stale_if_error=False)
            failed = Failed(seen[-1], now, now, kind=ErrorKind.FAULT, detail=detail)
            unread = interpret(failed, settings=settings, previous=site.copy, hops=0, seen=(), now=now)
            assert isinstance(unread, RobotsCopy)
            return ObtainedCopy(unread, failed, failed.url), None

    async def _without_large_text(self, obtained: ObtainedCopy) -> ObtainedCopy:
        """``obtained`` without the text of a large file, which the store then has."""
        copy, answer = obtained.copy, obtained.answer
        if copy.body is None or len(copy.body) <= SMALL_BYTES:
            return obtained
        await self._store.keep_robots_text(copy.sha256, copy.body)
        if isinstance(answer, Fetched):
            answer = replace(answer, plain=b"", gzipped=None, exchange=None)
        return obtained._replace(copy=replace(copy, body=None), answer=answer)


def _agent_lines(rules: SiteRules | None) -> tuple[AgentLine, ...]:
    """The correct ``Mobile-agent-server`` lines of a file, as the store keeps them."""
    if rules is None:
        return ()
    servers = zip(rules.servers.latest_first, rules.servers.paths, strict=True)
    lines = [AgentLine(server.line, path, server.url) for server, path in servers if server.line is not None]
    return tuple(reversed(lines))
