"""Requests for robots.txt, and the redirects that their answers lead to."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from crawler.clock import Clock
from crawler.engine.crawl_policy import RobotsPolicy
from crawler.engine.gate import Blocked, FetchPermit, Gate, GivenBack
from crawler.engine.permission import Closed, permission
from crawler.engine.reservations import Busy, NotAsked, Reservations
from crawler.engine.rules_cache import RulesCache
from crawler.errors import Fault
from crawler.frontier.operator import BLOCKED
from crawler.frontier.politeness import group_name
from crawler.model import Failed, FetchResult, Purpose, Request, RobotsCopy
from crawler.reasons import ErrorKind
from crawler.robots.response import Follow, interpret, is_usable, out_of_reach, shared, unanswered
from crawler.store.protocols import ClaimedSite, Frontier
from crawler.url import ROBOTS_PATH, split

_PATHS_KEPT = 10_000
_FIRST_LOOK_S, _LAST_LOOK_S = 0.1, 1.0  # the pauses between looks double


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A request for the copy in force of ``site``. ``siblings`` are the sites of the claim.

    ``groups`` are the politeness groups that the task works on, by site. The first is that of a site of the claim; each
    further site is the target of a redirect of the one before. ``site`` is the last one.
    """

    site: ClaimedSite
    groups: dict[str, str]
    siblings: Collection[ClaimedSite]

    @property
    def group(self) -> str:
        """The politeness group of the site."""
        return self.groups[self.site.name]


class ObtainedCopy(NamedTuple):
    """A new copy of a site, the last answer that its inquiry received, and the URL that the copy comes from.

    ``is_new``: it was requested now, and not taken from another site that was asked earlier.
    """

    copy: RobotsCopy
    answer: FetchResult
    answered_by: str
    is_new: bool = True


class CopyInForce(NamedTuple):
    """The copy in force of a site, or of the URL that a redirect leads to. ``is_new``: it was requested now."""

    copy: RobotsCopy
    is_new: bool


