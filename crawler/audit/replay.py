"""The judgement of an audit: whether every request kept the rules, from what is logged and nothing else. Pure.

What the crawl concluded at the time (``request.verdict_line``, ``request.robots_id``, the pace of a group) is not
looked at. Each robots.txt version is parsed and read again, its end and each pause are reckoned again from the settings
of its run.
Rules: ``docs/protocols.md``, sections 1, 2 and 6. How each is judged: ``docs/audit.md``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from crawler.audit.records import (
    ROBOTS_PATH,
    TOLERANCE_S,
    Check,
    CheckCount,
    Event,
    LoggedRequest,
    RobotsResponse,
    RobotsVersion,
    RunRecord,
    Violation,
    may_be_anonymous,
)
from crawler.audit.restrictions import Restrictions
from crawler.audit.robots_history import RobotsHistory
from crawler.frontier.politeness import GroupBy, group_name
from crawler.model import Purpose, Reading, RobotsAction
from crawler.robots.readings import SiteRules, read
from crawler.robots.rules import Verdict
from crawler.robots.text import parse

_RULES_KEPT = 200
_OPEN = frozenset({RobotsAction.PARSE, RobotsAction.FREE})


class _Obligation(NamedTuple):
    """A group must be left alone until ``due_at``, for the rule ``why``, because of the request ``before``."""

    due_at: float
    before: LoggedRequest
    why: str


@dataclass(slots=True)
class _Group:
    """What must be remembered of a politeness group: its longest request so far, and what that and others ask.

    ``held_until`` is the latest time until which the crawl may have left it alone, ``backoff_s`` the longest back-off
    that it may be in: which failures count as trouble is not in the log, so all do.
    """

    last: LoggedRequest | None = None
    pause: _Obligation | None = None
    refusal: _Obligation | None = None
    refusal_is_new: bool = False
    held_until: float = 0.0
    backoff_s: float = 0.0


@dataclass(slots=True)
class _Site:
    """A site's robots.txt, and its groups, one per way of grouping in use."""

    name: str
    robots: RobotsHistory
    groups: dict[GroupBy, _Group]
    asked: LoggedRequest | None = None  # the last request for robots.txt
    heard_delay_s: float | None = None  # the Crawl-delay of the last robots.txt that was read


@dataclass(slots=True)
class _Case:
    """One request with all that it is judged by."""

    sent: LoggedRequest
    terms: RunRecord
    site: _Site
    version: RobotsVersion | None
    rules: SiteRules | None
    crawl_delay_s: float = 0.0


