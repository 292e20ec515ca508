"""The judgement of an audit: whether every request kept the rules, from what is logged and nothing else. Pure.

What the crawl concluded at the time (``request.verdict_line``, ``request.robots_id``, the pace of a group) is not
looked at. Each robots.txt version is parsed and read again, each pause is reckoned again from the settings of its run.
Rules: ``docs/protocols.md``, sections 1, 2 and 6. How each is judged: ``docs/audit.md``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from crawler.frontier.politeness import GroupBy, group_name
from crawler.model import Purpose, Reading, RobotsAction
from crawler.report.audit_facts import (
    ROBOTS_PATH,
    TOLERANCE_S,
    Check,
    Sent,
    Tally,
    Terms,
    Version,
    Violation,
    in_force,
    may_be_anonymous,
    meaning,
)
from crawler.robots.readings import SiteRules, read
from crawler.robots.rules import Verdict
from crawler.robots.text import parse

_RULES_KEPT = 200
_DAY_S = 86_400.0
_OPEN = frozenset({RobotsAction.PARSE, RobotsAction.FREE})


class _Obligation(NamedTuple):
    """A group must be left alone until ``due_at``, for the rule ``why``, because of the request ``before``."""

    due_at: float
    before: Sent
    why: str


@dataclass(slots=True)
class _Group:
    """What must be remembered of a politeness group: its longest request so far, and what that and others ask."""

    last: Sent | None = None
    pause: _Obligation | None = None
    refusal: _Obligation | None = None
    refusal_is_new: bool = False


@dataclass(slots=True)
class _Site:
    """A site's groups, one per way of grouping in use, and its last requests for robots.txt."""

    groups: dict[GroupBy, _Group]
    asked: Sent | None = None
    answered: Sent | None = None  # the one before ``asked`` that was complete when ``asked`` was sent

    def answer_at(self, now: float) -> Sent | None:
        """The last answer for robots.txt that was complete at ``now``."""
        asked = self.asked
        return asked if asked is not None and asked.finished_at <= now + TOLERANCE_S else self.answered


@dataclass(slots=True)
class _Case:
    """One request with all that it is judged by."""

    sent: Sent
    terms: Terms
    site: _Site
    version: Version | None
    rules: SiteRules | None
    crawl_delay_s: float = 0.0


