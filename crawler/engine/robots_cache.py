"""The robots.txt of each site: the copy in force, requested from the site if there is none or it has run out."""

from __future__ import annotations

import asyncio
import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from crawler.clock import Clock
from crawler.engine import operator_log
from crawler.engine.caution import NORMAL, Visit
from crawler.engine.claim_capacity import HOLD_S
from crawler.engine.gate import Blocked, FetchPermit, Gate, GiveBack, Unsent
from crawler.engine.limiter import Limiter
from crawler.engine.outbox import Outbox
from crawler.engine.parser_pool import RobotsReader
from crawler.engine.permission import Closed, permission
from crawler.engine.reservations import Busy, Reservations
from crawler.engine.robots_messages import MAX_CPU_S, RobotsQuestion, read_robots
from crawler.errors import CrawlerError, Fault
from crawler.frontier.decide import Outcome
from crawler.frontier.operator import BLOCKED
from crawler.frontier.parts import Parts
from crawler.frontier.politeness import GroupBy, group_name
from crawler.model import Failed, Fetched, FetchResult, Purpose, Reading, Request, RobotsAction, RobotsCopy, State
from crawler.reasons import ErrorKind
from crawler.robots.mirrors import Contradiction, Cycle, Main, main_of
from crawler.robots.readings import SiteRules
from crawler.robots.response import Follow, RobotsSettings, interpret, is_usable, out_of_reach, shared, unanswered
from crawler.robots.text import SMALL_BYTES
from crawler.store.protocols import HORIZON_S, AgentLine, ClaimedSite, Frontier, Refuted, RobotsNews
from crawler.url import ROBOTS_PATH, host_of, registrable_domain, split

#: The headers that say how long an answer holds, and whether it is whole. An audit judges the answer by them again.
_KEPT = frozenset(("cache-control", "expires", "date", "age", "retry-after", "content-range"))
_RULES_KEPT = 10_000  # with many sites, each is claimed anew for every request
_RULES_KEPT_BYTES = 64 << 20  # of memory, estimated: within a fifth for large files
_BYTES_PER_FILE, _BYTES_PER_RULE, _BYTES_PER_OCTET = 2000, 256, 8
_READ_AT_ONCE = 2  # large files
_READING_S = 1.0  # how long one reading is taken to last
_UNREAD_KEPT = 10_000  # answers with large files that wait to be read
_LOOK_EVERY_S = 10.0
_UNREACHABLE_AFTER = 4  # failures of a main site's robots.txt, within some seven minutes: then its mirrors are crawled
_FIRST_LOOK_S, _LAST_LOOK_S = 0.1, 1.0  # the pauses between looks double


class _Stop(NamedTuple):
    """A site whose robots.txt is being requested, with its politeness group."""

    site: str
    group: str


class _Heard(NamedTuple):
    """The copy of a site, the last answer that it received, and the URL that the copy comes from.

    ``is_new``: the copy was requested now, and not taken from another site that was asked earlier.
    """

    copy: RobotsCopy
    answer: FetchResult
    answered_by: str
    is_new: bool = True


@dataclass(frozen=True, slots=True)
class _Target:
    """The copy in force for the URL that a redirect leads to. ``is_new``: it was requested now."""

    url: str
    copy: RobotsCopy
    is_new: bool


@dataclass(frozen=True, slots=True)
class _NoAnswer:
    """A redirect was not followed, because of ``why``. There is no use in asking again before ``until``."""

    why: str
    until: float = 0.0


class _MainSites:
    """The main site of each mirror. It knows without a search whether a site is the main site of any."""

    def __init__(self) -> None:
        self._by_mirror: dict[str, str] = {}
        self._mirrors: Counter[str] = Counter()  # how many each main site has

    def __contains__(self, mirror: str) -> bool:
        return mirror in self._by_mirror

    def get(self, mirror: str) -> str | None:
        return self._by_mirror.get(mirror)

    def put(self, mirror: str, main_site: str) -> None:
        self.drop(mirror)
        self._by_mirror[mirror] = main_site
        self._mirrors[main_site] += 1

    def drop(self, mirror: str) -> None:
        main_site = self._by_mirror.pop(mirror, None)
        if main_site is not None:
            self._mirrors[main_site] -= 1
            if not self._mirrors[main_site]:
                del self._mirrors[main_site]

    def is_main(self, site: str) -> bool:
        return site in self._mirrors

    def items(self) -> Iterable[tuple[str, str]]:
        return self._by_mirror.items()