@dataclass(slots=True)
class Replay:
    """Judges what happened, in the order of (unit, time), a unit being what no politeness group reaches beyond.

    ``terms`` are the settings of each run. ``blind`` says of a run since when robots.txt redirects of it are in the log
    without their ``Location``: early stores did not keep it. ``restraints`` are what the operator had asked for.
    What was counted is in ``tally``.
    """

    terms: Mapping[int, RunRecord]
    blind: Mapping[int, float] = field(default_factory=dict)
    restraints: Restrictions = field(default_factory=Restrictions)
    tally: dict[Check, CheckCount] = field(default_factory=lambda: {check: CheckCount() for check in Check})
    _unit: str | None = None
    _groups: dict[tuple[GroupBy, str], _Group] = field(default_factory=dict)
    _sites: dict[int, _Site] = field(default_factory=dict)
    _rules: OrderedDict[tuple[int, str, str, Reading], SiteRules] = field(default_factory=OrderedDict)

    def judge(self, events: Iterable[Event], texts: Mapping[int, bytes]) -> Iterator[Violation]:
        """Every breach of every rule. May be called for one slice of the log after the other.

        ``texts`` are the bodies of the versions in this slice, and of those in force at its requests.
        """
        for event in events:
            if event.unit != self._unit:
                self._unit = event.unit
                self._groups.clear()
                self._sites.clear()
            site = self._sites.get(event.site_id) or self._meet(event)
            fact = event.fact
            if isinstance(fact, LoggedRequest):
                yield from self._request(fact, site, texts)
            elif isinstance(fact, RobotsResponse):
                yield from self._answer(fact.sent, site)
            else:
                yield from self._version(fact, site, texts)

    def _meet(self, event: Event) -> _Site:
        ways = {terms.group for terms in self.terms.values()}
        groups = {by: self._groups.setdefault((by, group_name(event.site, by)), _Group()) for by in ways}
        site = _Site(event.site, RobotsHistory(event.site_id), groups)
        self._sites[event.site_id] = site
        return site

    def _request(self, sent: LoggedRequest, site: _Site, texts: Mapping[int, bytes]) -> Iterator[Violation]:
        terms = self.terms.get(sent.run)
        yield from self._logged(sent, terms)
        if terms is None:
            return
        version = site.robots.version
        case = _Case(sent, terms, site, version, self._read(version, site.name, terms, texts))
        if case.rules is not None and sent.started_at < site.robots.until:
            case.crawl_delay_s = terms.crawl_delay_kept_s(case.rules.crawl_delay_s)
        yield from self._identity(case)
        if sent.purpose != Purpose.ROBOTS:
            yield from self._robots_first(case)
            yield from self._fresh(case)
            yield from self._permitted(case)
        elif sent.for_site_id is None:
            site.asked = sent
        yield from self._pace(case)
        yield from self._held_back(case)

    def _answer(self, answer: LoggedRequest, site: _Site) -> Iterator[Violation]:
        """A request made for robots.txt: another path than its own must be where one redirected to."""
        terms = self.terms.get(answer.run)
        if terms is None or site.robots.hear(answer, terms):
            return
        tally = self.tally[Check.PERMISSION]
        tally.judged += 1
        if self._is_blind(answer):
            tally.unproven += 1
            return
        done = f"logged as a request for the robots.txt of {site.name}, which had not redirected there"
        yield self._violation(Check.PERMISSION, answer, "a request for /robots.txt, or where it redirects", done)

    def _version(self, version: RobotsVersion, site: _Site, texts: Mapping[int, bytes]) -> Iterator[Violation]:
        """A robots.txt was read: its ``Crawl-delay`` holds from that very answer on."""
        answer, terms, held_until = site.robots.answer, site.robots.terms, 0.0
        if answer is not None and terms is not None:
            rules = self._read(version, site.name, terms, texts)
            if version.action != RobotsAction.DEFER:  # while it cannot be had, the last word counts
                site.heard_delay_s = rules.crawl_delay_s if rules is not None else None
            due_at = answer.finished_at + terms.crawl_delay_kept_s(site.heard_delay_s)
            for group in site.groups.values():
                group.held_until = max(group.held_until, due_at)
                if rules is not None and group.pause is not None and due_at > group.pause.due_at:
                    group.pause = _Obligation(due_at, answer, "Crawl-delay")
            held_until = site.groups[terms.group].held_until
        for required, done in site.robots.take(version, held_until):
            self.tally[Check.LOG].violations += 1
            yield Violation.at_version(version, site.name, required, done, answer)

    def _is_blind(self, sent: LoggedRequest) -> bool:
        """Whether a redirect of robots.txt that is not on record may explain a request."""
        return self.blind.get(sent.run, inf) <= sent.started_at

    def _read(
        self, version: RobotsVersion | None, site: str, terms: RunRecord, texts: Mapping[int, bytes]
    ) -> SiteRules | None:
        """The rules of a version, if its text is to be had."""
        if version is None or version.text is None or version.text not in texts:
            return None
        key = (version.text, site, terms.agent, terms.reading)
        rules = self._rules.get(key)
        if rules is None:
            file = parse(texts[version.text], max_bytes=terms.robots.max_bytes)
            rules = read(file, token=terms.agent, reading=terms.reading, site=site, knows_host=terms.knows_host)
            self._rules[key] = rules
            if len(self._rules) > _RULES_KEPT:
                self._rules.popitem(last=False)
        return rules

    def _violation(
        self,
        check: Check,
        sent: LoggedRequest,
        required: str,
        done: str,
        *,
        version: RobotsVersion | None = None,
        before: LoggedRequest | None = None,
        rule: Verdict | None = None,
    ) -> Violation:
        self.tally[check].violations += 1
        return Violation.of(check, sent, required, done, version=version, before=before, rule=rule)

    # --- the log and who sent it --------------------------------------------------------------

    def _logged(self, sent: LoggedRequest, terms: RunRecord | None) -> Iterator[Violation]:
        self.tally[Check.LOG].judged += 1
        if terms is None:
            yield self._violation(Check.LOG, sent, "a run with its settings", f"run {sent.run} is not recorded")
        elif sent.finished_at < sent.started_at - TOLERANCE_S:
            yield self._violation(Check.LOG, sent, "an end after its start", "it ends before it starts")
        elif not terms.lasted(sent.started_at):
            yield self._violation(Check.LOG, sent, "a start within its run", f"it is outside run {sent.run}")

    def _identity(self, case: _Case) -> Iterator[Violation]:
        self.tally[Check.IDENTITY].judged += 1
        terms, sent = case.terms, case.sent
        if not terms.agent or not (terms.contact or may_be_anonymous(sent, terms)):
            required = "a product token, and a contact outside loopback"
            yield self._violation(Check.IDENTITY, sent, required, f"the User-Agent was {terms.user_agent}")

    def _held_back(self, case: _Case) -> Iterator[Violation]:
        """What the operator had asked of crawls; the operator asked for an auxiliary run as well."""
        if not self.restraints.any or case.terms.is_auxiliary:
            return
        self.tally[Check.OPERATOR].judged += 1
        if breach := self.restraints.broken_by(case.sent):
            yield self._violation(Check.OPERATOR, case.sent, *breach)

    # --- robots.txt ---------------------------------------------------------------------------

    def _robots_first(self, case: _Case) -> Iterator[Violation]:
        self.tally[Check.ROBOTS_FIRST].judged += 1
        sent, site = case.sent, case.site
        if site.robots.answer is None:
            required = f"an answer for {sent.site}{ROBOTS_PATH} before the first page"
            done = "none was complete" if site.asked else "it had not been asked for"
            yield self._violation(Check.ROBOTS_FIRST, sent, required, done, before=site.asked)

    def _fresh(self, case: _Case) -> Iterator[Violation]:
        tally = self.tally[Check.FRESH]
        tally.judged += 1
        sent, version = case.sent, case.version
        if version is None:
            required = "a robots.txt version in force"
            yield self._violation(Check.FRESH, sent, required, "the store has none from that time")
            return
        late_s = sent.started_at - case.site.robots.until
        if late_s >= TOLERANCE_S:
            required, done = "a robots.txt that has not run out", f"it ran out {late_s:.3f} s before"
            yield self._violation(Check.FRESH, sent, required, done, version=version)
        elif version.headers is None:
            tally.unproven += 1

    def _permitted(self, case: _Case) -> Iterator[Violation]:
        self.tally[Check.PERMISSION].judged += 1
        sent, version = case.sent, case.version
        required = "permission by the robots.txt in force"
        if sent.path == ROBOTS_PATH or version is None:  # its lack is a matter of freshness
            return
        if version.action not in _OPEN:
            done = f"/robots.txt had answered {version.status or 'nothing'}: {version.action}"
            yield self._violation(Check.PERMISSION, sent, required, done, version=version)
        elif objection := self._contradicted(case):
            yield self._violation(Check.PERMISSION, sent, required, objection, version=version)
        elif case.rules is not None:
            verdict = case.rules.verdict(sent.path)
            if not verdict.allowed:
                done = f"it was forbidden ({verdict.reading})"
                yield self._violation(Check.PERMISSION, sent, required, done, version=version, rule=verdict)
        elif version.action == RobotsAction.PARSE:
            yield self._violation(Check.PERMISSION, sent, required, "its text is not in the store", version=version)

    def _contradicted(self, case: _Case) -> str | None:
        """Why what was recorded of robots.txt cannot be so, by the answer that the log has for it."""
        robots = case.site.robots
        objection = robots.contradiction(case.terms)
        if objection and robots.answer is not None and self._is_blind(robots.answer):
            self.tally[Check.PERMISSION].unproven += 1
            return None
        return objection

    # --- the pace -----------------------------------------------------------------------------

    def _pace(self, case: _Case) -> Iterator[Violation]:
        group = case.site.groups[case.terms.group]
        yield from self._alone(case, group)
        yield from self._not_refused(case, group)
        for each in case.site.groups.values():
            _oblige(case, each)

    def _alone(self, case: _Case, group: _Group) -> Iterator[Violation]:
        """No overlap with the request before it, and else the pause between them."""
        sent, last, pause = case.sent, group.last, group.pause
        if last is None or pause is None:
            return
        self.tally[Check.OVERLAP].judged += 1
        over_s = last.finished_at - sent.started_at
        if over_s > TOLERANCE_S:
            done = f"sent {over_s:.3f} s before its end"
            required = "the end of the request before it"
            yield self._violation(Check.OVERLAP, sent, required, done, before=last)
            return
        self.tally[Check.PAUSE].judged += 1
        if pause.due_at - sent.started_at > TOLERANCE_S:
            yield self._too_soon(Check.PAUSE, case, pause)

    def _not_refused(self, case: _Case, group: _Group) -> Iterator[Violation]:
        refusal = group.refusal
        if refusal is None:
            return
        self.tally[Check.RETRY_AFTER].judged += group.refusal_is_new
        group.refusal_is_new = False
        if refusal.due_at - case.sent.started_at > TOLERANCE_S:
            yield self._too_soon(Check.RETRY_AFTER, case, refusal)
        else:
            group.refusal = None

    def _too_soon(self, check: Check, case: _Case, kept: _Obligation) -> Violation:
        end = kept.before.finished_at
        required = f"{kept.due_at - end:.3f} s after the request before it ({kept.why})"
        done = f"{case.sent.started_at - end:.3f} s"
        version = case.version if kept.why == "Crawl-delay" else None
        return self._violation(check, case.sent, required, done, version=version, before=kept.before)


