"""The robots.txt of each site: the copy in force, requested if there is none or it has run out.

A robots.txt may redirect to another site. Then the site waits, and the URL is requested when the politeness group of
that site is claimed (:meth:`RobotsCache.answer`). Its answer is the robots.txt of all sites that wait.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from crawler.clock import Clock
from crawler.engine import operator_log
from crawler.engine.crawl_policy import RobotsPolicy
from crawler.engine.gate import FetchPermit, Gate, GivenBack, Unsent
from crawler.engine.main_sites import MainSites
from crawler.engine.outbox import Outbox
from crawler.engine.parser_pool import PageReader
from crawler.engine.permission import Closed, permission
from crawler.engine.progress import Progress
from crawler.engine.rules_cache import RulesCache
from crawler.engine.sitemaps import SiteOffers
from crawler.errors import CrawlerError, Fault
from crawler.frontier.operator import BLOCKED
from crawler.model import Answer, Failed, Fetched, FetchResult, Purpose, Request, RobotsAction, RobotsCopy
from crawler.reasons import ErrorKind, WaitCode
from crawler.robots.readings import SiteRules
from crawler.robots.response import Follow, interpret, is_usable, shared, unanswered
from crawler.robots.text import SMALL_BYTES
from crawler.store.rows import HORIZON_S, AgentLine, ClaimedSite, RobotsNews, RobotsTarget, RobotsWait
from crawler.url import ROBOTS_PATH, host_of, registered_domain, split

if TYPE_CHECKING:
    from crawler.store.sections import Store

#: The headers that say how long an answer holds, and whether it is whole. An audit judges the answer by them again.
_KEPT = frozenset(("cache-control", "expires", "date", "age", "retry-after", "content-range"))
_OBTAINED_KEPT = 10_000  # answers that wait until their file can be read, or their Host line judged
#: How long a site waits for a URL of another site. It asks again later if that URL has not been requested by then.
PATIENCE_S = 600.0
#: Waits that an answer has asked for. A claim is not held for them.
_ASKED_FOR = frozenset({WaitCode.RETRY_AFTER, WaitCode.BACKOFF})


class ObtainedCopy(NamedTuple):
    """A new copy of a site, the last answer that led to it, and the URL that the copy comes from.

    ``is_new``: it was requested now, and not taken from another site that was asked earlier.
    """

    copy: RobotsCopy
    answer: Answer
    answered_by: str
    is_new: bool = True


class _Inquiry(msgspec.Struct, frozen=True):
    """The search for the copy of ``site``.

    ``group`` is its politeness group if the task has claimed that; else the copy is found at the claim of another site.
    ``seen`` are the URLs on the way, the last one not answered yet; ``hops`` the sites on the way.
    """

    site: ClaimedSite
    group: str | None
    seen: list[str]
    hops: int = 0


class RobotsCache:
    """The copy in force of each site that is worked on.

    Invariants:

    1. When :meth:`in_force` returns a copy, that copy is committed. So the store knows the copy that any later request
       is sent under.
    2. The pause of a site prolongs only a copy that was requested for it.
    3. The text of a large file (``SMALL_BYTES``) is put into the store when it has arrived. If two others are being
       read then, the group is given back, and the file is read at a later claim. The answer is remembered until then,
       so the site is not asked again.
    4. A request to a site is sent at a claim of its group only. A redirect leads to another site's own /robots.txt, or
       to a path that the copy in force there allows. Otherwise it counts as no answer.
    5. A URL that several sites wait for is requested once. The copy serves all of them until it runs out.
    6. A site waits for ``PATIENCE_S`` at most, counted anew if the request is sent for it. It does not wait if it is in
       a circle of waits.
    7. A claimed site that waits is not asked again at the same claim.
    """

    def __init__(
        self,
        policy: RobotsPolicy,
        gate: Gate,
        store: Store,
        clock: Clock,
        outbox: Outbox,
        reader: PageReader,
        progress: Progress,
        offers: SiteOffers | None = None,
    ) -> None:
        """Without ``offers``, nothing follows from a copy, and a mirror leads to no other site."""
        self._settings = policy.settings
        self._gate = gate
        self._store = store
        self._clock = clock
        self._outbox = outbox
        self._progress = progress
        self._offers = offers
        self.main_sites = MainSites(store, clock, outbox)
        self.rules_cache = RulesCache(policy, gate, store, self.main_sites, reader)
        self._obtained: OrderedDict[str, ObtainedCopy] = OrderedDict()  # by site, without large texts
        #: The sites whose robots.txt the operator wants to be read again, and since when, in epoch seconds.
        self.wanted_anew: dict[str, float] = {}

    async def in_force(self, site: ClaimedSite, group: str, hops: int = 0) -> RobotsCopy | RobotsTarget:
        """The copy that applies to ``site`` now, requested if the one known has run out; or the URL that it waits for.

        When a new copy is committed, ``site`` obeys it. ``hops`` is the number of redirects that led to the site.
        Cancellation leaves the copy known before in force. Raises :class:`crawler.errors.StoreError`,
        :class:`crawler.engine.gate.Blocked` and :class:`crawler.engine.gate.GivenBack`.
        """
        await self.main_sites.catch_up(site.name)
        if site.target is not None:
            return site.target
        if site.copy is not None and not self._is_wanted_anew(site, site.copy) and not await self._must_ask(site.copy):
            return site.copy
        inquiry = _Inquiry(site, group, [f"{site.name}{ROBOTS_PATH}"], hops)
        obtained = self._obtained.pop(site.name, None)
        if obtained is None or self._clock.now() >= obtained.copy.expires_at:
            found = await self._guarded(inquiry, self._requested(inquiry))
            self.wanted_anew.pop(site.name, None)
            if isinstance(found, RobotsTarget):
                return found
            obtained = found
        try:
            self.rules_cache.require_reader(site.name, obtained.copy, group)
        except GivenBack:
            self._remember(site.name, obtained)
            raise
        return await self._put_in_force(inquiry, obtained)

    async def answer(self, target: RobotsTarget, site: ClaimedSite, group: str) -> RobotsTarget | None:
        """Get the URL that other sites wait for, on the claimed ``site``, and put their copies in force.

        Returns the URL that ``site`` waits for itself; then the others wait on. Raises as :meth:`in_force`.
        """
        before, asked_for = site.copy, list[RobotsWait]()
        copy = await self.permitted(target, site, group)
        if isinstance(copy, RobotsTarget):
            return copy
        brought: RobotsCopy | Closed | FetchResult | None = copy
        if isinstance(copy, RobotsCopy):
            asked_for = await self._waits(target)
            brought = await self._brought(target, site, copy, group, asked_for)
        if brought is None:
            return None  # the group is to be claimed again
        # The log names one site that the request was made for. Its copy is the source of the others, so it is stored
        # first, also if a site with a lower number has begun to wait during the request.
        first = asked_for[0].site_id if asked_for else None
        for wait in sorted(await self._waits(target), key=lambda wait: wait.site_id != first):
            inquiry = _Inquiry(await self.store_site(wait.site), None, list(wait.seen), wait.target.hops)
            match brought:
                case Closed(why):
                    not_before = 0.0 if site.copy is None or site.copy.retry_at is None else site.copy.retry_at
                    obtained: ObtainedCopy | RobotsTarget = self._unanswered(inquiry, why, not_before)
                case RobotsCopy():
                    obtained = self._shared(inquiry, brought, is_new=site.copy is not before)
                case _:
                    obtained = await self._guarded(inquiry, self._followed(inquiry, brought))
                    if isinstance(obtained, ObtainedCopy) and obtained.answered_by == f"{target.site}{target.path}":
                        brought = obtained.copy
            if isinstance(obtained, ObtainedCopy):
                await self._put_in_force(inquiry, obtained)
        self._outbox.add_target_answered(target)
        return None

    async def permitted(
        self, target: RobotsTarget, site: ClaimedSite, group: str
    ) -> RobotsCopy | RobotsTarget | Closed:
        """The copy under which the claimed ``site`` may be asked for what other sites wait for, as :meth:`in_force`."""
        if site.refusals.closed:
            return Closed(f"{site.name} is closed, because it refused what the crawl asked for")
        if self._gate.is_blocked(f"{site.name}{target.path}"):
            return Closed(f"{site.name} is {BLOCKED}")
        return await self.in_force(site, group, target.hops)

    def wait_for(self, site: ClaimedSite, url: str, seen: tuple[str, ...] = (), hops: int = 0) -> RobotsTarget:
        """Let a claimed site wait for a URL of another site. ``seen`` are the URLs that led a robots.txt there."""
        place = split(url)
        site.target = RobotsTarget(place.site, place.path, hops)
        until = self._clock.now() + PATIENCE_S
        self._outbox.add_robots_wait(RobotsWait(site.id, site.name, site.target, seen, until))
        return site.target

    async def _waits(self, target: RobotsTarget) -> list[RobotsWait]:
        """The waits for a copy; the others only wait until ``target`` is answered."""
        return [wait for wait in await self._store.robots_waits(target) if wait.seen]

    async def _brought(
        self, target: RobotsTarget, site: ClaimedSite, copy: RobotsCopy, group: str, waits: Sequence[RobotsWait]
    ) -> RobotsCopy | Closed | FetchResult | None:
        """The result of the URL that other sites wait for, requested for the first of ``waits`` if that is allowed.

        It is ``None`` if it must be requested at another claim: the pause is long, or the copy in force has run out;
        or if no site waits any longer.
        """
        url = f"{target.site}{target.path}"
        if target.path == ROBOTS_PATH:
            return copy
        if not waits:
            return None
        rules = await self.rules_cache.rules(site.name, copy)
        allowed = permission(site.name, copy, rules, target.path)
        if isinstance(allowed, Closed):
            return allowed
        if (known := await self._known(url)) is not None:
            return known
        if self._gate.pauses_long(group):
            return None
        await self._gate.pause(group)
        # The log names this site, so it waits on until the answer has come: a commit stores copies before waits.
        self._outbox.add_robots_wait(waits[0]._replace(until=self._clock.now() + PATIENCE_S))
        await self._gate.wait_while_open(self._outbox.flush())
        permit = FetchPermit.under(site, group, copy, rules, allowed, for_site_id=waits[0].site_id)
        return await self._gate.send(self._request(url, None), permit)

    async def store_site(self, name: str) -> ClaimedSite:
        """A site that the store knows."""
        site = await self._store.site(name)
        assert site is not None, "the caller knows the site from the store"
        return site

    # --- requests -----------------------------------------------------------------------------

    def _is_wanted_anew(self, site: ClaimedSite, copy: RobotsCopy) -> bool:
        """Whether the operator wants a newer copy. Sites without a usable answer, or with a wall, are left alone."""
        is_left_alone = copy.action is RobotsAction.DEFER or copy.status == ErrorKind.WALL
        return not is_left_alone and copy.fetched_at < self.wanted_anew.get(site.name, 0.0)

    async def _must_ask(self, copy: RobotsCopy) -> bool:
        """Whether a copy has run out. Waits for the time of a deferred site that was claimed a little early."""
        retry_at = copy.retry_at if copy.action is RobotsAction.DEFER else None
        if retry_at is not None and retry_at - self._clock.now() < 2 * HORIZON_S:
            await self._gate.wait_until(retry_at)
        return not self._holds_or_waits(copy)

    async def _requested(self, inquiry: _Inquiry) -> ObtainedCopy | RobotsTarget:
        """Request the site's own /robots.txt, and follow its redirects."""
        if inquiry.site.is_waiting:
            return self._unanswered(inquiry, "it redirects in a circle, or to a URL that was not requested in time")
        return await self._followed(inquiry, await self._send(inquiry))

    async def _send(self, inquiry: _Inquiry) -> FetchResult:
        """The answer of the last URL seen, which is on the site itself."""
        assert inquiry.group is not None, "a request is sent at a claim of its group"
        url, site = inquiry.seen[-1], inquiry.site
        previous = site.copy if split(url).path == ROBOTS_PATH else None
        answer = await self._gate.send(self._request(url, previous), FetchPermit(site.id, inquiry.group))
        assert answer is not None, "the permit does not run out"
        return answer

    def _request(self, url: str, previous: RobotsCopy | None) -> Request:
        return Request(
            url,
            Purpose.ROBOTS,
            max_bytes=self._settings.max_bytes,
            truncate=True,
            any_type=True,
            etag=previous.etag if previous else None,
            last_modified=previous.last_modified if previous else None,
        )

    async def _followed(self, inquiry: _Inquiry, answer: FetchResult) -> ObtainedCopy | RobotsTarget:
        """The copy that an answer leads to, or the URL of another site that must be requested for it."""
        settings, site, seen = self._settings, inquiry.site, inquiry.seen
        while True:
            if isinstance(answer, Failed) and answer.kind is ErrorKind.FAULT:
                raise Fault(answer.detail)
            now = answer.finished_at
            meaning = interpret(
                answer, settings=settings, previous=site.copy, hops=len(seen) - 1, seen=tuple(seen), now=now
            )
            if isinstance(meaning, RobotsCopy):
                return ObtainedCopy(meaning, answer, answer.url)
            assert isinstance(meaning, Follow)
            seen.append(meaning.url)
            place = split(meaning.url)
            if place.site == site.name and inquiry.group is not None:
                pace = self._gate.bench.pace(inquiry.group)
                if pace.waits_for.code in _ASKED_FOR and self._gate.pauses_long(inquiry.group):
                    why = f"{site.name} gets no request now: its pause lasts because of {pace.waits_for}"
                    return self._unanswered(inquiry, why, pace.next_at, answer)
                answer = await self._send(inquiry)
            elif (known := await self._known(meaning.url)) is not None:
                return self._shared(inquiry, known, is_new=False, answer=answer)
            elif why := self._why_not(meaning.url, inquiry):
                return self._unanswered(inquiry, why, answer=answer)
            else:
                return self.wait_for(site, meaning.url, tuple(seen), inquiry.hops + 1)

    def _why_not(self, url: str, inquiry: _Inquiry) -> str:
        """Why no site may wait for ``url``; empty if it may. The commit of a wait ends it at once if it is a circle."""
        if self._gate.is_blocked(url):
            return f"{split(url).site} is {BLOCKED}"
        if inquiry.hops >= self._settings.max_redirects:
            return f"more than {self._settings.max_redirects} redirects"
        return ""

    async def _known(self, url: str) -> RobotsCopy | None:
        """The copy that a URL of another site has brought, if there is nothing to ask that site for."""
        place = split(url)
        if place.path == ROBOTS_PATH:
            source = await self._store.site(place.site)
            copy = None if source is None else source.copy
        else:
            copy = await self._store.robots_copy_from(url, self._clock.now())
        return copy if copy is not None and self._holds_or_waits(copy) else None

    def _holds_or_waits(self, copy: RobotsCopy) -> bool:
        """Whether there is nothing to ask a site for, because its copy holds or because it is deferred."""
        now = self._clock.now()
        return now < (copy.expires_at if copy.retry_at is None else copy.retry_at)

    # --- copies -------------------------------------------------------------------------------

    def _shared(
        self, inquiry: _Inquiry, source: RobotsCopy, *, is_new: bool, answer: Answer | None = None
    ) -> ObtainedCopy:
        """The copy of a site that redirects to the last URL seen, which has brought ``source``."""
        now, url, before = self._clock.now(), inquiry.seen[-1], inquiry.seen[-2]
        copy = shared(source, url, settings=self._settings, previous=inquiry.site.copy, now=now)
        return ObtainedCopy(copy, answer or Answer(before, now, now), url if is_usable(source) else before, is_new)

    def _unanswered(
        self, inquiry: _Inquiry, why: str, not_before: float = 0.0, answer: Answer | None = None
    ) -> ObtainedCopy:
        """The copy of a site that redirects to the last URL seen, which gave no answer."""
        now, before = self._clock.now(), inquiry.seen[-2] if len(inquiry.seen) > 1 else inquiry.seen[-1]
        copy = unanswered(why, settings=self._settings, previous=inquiry.site.copy, now=now, not_before=not_before)
        return ObtainedCopy(copy, answer or Answer(before, now, now), before)

    async def _guarded(
        self, inquiry: _Inquiry, search: Awaitable[ObtainedCopy | RobotsTarget]
    ) -> ObtainedCopy | RobotsTarget:
        """The result of ``search``, without a large text. A bug in the search defers the site."""
        try:
            found = await search
            return found if isinstance(found, RobotsTarget) else await self._without_large_text(found)
        except (CrawlerError, Unsent):
            raise
        except Exception as error:
            return self._faulty(inquiry, error)

    def _faulty(self, inquiry: _Inquiry, error: Exception) -> ObtainedCopy:
        """The copy of a site whose robots.txt a bug leaves unread. An earlier copy is not used either."""
        now, detail = self._clock.now(), self._progress.count_fault(error)
        settings = replace(self._settings, stale_if_error=False)
        failed = Failed(inquiry.seen[-1], now, now, kind=ErrorKind.FAULT, detail=detail)
        unread = interpret(failed, settings=settings, previous=inquiry.site.copy, hops=0, seen=(), now=now)
        assert isinstance(unread, RobotsCopy)
        return ObtainedCopy(unread, failed, failed.url)

    async def _without_large_text(self, obtained: ObtainedCopy) -> ObtainedCopy:
        """``obtained`` without the text of a large file, which the store then has."""
        copy, answer = obtained.copy, obtained.answer
        if copy.body is None or len(copy.body) <= SMALL_BYTES:
            return obtained
        await self._store.keep_robots_text(copy.sha256, copy.body)
        if isinstance(answer, Fetched):
            answer = msgspec.structs.replace(answer, plain=b"", gzipped=None, exchange=None)
        return obtained._replace(copy=msgspec.structs.replace(copy, body=None), answer=answer)

    async def _read(self, inquiry: _Inquiry, obtained: ObtainedCopy) -> tuple[ObtainedCopy, SiteRules | None]:
        """The rules of a new copy. A bug in reading them defers the site."""
        try:
            rules = await self.rules_cache.rules(inquiry.site.name, obtained.copy)
        except (CrawlerError, Unsent):
            raise
        except Exception as error:
            return self._faulty(inquiry, error), None
        if rules is not None and rules.unread:
            note = f"{rules.unread}: the whole site is closed"
            obtained = obtained._replace(copy=msgspec.structs.replace(obtained.copy, note=note))
        return obtained, rules

    async def _put_in_force(self, inquiry: _Inquiry, obtained: ObtainedCopy) -> RobotsCopy | RobotsTarget:
        """Commit a new copy; without a claim of the site, leave it to the next commit."""
        site, group = inquiry.site, inquiry.group
        obtained, rules = await self._read(inquiry, obtained)
        copy, answer, answered_by, is_new = obtained
        named = None if rules is None else rules.named_site
        if named is not None and self.main_sites.can_be_confirmed(site.name, named):
            is_confirmed = await self._is_confirmed(named, inquiry)
            if is_confirmed is None:
                self._remember(site.name, obtained)
                return self.wait_for(site, f"{named}{ROBOTS_PATH}", hops=inquiry.hops + 1)
            self.main_sites.judge(site.name, named, is_confirmed=is_confirmed)
            rules = await self.rules_cache.rules(site.name, copy)
        crawl_delay_s = None if rules is None else rules.crawl_delay_s
        if copy.action is RobotsAction.DEFER:  # the delay of the last robots.txt that was fetched counts
            crawl_delay_s = site.crawl_delay_s
        if group is None:
            early_s = 2 * HORIZON_S  # a site may be claimed that long before its time
            not_before = 0.0 if crawl_delay_s is None else self._clock.now() + crawl_delay_s + early_s
        else:
            self._gate.bench.apply_crawl_delay(group, answer.finished_at, crawl_delay_s)
            not_before = self._gate.bench.pace(group).next_at
        if operator_log.logs_sites():
            before = None if site.copy is None else await self.rules_cache.rules(site.name, site.copy)
            is_closed, was_closed = _forbids_all(copy, rules), site.copy is not None and _forbids_all(site.copy, before)
            operator_log.robots_decided(site.name, site.copy, copy, is_closed=is_closed, was_closed=was_closed)
        if is_new and copy.action is not RobotsAction.DEFER and copy.expires_at <= not_before:
            # Otherwise no page could ever be requested under it. A copy that another site has had for a while is not
            # prolonged: that site is asked again after the pause.
            copy = msgspec.structs.replace(copy, expires_at=not_before + self._settings.min_fresh_s)
        said = answer.headers if answered_by == answer.url else ()
        with self.main_sites.declared(site.name, copy, rules) as (main_site, refuted):
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
                not_before=not_before if group is None else None,
            )
            if self._offers is not None:
                news = self._offers.added_to(news, rules)
            if group is None:
                self._outbox.add_robots_elsewhere(news)
            else:
                committed = self._outbox.add_robots(news, group, self._gate.bench.pace(group))
                site.obey(copy, await self._gate.wait_while_open(committed), crawl_delay_s)
        return copy

    async def _is_confirmed(self, named: str, inquiry: _Inquiry) -> bool | None:
        """Whether the ``Host`` line of a site that names ``named`` is to be obeyed; ``None``: ``named`` must be asked.

        It is if both have one registered domain. Else ``named`` must name itself as the main site. The crawl asks it,
        if ``named`` is within the scope.
        """
        site = inquiry.site
        if registered_domain(host_of(site.name)) == registered_domain(host_of(named)):
            return True
        known = await self._store.site(named)
        copy = None if known is None else known.copy
        is_asked = copy is not None and self._holds_or_waits(copy)
        may_ask = self._offers is not None and self._offers.admits(named)
        if may_ask and not is_asked and not site.is_waiting and not self._why_not(f"{named}{ROBOTS_PATH}", inquiry):
            return None
        rules = None if copy is None else await self.rules_cache.rules(named, copy)
        return rules is not None and rules.says_main

    def _remember(self, site: str, obtained: ObtainedCopy) -> None:
        self._obtained[site] = obtained
        if len(self._obtained) > _OBTAINED_KEPT:
            self._obtained.popitem(last=False)


def _forbids_all(copy: RobotsCopy, rules: SiteRules | None) -> bool:
    """Whether a copy closes its site, judged by the front page and a path that no rule is likely to name."""
    if copy.action is RobotsAction.PARSE:
        return rules is not None and not any(rules.verdict(path).allowed for path in ("/", "/0-9"))
    return copy.action is RobotsAction.RESTRICTED


def _agent_lines(rules: SiteRules | None) -> tuple[AgentLine, ...]:
    """The correct ``Mobile-agent-server`` lines of a file, as the store keeps them."""
    if rules is None:
        return ()
    servers = zip(rules.servers.latest_first, rules.servers.paths, strict=True)
    lines = [AgentLine(server.line, path, server.url) for server, path in servers if server.line is not None]
    return tuple(reversed(lines))
