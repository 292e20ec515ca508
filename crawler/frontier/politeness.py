"""When the next request to a politeness group may start (``docs/protocols.md``, section 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import itemgetter
from typing import NamedTuple

import msgspec

from crawler.fields.declaration import setting
from crawler.fields.kinds import FACTOR, MORE_THAN_0_SECONDS, NETWORKS, SECONDS, SECONDS_OR_NO_LIMIT, one_of, whole
from crawler.frontier.hours import HOURS
from crawler.frontier.site_settings import SITES, SiteRule, rule_for
from crawler.model import Failed, FetchResult, Redirected
from crawler.reasons import NO_WAIT, ErrorKind, ReasonCode, WaitCode, WaitReason
from crawler.robots.http_seconds import retry_after_s
from crawler.url import host_of, registered_domain


class GroupBy(StrEnum):
    """Which sites share one politeness group, so that they get one request at a time."""

    HOST = "host"
    DOMAIN = "domain"


@dataclass(frozen=True, slots=True)
class PolitenessSettings:
    """Pauses in seconds. With ``slow_factor`` k, a pause lasts at least k times as long as the last response took."""

    delay_s: float = setting(
        "delay",
        2.0,
        SECONDS,
        "The least pause between the end of an answer and the next request to the same host.",
        "Raise it for small servers. Lower it only for servers that are yours.",
        option="--delay",
        option_help="The least pause of a host.",
    )
    slow_factor: float = setting(
        "slow_factor",
        5.0,
        FACTOR,
        "Pause at least this many times as long as the last answer took.",
        "A server under load gets more time in this way.",
    )
    slow_cap_s: float = 30.0  # the longest pause that slow answers lead to
    workers: int = 1  # the processes that share the starts of requests to an address, each with its own per_address
    crawl_delay_cap_s: float | None = setting(
        "crawl_delay_cap",
        None,
        SECONDS_OR_NO_LIMIT,
        "Cut a longer Crawl-delay of robots.txt to this time; 0 cuts none.",
        "Cut it only if the owner of the site agrees.",
    )
    backoff_first_s: float = setting(
        "backoff_first",
        10.0,
        MORE_THAN_0_SECONDS,
        "The pause of a server after a first 429, 503, timeout or refused connection.",
        "Each further one doubles the pause, and each success halves it. The crawler also keeps Retry-After in full.",
    )
    backoff_max_s: float = setting(
        "backoff_max",
        3600.0,
        MORE_THAN_0_SECONDS,
        "The longest that the pause of backoff_first grows to.",
    )
    group: GroupBy = setting(
        "group",
        GroupBy.HOST,
        one_of(GroupBy),
        "What counts as one server.",
        'Choose "domain" if many hosts of a registered domain are likely to be one machine.',
    )
    per_address: int = setting(
        "per_address",
        2,
        whole(1),
        "Requests in flight to one IP address, whatever the names of its hosts; of IPv6, to one /64.",
        "If more than 4 hosts share an address, the starts of requests to it are also `politeness.delay` apart. "
        "Loopback, and addresses given by `fetch.resolve`, have no limit. The workers of a command share both, but "
        "each may have one request in flight, and counts its own hosts.",
    )
    hours: tuple[str, ...] = setting(
        "hours",
        (),
        HOURS,
        "The hours of the day in which hosts may be asked, such as '22-06 Europe/Berlin'.",
        "The hours are by the clock of the named time zone; the crawler cannot tell the zone of a site. "
        "'*.de=22-06 Europe/Berlin' is for the hosts below de; of several, the first that fits a host counts. A "
        "host that none fits may be asked at all hours.",
    )
    large_hosts: tuple[str, ...] = setting(
        "large_hosts",
        (),
        NETWORKS,
        "IP addresses and networks without the limits of addresses and of registered domains with many hosts.",
        "List the addresses of a hoster or a content delivery network if you crawl many of its customers, and know "
        "that its servers can bear it.",
    )
    sites: tuple[SiteRule, ...] = setting(
        "sites",
        (),
        SITES,
        'Settings of single hosts: a table [site."shop.example"] with delay, hours, depth, max_pages or headers.',
        "A table is for the host or domain of its name and all hosts below it; of several, the one with the longest "
        "name counts. `delay` takes the place of politeness.delay, `hours` that of politeness.hours, `depth` that of "
        "limits.max_depth, and `max_pages` that of limits.max_pages_per_site. `max_pages` counts each site alone: ten "
        "hosts of a domain may bring ten times as many pages. A longer pause that the site asks for always applies. "
        "`headers` are for owners who hand out keys: pairs of a header field and an environment variable with its "
        "value (docs/identity.md).",
        decides=(ReasonCode.DEPTH,),
    )

    def of(self, host: str) -> PolitenessSettings:
        """The settings for ``host``, with those of its own in place of the general ones."""
        rule = rule_for(host, self.sites) if self.sites else None
        if rule is None:
            return self
        delay_s = self.delay_s if rule.delay_s is None else rule.delay_s
        return replace(self, delay_s=delay_s, hours=(rule.hours,) if rule.hours else self.hours)

    def of_group(self, name: str) -> PolitenessSettings:
        """The settings of a politeness group of which the host is not known: the longest pause of its hosts holds."""
        settings = self.of(name)
        if self.group is GroupBy.HOST:
            return settings
        delays = [rule.delay_s for rule in self.sites if rule.delay_s and rule.name.endswith(f".{name}")]
        return replace(settings, delay_s=max([settings.delay_s, *delays]))


#: The statuses, and the failures below HTTP, of a server in trouble: they lengthen the back-off.
_BUSY = frozenset({429, 503})
_NO_ANSWER = frozenset({ErrorKind.STOPPED, ErrorKind.FAULT, ErrorKind.CLOSING})
_TROUBLE: dict[str, str] = {
    ErrorKind.DNS: "no address",
    ErrorKind.DNS_NO_NAME: "a name that does not exist",
    ErrorKind.DNS_FAILED: "a failed look-up",
    ErrorKind.DNS_TIMEOUT: "a look-up without an answer",
    ErrorKind.CONNECT: "no connection",
    ErrorKind.TLS: "no TLS",
    ErrorKind.CERTIFICATE: "no valid certificate",
    ErrorKind.TIMEOUT: "no answer in time",
    ErrorKind.TRUNCATED: "a body cut short",
}


def group_name(site: str, by: GroupBy) -> str:
    """The politeness group of a site (``http://a.example:8080``). ``a.example.`` is the server of ``a.example``."""
    host = host_of(site).removesuffix(".")
    return registered_domain(host) if by is GroupBy.DOMAIN else host


class PauseFacts(NamedTuple):
    """The facts about an answer that decide the pause after it. Times in seconds since the epoch.

    The gate reads them from the answer, and the audit from the log. ``lag_s`` is the lag of the
    crawler's own event loop when the answer ended, in seconds.
    """

    started_at: float
    finished_at: float
    status: int | None = None
    error_kind: str | None = None
    retry_after_s: float | None = None
    lag_s: float = 0.0

    @property
    def took_s(self) -> float:
        """How long the server took, in seconds: without the lag of the crawler."""
        took_s = self.finished_at - self.started_at
        if self.lag_s > 0:
            took_s -= self.lag_s
        return took_s if took_s > 0 else 0.0

    @property
    def is_trouble(self) -> bool:
        """Whether the answer says that the server is in trouble."""
        return self.status in _BUSY or self.error_kind in _TROUBLE


#: An answer within this time is never slow: the noise of a network is of this size.
_QUICK_S = 0.1
#: The weights of an answer in the averages of what is usual and what is recent, once there have been enough answers.
_USUAL_WEIGHT = 1 / 100
_RECENT_WEIGHT = 1 / 5
#: From this ratio of the recent to the usual time on, answers are slower than they were.
_SLOWER = 2.0


class AnswerTimes(msgspec.Struct, frozen=True):
    """How long the answers of a group take, in seconds: usually (some hundred answers) and recently (some five).

    Both are exponential averages of the logarithm, because the times of a server vary by factors: one long answer, or
    a few large files, change them little. ``count`` is the number of answers; up to the fifth both averages are equal,
    so nothing is slower than usual before something is usual.
    """

    count: int = 0
    usual_s: float = 0.0
    recent_s: float = 0.0

    def after(self, answer: PauseFacts) -> AnswerTimes:
        """The times after one more answer. Trouble has a back-off, and says little about how long answers take."""
        if answer.status is None or answer.is_trouble:
            return self
        count, took_s = self.count + 1, max(answer.took_s, _QUICK_S)
        return AnswerTimes(
            count,
            _average(self.usual_s, took_s, max(1 / count, _USUAL_WEIGHT)),
            _average(self.recent_s, took_s, max(1 / count, _RECENT_WEIGHT)),
        )

    @property
    def slowdown(self) -> float:
        """How many times as long as usual the recent answers took; 1 if that is less than twice."""
        return self.recent_s / self.usual_s if self.recent_s >= _SLOWER * self.usual_s > 0 else 1.0


def _average(before_s: float, took_s: float, weight: float) -> float:
    """The weighted geometric mean: the exponential average of the logarithm."""
    return float(before_s ** (1 - weight) * took_s**weight)


class Pace(msgspec.Struct, frozen=True):
    """The state of a group between two requests. ``waits_for`` is the rule that set the pause.

    ``next_at`` is at most ``pause_s`` seconds away when it is set, and at most the longest wait of its code beyond that
    (:func:`within_reason`).
    """

    next_at: float = 0.0
    pause_s: float = 0.0
    backoff_s: float = 0.0
    waits_for: WaitReason = NO_WAIT
    times: AnswerTimes = AnswerTimes()


class Constraint(NamedTuple):
    """A pause of ``pause_s`` seconds from the end of an answer on, because of ``code`` and ``detail``."""

    code: WaitCode
    pause_s: float
    detail: str = ""

    @property
    def wait(self) -> WaitReason:
        """The constraint as a reason to wait."""
        return WaitReason(self.code, self.detail)


_PAUSE_S = itemgetter(0)


def facts_of(answer: FetchResult, lag_s: float = 0.0) -> PauseFacts:
    """The facts about ``answer`` that decide the pause after it. Only a failure or redirect may ask for a pause.

    ``lag_s`` is the lag of the crawler's own event loop when the answer ended, in seconds.
    """
    asks = isinstance(answer, Failed | Redirected)
    return PauseFacts(
        answer.started_at,
        answer.finished_at,
        answer.status,
        answer.kind if isinstance(answer, Failed) else None,
        retry_after_s(answer.headers, answer.finished_at) if asks else None,
        lag_s,
    )


def backoff_after(before_s: float, answer: PauseFacts, settings: PolitenessSettings) -> float:
    """The back-off after an answer, in seconds: trouble doubles the one before, any other answer halves it.

    A request that the crawler itself broke off has no answer, and leaves the back-off as it is. So does a request that
    was lost because the server was closing its idle connection.
    """
    if answer.is_trouble:
        return min(max(settings.backoff_first_s, 2 * before_s), settings.backoff_max_s)
    if answer.error_kind in _NO_ANSWER:
        return before_s
    halved_s = before_s / 2
    return halved_s if halved_s > settings.delay_s and halved_s >= 0.5 else 0.0


def constraints(
    answer: PauseFacts,
    backoff_s: float,
    crawl_delay_s: float | None,
    settings: PolitenessSettings,
    slowdown: float = 1.0,
) -> tuple[Constraint, ...]:
    """Every pause that applies after an answer, with its detail; see :func:`pauses`."""
    applying = pauses(answer, backoff_s, crawl_delay_s, settings, slowdown)
    return tuple([Constraint(code, pause_s, _detail(code, answer, settings, slowdown)) for pause_s, code in applying])


def pauses(
    answer: PauseFacts, backoff_s: float, crawl_delay_s: float | None, settings: PolitenessSettings, slowdown: float
) -> tuple[tuple[float, WaitCode], ...]:
    """Every pause that applies after an answer, in seconds; the longest decides, and of equal ones the first.

    ``backoff_s`` is the back-off after this answer. While answers take ``slowdown`` times as long as usual, the pauses
    that apply without trouble are as many times as long, up to ``slow_cap_s``. A new rule about pauses is a line of
    this table: the gate and the audit both read it. Source: ``docs/protocols.md``, section 6.
    """
    slow_s = min(settings.slow_factor * answer.took_s, settings.slow_cap_s)
    asked_s = capped_crawl_delay_s(crawl_delay_s, settings)
    slower_s = min(slowdown * max(settings.delay_s, slow_s, asked_s), settings.slow_cap_s)
    return (
        (settings.delay_s, WaitCode.DELAY),
        (slow_s, WaitCode.SLOW),
        (asked_s, WaitCode.CRAWL_DELAY),
        (slower_s, WaitCode.SLOWER),
        (backoff_s, WaitCode.BACKOFF),
        (answer.retry_after_s or 0.0, WaitCode.RETRY_AFTER),
    )


def _detail(code: WaitCode, answer: PauseFacts, settings: PolitenessSettings, slowdown: float) -> str:
    """The detail of a pause with this code."""
    match code:
        case WaitCode.SLOW:
            return f"{settings.slow_factor:g}"
        case WaitCode.SLOWER:
            return f"{slowdown:.1f}"
        case WaitCode.BACKOFF:
            return _trouble(answer)
        case WaitCode.RETRY_AFTER:
            return str(answer.status)
        case _:
            return ""


def after_answer(pace: Pace, answer: PauseFacts, crawl_delay_s: float | None, settings: PolitenessSettings) -> Pace:
    """The pace after an answer. The pause is counted from the end of the answer."""
    backoff_s, times = backoff_after(pace.backoff_s, answer, settings), pace.times.after(answer)
    pause_s, code = max(pauses(answer, backoff_s, crawl_delay_s, settings, times.slowdown), key=_PAUSE_S)
    wait = WaitReason(code, _detail(code, answer, settings, times.slowdown))
    return Pace(answer.finished_at + pause_s, pause_s, backoff_s, wait, times)


def with_crawl_delay(pace: Pace, ended_at: float, crawl_delay_s: float | None, settings: PolitenessSettings) -> Pace:
    """The pace with the ``Crawl-delay`` of the robots.txt that was just read, from the end of that answer on."""
    delay_s = capped_crawl_delay_s(crawl_delay_s, settings)
    if ended_at + delay_s <= pace.next_at:
        return pace
    wait = WaitReason(WaitCode.CRAWL_DELAY)
    return msgspec.structs.replace(pace, next_at=ended_at + delay_s, pause_s=delay_s, waits_for=wait)


def after_crash(pace: Pace, settings: PolitenessSettings, now: float) -> Pace:
    """The pace of a group whose worker died. One of its requests may have ended at ``now``."""
    pause_s = max(pace.pause_s, settings.delay_s)
    if pace.next_at >= now + pause_s:
        return pace
    return msgspec.structs.replace(pace, next_at=now + pause_s, pause_s=pause_s, waits_for=WaitReason(WaitCode.CRASH))


#: The clocks of two machines, or of one before and after it was set, may differ by this many seconds unnoticed.
CLOCKS_DIFFER_S = 60.0
_DAY_S = 86400.0
#: The longest wait of each code beyond the pause of its group, in seconds. These waits are the crawler's own. The other
#: codes are those of pauses, which may have any length: ``Pace.pause_s`` has it, also that of a ``Retry-After``.
_LONGEST_OWN_WAIT_S: Mapping[WaitCode, float] = {
    WaitCode.HOURS: _DAY_S,
    WaitCode.ADDRESS: 7 * _DAY_S,
    WaitCode.DOMAIN: 7 * _DAY_S,
    WaitCode.LOOK_UP: _DAY_S,
    WaitCode.LOOP: 7 * _DAY_S,
    WaitCode.READING: _DAY_S,
}


def within_reason(pace: Pace, now: float) -> Pace:
    """The stored pace of a group, set right if its time is further away than its own reason allows.

    Only a wrong clock can have set such a time. The pause then begins anew, because nobody knows when its answer ended:
    it may get longer than it was asked for, but never shorter. A wait of the crawler's own ends, and is decided again.
    """
    longest_s = pace.pause_s + _LONGEST_OWN_WAIT_S.get(pace.waits_for.code, 0.0) + CLOCKS_DIFFER_S
    return pace if pace.next_at <= now + longest_s else msgspec.structs.replace(pace, next_at=now + pace.pause_s)


def capped_crawl_delay_s(crawl_delay_s: float | None, settings: PolitenessSettings) -> float:
    """The ``Crawl-delay`` that applies, in seconds: the requested one, up to the cap in the settings."""
    if crawl_delay_s is None:
        return 0.0
    cap_s = settings.crawl_delay_cap_s
    return crawl_delay_s if cap_s is None else min(crawl_delay_s, cap_s)


def _trouble(answer: PauseFacts) -> str:
    """The trouble in words. A body that was cut short has a status too, but the status was not the trouble."""
    if not answer.is_trouble:
        return "earlier trouble"
    return _TROUBLE.get(answer.error_kind or "") or str(answer.status)