@dataclass(frozen=True, slots=True)
class RobotsNeeds:
    """The settings and collaborators for requesting and reading robots.txt."""

    settings: RobotsSettings
    token: str
    group_by: GroupBy
    known_hosts: tuple[str, ...] = ()  # patterns: a Host line may name such a host without a dot
    parts: Parts | None = None  # sites of other parts are never asked


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


class FaultCounter(Protocol):
    """Counts bugs of the crawler."""

    def count_fault(self, error: Exception) -> str:
        """Count a bug, and describe it on one line."""
        ...


class RobotsCache:
    """Robots copies and their rules, for the sites that are worked on.

    Invariants:

    1. When :meth:`in_force` returns a copy, that copy is committed. So the store knows the copy that any later request
       is sent under.
    2. A robots.txt that redirects to another site sends a request there only for that site's own /robots.txt, or for a
       path that the copy in force there allows. Otherwise the redirect counts as no answer.
    3. The /robots.txt of a redirect's target is requested as the target's own: the copy is stored as the target's, and
       serves all sites that redirect there until it runs out. The copy that comes from another path is stored for the
       site that this process asked it for, and serves all others that redirect there until it runs out. The pause of a
       site prolongs only a copy that was requested for it.
    4. A ``Host`` line that was contradicted is ignored until the file names another site: :meth:`rules` leaves it out.
    5. Of large files (``SMALL_BYTES``), memory holds only the texts of the two that a parser process reads now. Such a
       text is put into the store when it has arrived. If two others are being read then, the group is given back, and
       the file is read at a later claim. The answer is remembered until then, so the site is not asked again.
    6. A redirect never waits for another group longer than a claimed group may wait, and never stands before the pages
       of that group (:class:`crawler.engine.reservations.Reservations`). Otherwise the site is deferred.
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
        reader: RobotsReader,
        hold_s: Callable[[], float] = lambda: HOLD_S,
    ) -> None:
        self._needs = needs
        self._gate = gate
        self._store = store
        self._clock = clock
        self._intake = intake
        self._outbox = outbox
        self._reservations = Reservations(gate, store, clock, outbox, hold_s)
        self._faults = faults
        self._reader = reader
        self._readings = asyncio.Semaphore(_READ_AT_ONCE)
        self._turns = Limiter("readings", 0, _READING_S)
        self._unread: OrderedDict[str, _Heard] = OrderedDict()  # by site, without the texts
        self._looked_at = -math.inf
        self._unsettled: set[str] = set()  # sites whose copies are being committed
        self._asking: dict[str, str] = {}  # by site, the URL elsewhere asked for it, until its copy is committed
        self._elsewhere: OrderedDict[str, tuple[str, int]] = OrderedDict()  # by such a URL, the site and its copy
        self._mains = _MainSites()  # of few mirrors, compared with the sites crawled
        self._refuted: dict[str, Refuted] = {}  # by mirror: its Host line is ignored
        self._rules_bytes = 0
        # With their size in bytes, by site, file, and the site whose Host line is ignored.
        self._rules: OrderedDict[tuple[str, bytes, str | None], tuple[SiteRules, int]] = OrderedDict()

    @property
    def reading(self) -> Reading:
        return self._needs.settings.reading

    async def in_force(
        self, site: ClaimedSite, group: str, visit: Visit = NORMAL, siblings: Collection[ClaimedSite] = ()
    ) -> RobotsCopy:
        """The copy that applies to ``site`` now, requested if the one known has run out.

        A new copy is processed as a part of ``visit``, until it is committed; then ``site`` heeds it. ``siblings`` are
        the sites of the claim: one of them that a redirect leads to heeds its new copy too. Cancellation leaves the
        copy known before in force. Raises :class:`crawler.errors.StoreError` and, for a request to ``site`` itself,
        :class:`crawler.engine.gate.Blocked` and :class:`crawler.engine.gate.GiveBack`.
        """
        return (await self._in_force(site, (_Stop(site.name, group),), visit, siblings))[0]

    async def _in_force(
        self, site: ClaimedSite, way: tuple[_Stop, ...], visit: Visit, siblings: Collection[ClaimedSite]
    ) -> tuple[RobotsCopy, bool]:
        """As :meth:`in_force`, for the last site of ``way``. Each site before it redirects to the next.

        Also returns whether the copy was requested now, from the site that has it.
        """
        if site.name in self._mains:
            await self._catch_up()
        if site.copy is not None and not await self._must_ask(site.copy):
            return site.copy, False
        try:
            return await self._renewed(site, way, visit, siblings)
        finally:
            self._asking.pop(site.name, None)

    async def _renewed(
        self, site: ClaimedSite, way: tuple[_Stop, ...], visit: Visit, siblings: Collection[ClaimedSite]
    ) -> tuple[RobotsCopy, bool]:
        """A new copy for the last site of ``way``, committed, and whether it was requested now."""
        group = way[-1].group
        (copy, answer, answered_by, is_new), rules = await self._asked(site, way, visit, siblings)
        if rules is not None and rules.named_site is not None:
            rules = await self._judged(site, copy, rules, way, visit, siblings)
        self._doubt_if_unreachable(site.name, copy)
        crawl_delay_s = None if rules is None else rules.crawl_delay_s
        if copy.action is RobotsAction.DEFER:  # the delay of the last robots.txt that was fetched counts
            crawl_delay_s = site.crawl_delay_s
        self._gate.heed_crawl_delay(group, site.id, answer, crawl_delay_s)
        main_site = None if rules is None else rules.main_site
        if copy.action is RobotsAction.DEFER:
            main_site = self._mains.get(site.name)
        refuted = self._refuted.get(site.name)
        if copy.action is not RobotsAction.DEFER and (rules is None or rules.named_site is None):
            self._refuted.pop(site.name, None)
            refuted = None
        operator_log.robots_decided(site.name, site.copy, copy)
        if is_new:
            copy = self._valid_after_pause(copy, group)
        if main_site is None:
            self._mains.drop(site.name)
        else:
            self._mains.put(site.name, main_site)
        news = RobotsNews(site.id, site.name, copy, crawl_delay_s, main_site, _agent_lines(rules))
        said = answer.headers if answered_by == answer.url else ()
        kept = tuple((name, value) for name, value in said if name.lower() in _KEPT)
        news = replace(news, answered_by=answered_by, headers=kept, refuted=None if main_site else refuted)
        self._unsettled.add(site.name)
        try:
            site.heed(copy, await self._intake.commit(news, rules, group), crawl_delay_s)
        finally:
            self._unsettled.discard(site.name)
        if site.robots_id is not None and self._asking.get(site.name) == answered_by == answer.url:
            self._elsewhere[answered_by] = (site.name, site.robots_id)
            self._elsewhere.move_to_end(answered_by)
            if len(self._elsewhere) > _RULES_KEPT:
                self._elsewhere.popitem(last=False)
        return copy, is_new

    async def remember(self) -> None:
        """Load the mirrors that earlier runs have found."""
        self.learn(await self._store.main_sites())
        self.refute(await self._store.refuted_mirrors())

    def learn(self, mirrors: Iterable[tuple[str, str]]) -> None:
        """Add mirrors that other workers have found, as pairs (mirror, main site)."""
        for mirror, main_site in mirrors:
            self._mains.put(mirror, main_site)
            self._refuted.pop(mirror, None)

    def refute(self, refuted: Iterable[Refuted]) -> None:
        """Ignore the ``Host`` lines of mirrors whose main sites have turned out to be none."""
        for each in refuted:
            self._refuted[each.site] = each
            if self._mains.get(each.site) == each.main_site:
                self._mains.drop(each.site)

    def heed(self, outcome: Outcome) -> None:
        """Put what ``outcome`` says about main sites into the outbox; ``outcome`` is there already."""
        if outcome.state not in (State.FAILED, State.REDIRECTED):
            return
        site = split(outcome.queued.url).site
        if not self._mains.is_main(site):
            return
        if outcome.state is State.REDIRECTED and outcome.target is not None:
            mirror = split(outcome.target).site
            named = self._mains.get(mirror)
            if named is not None and mirror != site and main_of(mirror, self._mains.get) == Main(site):
                self._outbox.refute(Refuted(mirror, named, Contradiction.REDIRECTS))
                return
        self._outbox.doubt(site, Contradiction.NO_PAGE)

    def _doubt_if_unreachable(self, site: str, copy: RobotsCopy) -> None:
        """Let the store judge a main site whose robots.txt has had no usable answer several times."""
        gone = copy.action in (RobotsAction.GIVEN_UP, RobotsAction.UNREACHABLE, RobotsAction.UNTRUSTED)
        is_silent = copy.failures >= _UNREACHABLE_AFTER and not copy.status.isdigit()  # an error status is an answer
        if (gone or is_silent) and self._mains.is_main(site):
            self._outbox.doubt(site, Contradiction.UNREACHABLE)

    async def _judged(
        self,
        site: ClaimedSite,
        copy: RobotsCopy,
        rules: SiteRules,
        way: tuple[_Stop, ...],
        visit: Visit,
        siblings: Collection[ClaimedSite],
    ) -> SiteRules:
        """The rules of a file that names a main site of another registered domain, if that is to be heeded.

        A ``Host`` line counts there only if the other site says the same of itself. The crawl asks it, if that site is
        within the scope.
        """
        named = rules.named_site
        assert named is not None
        known = self._refuted.get(site.name)
        by_answer = known is not None and known.contradiction is not Contradiction.OTHER_DOMAIN
        if known is not None and known.main_site == named and by_answer:
            return rules
        if _same_domain(site.name, named) or await self._says_main(named, site, way, visit, siblings):
            self._refuted.pop(site.name, None)
        else:
            self._refuted[site.name] = Refuted(site.name, named, Contradiction.OTHER_DOMAIN)
        judged = await self.rules(site.name, copy, visit)
        assert judged is not None
        return judged

    async def _says_main(
        self,
        named: str,
        site: ClaimedSite,
        way: tuple[_Stop, ...],
        visit: Visit,
        siblings: Collection[ClaimedSite],
    ) -> bool:
        """Whether the robots.txt of ``named``, requested if it is not known, names its own site as the main one."""
        found = await self._site(named, siblings)
        copy = None if found is None else found.copy
        if (copy is None or not self._is_settled(copy)) and self._intake.admits(named):
            target = await self._follow(f"{named}{ROBOTS_PATH}", site, way, visit, siblings)
            copy = target.copy if isinstance(target, _Target) else copy
        rules = None if copy is None else await self.rules(named, copy, visit)
        return rules is not None and rules.says_main

    async def _catch_up(self) -> None:
        """Every ten seconds, drop the mirrors that other workers have found to be none any more."""
        if self._store.lease_s is None or self._clock.now() < self._looked_at + _LOOK_EVERY_S:
            return
        self._looked_at = self._clock.now()
        known = {mirror: main for mirror, main in self._mains.items() if mirror not in self._unsettled}
        there = {mirror for mirror, _ in await self._store.main_sites()}
        for mirror in known.keys() - there:
            if self._mains.get(mirror) == known[mirror]:  # this worker has not learnt of it again meanwhile
                self._mains.drop(mirror)

    def main_of(self, site: str) -> Main | Cycle:
        """The end of the chain of ``Host`` claims that begins at ``site``, as far as it is known."""
        return main_of(site, self._mains.get)

    async def sitemaps_of(self, site: str) -> tuple[str, ...] | None:
        """The sitemaps that a site's robots.txt names; ``None`` if that file is not known."""
        known = await self._store.site(site)
        rules = None if known is None or known.copy is None else await self.rules(site, known.copy)
        return None if rules is None else rules.sitemaps

    def _valid_after_pause(self, copy: RobotsCopy, group: str) -> RobotsCopy:
        """A new ``copy``, valid until the pause after it is over: otherwise no page could ever be requested under it.

        A copy that another site has had for a while is not prolonged: that site is asked again after the pause.
        """
        next_at = self._gate.pace(group).next_at
        if copy.action is RobotsAction.DEFER or copy.expires_at > next_at:
            return copy
        return replace(copy, expires_at=next_at + self._needs.settings.min_fresh_s)

    async def rules(self, site: str, copy: RobotsCopy, visit: Visit = NORMAL) -> SiteRules | None:
        """The rules of a copy that is a file, read as a part of ``visit``; ``None`` if the answer alone decides."""
        if copy.action is not RobotsAction.PARSE:
            return None
        key = self._key(site, copy)
        ignored = key[2]
        if key in self._rules:
            self._rules.move_to_end(key)
            return self._rules[key][0]
        await visit.begin_processing()
        if copy.body is not None and len(copy.body) <= SMALL_BYTES:
            rules = read_robots(self._question(site, copy.body, ignored))
            self._keep_rules(key, rules, len(copy.body))
            return rules
        async with self._readings:
            if key in self._rules:  # another task read it meanwhile
                return self._rules[key][0]
            text = await self._store.robots_text(copy.sha256) if copy.body is None else copy.body
            rules = await self._reader.read_robots(self._question(site, text, ignored))
        if key not in self._rules:
            self._keep_rules(key, rules, 0 if rules.unread else len(text))
        return rules

    def _keep_rules(self, key: tuple[str, bytes, str | None], rules: SiteRules, octets: int) -> None:
        size = _BYTES_PER_FILE + _BYTES_PER_RULE * rules.size + _BYTES_PER_OCTET * octets
        self._rules[key] = (rules, size)
        self._rules_bytes += size
        while len(self._rules) > _RULES_KEPT or (self._rules_bytes > _RULES_KEPT_BYTES and len(self._rules) > 1):
            _, (_, size) = self._rules.popitem(last=False)
            self._rules_bytes -= size

    def require_reader(self, site: str, copy: RobotsCopy, group: str) -> None:
        """Raise :class:`crawler.engine.gate.ReaderBusy` if a large copy must be read, and others are being read.

        ``group`` is the group of ``site``. The next claim of the group comes when its turn is likely to come.
        """
        is_small = copy.body is not None and len(copy.body) <= SMALL_BYTES
        if copy.action is not RobotsAction.PARSE or is_small or self._key(site, copy) in self._rules:
            return
        if self._readings.locked():
            domain = registrable_domain(host_of(site))
            self._gate.give_way_to_readings(group, self._turns.book(domain, self._clock.now()))

    def _key(self, site: str, copy: RobotsCopy) -> tuple[str, bytes, str | None]:
        refuted = self._refuted.get(site)
        return site, copy.sha256, None if refuted is None else refuted.main_site

    def _question(self, site: str, text: bytes, ignored: str | None) -> RobotsQuestion:
        needs = self._needs
        return RobotsQuestion(
            MAX_CPU_S,
            f"{site}{ROBOTS_PATH}",
            site,
            needs.token,
            self.reading.value,
            needs.known_hosts,
            ignored,
            needs.settings.max_bytes,
            text,
        )

    async def _must_ask(self, copy: RobotsCopy) -> bool:
        """Whether a copy has run out. Waits for the time of a deferred site that was claimed a little early."""
        if copy.action is not RobotsAction.DEFER or copy.retry_at is None:
            return self._clock.now() >= copy.expires_at
        while 0 < (early_s := copy.retry_at - self._clock.now()) < 2 * HORIZON_S:
            await self._gate.wait_while_open(self._clock.sleep(early_s))
        return early_s <= 0

    async def _asked(
        self, site: ClaimedSite, way: tuple[_Stop, ...], visit: Visit, siblings: Collection[ClaimedSite]
    ) -> tuple[_Heard, SiteRules | None]:
        """The copy, the last answer and the rules of robots.txt now. A bug that comes to light defers the site."""
        seen = [f"{site.name}{ROBOTS_PATH}"]
        try:
            heard = self._unread.pop(site.name, None)
            if heard is None or self._clock.now() >= heard.copy.expires_at:
                heard = await self._without_large_text(await self._ask(site, way, seen, visit, siblings))
            try:
                self.require_reader(site.name, heard.copy, way[-1].group)
            except GiveBack:
                self._unread[site.name] = heard
                if len(self._unread) > _UNREAD_KEPT:
                    self._unread.popitem(last=False)
                raise
            rules = await self.rules(site.name, heard.copy, visit)
            if rules is not None and rules.unread:
                heard = heard._replace(copy=replace(heard.copy, note=f"{rules.unread}: the whole site is closed"))
            return heard, rules
        except (CrawlerError, Unsent):
            raise
        except Exception as error:
            now, detail = self._clock.now(), self._faults.count_fault(error)
            settings = replace(self._needs.settings, stale_if_error=False)
            failed = Failed(seen[-1], now, now, kind=ErrorKind.FAULT, detail=detail)
            unread = interpret(failed, settings=settings, previous=site.copy, hops=0, seen=(), now=now)
            assert isinstance(unread, RobotsCopy)
            return _Heard(unread, failed, failed.url), None

    async def _without_large_text(self, heard: _Heard) -> _Heard:
        """``heard`` without the text of a large file, which the store then has."""
        copy, answer = heard.copy, heard.answer
        if copy.body is None or len(copy.body) <= SMALL_BYTES:
            return heard
        await self._store.keep_robots_text(copy.sha256, copy.body)
        if isinstance(answer, Fetched):
            answer = replace(answer, plain=b"", gzipped=None, exchange=None)
        return heard._replace(copy=replace(copy, body=None), answer=answer)

    async def _ask(
        self,
        site: ClaimedSite,
        way: tuple[_Stop, ...],
        seen: list[str],
        visit: Visit,
        siblings: Collection[ClaimedSite],
    ) -> _Heard:
        """Request /robots.txt, and follow its redirects as far as the invariants allow. ``seen`` gets the URLs."""
        settings = self._needs.settings
        answer = await self._send(seen[-1], site, FetchPermit(site.id, way[-1].group), visit)
        while True:
            meaning = interpret(
                answer,
                settings=settings,
                previous=site.copy,
                hops=len(seen) - 1,
                seen=tuple(seen),
                now=answer.finished_at,  # a visit in caution may have waited since
            )
            if isinstance(meaning, RobotsCopy):
                return _Heard(meaning, answer, answer.url)
            assert isinstance(meaning, Follow)
            seen.append(meaning.url)
            parts = self._needs.parts
            if parts is not None and parts.other_of(split(meaning.url).site) is not None:
                copy = out_of_reach(meaning.url, settings=settings, now=self._clock.now())
                return _Heard(copy, answer, answer.url)
            found = await self._follow(meaning.url, site, way, visit, siblings)
            match found:
                case _Target(url, target, is_new):
                    now, by = self._clock.now(), url if is_usable(target) else answer.url
                    copy = shared(target, url, settings=settings, previous=site.copy, now=now)
                    return _Heard(copy, answer, by, is_new)
                case _NoAnswer(why, until):
                    now = self._clock.now()
                    copy = unanswered(why, settings=settings, previous=site.copy, now=now, not_before=until)
                    return _Heard(copy, answer, answer.url)
                case _:
                    answer = found

    async def _send(self, url: str, site: ClaimedSite, permit: FetchPermit, visit: Visit) -> FetchResult:
        """The answer to a request for the robots.txt of ``site``. Raises :class:`Busy` if the permit runs out."""
        await visit.end_processing()
        own = permit.for_site_id is None and split(url).path == ROBOTS_PATH
        previous = site.copy if own else None
        request = Request(
            url,
            Purpose.ROBOTS,
            max_bytes=self._needs.settings.max_bytes,
            truncate=True,
            any_type=True,
            etag=previous.etag if previous else None,
            last_modified=previous.last_modified if previous else None,
        )
        answer = await self._gate.send(request, permit)
        if answer is None:
            raise Busy(f"{split(url).site} could not be asked in time")
        await visit.begin_processing()
        if isinstance(answer, Failed) and answer.kind is ErrorKind.FAULT:
            raise Fault(answer.detail)
        return answer

    # --- redirects ----------------------------------------------------------------------------

    async def _follow(
        self, url: str, site: ClaimedSite, way: tuple[_Stop, ...], visit: Visit, siblings: Collection[ClaimedSite]
    ) -> FetchResult | _Target | _NoAnswer:
        """The answer of the URL that the robots.txt of ``site`` redirects to, or the copy of another site there."""
        await visit.end_processing()
        place, here = split(url), way[-1]
        held = {stop.group for stop in way}
        try:
            if place.site == site.name:
                self._reservations.require_free(site.name, here.group, held)
                return await self._send(url, site, FetchPermit(site.id, here.group), visit)
            if any(stop.site == place.site for stop in way):
                return _NoAnswer(f"redirected in a circle, to {url}")
            if len(way) > self._needs.settings.max_redirects:
                return _NoAnswer(f"more than {self._needs.settings.max_redirects} redirects")
            return await self._ask_target(url, site, way, visit, siblings)
        except Blocked:
            if place.site == site.name:
                raise
            return _NoAnswer(f"{place.site} is {BLOCKED}")  # the other site is, not the one that the file is for
        except GiveBack as busy:
            if place.site == site.name:
                raise
            return _NoAnswer(f"{place.site} gets no request now: its pause lasts because of {busy}", busy.until)
        except Busy as busy:
            return _NoAnswer(str(busy), busy.until)

    async def _ask_target(
        self, url: str, site: ClaimedSite, way: tuple[_Stop, ...], visit: Visit, siblings: Collection[ClaimedSite]
    ) -> FetchResult | _Target | _NoAnswer:
        """As :meth:`_follow`, on another site. Looks again for a moment while another task is at work there.

        Raises :class:`Busy` and :class:`Blocked`.
        """
        place = split(url)
        group = group_name(place.site, self._needs.group_by)
        held = {stop.group for stop in way}
        for pause_s in _looks(self._reservations.patience_s):
            if (known := await self._known(url, siblings)) is not None:
                return known
            try:
                if url in self._asking.values():
                    raise Busy(f"{url} is being requested for another site")
                async with self._reservations.reserved(place.site, group, held):
                    return await self._ask_reserved(url, site, (*way, _Stop(place.site, group)), visit, siblings)
            except Busy as busy:
                if busy.until or pause_s is None:
                    raise
            await self._gate.wait_while_open(self._clock.sleep(pause_s))
        raise AssertionError("the last look has no pause behind it")

    async def _ask_reserved(
        self, url: str, site: ClaimedSite, way: tuple[_Stop, ...], visit: Visit, siblings: Collection[ClaimedSite]
    ) -> FetchResult | _Target | _NoAnswer:
        """As :meth:`_ask_target`, for a site that this task has reserved: the last stop of ``way``."""
        place, here = split(url), way[-1]
        target = await self._site(place.site, siblings)
        assert target is not None, "the store knows a site that is reserved"
        copy, is_new = await self._in_force(target, way, visit, siblings)
        if place.path == ROBOTS_PATH:
            return _Target(url, copy, is_new)
        rules = await self.rules(target.name, copy, visit)
        allowed = permission(target.name, copy, rules, place.path)
        if isinstance(allowed, Closed):
            return _NoAnswer(allowed.why, 0.0 if copy.retry_at is None else copy.retry_at)
        if url in self._asking.values():
            raise Busy(f"{url} is being requested for another site")
        self._asking[site.name] = url
        if (known := await self._known(url, siblings)) is not None:  # the request for another site has just ended
            return known
        self._reservations.require_free(target.name, here.group, {stop.group for stop in way[:-1]})
        permit = FetchPermit.under(target, here.group, copy, rules, allowed, for_site_id=site.id)
        return await self._send(url, site, permit, visit)

    async def _known(self, url: str, siblings: Collection[ClaimedSite]) -> _Target | None:
        """The copy in force for a URL of another site, if it need not be requested."""
        place = split(url)
        if place.path == ROBOTS_PATH:
            source = await self._site(place.site, siblings)
        elif url in self._elsewhere:
            name, robots_id = self._elsewhere[url]
            source = await self._site(name, siblings)
            if source is None or source.robots_id != robots_id:  # the site has another copy by now
                return None
        else:
            return None
        if source is None or source.copy is None or not self._is_settled(source.copy):
            return None
        return _Target(url, source.copy, is_new=False)

    async def _site(self, name: str, siblings: Collection[ClaimedSite]) -> ClaimedSite | None:
        """A site of the claim, or else as the store has it."""
        return next((site for site in siblings if site.name == name), None) or await self._store.site(name)

    def _is_settled(self, copy: RobotsCopy) -> bool:
        """Whether there is nothing to ask a site for, because its copy holds or because it is deferred."""
        now = self._clock.now()
        return now < (copy.expires_at if copy.retry_at is None else copy.retry_at)


def _same_domain(one: str, other: str) -> bool:
    return registrable_domain(host_of(one)) == registrable_domain(host_of(other))


def _looks(patience_s: float) -> Iterator[float | None]:
    """The pauses between the looks at a site that another task works on, in seconds; ``None`` after the last look."""
    pause_s = _FIRST_LOOK_S
    while pause_s < min(patience_s, _LAST_LOOK_S):
        yield pause_s
        pause_s *= 2
    yield None


def _agent_lines(rules: SiteRules | None) -> tuple[AgentLine, ...]:
    """The correct ``Mobile-agent-server`` lines of a file, as the store keeps them."""
    if rules is None:
        return ()
    servers = zip(rules.servers.latest_first, rules.servers.paths, strict=True)
    lines = [AgentLine(server.line, path, server.url) for server, path in servers if server.line is not None]
    return tuple(reversed(lines))
