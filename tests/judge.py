"""Judge a crawl's politeness from the access log of its servers alone.

The server sees a request start after the client has sent it, and logs an answer as finished before the client has all
of it. So a pause in the log is at least as long as the client's pause, and an answer at most as long as the client's.
Noise can hide a violation of about a millisecond, but cannot invent one. One exception is an answer that the client
aborts: the server notices it late. For these answers, and for timers that fire early, ``tolerance_s`` is allowed in
pauses and in overlaps with an aborted answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from crawler.demo.pages import Hit

ROBOTS = "/robots.txt"


@dataclass(frozen=True, slots=True)
class Violation:
    """One violation, described by its place in the log. ``at`` is the server's monotonic time."""

    rule: str
    host: str
    path: str
    at: float
    detail: str

    def __str__(self) -> str:
        return f"{self.at:.3f} {self.host}{self.path}: {self.rule}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Manners:
    """The rules that the crawl had to keep. Times in seconds; ``forbidden(host, path)`` is True for a closed path.

    ``slow_factor`` times the time the last answer took, ``slow_cap_s`` at most, is a pause too
    (``docs/protocols.md``, section 6). ``restricted_statuses`` of robots.txt close a site (section 1).
    ``agent`` must be found in every User-Agent.
    """

    delay_s: float = 0.0
    crawl_delay_s: Mapping[str, float] = field(default_factory=dict)
    slow_factor: float = 0.0
    slow_cap_s: float = 30.0
    forbidden: Callable[[str, str], bool] = lambda host, path: False
    restricted_statuses: frozenset[int] = frozenset({401, 403})
    agent: str = ""
    tolerance_s: float = 0.02


def violations(hits: Iterable[Hit], manners: Manners) -> list[Violation]:
    """Every violation of every rule, ordered by time."""
    log = list(hits)
    rules = (robots_first, closed_sites, overlaps, pauses, retry_after, forbidden_paths, agents)
    return sorted((found for rule in rules for found in rule(log, manners)), key=lambda violation: violation.at)


def robots_first(hits: Iterable[Hit], manners: Manners) -> Iterator[Violation]:
    """A page was requested before the host had answered the request for its robots.txt."""
    for host, log in _by_host(hits).items():
        answered = min((hit.finished_at for hit in log if hit.path == ROBOTS), default=None)
        for hit in log:
            if hit.path == ROBOTS:
                continue
            if answered is None:
                yield Violation("robots first", host, hit.path, hit.started_at, "robots.txt was never asked for")
            elif hit.started_at < answered:
                early_s = answered - hit.started_at
                yield Violation("robots first", host, hit.path, hit.started_at, f"{early_s:.3f} s before robots.txt")


def closed_sites(hits: Iterable[Hit], manners: Manners) -> Iterator[Violation]:
    """A page was requested while the last answer for robots.txt deferred or restricted the whole site."""
    for host, log in _by_host(hits).items():
        last: Hit | None = None
        for hit in log:
            if hit.path == ROBOTS:
                last = hit
            elif last is not None and _closes(last.status, manners):
                detail = f"robots.txt had answered {last.status or 'nothing'}"
                yield Violation("closed site", host, hit.path, hit.started_at, detail)


def overlaps(hits: Iterable[Hit], manners: Manners) -> Iterator[Violation]:
    """A request started while another one to the same host was in flight."""
    for host, log in _by_host(hits).items():
        longest = None
        for hit in log:
            if longest is not None:
                over_s = longest.finished_at - hit.started_at - (0 if longest.status else manners.tolerance_s)
                if over_s > 0:
                    detail = f"{over_s:.3f} s before the end of {longest.path}"
                    yield Violation("overlap", host, hit.path, hit.started_at, detail)
            if longest is None or hit.finished_at > longest.finished_at:
                longest = hit


def pauses(hits: Iterable[Hit], manners: Manners) -> Iterator[Violation]:
    """The time between an answer's end and the next request to its host was shorter than the pause."""
    for host, log in _by_host(hits).items():
        for before, hit in pairwise(log):
            # The server does not know how long an aborted answer took for the client.
            slow_s = min(manners.slow_factor * (before.finished_at - before.started_at), manners.slow_cap_s)
            needed_s = max(manners.delay_s, manners.crawl_delay_s.get(host, 0.0), slow_s if before.status else 0.0)
            yield from _too_soon("pause", before, hit, needed_s, manners)


def retry_after(hits: Iterable[Hit], manners: Manners) -> Iterator[Violation]:
    """A request reached the host before the time that its ``Retry-After`` gave."""
    for log in _by_host(hits).values():
        for number, before in enumerate(log):
            if before.retry_after_s is not None:
                for hit in log[number + 1 :]:
                    yield from _too_soon("Retry-After", before, hit, before.retry_after_s, manners)


def forbidden_paths(hits: Iterable[Hit], manners: Manners) -> Iterator[Violation]:
    """A request named a closed path."""
    for hit in hits:
        if hit.path != ROBOTS and manners.forbidden(hit.host, hit.path):
            yield Violation("forbidden", hit.host, hit.path, hit.started_at, "disallowed")


def agents(hits: Iterable[Hit], manners: Manners) -> Iterator[Violation]:
    """A request did not name the crawler."""
    for hit in hits:
        if manners.agent not in hit.user_agent:
            detail = f"the User-Agent is {hit.user_agent!r}"
            yield Violation("agent", hit.host, hit.path, hit.started_at, detail)


def most_at_once(hits: Iterable[Hit]) -> dict[str, int]:
    """The largest number of simultaneous requests, by host."""
    most: dict[str, int] = {}
    for host, log in _by_host(hits).items():
        # A request that starts at the end of another one does not overlap it: ends sort first.
        steps = sorted([(hit.started_at, 1) for hit in log] + [(hit.finished_at, -1) for hit in log])
        under_way = most[host] = 0
        for _, step in steps:
            under_way += step
            most[host] = max(most[host], under_way)
    return most


def _by_host(hits: Iterable[Hit]) -> dict[str, list[Hit]]:
    hosts: defaultdict[str, list[Hit]] = defaultdict(list)
    for hit in sorted(hits, key=lambda hit: hit.started_at):
        hosts[hit.host].append(hit)
    return hosts


def _closes(robots_status: int, manners: Manners) -> bool:
    deferred = robots_status in (0, 408, 425, 429) or robots_status >= 500
    return deferred or robots_status in manners.restricted_statuses


def _too_soon(rule: str, before: Hit, hit: Hit, needed_s: float, manners: Manners) -> Iterator[Violation]:
    pause_s = hit.started_at - before.finished_at
    if pause_s < needed_s - manners.tolerance_s:
        detail = f"{pause_s:.3f} s after {before.path}, {needed_s:.3f} s were due"
        yield Violation(rule, hit.host, hit.path, hit.started_at, detail)
