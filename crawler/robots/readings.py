"""The three readings of a parsed robots.txt, for one agent and one site.

Sources: the 1996 draft; RFC 9309; the Host proposal of 2003; ``docs/protocols.md``, sections 1, 2 and 4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from crawler import url
from crawler.model import Preference, Reading
from crawler.preferences.robots_tag import site_robots_tag
from crawler.robots import records, rules
from crawler.robots.fields import CRAWL_DELAY, DISALLOW, HOST, REQUEST_RATE, ROBOTS_TAG, RULES, SITEMAP, USER_AGENT
from crawler.robots.hosts import HostClaim, host_claim
from crawler.robots.meant import meanings, unheaded
from crawler.robots.mobile_agents import AgentServer, AgentServers, agent_servers
from crawler.robots.paths import Form, draft_pattern, rfc_pattern
from crawler.robots.preferences import NO_PREFERENCES, PreferenceRules, preference_rules
from crawler.robots.rules import Rules, Verdict
from crawler.robots.text import MAX_LINES, Line, RobotsFile

#: The longest pause read from a file, in seconds (31 years), so that arithmetic on times stays finite.
MAX_DELAY_S = 1e9

_DIGITS = frozenset("0123456789")
_SECONDS = re.compile(
    r"[\"']?([0-9]+(?:[.,][0-9]*)?|[.,][0-9]+)[ \t]*(?:(s)(?:ecs?|econds?)?|(m)(?:ins?|inutes?)?)?[\"';.]?",
    re.IGNORECASE,
)
_RATE = re.compile(r"([0-9]{1,9})[ \t]*/[ \t]*([0-9]{1,9})[ \t]*([smh]?)\b.*", re.IGNORECASE | re.DOTALL)
_UNIT_S = {"": 1, "s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True)
class SiteRules:
    """The rules of one robots.txt for one agent at one site. Built once a file, asked for every URL."""

    reading: Reading
    crawl_delay_s: float | None  # uncut; strict: the larger value of both readings
    main_site: str | None  # the main site that a mirror names; always None in the rfc9309 reading
    host_line: int | None  # the Host line that decides; in the rfc9309 reading the line that would decide
    named_site: str | None  # the main site that a mirror names, also if it was refuted
    sitemaps: tuple[str, ...]  # canonical URLs
    robots_tag: str  # the rules of Robots-Tag lines for the agent, as the content of a tag; bounded
    rule_sets: tuple[Rules, ...]  # one for each reading asked; each may forbid
    servers: AgentServers
    preferences: PreferenceRules = NO_PREFERENCES  # the same in all readings
    unread: str = ""  # why the file could not be read: then the whole site is closed

    @property
    def size(self) -> int:
        """The number of rules, servers, sitemaps and preferences; a rule with a wildcard counts twice.

        It measures, with the octets of the file, the memory used.
        """
        tails = sum(tail is not None for each in self.rule_sets for tail in each.patterns.tails)
        others = len(self.servers.latest_first) + len(self.sitemaps) + self.preferences.size
        return sum(len(each.lines) for each in self.rule_sets) + tails + others

    def verdict(self, path: str) -> Verdict:
        """Decide whether a path with its query (as :func:`crawler.url.split` returns it) may be fetched.

        ``/robots.txt`` itself is always allowed (RFC 9309, 2.2.2). Strict allows a path only if all its rule sets do.
        """
        if path == "/robots.txt":
            return Verdict(True, None, "", self.reading)
        granted: Verdict | None = None
        for each in self.rule_sets:
            verdict = each.decide(path)
            if not verdict.allowed:
                return verdict
            if granted is None or granted.line is None:
                granted = verdict
        return granted or Verdict(True, None, "", self.reading)

    @property
    def says_main(self) -> bool:
        """Whether the file names its own site as the main one."""
        return self.named_site is None and self.host_line is not None

    def stated_for(self, path: str) -> tuple[Preference, ...]:
        """The preferences about use that hold for a path; none if the path is closed (draft-ietf-aipref-attach, 3)."""
        return self.preferences.of(path) if self.verdict(path).allowed else ()

    def agent_server(self, path: str) -> AgentServer:
        """The server for mobile agents of this path (Internet-Draft of February 1997)."""
        return self.servers.at(path)


def read(
    file: RobotsFile,
    *,
    token: str,
    reading: Reading,
    site: str,
    knows_host: Callable[[str], bool] = lambda name: False,
    refuted: str | None = None,
    policy_tokens: Iterable[tuple[str, str]] = (),
) -> SiteRules:
    """Interpret ``file`` for the robot with the product token ``token`` at ``site`` (``http://a.example:8080``).

    A ``Host`` line may name a host without a dot only if ``knows_host`` returns True for it: the configuration
    resolves such a host. A ``Host`` line that names the site ``refuted`` is ignored: it has turned out to be no main
    site. ``policy_tokens`` are those of :attr:`crawler.robots.response.RobotsSettings.policy_tokens`.
    """
    token = records.product_token(token)
    rule_sets, members, claim = _asked(file.lines, token, reading, site, knows_host, refuted)
    if reading is Reading.STRICT and file.seen:  # strict also closes what the displayed text closes
        others, more, _ = _asked(file.seen, token, reading, site, knows_host, refuted)
        rule_sets, members = [*rule_sets, *others], [*members, *more]
    if reading is Reading.STRICT and not file.html:
        others, more = _closed_by_meaning(file, token, site)
        rule_sets, members = [*rule_sets, *others], [*members, *more]
    if reading is Reading.STRICT and file.closes:
        rest = [Line(file.lines[-1].number, DISALLOW, "/", f"more than {MAX_LINES:,} lines (Disallow: / is implied)")]
        rule_sets = [*rule_sets, *_strict_rules(rest, rest)]
    rfc = reading is Reading.RFC9309
    return SiteRules(
        reading=reading,
        crawl_delay_s=_crawl_delay_s(members),
        main_site=None if claim.refuted else claim.main_site,
        host_line=claim.line.number if claim.line else None,
        named_site=claim.main_site,
        sitemaps=_sitemaps(file.lines, site),
        robots_tag=site_robots_tag((line.value for line in file.lines if line.field == ROBOTS_TAG), token),
        rule_sets=tuple(rule_sets),
        servers=agent_servers(file.lines, rfc_pattern if rfc else draft_pattern, Form.RFC if rfc else Form.DRAFT),
        preferences=preference_rules(file.lines, token, policy_tokens),
    )


def unread_rules(reading: Reading, why: str) -> SiteRules:
    """The rules of a file that is too costly to read, for the reason ``why``: any line may close a path, so all do."""
    closing = [Line(1, DISALLOW, "/", f"{why} (Disallow: / is implied)")]
    return SiteRules(
        reading=reading,
        crawl_delay_s=None,
        main_site=None,
        host_line=None,
        named_site=None,
        sitemaps=(),
        robots_tag="",
        rule_sets=(rules.rfc_rules(closing, reading, reading),),
        servers=agent_servers((), rfc_pattern, Form.RFC),
        unread=why,
    )


def _asked(
    lines: tuple[Line, ...],
    token: str,
    reading: Reading,
    site: str,
    knows_host: Callable[[str], bool],
    refuted: str | None,
) -> tuple[list[Rules], list[Line], HostClaim]:
    """The rules of each reading asked, all member lines of their records, and the claim of the ``Host`` lines."""
    rule_sets: list[Rules] = []
    members: list[Line] = []
    claim = HostClaim(None, None)
    if reading is not Reading.RFC9309:
        members = records.draft_record(lines, token)
        claim = _claim(members, site, knows_host, reading)
        claim = replace(claim, refuted=claim.main_site is not None and claim.main_site == refuted)
        implied = claim.line if claim.main_site is not None and not claim.refuted else None
        rule_sets.append(rules.draft_rules(members, implied, reading))
    if reading is not Reading.DRAFT1996:
        ruling, others = records.rfc_rules(lines, token)
        rule_sets.append(rules.rfc_rules(ruling, reading))
        if reading is Reading.STRICT and any(
            line.field == USER_AGENT and not _DIGITS.isdisjoint(line.value) for line in lines
        ):
            exact, _ = records.rfc_rules(lines, token, digits=True)
            if exact != ruling:  # "fig2" may or may not mean the token "fig": strict obeys both groups
                rule_sets.append(rules.rfc_rules(exact, reading))
        if reading is Reading.RFC9309:
            claim = HostClaim(None, host_claim(others, site, knows_host, prefixed=False).line)
        members = [*members, *others]
    return rule_sets, members, claim


def _closed_by_meaning(file: RobotsFile, token: str, site: str) -> tuple[list[Rules], list[Line]]:
    """The rules of the lines that neither document obeys, and the members that may ask for a longer pause."""
    rule_sets: list[Rules] = []
    members: list[Line] = []
    written = list(file.seen or file.lines)
    above: list[Line] = []
    for lines in meanings(file, site):
        if lines != written:
            ruling, others = records.rfc_rules(lines, token)
            record = records.draft_record(lines, token)
            rule_sets += _strict_rules(record, ruling)
            members += [*record, *others]
        before, above = above, unheaded(lines)
        if above != before:
            rule_sets += _strict_rules(above, [line for line in above if line.field in RULES])
            members += above
    return rule_sets, members


def _strict_rules(record: list[Line], ruling: list[Line]) -> list[Rules]:
    """Rules of which each refusal names ``strict``, which alone reads these lines."""
    strict = Reading.STRICT
    return [rules.draft_rules(record, None, strict, strict), rules.rfc_rules(ruling, strict, strict)]


def _claim(members: list[Line], site: str, knows_host: Callable[[str], bool], reading: Reading) -> HostClaim:
    """The claim of the record's ``Host`` lines.

    Strict must forbid everything that ``draft1996`` forbids. Only strict reads a line with a scheme prefix: such a
    line can make a site a mirror, but cannot clear a site that the other lines call a mirror.
    """
    hosts = [line for line in members if line.field == HOST]
    plain = host_claim(hosts, site, knows_host, prefixed=False)
    if reading is Reading.DRAFT1996:
        return plain
    prefixed = host_claim(hosts, site, knows_host, prefixed=True)
    return plain if prefixed.main_site is None and plain.main_site is not None else prefixed


def _crawl_delay_s(members: Iterable[Line]) -> float | None:
    """The longest pause that the lines ask for, in seconds; None if they ask for none."""
    return max((delay_s for delay_s in map(asked_delay_s, members) if delay_s is not None), default=None)


def asked_delay_s(line: Line) -> float | None:
    """The seconds between requests that ``Crawl-delay: 2.5`` or ``Request-rate: 1/5`` (1/10m, 100/24h) asks for.

    A delay may have a unit (``10 sec``, ``5 min``) and a decimal comma. None if the value is unreadable. A time of day
    after a rate is ignored: the pause holds all day.
    """
    if line.field == CRAWL_DELAY and (seconds := _SECONDS.fullmatch(line.value)) is not None:
        return min(float(seconds[1].replace(",", ".")) * _UNIT_S[(seconds[2] or seconds[3] or "").lower()], MAX_DELAY_S)
    rate = _RATE.fullmatch(line.value) if line.field == REQUEST_RATE else None
    if rate is None or int(rate[1]) == 0:
        return None
    return min(int(rate[2]) * _UNIT_S[rate[3].lower()] / int(rate[1]), MAX_DELAY_S)


def _sitemaps(lines: Iterable[Line], site: str) -> tuple[str, ...]:
    """The sitemaps named anywhere in the file, each once, without values that are no http(s) URL."""
    found: dict[str, None] = {}
    for line in lines:
        if line.field == SITEMAP and line.value:
            try:
                found[url.canonicalise(line.value, f"{site}/robots.txt")] = None
            except url.NotCrawlable:
                continue
    return tuple(found)
