"""Replays a crawl from its log and checks every request against the rules (pure).

The replay ignores what the crawl concluded at the time: the verdict that it logged, and the pace that it had computed.
It parses each robots.txt version again, and computes the end of each version and each pause from the log and the
settings of the run. The rules about pauses are those of the gate (:mod:`crawler.frontier.politeness`). Rules:
``docs/protocols.md``, sections 1, 2 and 6. How each rule is checked: ``docs/audit.md``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import inf
from typing import NamedTuple

from crawler.audit.checks import Check, CheckCount, Violation
from crawler.audit.records import (
    TOLERANCE_S,
    Event,
    FiledLicence,
    LoggedRequest,
    RobotsResponse,
    RobotsVersion,
    RunRecord,
    may_be_anonymous,
)
from crawler.audit.restrictions import Restrictions
from crawler.audit.robots_history import RobotsHistory
from crawler.audit.use import LimitedUse, limited_use
from crawler.audit.walls import Walls
from crawler.formatting import instant
from crawler.frontier.buckets import Bucket
from crawler.frontier.hours import window_of
from crawler.frontier.politeness import (
    Constraint,
    GroupBy,
    Pace,
    PauseFacts,
    PolitenessSettings,
    after_answer,
    backoff_after,
    capped_crawl_delay_s,
    constraints,
    group_name,
)
from crawler.model import Preference, Purpose, RobotsAction
from crawler.preferences.purposes import first_refusal
from crawler.reasons import WaitCode, WaitReason
from crawler.robots.readings import SiteRules, read
from crawler.robots.rsl import named_licences, unavailable
from crawler.robots.rules import Verdict
from crawler.robots.text import parse
from crawler.url import ROBOTS_PATH, host_of

_MAX_CACHED_RULES = 200
_OPEN = frozenset({RobotsAction.PARSE, RobotsAction.FREE})
_MOST_HOPS = 5  # of a licence that redirects
#: Requests whose answers the crawl does not count as refusals.
_UNCOUNTED = frozenset({Purpose.TDMREP, Purpose.SOFT_404, Purpose.LICENSE, Purpose.INDEX_NOW})
#: The codes that the check of ``Retry-After`` judges; the check of the pause judges all others.
_TROUBLE = frozenset({WaitCode.BACKOFF, WaitCode.RETRY_AFTER})


class _Obligation(NamedTuple):
    """A group must be left alone until ``due_at``, because of the request ``before`` and the rule ``wait``."""

    due_at: float
    before: LoggedRequest
    wait: WaitReason


@dataclass(slots=True)
class _Group:
    """The state of a politeness group at one moment of the replay. Times in seconds since the epoch."""

    #: The request that ended last, and the pause and the back-off that requests so far require.
    last: LoggedRequest | None = None
    pause: _Obligation | None = None
    backoff: _Obligation | None = None
    backoff_is_new: bool = False
    #: The pace with the whole back-off, and the latest time until which the crawl may have left the group alone.
    pace: Pace = field(default_factory=Pace)
    paused_until: float = 0.0


@dataclass(slots=True)
class _Site:
    """The state of a site at one moment of the replay. The site has one group for each way of grouping in use."""

    name: str
    robots: RobotsHistory
    groups: dict[GroupBy, _Group]
    robots_request: LoggedRequest | None = None  # the last request for robots.txt
    crawl_delay_s: float | None = None  # from the last robots.txt that was read
    walls: Walls = field(default_factory=Walls)


@dataclass(slots=True)
class _Case:
    """One request with everything that it is checked against."""

    request: LoggedRequest
    run: RunRecord
    site: _Site
    version: RobotsVersion | None
    rules: SiteRules | None
    crawl_delay_s: float | None = None  # as the robots.txt in force requests

    @property
    def politeness(self) -> PolitenessSettings:
        """The settings of the run for the host of the request."""
        return self.run.settings.politeness.of(host_of(self.request.site))


@dataclass(slots=True)
class Replay:
    """Checks events in the order of replay unit and time. No politeness group reaches beyond its replay unit.

    ``runs`` holds the runs by number, ``restrictions`` what the operator had ordered, ``refuted`` the main sites that
    turned out to be none, by the mirror that names them, ``licences`` the last
    answers for licences. ``counts`` holds how often each check was made. ``bucket`` is that of the store: the copies of
    sites of other buckets are judged in the stores of these.
    ``limited`` are the pages of the last slice whose use is limited: the log does not tell what was kept of them.
    """

    runs: Mapping[int, RunRecord]
    restrictions: Restrictions = field(default_factory=Restrictions)
    refuted: Mapping[str, str] = field(default_factory=dict)
    licences: Mapping[str, FiledLicence] = field(default_factory=dict)
    bucket: Bucket | None = None
    counts: dict[Check, CheckCount] = field(default_factory=lambda: {check: CheckCount() for check in Check})
    limited: list[LimitedUse] = field(default_factory=list)
    _unit: str | None = None
    _groups: dict[tuple[GroupBy, str], _Group] = field(default_factory=dict)
    _sites: dict[int, _Site] = field(default_factory=dict)
    _rules: OrderedDict[tuple[object, ...], SiteRules] = field(default_factory=OrderedDict)

    def replay(self, events: Iterable[Event], texts: Mapping[int, bytes]) -> Iterator[Violation]:
        """Check ``events`` and yield each violation. Call it for one slice of the log after another.

        ``texts`` maps numbers to the bodies of the robots.txt files that are in force during these events.
        """
        self.limited.clear()
        for event in events:
            if event.unit != self._unit:
                self._unit = event.unit
                self._groups.clear()
                self._sites.clear()
            site = self._sites.get(event.site_id) or self._add_site(event)
            fact = event.fact
            if isinstance(fact, LoggedRequest):
                yield from self._check_request(fact, site, texts)
            elif isinstance(fact, RobotsResponse):
                yield from self._check_response(fact.request, site)
            else:
                yield from self._check_version(fact, site, texts)

    def _add_site(self, event: Event) -> _Site:
        ways = {run.settings.politeness.group for run in self.runs.values()}
        groups = {by: self._groups.setdefault((by, group_name(event.site, by)), _Group()) for by in ways}
        site = _Site(event.site, RobotsHistory(event.site_id), groups)
        self._sites[event.site_id] = site
        return site

    def _check_request(self, request: LoggedRequest, site: _Site, texts: Mapping[int, bytes]) -> Iterator[Violation]:
        run = self.runs.get(request.run)
        yield from self._check_record(request, run)
        if run is None:
            return
        version = site.robots.version
        case = _Case(request, run, site, version, self._rules_of(version, site.name, run, texts))
        if case.rules is not None and request.started_at < site.robots.until:
            case.crawl_delay_s = case.rules.crawl_delay_s
        yield from self._check_identity(case)
        if request.purpose != Purpose.ROBOTS or _is_elsewhere(request):
            yield from self._check_robots_first(case)
            yield from self._check_fresh(case)
            yield from self._check_permission(case)
            yield from self._check_preference(case)
            self._note_use(case)
        elif request.for_site_id is None:
            site.robots_request = request
        yield from self._check_pace(case)
        yield from self._check_rests(case)
        yield from self._check_hours(case)
        yield from self._check_restrictions(case)

    def _check_response(self, response: LoggedRequest, site: _Site) -> Iterator[Violation]:
        """A request for robots.txt must be for the site's own /robots.txt, or for the target of a redirect."""
        run = self.runs.get(response.run)
        if run is None or site.robots.add_response(response, run):
            return
        self.counts[Check.PERMISSION].judged += 1
        required = "a request for /robots.txt, or for the target of its redirect"
        done = f"logged as a request for the robots.txt of {site.name}, which had not redirected there"
        yield Violation.by_request(Check.PERMISSION, response, required, done)

    def _check_version(self, version: RobotsVersion, site: _Site, texts: Mapping[int, bytes]) -> Iterator[Violation]:
        """A recorded version must follow from the response. Its ``Crawl-delay`` applies from that response on."""
        response, run, paused_until = site.robots.response, site.robots.run, 0.0
        if response is not None and run is not None:
            rules = self._rules_of(version, site.name, run, texts)
            if version.action != RobotsAction.DEFER:  # a site that cannot be asked keeps its Crawl-delay
                site.crawl_delay_s = rules.crawl_delay_s if rules is not None else None
            due_at = response.finished_at + capped_crawl_delay_s(site.crawl_delay_s, run.settings.politeness)
            for group in site.groups.values():
                group.paused_until = max(group.paused_until, due_at)
                if rules is not None and group.pause is not None and due_at > group.pause.due_at:
                    group.pause = _Obligation(due_at, response, WaitReason(WaitCode.CRAWL_DELAY))
            paused_until = site.groups[run.settings.politeness.group].paused_until
        for required, done in site.robots.add_version(version, paused_until):
            if self.bucket is not None and self.bucket.other_of(site.name) is not None:
                continue
            yield Violation.in_version(version, site.name, required, done, response)

    def _rules_of(
        self, version: RobotsVersion | None, site: str, run: RunRecord, texts: Mapping[int, bytes]
    ) -> SiteRules | None:
        """The rules of a version for the agent of ``run``; ``None`` if the version has no text."""
        if version is None or version.text_id is None or version.text_id not in texts:
            return None
        robots, token = run.settings.robots, run.settings.identity.agent
        key = (version.text_id, site, token, robots.reading, robots.policy_tokens)
        rules = self._rules.get(key)
        if rules is None:
            file = parse(texts[version.text_id], max_bytes=robots.max_bytes)
            refuted = self.refuted.get(site)
            rules = read(
                file,
                token=token,
                reading=robots.reading,
                site=site,
                knows_host=run.knows_host,
                refuted=refuted,
                policy_tokens=robots.policy_tokens,
            )
            self._rules[key] = rules
            if len(self._rules) > _MAX_CACHED_RULES:
                self._rules.popitem(last=False)
        return rules

    # --- the log and the identity of the crawler -----------------------------------------------

    def _check_record(self, request: LoggedRequest, run: RunRecord | None) -> Iterator[Violation]:
        self.counts[Check.LOG].judged += 1
        if run is None:
            yield Violation.by_request(
                Check.LOG, request, "a run with its settings", f"run {request.run} is not recorded"
            )
        elif request.finished_at < request.started_at - TOLERANCE_S:
            yield Violation.by_request(Check.LOG, request, "an end after its start", "it ends before it starts")
        elif not run.includes(request.started_at):
            yield Violation.by_request(Check.LOG, request, "a start within its run", f"it is outside run {request.run}")

    def _check_identity(self, case: _Case) -> Iterator[Violation]:
        self.counts[Check.IDENTITY].judged += 1
        run, request = case.run, case.request
        if not run.settings.identity.agent or not (run.settings.identity.contact or may_be_anonymous(request, run)):
            required = "a product token, and a contact outside loopback"
            yield Violation.by_request(Check.IDENTITY, request, required, f"the User-Agent was {run.user_agent}")

    def _check_hours(self, case: _Case) -> Iterator[Violation]:
        """The settings of the run may name hours for the host. The operator starts each auxiliary run at any hour."""
        hours = window_of(host_of(case.request.site), case.politeness.hours)
        if hours is None or case.run.is_auxiliary:
            return
        self.counts[Check.HOURS].judged += 1
        if not hours.is_open(case.request.started_at):
            required = f"from {hours.begins:%H:%M} to {hours.ends:%H:%M}, {hours.zone}"
            done = f"{datetime.fromtimestamp(case.request.started_at, hours.zone):%H:%M:%S}"
            yield Violation.by_request(Check.HOURS, case.request, required, done)

    def _check_rests(self, case: _Case) -> Iterator[Violation]:
        """After walls or refusals in a run the site must rest. The operator may have it asked again by another run."""
        request, walls = case.request, case.site.walls
        if walls.run != request.run:
            walls = case.site.walls = Walls(request.run, walls.has_answered)
        if walls.rests_until:
            self.counts[Check.RESTS].judged += 1
            if request.started_at < walls.rests_until - TOLERANCE_S:
                until = "for good" if walls.rests_until == inf else f"until {instant(walls.rests_until)}"
                required = f"no request to the site, which answered by walls or refusals, {until}"
                done = f"sent {request.started_at - walls.began_at:.3f} s after the last of them"
                yield Violation.by_request(Check.RESTS, request, required, done, before=walls.last)
        if not _is_elsewhere(request) and request.purpose not in _UNCOUNTED:
            walls.add(request, case.run.settings.robots.rests_s)

    def _check_restrictions(self, case: _Case) -> Iterator[Violation]:
        """The operator's orders apply to crawls. The operator also starts each auxiliary run, so they are exempt."""
        if not self.restrictions.any or case.run.is_auxiliary:
            return
        self.counts[Check.OPERATOR].judged += 1
        if violation := self.restrictions.violation_by(case.request):
            yield Violation.by_request(Check.OPERATOR, case.request, *violation)

    # --- robots.txt ---------------------------------------------------------------------------

    def _check_robots_first(self, case: _Case) -> Iterator[Violation]:
        self.counts[Check.ROBOTS_FIRST].judged += 1
        request, site = case.request, case.site
        if site.robots.response is None:
            required = f"a response for {request.site}{ROBOTS_PATH} before the first page"
            done = "none was complete" if site.robots_request else "it had not been requested"
            yield Violation.by_request(Check.ROBOTS_FIRST, request, required, done, before=site.robots_request)

    def _check_fresh(self, case: _Case) -> Iterator[Violation]:
        self.counts[Check.FRESH].judged += 1
        request, version = case.request, case.version
        if version is None:
            required = "a robots.txt version in force"
            yield Violation.by_request(Check.FRESH, request, required, "the store has none from that time")
            return
        late_s = request.started_at - case.site.robots.until
        if late_s >= TOLERANCE_S:
            required, done = "a robots.txt that has not expired", f"it had expired {late_s:.3f} s before"
            yield Violation.by_request(Check.FRESH, request, required, done, version=version)

    def _check_permission(self, case: _Case) -> Iterator[Violation]:
        if not case.request.path:
            return  # its address was reduced to its site: the limits of the proof count it
        self.counts[Check.PERMISSION].judged += 1
        request, version = case.request, case.version
        required = "permission by the robots.txt in force"
        if request.path == ROBOTS_PATH or version is None:  # the check of freshness reports a missing version
            return
        if version.action not in _OPEN:
            done = f"/robots.txt had answered {version.status or 'nothing'}: {version.action}"
            yield Violation.by_request(Check.PERMISSION, request, required, done, version=version)
        elif contradiction := case.site.robots.contradiction(case.run):
            yield Violation.by_request(Check.PERMISSION, request, required, contradiction, version=version)
        elif case.rules is not None:
            verdict = case.rules.verdict(request.path)
            if not verdict.allowed:
                done = f"it was forbidden ({verdict.reading})"
                yield Violation.by_request(Check.PERMISSION, request, required, done, version=version, rule=verdict)
        elif version.action == RobotsAction.PARSE:
            yield Violation.by_request(
                Check.PERMISSION, request, required, "its text is not in the store", version=version
            )

    def _check_preference(self, case: _Case) -> Iterator[Violation]:
        """A page must not be requested if robots.txt refuses a purpose that the run declared."""
        request, rules, purposes = case.request, case.rules, case.run.settings.identity.purpose
        if request.purpose != Purpose.PAGE or not purposes or not request.path:
            return
        self.counts[Check.PREFERENCE].judged += 1
        stated = () if rules is None else rules.preferences.of(request.path)
        refused = first_refusal(stated, purposes) or first_refusal(self._licensed(stated, case), purposes)
        if refused is not None:
            required = f"no refusal of the purposes {', '.join(purposes)}"
            rule = Verdict(False, refused.line, refused.text, case.run.settings.robots.reading)
            done = f"{refused.category} was refused"
            yield Violation.by_request(Check.PREFERENCE, request, required, done, version=case.version, rule=rule)

    def _licensed(self, stated: Iterable[Preference], case: _Case) -> Iterator[Preference]:
        """What the licences say that robots.txt names."""
        for url in named_licences(stated):
            yield from self._said_by(url, case, _MOST_HOPS)

    def _said_by(self, url: str, case: _Case, hops: int) -> Iterator[Preference]:
        """What a licence said at a request. One that had not come by then refuses every use, as one that had failed.

        The store has the text of the last answer alone, so an earlier request is not judged by what an answer says.
        """
        at, known = case.request.started_at, self.licences.get(url)
        answer = None if known is None else known.answer_before(at)
        if known is None or answer is None:
            why = "" if known is None or at < known.fetched_at else known.why
            yield from unavailable(url, why or "it had not been requested")
        elif answer.moved_to and hops:
            yield from self._said_by(answer.moved_to, case, hops - 1)
        elif answer.moved_to or answer.is_failure:
            yield from unavailable(url, f"it had answered {answer.status or 'nothing'}")
        elif at >= known.fetched_at:
            site, path = case.site.name, case.request.path
            yield from unavailable(url, known.why) if known.why else known.licence.of(site, path, url)

    def _note_use(self, case: _Case) -> None:
        """Note a page whose use the robots.txt in force limits; most files have no such line."""
        request, rules = case.request, case.rules
        if request.purpose != Purpose.PAGE or rules is None or not rules.preferences.signals or not request.path:
            return
        stated = limited_use(rules.preferences.of(request.path))
        if stated is not None:
            self.counts[Check.USE].judged += 1
            rule = Verdict(False, stated.line, stated.text, case.run.settings.robots.reading)
            self.limited.append(LimitedUse(request, case.version, stated.value, rule))

    # --- the pace -----------------------------------------------------------------------------

    def _check_pace(self, case: _Case) -> Iterator[Violation]:
        group = case.site.groups[case.run.settings.politeness.group]
        yield from self._check_pause(case, group)
        yield from self._check_backoff(case, group)
        for each in case.site.groups.values():
            _add_obligations(case, each)

    def _check_pause(self, case: _Case, group: _Group) -> Iterator[Violation]:
        """The request must not overlap the one before it, and must keep the pause after it."""
        request, last, pause = case.request, group.last, group.pause
        if last is None or pause is None:
            return
        self.counts[Check.OVERLAP].judged += 1
        over_s = last.finished_at - request.started_at
        if over_s > TOLERANCE_S:
            done = f"sent {over_s:.3f} s before its end"
            required = "the end of the request before it"
            yield Violation.by_request(Check.OVERLAP, request, required, done, before=last)
            return
        self.counts[Check.PAUSE].judged += 1
        if pause.due_at - request.started_at > TOLERANCE_S:
            yield self._too_soon(Check.PAUSE, case, pause)

    def _check_backoff(self, case: _Case, group: _Group) -> Iterator[Violation]:
        """The request must wait for a ``Retry-After``, and for the back-off after a 429 or 503."""
        backoff = group.backoff
        if backoff is None:
            return
        self.counts[Check.RETRY_AFTER].judged += group.backoff_is_new
        group.backoff_is_new = False
        if backoff.due_at - case.request.started_at > TOLERANCE_S:
            yield self._too_soon(Check.RETRY_AFTER, case, backoff)
        else:
            group.backoff = None

    def _too_soon(self, check: Check, case: _Case, obligation: _Obligation) -> Violation:
        end = obligation.before.finished_at
        required = f"{obligation.due_at - end:.3f} s after the request before it ({obligation.wait})"
        done = f"{case.request.started_at - end:.3f} s"
        version = case.version if obligation.wait.code is WaitCode.CRAWL_DELAY else None
        return Violation.by_request(check, case.request, required, done, version=version, before=obligation.before)