@dataclass(slots=True)
class Judge:
    """Judges requests in the order of (unit, start), a unit being what no politeness group reaches beyond.

    ``terms`` are the settings of each run. ``redirects`` are the first ends of robots.txt answers that redirect, of
    two sites at most: (site, seconds). What was counted is in ``tally``.
    """

    terms: Mapping[int, Terms]
    redirects: Sequence[tuple[int, float]] = ()
    tally: dict[Check, Tally] = field(default_factory=lambda: {check: Tally() for check in Check})
    _unit: str | None = None
    _groups: dict[tuple[GroupBy, str], _Group] = field(default_factory=dict)
    _sites: dict[int, _Site] = field(default_factory=dict)
    _rules: OrderedDict[tuple[int, str, str, Reading], SiteRules] = field(default_factory=OrderedDict)

    def judge(
        self, requests: Iterable[Sent], versions: Mapping[int, Sequence[Version]], texts: Mapping[int, bytes]
    ) -> Iterator[Violation]:
        """Every breach of every rule. May be called for one slice of the log after the other.

        ``versions`` are the robots.txt versions of the sites in this slice, each site's in the order of time;
        ``texts`` the bodies that they name.
        """
        for sent in requests:
            terms = self.terms.get(sent.run)
            yield from self._logged(sent, terms)
            if terms is None:
                continue
            case = self._case(sent, terms, versions.get(sent.site_id, ()), texts)
            yield from self._identity(case)
            if sent.purpose != Purpose.ROBOTS:
                yield from self._robots_first(case)
                yield from self._fresh(case)
                yield from self._permitted(case)
            yield from self._pace(case)
            if sent.purpose == Purpose.ROBOTS:
                yield from self._robots_request(case)  # last, for what it brings holds for those after it

    # --- the case -----------------------------------------------------------------------------

    def _case(self, sent: Sent, terms: Terms, versions: Sequence[Version], texts: Mapping[int, bytes]) -> _Case:
        if sent.unit != self._unit:
            self._unit = sent.unit
            self._groups.clear()
            self._sites.clear()
        site = self._sites.get(sent.site_id) or self._meet(sent)
        version = in_force(versions, sent.started_at)
        rules = None
        if version is not None and version.text is not None and version.text in texts:
            rules = self._read(version.text, texts[version.text], sent.site, terms)
        case = _Case(sent, terms, site, version, rules)
        if version is not None and rules is not None and sent.started_at < version.valid_until:
            case.crawl_delay_s = terms.crawl_delay_kept_s(rules.crawl_delay_s)
        return case

    def _meet(self, sent: Sent) -> _Site:
        ways = {terms.group for terms in self.terms.values()}
        site = _Site({by: self._groups.setdefault((by, group_name(sent.site, by)), _Group()) for by in ways})
        self._sites[sent.site_id] = site
        return site

    def _read(self, text: int, body: bytes, site: str, terms: Terms) -> SiteRules:
        key = (text, site, terms.agent, terms.reading)
        rules = self._rules.get(key)
        if rules is None:
            file = parse(body, max_bytes=terms.max_bytes)
            rules = read(file, token=terms.agent, reading=terms.reading, site=site, knows_host=terms.knows_host)
            self._rules[key] = rules
            if len(self._rules) > _RULES_KEPT:
                self._rules.popitem(last=False)
        return rules

    def _violation(
        self,
        check: Check,
        sent: Sent,
        required: str,
        done: str,
        *,
        version: Version | None = None,
        before: Sent | None = None,
        rule: Verdict | None = None,
    ) -> Violation:
        self.tally[check].violations += 1
        return Violation.of(check, sent, required, done, version=version, before=before, rule=rule)

    # --- the log and who sent it --------------------------------------------------------------

    def _logged(self, sent: Sent, terms: Terms | None) -> Iterator[Violation]:
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

    # --- robots.txt ---------------------------------------------------------------------------

    def _robots_request(self, case: _Case) -> Iterator[Violation]:
        """A request made for robots.txt: another path than its own must be where one redirected to."""
        sent, site = case.sent, case.site
        if sent.path == ROBOTS_PATH:
            if site.asked is not None and site.asked.finished_at <= sent.started_at + TOLERANCE_S:
                site.answered = site.asked
            site.asked = sent
        elif not self.redirects or self.redirects[0][1] > sent.started_at + TOLERANCE_S:
            self.tally[Check.PERMISSION].judged += 1
            done = "logged as a request for robots.txt, for another path; no robots.txt had redirected anywhere"
            yield self._violation(Check.PERMISSION, sent, "a request for /robots.txt, or where it redirects", done)

    def _robots_first(self, case: _Case) -> Iterator[Violation]:
        self.tally[Check.ROBOTS_FIRST].judged += 1
        sent, site = case.sent, case.site
        if site.answer_at(sent.started_at) is None:
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
        until = min(version.valid_until, self._longest_until(case, version))
        if sent.started_at >= until + TOLERANCE_S:
            late_s = sent.started_at - until
            required, done = "a robots.txt that has not run out", f"it ran out {late_s:.3f} s before"
            yield self._violation(Check.FRESH, sent, required, done, version=version)
        elif sent.started_at < version.confirmed_at - TOLERANCE_S:
            tally.unproven += 1  # renewed since: when it would have run out before that is no longer recorded

    def _longest_until(self, case: _Case, version: Version) -> float:
        """RFC 9309, 2.4: 24 hours at most; longer only where the pause after robots.txt is longer still."""
        terms = case.terms
        if terms.reading is not Reading.RFC9309 or terms.stale_if_error:
            return version.valid_until
        if case.sent.started_at < version.confirmed_at:
            return version.valid_until
        pause_s = max(terms.delay_s, case.crawl_delay_s)
        return version.confirmed_at + max(_DAY_S, terms.min_fresh_s + pause_s)

    def _permitted(self, case: _Case) -> Iterator[Violation]:
        self.tally[Check.PERMISSION].judged += 1
        sent, version = case.sent, case.version
        required = "permission by the robots.txt in force"
        if sent.path == ROBOTS_PATH or version is None:  # its lack is a matter of freshness
            return
        if version.action not in _OPEN:
            done = f"/robots.txt had answered {version.status or 'nothing'}: {version.action}"
            yield self._violation(Check.PERMISSION, sent, required, done, version=version)
        elif objection := self._contradicted(case, version):
            yield self._violation(Check.PERMISSION, sent, required, objection, version=version)
        elif case.rules is not None:
            verdict = case.rules.verdict(sent.path)
            if not verdict.allowed:
                done = f"it was forbidden ({verdict.reading})"
                yield self._violation(Check.PERMISSION, sent, required, done, version=version, rule=verdict)
        elif version.action == RobotsAction.PARSE:
            yield self._violation(Check.PERMISSION, sent, required, "its text is not in the store", version=version)

    def _contradicted(self, case: _Case, version: Version) -> str | None:
        """Why what was recorded of robots.txt cannot be so, by the answer that the log has for it."""
        sent, terms = case.sent, case.terms
        answer = case.site.answer_at(sent.started_at)
        if answer is None:
            return None
        meant = meaning(answer, terms.reading)
        if meant is None:  # a redirect: what was found at its end is not linked to it in the log
            self.tally[Check.PERMISSION].unproven += version.action != RobotsAction.PARSE
            return None
        stretched = terms.stale_if_error and meant is RobotsAction.DEFER
        if meant == version.action or meant is RobotsAction.FREE or stretched:
            return None
        if any(site != sent.site_id and end <= answer.started_at + TOLERANCE_S for site, end in self.redirects):
            self.tally[Check.PERMISSION].unproven += 1  # the answer may be to another site's redirected request
            return None
        what = f"{answer.status or answer.error or 'nothing'}"
        return f"/robots.txt had answered {what} ({meant}), and {version.action} is recorded"

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
        heard = case.site.answer_at(sent.started_at) if case.crawl_delay_s else None
        if heard is not None and heard.finished_at + case.crawl_delay_s > pause.due_at:
            pause = _Obligation(heard.finished_at + case.crawl_delay_s, heard, "Crawl-delay")
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
    sent, terms = case.sent, case.terms
    if group.last is None or sent.finished_at > group.last.finished_at:
        group.last = sent
    slow_s = min(terms.slow_factor * (sent.finished_at - sent.started_at), terms.slow_cap_s)
    pause_s, why = terms.delay_s, "delay"
    if slow_s > pause_s:
        pause_s, why = slow_s, "a multiple of the time that its answer took"
    if case.crawl_delay_s > pause_s:
        pause_s, why = case.crawl_delay_s, "Crawl-delay"
    if group.pause is None or sent.finished_at + pause_s > group.pause.due_at:
        group.pause = _Obligation(sent.finished_at + pause_s, sent, why)
    asked_s, why = sent.retry_after_s or 0.0, "Retry-After"
    if sent.status in (429, 503):
        floor_s = min(terms.backoff_first_s, terms.backoff_max_s)
        if floor_s > asked_s:
            asked_s, why = floor_s, f"back-off after {sent.status}"
    if asked_s and (group.refusal is None or sent.finished_at + asked_s > group.refusal.due_at):
        group.refusal = _Obligation(sent.finished_at + asked_s, sent, why)
        group.refusal_is_new = True
