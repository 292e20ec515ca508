"""The three readings of a parsed robots.txt, for one agent and one site.

Sources: the 1996 draft; RFC 9309; the Host proposal of 2003; ``docs/protocols.md``, sections 1, 2 and 4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from crawler import url
from crawler.model import Reading
from crawler.robots import records, rules
from crawler.robots.hosts import HostClaim, host_claim
from crawler.robots.mobile_agents import AgentServer, AgentServers, agent_servers
from crawler.robots.paths import draft_form, draft_pattern, rfc_form, rfc_pattern
from crawler.robots.rules import Rules, Verdict
from crawler.robots.text import CRAWL_DELAY, HOST, REQUEST_RATE, SITEMAP, USER_AGENT, Line, RobotsFile

#: The longest pause taken from a file, in seconds (31 years), so that arithmetic on times stays finite.
MAX_DELAY_S = 1e9

_DIGITS = frozenset("0123456789")
_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
_RATE = re.compile(r"([0-9]{1,9})[ \t]*/[ \t]*([0-9]{1,9})[ \t]*([smh]?)\b.*", re.IGNORECASE | re.DOTALL)
_UNIT_S = {"": 1, "s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True)
class SiteRules:
    """What one robots.txt asks of one agent at one site. Made once per file, asked for every URL."""

    reading: Reading
    crawl_delay_s: float | None  # uncut; strict: the larger of both readings
    crawl_delay_line: int | None
    main_site: str | None  # where this site is a mirror: the site it names; never in the rfc9309 reading
    host_line: int | None  # the Host line that counts, or in the rfc9309 reading would count
    sitemaps: tuple[str, ...]  # canonical URLs
    parts: tuple[Rules, ...]  # one per reading asked; each may forbid
    servers: AgentServers

    @property
    def size(self) -> int:
        """How many rules, servers and sitemaps: with the octets of the file they make up the memory that this takes."""
        return sum(len(part.lines) for part in self.parts) + len(self.servers.latest_first) + len(self.sitemaps)

    def verdict(self, path: str) -> Verdict:
        """May this path with its query (as :func:`crawler.url.split` gives it) be fetched, and which line says so?

        ``/robots.txt`` itself always may (RFC 9309, 2.2.2). The strict reading allows what both others allow.
        """
        if path == "/robots.txt":
            return Verdict(True, None, "", self.reading)
        granted: Verdict | None = None
        for part in self.parts:
            verdict = part.decide(path)
            if not verdict.allowed:
                return verdict
            if granted is None or granted.line is None:
                granted = verdict
        return granted or Verdict(True, None, "", self.reading)

    def agent_server(self, path: str) -> AgentServer:
        """Where mobile agents are taken in for this path (Internet-Draft of February 1997)."""
        return self.servers.at(path)


def _knows_no_host(name: str) -> bool:
    return False


def read(
    file: RobotsFile,
    *,
    token: str,
    reading: Reading,
    site: str,
    knows_host: Callable[[str], bool] = _knows_no_host,
) -> SiteRules:
    """Read ``file`` as the robot called ``token`` at ``site`` (``http://a.example:8080``).

    ``knows_host`` tells of a name without a dot whether the configuration resolves it, so that a ``Host`` line may
    name it.
    """
    token = records.product_token(token)
    parts, members, claim = _asked(file.lines, token, reading, site, knows_host)
    if reading is Reading.STRICT and file.seen:  # what it closes by its looks may have been meant to be closed
        others, more, _ = _asked(file.seen, token, reading, site, knows_host)
        parts, members = [*parts, *others], [*members, *more]
    delay_s, delay_line = _crawl_delay(members)
    rfc = reading is Reading.RFC9309
    return SiteRules(
        reading=reading,
        crawl_delay_s=delay_s,
        crawl_delay_line=delay_line,
        main_site=claim.main_site,
        host_line=claim.line.number if claim.line else None,
        sitemaps=_sitemaps(file.lines, site),
        parts=tuple(parts),
        servers=agent_servers(file.lines, rfc_pattern if rfc else draft_pattern, rfc_form if rfc else draft_form),
    )


def _asked(
    lines: tuple[Line, ...], token: str, reading: Reading, site: str, knows_host: Callable[[str], bool]
) -> tuple[list[Rules], list[Line], HostClaim]:
    """The rules of each reading asked, the lines that they are of and stand with, and what the ``Host`` lines say."""
    parts: list[Rules] = []
    members: list[Line] = []
    claim = HostClaim(None, None)
    if reading is not Reading.RFC9309:
        members = records.draft_record(lines, token)
        claim = _claim(members, site, knows_host, reading)
        implied = claim.line if claim.main_site is not None else None
        parts.append(rules.draft_rules(members, implied, reading))
    if reading is not Reading.DRAFT1996:
        ruling, others = records.rfc_rules(lines, token)
        parts.append(rules.rfc_rules(ruling, reading))
        if reading is Reading.STRICT and any(
            line.field == USER_AGENT and not _DIGITS.isdisjoint(line.value) for line in lines
        ):
            exact, _ = records.rfc_rules(lines, token, digits=True)
            if exact != ruling:  # "fig2" may mean us, or it may not: then what is said to others counts too
                parts.append(rules.rfc_rules(exact, reading))
        if reading is Reading.RFC9309:
            claim = HostClaim(None, host_claim(others, site, knows_host, prefixed=False).line)
        members = [*members, *others]
    return parts, members, claim


def _claim(members: list[Line], site: str, knows_host: Callable[[str], bool], reading: Reading) -> HostClaim:
    """What the ``Host`` lines of the record say.

    Strict must forbid whatever ``draft1996`` forbids. So a prefixed line, which only strict can read, makes a site a
    mirror, but does not clear one that the other lines call a mirror.
    """
    hosts = [line for line in members if line.field == HOST]
    plain = host_claim(hosts, site, knows_host, prefixed=False)
    if reading is Reading.DRAFT1996:
        return plain
    prefixed = host_claim(hosts, site, knows_host, prefixed=True)
    return plain if prefixed.main_site is None and plain.main_site is not None else prefixed


def _crawl_delay(members: Iterable[Line]) -> tuple[float | None, int | None]:
    """The longest pause asked for, in seconds, and the line that asks."""
    longest: tuple[float | None, int | None] = (None, None)
    for line in members:
        delay_s = asked_delay_s(line)
        if delay_s is not None and (longest[0] is None or delay_s > longest[0]):
            longest = (delay_s, line.number)
    return longest


def asked_delay_s(line: Line) -> float | None:
    """Seconds between requests by a ``Crawl-delay: 2.5`` or a ``Request-rate: 1/5``, 1/10m, 100/24h.

    None where it cannot be read. A time of day after a rate is passed over: the pause is kept all day.
    """
    if line.field == CRAWL_DELAY and _SECONDS.fullmatch(line.value):
        return min(float(line.value), MAX_DELAY_S)
    rate = _RATE.fullmatch(line.value) if line.field == REQUEST_RATE else None
    if rate is None or int(rate[1]) == 0:
        return None
    return min(int(rate[2]) * _UNIT_S[rate[3].lower()] / int(rate[1]), MAX_DELAY_S)


def _sitemaps(lines: Iterable[Line], site: str) -> tuple[str, ...]:
    """The sitemaps named anywhere in the file, each once; what is no http(s) URL is passed over."""
    found: dict[str, None] = {}
    for line in lines:
        if line.field == SITEMAP and line.value:
            try:
                found[url.canonicalise(line.value, f"{site}/robots.txt")] = None
            except url.NotCrawlable:
                continue
    return tuple(found)