def _is_elsewhere(request: LoggedRequest) -> bool:
    """Whether a request for robots.txt went to a path of another site, whose robots.txt must then allow the path."""
    return request.for_site_id not in (None, request.site_id) and request.path != ROBOTS_PATH


def _add_obligations(case: _Case, group: _Group) -> None:
    """Update a group with the pause and the back-off that a request requires of later requests."""
    request, settings, end = case.request, case.politeness, case.request.finished_at
    if group.last is None or end > group.last.finished_at:
        group.last = request
    facts = PauseFacts(
        request.started_at, end, request.status, request.error_kind, request.retry_after_s, request.lag_s
    )
    # A failure below HTTP may be noticed late, after the group has passed to another worker. The back-off of earlier
    # failures is not required for the same reason.
    answered = facts._replace(error_kind=None)
    backoff_s, slowdown = backoff_after(0.0, answered, settings), _proven_slowdown(case.site, group, facts)
    asked = constraints(answered, backoff_s, case.crawl_delay_s, settings, slowdown)
    pause = max((each for each in asked if each.code not in _TROUBLE), key=_pause_s)
    backoff = max((each for each in asked if each.code in _TROUBLE), key=_pause_s)
    if group.pause is None or end + pause.pause_s > group.pause.due_at:
        group.pause = _obligation(pause, request)
    if backoff.pause_s and (group.backoff is None or end + backoff.pause_s > group.backoff.due_at):
        group.backoff = _obligation(backoff, request)
        group.backoff_is_new = True
    for crawl_delay_s in (case.crawl_delay_s, case.site.crawl_delay_s):
        pace = after_answer(group.pace, facts, crawl_delay_s, settings)
        group.paused_until = max(group.paused_until, pace.next_at)
    group.pace = pace


def _proven_slowdown(site: _Site, group: _Group, answer: PauseFacts) -> float:
    """How many times as long as usual the answers took at least.

    Half of what the log says: an answer that a worker without a lease has logged late was unknown to the next worker.
    Nothing is proven if the runs group sites in different ways.
    """
    return group.pace.times.after(answer).slowdown / 2 if len(site.groups) == 1 else 1.0


def _pause_s(constraint: Constraint) -> float:
    return constraint.pause_s


def _obligation(constraint: Constraint, request: LoggedRequest) -> _Obligation:
    return _Obligation(request.finished_at + constraint.pause_s, request, constraint.wait)