def _oblige(case: _Case, group: _Group) -> None:
    """What a request asks of those after it in its group."""
    sent, terms, end = case.sent, case.terms, case.sent.finished_at
    if group.last is None or end > group.last.finished_at:
        group.last = sent
    slow_s = min(terms.slow_factor * (end - sent.started_at), terms.slow_cap_s)
    pause_s, why = terms.delay_s, "delay"
    if slow_s > pause_s:
        pause_s, why = slow_s, "a multiple of the time that its answer took"
    if case.crawl_delay_s > pause_s:
        pause_s, why = case.crawl_delay_s, "Crawl-delay"
    if group.pause is None or end + pause_s > group.pause.due_at:
        group.pause = _Obligation(end + pause_s, sent, why)
    asked_s, why = sent.retry_after_s or 0.0, "Retry-After"
    if sent.status in (429, 503):
        floor_s = min(terms.backoff_first_s, terms.backoff_max_s)
        if floor_s > asked_s:
            asked_s, why = floor_s, f"back-off after {sent.status}"
    if asked_s and (group.refusal is None or end + asked_s > group.refusal.due_at):
        group.refusal = _Obligation(end + asked_s, sent, why)
        group.refusal_is_new = True
    group.backoff_s = _longest_backoff(group.backoff_s, sent, terms)
    heard_s = terms.crawl_delay_kept_s(case.site.heard_delay_s)
    group.held_until = max(group.held_until, end + max(pause_s, asked_s, group.backoff_s, heard_s))


def _longest_backoff(before_s: float, sent: LoggedRequest, terms: RunRecord) -> float:
    """The back-off after a request, at the most: trouble doubles it, anything else halves it."""
    if sent.error is not None:
        return min(max(terms.backoff_first_s, 2 * before_s), terms.backoff_max_s)
    halved_s = before_s / 2
    return halved_s if halved_s > terms.delay_s and halved_s >= 0.5 else 0.0
