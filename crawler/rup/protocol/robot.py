"""The robot's knowledge of a server, and its reaction to a report, a gap or silence (draft of 1998, 3.3.3).

Every function is pure: it takes the state and ``now``, and returns the new state with a :data:`NextStep`, which the
caller carries out.

Anybody can write an e-mail, so a report is a set of hints. Nothing is deleted because of a report. The number of a
report counts only when the server has confirmed it in an answer. Only an answer of the server postpones the question
after silence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from crawler.reasons import MailCode, MailVerdict
from crawler.rup.protocol.info import RupInfo, allows_patterns, on_same_site
from crawler.rup.protocol.report import ChangeKind, Report, write_report
from crawler.rup.protocol.units import Span, span_over
from crawler.url import NotCrawlable, canonicalise, split

#: GetIndex reaches back this many seconds further than necessary: clocks differ, and a report that was composed just
#: before the last good one may have been lost.
OVERLAP_S = 600.0

#: Bounds of the grace after which the robot asks for a late report, in seconds; within them a quarter of the latency.
MIN_GRACE_S, MAX_GRACE_S = 300.0, 86_400.0

#: Upper bound of the pause between two questions because of mail, in seconds; below it a quarter of the latency.
MAX_BETWEEN_S = 3600.0

#: The robot remembers this many reports, to recognise a duplicate.
_REMEMBERED = 64

#: The longest pause between two questions to a server that has no news or does not answer, in seconds.
MAX_QUIET_S = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class Server:
    """A server with which this robot is registered. Times in seconds since the epoch."""

    site: str  # scheme, host and port, as in crawler.url.split
    cgi: str  # canonical URL
    key: str
    email: str  # the registered address
    latency: Span
    registered_at: float
    units: tuple[str, ...] = ()  # units for a span in a request: those of the server's latencies
    max_query_span: Span | None = None
    sequence_number: int = 0  # confirmed by the server: no report up to this one is missing
    digest: str = ""  # digests of the reports up to that one, separated by blanks
    good_until: float = 0.0  # every change before is known; 0: before registered_at
    heard_at: float = 0.0  # the last question to the server, answered or not; 0: none since registered_at
    quiet: int = 0  # consecutive questions that brought nothing new
    refused: int = 0  # consecutive answers that the key is unknown

    @property
    def known_until(self) -> float:
        """The robot knows every change before this time."""
        return max(self.registered_at, self.good_until)


@dataclass(frozen=True, slots=True)
class WaitForReport:
    """Nothing to do for this server until ``until``."""

    until: float


@dataclass(frozen=True, slots=True)
class AskNumber:
    """Send GetSequenceNumber."""

    why: str


@dataclass(frozen=True, slots=True)
class AskIndex:
    """Send GetIndex with this span: reports were lost."""

    span: Span
    why: str


@dataclass(frozen=True, slots=True)
class Reindex:
    """Schedule the whole site again: the lost changes are not available."""

    why: str


@dataclass(frozen=True, slots=True)
class RegisterAgain:
    """Send Register: the server does not know the key."""

    why: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Expect no reports of this server. The crawler revisits the site like any other, and informs the user."""

    why: str


NextStep = WaitForReport | AskNumber | AskIndex | Reindex | RegisterAgain | GiveUp


@dataclass(frozen=True, slots=True)
class PageHint:
    """A page to visit: New and Change ask for a (conditional) fetch, Delete asks for a check."""

    url: str  # canonical
    kind: ChangeKind
    at: float | None


@dataclass(frozen=True, slots=True)
class AcceptedReport:
    """The effect of a report.

    It has the new state, the hints, the number of paths of other sites, and why to ask the server.
    """

    server: Server
    hints: tuple[PageHint, ...]
    refused: int
    why: str


@dataclass(frozen=True, slots=True)
class ReceivedUnder:
    """The reports that arrived under one number: the earliest time in their mails, and their digests."""

    sent_at: float
    digests: tuple[str, ...]


#: Reports that arrived and that the server has not confirmed, by number.
Unconfirmed = Mapping[int, ReceivedUnder]


