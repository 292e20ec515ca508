"""What a robot keeps of a server that reports to it, and what follows from what it hears (draft of 1998, 3.3.3).

Every function is pure: it takes the state and ``now``, and returns the new state with a :data:`NextStep`, which the caller
carries out. Anybody can write an e-mail, so a report is a set of hints: nothing is removed on its word, and its number
counts only once the server, asked, has confirmed it. Only the server's answers put off the question after silence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from crawler.rup.protocol.info import RupInfo, on_same_site, takes
from crawler.rup.protocol.report import ChangeKind, Report, write_report
from crawler.rup.protocol.units import Span, span_over
from crawler.url import NotCrawlable, canonicalise, split

#: A report composed just before the last good one came may have been lost with what it said: GetIndex reaches back so
#: much further, in seconds, also for clocks that differ.
OVERLAP_S = 600.0

#: How long after its time a report is missed: a quarter of the latency, within these bounds, in seconds.
MIN_GRACE_S, MAX_GRACE_S = 300.0, 86_400.0

#: The least pause between two questions that mail gives rise to: a quarter of the latency, at most so many seconds.
MAX_BETWEEN_S = 3600.0

#: Reports that are remembered, the latest, to know them when they come again.
_REMEMBERED = 64

#: The longest pause between two questions of a robot whose server has nothing to say, or does not answer, in seconds.
MAX_QUIET_S = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class Server:
    """A server that this robot is registered with. Times in seconds since the epoch."""

    site: str  # scheme, host and port, as crawler.url.split gives it
    cgi: str  # canonical URL
    key: str
    email: str  # the address registered
    latency: Span
    registered_at: float
    units: tuple[str, ...] = ()  # that a span can be written in: those of the server's latencies
    max_query_span: Span | None = None
    sequence_number: int = 0  # that the server has confirmed, of the last report up to which nothing is missing
    digest: str = ""  # of reports up to that one, separated by blanks, to tell a duplicate from other words
    good_until: float = 0.0  # everything that changed before is known; 0: since registered_at
    heard_at: float = 0.0  # when the server last answered, or did not; 0: never since registered_at
    quiet: int = 0  # questions in a row that brought nothing new
    refused: int = 0  # times in a row that the server did not know our key

    @property
    def known_until(self) -> float:
        return max(self.registered_at, self.good_until)


@dataclass(frozen=True, slots=True)
class Wait:
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
    """Schedule the whole site again: what was lost cannot be had."""

    why: str


@dataclass(frozen=True, slots=True)
class RegisterAgain:
    """The server does not know our key: it has lost its registrations, or we were removed."""

    why: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """No reports are to be had from this server; the site is revisited like any other, and a person told."""

    why: str


NextStep = Wait | AskNumber | AskIndex | Reindex | RegisterAgain | GiveUp


@dataclass(frozen=True, slots=True)
class PageHint:
    """A page worth a visit: New and Change ask for a (conditional) fetch, Delete for a check."""

    url: str  # canonical
    kind: ChangeKind
    at: float | None


@dataclass(frozen=True, slots=True)
class AcceptedReport:
    """What follows from a report: the new state, hints, how many paths were refused as another site's, and why the
    server is to be asked about it."""

    server: Server
    hints: tuple[PageHint, ...]
    refused: int
    why: str


@dataclass(frozen=True, slots=True)
class ReceivedUnder:
    """What came under one number: when it was sent, at the earliest that a mail says, and digests of the reports."""

    sent_at: float
    digests: tuple[str, ...]


#: Reports that came and that the server has not confirmed, by their number.
Unconfirmed = Mapping[int, ReceivedUnder]


@dataclass(frozen=True, slots=True)
class IgnoredReport:
    """A report that changes nothing but a counter."""

    why: str


def may_register(
    info: RupInfo,
    url: str,
    *,
    latency: Span | None = None,
    exclude: Sequence[str] = (),
    include_only: Sequence[str] = (),
    elsewhere: bool = False,
) -> str | None:
    """Why a robot does not register with what ``info``, found at ``url``, offers; ``None`` where it may.

    ``elsewhere`` allows a CGI on another site than the file's.
    """
    if info.authentifier != "none":
        return f"the server asks for an authentication that is not known: {info.authentifier}"
    if not elsewhere and not on_same_site(info, url):
        return f"RUP-CGI is on another site: {info.cgi}"
    if latency is not None and info.latencies and latency.unit not in info.latencies:
        return f"the server offers no latency in units of {latency.unit}, only of {', '.join(info.latencies)}"
    if exclude and include_only:
        return "either Exclude or IncludeOnly is allowed, not both"
    for name, offered, wanted in (("Exclude", info.exclude, exclude), ("IncludeOnly", info.include_only, include_only)):
        if wanted and not takes(offered, wanted):
            return f"the server takes other {name} patterns: {', '.join(offered) or 'none'}"
    return None


def on_report(server: Server | None, report: Report) -> AcceptedReport | IgnoredReport:
    """What follows from a report in a mail.

    ``server`` is the one registered for the site of the report's URLBase, ``None`` where there is none. Whatever its
    number, what a report names is worth a visit: a forged one may have come under the number of a true one.
    """
    if server is None:
        return IgnoredReport(f"no registration with {split(report.url_base).site}")
    if split(report.url_base).site != server.site:
        return IgnoredReport(f"a report of {split(report.url_base).site}, not of {server.site}")
    number = report.sequence_number
    if not number:
        return IgnoredReport("a report without a sequence number")
    last = server.sequence_number
    hints, refused = hints_of(report)
    if number > last:
        return AcceptedReport(server, hints, refused, f"report {number} came after {last}")
    if digest_of(report) in server.digest.split():
        return IgnoredReport(f"report {number} again: {last} is known")
    known = replace(server, digest=_remembered(server, [digest_of(report)]))
    return AcceptedReport(known, hints, refused, f"report {number} came late, or with other words: {last} is known")


def joined(heard: Unconfirmed, more: Unconfirmed) -> Unconfirmed:
    """All that came: under each number with every digest, and the earliest time."""
    both = dict(heard)
    for number, told in more.items():
        known = both.get(number, told)
        digests = tuple(dict.fromkeys((*known.digests, *told.digests)))
        both[number] = ReceivedUnder(min(known.sent_at, told.sent_at), digests[:_REMEMBERED])
    return both


def ask_at(server: Server) -> float:
    """From when mail may make the robot ask: not at once after the last answer, but for a first report, as some
    servers send no more until they are asked."""
    pause_s = min(server.latency.seconds / 4, MAX_BETWEEN_S)
    is_new = server.sequence_number == 0 and server.heard_at < server.registered_at + pause_s
    return 0.0 if is_new else server.heard_at + pause_s


def hints_of(report: Report) -> tuple[tuple[PageHint, ...], int]:
    """The pages that a report names, each once with the last that it says of it, and how many are not of its site."""
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
    """How late a report may come before it is missed, in seconds."""
    return min(max(latency.seconds / 4, MIN_GRACE_S), MAX_GRACE_S)


def silent_at(server: Server) -> float:
    """When silence makes the robot ask: a latency and its grace after the server last answered, twice as long after
    each question that brought nothing new, up to :data:`MAX_QUIET_S` (or the latency, where that is longer)."""
    wait_s = server.latency.seconds + grace_s(server.latency)
    patient_s = min(wait_s * 2.0 ** min(server.quiet, 40), max(wait_s, MAX_QUIET_S))
    return max(server.heard_at, server.registered_at) + patient_s


def on_time(server: Server, *, now: float) -> NextStep:
    """What is to be done when nothing came."""
    if now < silent_at(server):
        return Wait(silent_at(server))
    return AskNumber(f"no report for {server.latency} and {grace_s(server.latency):.0f} s more")


def on_number(server: Server, number: int, heard: Unconfirmed, *, now: float) -> tuple[Server, NextStep]:
    """What follows from the answer to GetSequenceNumber, where these reports came since the last one.

    The caller keeps the state only once it has done the rest.
    """
    last = server.sequence_number
    answered = replace(server, heard_at=now, refused=0)
    if number == last:
        answered = replace(answered, quiet=server.quiet + 1)
        return answered, Wait(silent_at(answered))
    if number < last:
        why = f"the server counts {number}, after {last}: it has begun anew"
        return replace(answered, quiet=0), recover(server, why, now=now)
    if number - last > len(heard) or not all(n in heard for n in range(last + 1, number + 1)):
        why = f"of the reports {last + 1} to {number} some did not come"
        return replace(answered, quiet=0), recover(server, why, now=now)
    # It was composed after the last answer, which knew nothing of it. What its mail says is anybody's word.
    good_until = min(now, heard[number].sent_at, max(server.heard_at, server.known_until))
    confirmed = replace(
        answered,
        sequence_number=number,
        digest=_remembered(server, [digest for n in range(last + 1, number + 1) for digest in heard[n].digests]),
        good_until=max(server.known_until, good_until),
        quiet=0,
    )
    return confirmed, Wait(silent_at(confirmed))


def recover(server: Server, why: str, *, now: float) -> AskIndex | Reindex:
    """How to learn what changed since everything was known."""
    most = server.max_query_span
    since_s = now - server.known_until + OVERLAP_S
    if most is None:
        return Reindex(f"{why}; the server keeps no index")
    if since_s > most.seconds:
        return Reindex(f"{why}; the server's index reaches back {most}, and that is not enough")
    span = span_over(since_s, server.units or (most.unit,))
    return AskIndex(span if span.seconds <= most.seconds else most, why)


def recovered(server: Server, number: int, *, now: float) -> Server:
    """The state once everything up to ``now`` is known, by GetIndex or by reading the site anew.

    ``number`` is what the server answered to GetSequenceNumber before, ``now`` the time of that question.
    """
    return replace(server, sequence_number=number, good_until=now, heard_at=now, quiet=0, refused=0)


def on_refused(server: Server, *, now: float) -> tuple[Server, NextStep]:
    """What follows where the server answers that it does not know our key (400): once, register again; then give up."""
    refused = replace(server, refused=server.refused + 1, heard_at=now)
    if refused.refused > 1:
        return refused, GiveUp("the server does not know our key, nor takes a new registration")
    return refused, RegisterAgain("the server does not know our key")


def on_unreachable(server: Server, *, now: float) -> tuple[Server, NextStep]:
    """What follows where the server does not answer: ask again, later each time."""
    waiting = replace(server, heard_at=now, quiet=server.quiet + 1)
    return waiting, Wait(silent_at(waiting))


def digest_of(report: Report) -> str:
    """The same for reports that say the same."""
    return hashlib.sha256(write_report(report).encode("ascii", "replace")).hexdigest()[:32]


def _remembered(server: Server, digests: Iterable[str]) -> str:
    return " ".join([*server.digest.split(), *digests][-_REMEMBERED:])
