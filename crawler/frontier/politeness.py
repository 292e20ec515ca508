"""When the next request to a politeness group may start (``docs/protocols.md``, section 6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from crawler.model import Failed, FetchResult, Redirected
from crawler.reasons import ErrorKind
from crawler.robots.http_dates import retry_after_s
from crawler.url import host_of, registrable_domain


class GroupBy(StrEnum):
    """Which sites share one politeness group, so that they get one request at a time."""

    HOST = "host"
    DOMAIN = "domain"


@dataclass(frozen=True, slots=True)
class PolitenessSettings:
    """Pauses in seconds. With ``slow_factor`` k, a pause lasts at least k times as long as the last response took."""

    delay_s: float = 2.0
    slow_factor: float = 5.0
    slow_cap_s: float = 30.0
    crawl_delay_cap_s: float | None = None
    backoff_first_s: float = 10.0
    backoff_max_s: float = 3600.0
    group: GroupBy = GroupBy.HOST


@dataclass(frozen=True, slots=True)
class Pace:
    """The state of a group between two requests. ``waits_for`` names the rule that set the pause."""

    next_at: float = 0.0
    pause_s: float = 0.0
    backoff_s: float = 0.0
    waits_for: str = ""


#: Failures below HTTP that indicate an overloaded or broken server. They slow the crawl down as a 503 does.
_TROUBLE = {
    ErrorKind.DNS: "no address",
    ErrorKind.CONNECT: "no connection",
    ErrorKind.TLS: "no TLS",
    ErrorKind.TIMEOUT: "no answer in time",
    ErrorKind.TRUNCATED: "a body cut short",
}


def group_name(site: str, by: GroupBy) -> str:
    """The politeness group of a site (``http://a.example:8080``). ``a.example.`` is the server of ``a.example``."""
    host = host_of(site).removesuffix(".")
    return registrable_domain(host) if by is GroupBy.DOMAIN else host


def after_answer(pace: Pace, answer: FetchResult, crawl_delay_s: float | None, settings: PolitenessSettings) -> Pace:
    """The pace after an answer. The pause begins at the end of the answer.

    A success halves the back-off, a failure doubles it. ``Retry-After`` is kept in full.
    """
    backoff_s = _backoff(pace.backoff_s, answer, settings)
    took_s = answer.finished_at - answer.started_at
    pause_s, waits_for = settings.delay_s, "delay"
    slow_s = min(settings.slow_factor * took_s, settings.slow_cap_s)
    if slow_s > pause_s:
        pause_s, waits_for = slow_s, f"{settings.slow_factor:g} times its last response time"
    if crawl_delay_s is not None and (asked_s := _crawl_delay(crawl_delay_s, settings)) > pause_s:
        pause_s, waits_for = asked_s, "Crawl-delay"
    if backoff_s > pause_s:
        pause_s, waits_for = backoff_s, "back-off after " + _trouble(answer)
    if isinstance(answer, Failed | Redirected):
        asked_s = retry_after_s(answer.headers, answer.finished_at) or 0.0
        if asked_s > pause_s:
            pause_s, waits_for = asked_s, f"Retry-After of a {answer.status}"
    return Pace(answer.finished_at + pause_s, pause_s, backoff_s, waits_for)


def with_crawl_delay(pace: Pace, ended_at: float, crawl_delay_s: float | None, settings: PolitenessSettings) -> Pace:
    """The pace with the ``Crawl-delay`` of the robots.txt that was just read, from the end of that answer on."""
    delay_s = _crawl_delay(crawl_delay_s, settings)
    if ended_at + delay_s <= pace.next_at:
        return pace
    return replace(pace, next_at=ended_at + delay_s, pause_s=delay_s, waits_for="Crawl-delay")


def after_crash(pace: Pace, settings: PolitenessSettings, now: float) -> Pace:
    """The pace of a group whose worker died. One of its requests may have ended at ``now``."""
    next_at = now + max(pace.pause_s, settings.delay_s)
    return pace if pace.next_at >= next_at else replace(pace, next_at=next_at, waits_for="pause after a crash")


def _crawl_delay(crawl_delay_s: float | None, settings: PolitenessSettings) -> float:
    if crawl_delay_s is None:
        return 0.0
    cap_s = settings.crawl_delay_cap_s
    return crawl_delay_s if cap_s is None else min(crawl_delay_s, cap_s)


def _backoff(before_s: float, answer: FetchResult, settings: PolitenessSettings) -> float:
    if isinstance(answer, Failed) and (answer.status in (429, 503) or answer.kind in _TROUBLE):
        return min(max(settings.backoff_first_s, 2 * before_s), settings.backoff_max_s)
    halved_s = before_s / 2
    return halved_s if halved_s > settings.delay_s and halved_s >= 0.5 else 0.0


def _trouble(answer: FetchResult) -> str:
    """The failure in words. A body that was cut short came with a status, but the status was not the failure."""
    if isinstance(answer, Failed):
        return _TROUBLE.get(answer.kind) or str(answer.status or answer.kind.value)
    return "earlier trouble"