@dataclass(frozen=True, slots=True)
class IgnoredReport:
    """A report that changes only a counter."""

    why: MailVerdict


def may_register(
    info: RupInfo,
    url: str,
    *,
    latency: Span | None = None,
    exclude: Sequence[str] = (),
    include_only: Sequence[str] = (),
    elsewhere: bool = False,
) -> str | None:
    """Why a robot does not register with the offer ``info``, found at ``url``; ``None`` if it may.

    ``elsewhere`` allows a CGI on another site than that of ``url``.
    """
    if info.authentifier != "none":
        return f"the server requires an unknown authentication: {info.authentifier}"
    if not elsewhere and not on_same_site(info, url):
        return f"RUP-CGI is on another site: {info.cgi}"
    if latency is not None and info.latencies and latency.unit not in info.latencies:
        return f"the server offers latencies in units of {', '.join(info.latencies)}, not of {latency.unit}"
    if exclude and include_only:
        return "a request may have Exclude or IncludeOnly, not both"
    for name, offered, wanted in (("Exclude", info.exclude, exclude), ("IncludeOnly", info.include_only, include_only)):
        if wanted and not allows_patterns(offered, wanted):
            return f"the server accepts only these {name} patterns: {', '.join(offered) or 'none'}"
    return None


def on_report(server: Server | None, report: Report) -> AcceptedReport | IgnoredReport:
    """The effect of a report in a mail.

    ``server`` is the one registered for the site of the report's URLBase, ``None`` if there is none. The pages that a
    report names are worth a visit whatever its number is: a forged report may have arrived under the number of a true
    one.
    """
    if server is None:
        return IgnoredReport(MailVerdict(MailCode.UNREGISTERED, split(report.url_base).site))
    if split(report.url_base).site != server.site:
        sites = f"{split(report.url_base).site}, not of {server.site}"
        return IgnoredReport(MailVerdict(MailCode.OTHER_SITE, sites))
    number = report.sequence_number
    if not number:
        return IgnoredReport(MailVerdict(MailCode.UNNUMBERED))
    last = server.sequence_number
    hints, refused = hints_of(report)
    if number > last:
        return AcceptedReport(server, hints, refused, f"report {number} arrived after {last}")
    if digest_of(report) in server.digest.split():
        return IgnoredReport(MailVerdict(MailCode.REPEATED, f"{number}; {last} is known"))
    known = replace(server, digest=_remembered(server, [digest_of(report)]))
    return AcceptedReport(known, hints, refused, f"report {number} arrived late or was changed; {last} is known")


def joined(heard: Unconfirmed, more: Unconfirmed) -> Unconfirmed:
    """All reports of both: under each number every digest, and the earliest time."""
    both = dict(heard)
    for number, received in more.items():
        known = both.get(number, received)
        digests = tuple(dict.fromkeys((*known.digests, *received.digests)))
        both[number] = ReceivedUnder(min(known.sent_at, received.sent_at), digests[:_REMEMBERED])
    return both


def ask_at(server: Server) -> float:
    """The earliest time at which mail may make the robot ask the server, in seconds since the epoch.

    After an answer of the server there is a pause. The first report is an exception, because some servers send no
    second report before the robot asks.
    """
    pause_s = min(server.latency.seconds / 4, MAX_BETWEEN_S)
    is_new = server.sequence_number == 0 and server.heard_at < server.registered_at + pause_s
    return 0.0 if is_new else server.heard_at + pause_s


def hints_of(report: Report) -> tuple[tuple[PageHint, ...], int]:
    """The pages that a report names, each once with its last change, and the number of paths of other sites."""
    site = split(report.url_base).site
    hints: dict[str, PageHint] = {}
    refused = 0
    for change in report.changes:
        try:
            url = canonicalise(change.path, report.url_base)
        except NotCrawlable:
            refused += 1
            continue
        if split(url).site != site:
            refused += 1
            continue
        hints.pop(url, None)
        hints[url] = PageHint(url, change.kind, change.at)
    return tuple(hints.values()), refused


def grace_s(latency: Span) -> float:
    """How late a report may arrive before the robot asks for it, in seconds."""
    return min(max(latency.seconds / 4, MIN_GRACE_S), MAX_GRACE_S)