class RobotsRequests:
    """Requests the robots.txt of a site, and follows its redirects.

    Invariants:

    1. A robots.txt that redirects to another site sends a request there only for that site's own /robots.txt, or for a
       path that the copy in force there allows. Otherwise the redirect counts as no answer.
    2. The /robots.txt of a redirect's target is requested as the target's own: the copy is stored as the target's, and
       serves all sites that redirect there until it runs out. The copy that comes from another path is stored for the
       site that this process asked it for, and serves all others that redirect there until it runs out.
    3. A redirect never waits for another group longer than a claimed group may wait, and never stands before the pages
       of that group (:class:`crawler.engine.reservations.Reservations`). Otherwise the site is deferred.
    """

    def __init__(
        self,
        policy: RobotsPolicy,
        gate: Gate,
        store: Frontier,
        clock: Clock,
        reservations: Reservations,
        rules_cache: RulesCache,
        in_force: Callable[[Inquiry], Awaitable[CopyInForce]],
    ) -> None:
        """``in_force`` brings the copy of a redirect's target up to date, by :meth:`ask` if that must be requested."""
        self._policy = policy
        self._gate = gate
        self._store = store
        self._clock = clock
        self._reservations = reservations
        self._rules_cache = rules_cache
        self._in_force = in_force
        self._asking: dict[str, str] = {}  # by site, the URL elsewhere asked for it, until its copy is committed
        self._elsewhere: OrderedDict[str, tuple[str, int]] = OrderedDict()  # by such a URL, the site and its copy

    async def ask(self, inquiry: Inquiry, seen: list[str]) -> ObtainedCopy:
        """Request /robots.txt, the first URL of ``seen``, and follow its redirects as far as the invariants allow.

        ``seen`` gets their URLs. The caller calls :meth:`committed` when it has committed the copy, and :meth:`end` in
        any case. Raises :class:`crawler.errors.StoreError`, :class:`crawler.errors.Fault` and, for a request to the
        site itself, :class:`crawler.engine.gate.Blocked` and :class:`crawler.engine.gate.GivenBack`.
        """
        settings, site = self._policy.settings, inquiry.site
        answer = await self._send(seen[-1], inquiry, FetchPermit(site.id, inquiry.group))
        while True:
            meaning = interpret(
                answer,
                settings=settings,
                previous=site.copy,
                hops=len(seen) - 1,
                seen=tuple(seen),
                now=answer.finished_at,
            )
            if isinstance(meaning, RobotsCopy):
                return ObtainedCopy(meaning, answer, answer.url)
            assert isinstance(meaning, Follow)
            seen.append(meaning.url)
            parts = self._policy.parts
            if parts is not None and parts.other_of(split(meaning.url).site) is not None:
                copy = out_of_reach(meaning.url, settings=settings, now=self._clock.now())
                return ObtainedCopy(copy, answer, answer.url)
            try:
                found = await self._follow(meaning.url, inquiry)
            except NotAsked as why:
                now, until = self._clock.now(), why.until
                copy = unanswered(str(why), settings=settings, previous=site.copy, now=now, not_before=until)
                return ObtainedCopy(copy, answer, answer.url)
            if isinstance(found, CopyInForce):
                now, by = self._clock.now(), meaning.url if is_usable(found.copy) else answer.url
                copy = shared(found.copy, meaning.url, settings=settings, previous=site.copy, now=now)
                return ObtainedCopy(copy, answer, by, found.is_new)
            answer = found

    async def copy_of(self, name: str, inquiry: Inquiry, *, may_ask: bool) -> RobotsCopy | None:
        """The copy of another site. If ``may_ask``, it is requested like the target of a redirect if it has run out."""
        found = await self._site(name, inquiry)
        copy = None if found is None else found.copy
        if may_ask and (copy is None or not self._is_settled(copy)):
            with suppress(NotAsked):
                target = await self._follow(f"{name}{ROBOTS_PATH}", inquiry)
                copy = target.copy if isinstance(target, CopyInForce) else copy
        return copy

    def committed(self, site: ClaimedSite, obtained: ObtainedCopy) -> None:
        """``site`` heeds a copy that is committed: if it comes from a path elsewhere, it serves other sites too."""
        url = obtained.answered_by
        if site.robots_id is not None and url == obtained.answer.url == self._asking.get(site.name):
            self._elsewhere[url] = (site.name, site.robots_id)
            self._elsewhere.move_to_end(url)
            if len(self._elsewhere) > _PATHS_KEPT:
                self._elsewhere.popitem(last=False)

    def end(self, site: str) -> None:
        """The inquiry for a site is over: other tasks may request the path elsewhere that was asked for it."""
        self._asking.pop(site, None)

    async def _send(self, url: str, inquiry: Inquiry, permit: FetchPermit) -> FetchResult:
        """The answer to a request for the robots.txt of a site. Raises :class:`Busy` if the permit runs out."""
        own = permit.for_site_id is None and split(url).path == ROBOTS_PATH
        previous = inquiry.site.copy if own else None
        request = Request(
            url,
            Purpose.ROBOTS,
            max_bytes=self._policy.settings.max_bytes,
            truncate=True,
            any_type=True,
            etag=previous.etag if previous else None,
            last_modified=previous.last_modified if previous else None,
        )
        answer = await self._gate.send(request, permit)
        if answer is None:
            raise Busy(f"{split(url).site} could not be asked in time")
        if isinstance(answer, Failed) and answer.kind is ErrorKind.FAULT:
            raise Fault(answer.detail)
        return answer

    # --- redirects ----------------------------------------------------------------------------

    async def _follow(self, url: str, inquiry: Inquiry) -> FetchResult | CopyInForce:
        """The answer of the URL that a robots.txt redirects to, or the copy of another site there.

        Raises :class:`NotAsked` if the redirect counts as no answer.
        """
        site, groups = inquiry.site, inquiry.groups
        place = split(url)
        if place.site == site.name:
            self._reservations.require_free(site.name, inquiry.group, groups.values())
            return await self._send(url, inquiry, FetchPermit(site.id, inquiry.group))
        if place.site in groups:
            raise NotAsked(f"redirected in a circle, to {url}")
        if len(groups) > self._policy.settings.max_redirects:
            raise NotAsked(f"more than {self._policy.settings.max_redirects} redirects")
        try:
            return await self._ask_target(url, inquiry)
        except Blocked:  # the other site is, not the one that the file is for
            raise NotAsked(f"{place.site} is {BLOCKED}") from None
        except GivenBack as why:
            raise NotAsked(f"{place.site} gets no request now: its pause lasts because of {why}", why.until) from None

    async def _ask_target(self, url: str, inquiry: Inquiry) -> FetchResult | CopyInForce:
        """As :meth:`_follow`, on another site. Looks again for a moment while another task is at work there.

        Raises :class:`NotAsked`, :class:`Blocked` and :class:`GivenBack`.
        """
        place = split(url)
        group = group_name(place.site, self._policy.group_by)
        for pause_s in _looks(self._reservations.patience_s):
            if (known := await self._known(url, inquiry)) is not None:
                return known
            try:
                self._require_not_asked(url)
                async with self._reservations.reserved(place.site, group, inquiry.groups.values()):
                    return await self._ask_reserved(url, group, inquiry)
            except Busy:
                if pause_s is None:
                    raise
            await self._gate.wait_while_open(self._clock.sleep(pause_s))
        raise AssertionError("the last look has no pause behind it")

    async def _ask_reserved(self, url: str, group: str, inquiry: Inquiry) -> FetchResult | CopyInForce:
        """As :meth:`_ask_target`, for a site whose group this task has reserved."""
        place, groups = split(url), inquiry.groups
        target = await self._site(place.site, inquiry)
        assert target is not None, "the store knows a site that is reserved"
        found = await self._in_force(replace(inquiry, site=target, groups={**groups, target.name: group}))
        if place.path == ROBOTS_PATH:
            return found
        copy = found.copy
        rules = await self._rules_cache.rules(target.name, copy)
        allowed = permission(target.name, copy, rules, place.path)
        if isinstance(allowed, Closed):
            raise NotAsked(allowed.why, 0.0 if copy.retry_at is None else copy.retry_at)
        self._require_not_asked(url)
        self._asking[inquiry.site.name] = url
        if (known := await self._known(url, inquiry)) is not None:  # the request for another site has just ended
            return known
        self._reservations.require_free(target.name, group, groups.values())
        permit = FetchPermit.under(target, group, copy, rules, allowed, for_site_id=inquiry.site.id)
        return await self._send(url, inquiry, permit)

    def _require_not_asked(self, url: str) -> None:
        if url in self._asking.values():
            raise Busy(f"{url} is being requested for another site")

    async def _known(self, url: str, inquiry: Inquiry) -> CopyInForce | None:
        """The copy in force for a URL of another site, if it need not be requested."""
        place = split(url)
        if place.path == ROBOTS_PATH:
            source = await self._site(place.site, inquiry)
        elif url in self._elsewhere:
            name, robots_id = self._elsewhere[url]
            source = await self._site(name, inquiry)
            if source is None or source.robots_id != robots_id:  # the site has another copy by now
                return None
        else:
            return None
        if source is None or source.copy is None or not self._is_settled(source.copy):
            return None
        return CopyInForce(source.copy, is_new=False)

    async def _site(self, name: str, inquiry: Inquiry) -> ClaimedSite | None:
        """A site of the claim, or else as the store has it."""
        return next((site for site in inquiry.siblings if site.name == name), None) or await self._store.site(name)

    def _is_settled(self, copy: RobotsCopy) -> bool:
        """Whether there is nothing to ask a site for, because its copy holds or because it is deferred."""
        now = self._clock.now()
        return now < (copy.expires_at if copy.retry_at is None else copy.retry_at)


def _looks(patience_s: float) -> Iterator[float | None]:
    """The pauses between the looks at a site that another task works on, in seconds; ``None`` after the last look."""
    pause_s = _FIRST_LOOK_S
    while pause_s < min(patience_s, _LAST_LOOK_S):
        yield pause_s
        pause_s *= 2
    yield None