def silent_at(server: Server) -> float:
    """When silence makes the robot ask, in seconds since the epoch.

    The wait is a latency and its grace after the last answer of the server. It doubles after each question that brought
    nothing new, up to :data:`MAX_QUIET_S` (or the latency, if that is longer).
    """
    wait_s = server.latency.seconds + grace_s(server.latency)
    patient_s = min(wait_s * 2.0 ** min(server.quiet, 40), max(wait_s, MAX_QUIET_S))
    return max(server.heard_at, server.registered_at) + patient_s


def on_time(server: Server, *, now: float) -> NextStep:
    """The next step if no mail arrived."""
    if now < silent_at(server):
        return WaitForReport(silent_at(server))
    return AskNumber(f"no report for {server.latency} and {grace_s(server.latency):.0f} s more")


def on_number(server: Server, number: int, heard: Unconfirmed, *, now: float) -> tuple[Server, NextStep]:
    """The next step after an answer to GetSequenceNumber; ``heard`` are the reports that arrived since the last one.

    The caller keeps the new state only after it has carried out the step.
    """
    last = server.sequence_number
    answered = replace(server, heard_at=now, refused=0)
    if number == last:
        answered = replace(answered, quiet=server.quiet + 1)
        return answered, WaitForReport(silent_at(answered))
    if number < last:
        why = f"the server counts {number}, after {last}: it has started again"
        return replace(answered, quiet=0), recover(server, why, now=now)
    if number - last > len(heard) or not all(n in heard for n in range(last + 1, number + 1)):
        why = f"some of the reports {last + 1} to {number} did not arrive"
        return replace(answered, quiet=0), recover(server, why, now=now)
    # The report was composed after the last answer, which did not count it. The date in its mail proves nothing.
    good_until = min(now, heard[number].sent_at, max(server.heard_at, server.known_until))
    confirmed = replace(
        answered,
        sequence_number=number,
        digest=_remembered(server, [digest for n in range(last + 1, number + 1) for digest in heard[n].digests]),
        good_until=max(server.known_until, good_until),
        quiet=0,
    )
    return confirmed, WaitForReport(silent_at(confirmed))


def recover(server: Server, why: str, *, now: float) -> AskIndex | Reindex:
    """How to learn the changes since :attr:`Server.known_until`."""
    most = server.max_query_span
    since_s = now - server.known_until + OVERLAP_S
    if most is None:
        return Reindex(f"{why}; the server has no index")
    if since_s > most.seconds:
        return Reindex(f"{why}; the server's index reaches back only {most}")
    span = span_over(since_s, server.units or (most.unit,))
    return AskIndex(span if span.seconds <= most.seconds else most, why)


def recovered(server: Server, number: int, *, now: float) -> Server:
    """The state after GetIndex, or after a revisit of the whole site, when every change up to ``now`` is known.

    ``number`` is the server's last answer to GetSequenceNumber, ``now`` the time of that question.
    """
    return replace(server, sequence_number=number, good_until=now, heard_at=now, quiet=0, refused=0)


def on_refused(server: Server, *, now: float) -> tuple[Server, NextStep]:
    """The next step if the server answers that it does not know the key (400): register again, but only once."""
    refused = replace(server, refused=server.refused + 1, heard_at=now)
    if refused.refused > 1:
        return refused, GiveUp("the server does not know our key and refuses a new registration")
    return refused, RegisterAgain("the server does not know our key")


def on_unreachable(server: Server, *, now: float) -> tuple[Server, NextStep]:
    """The next step if the server does not answer: ask again, later each time."""
    waiting = replace(server, heard_at=now, quiet=server.quiet + 1)
    return waiting, WaitForReport(silent_at(waiting))


def digest_of(report: Report) -> str:
    """A digest that is the same for reports with the same content."""
    return hashlib.sha256(write_report(report).encode("ascii", "replace")).hexdigest()[:32]


def _remembered(server: Server, digests: Iterable[str]) -> str:
    return " ".join([*server.digest.split(), *digests][-_REMEMBERED:])
