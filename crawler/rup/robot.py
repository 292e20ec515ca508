"""What a robot keeps of a server that reports to it, and what follows from what it hears (draft of 1998, 3.3.3).

Every function is pure: it takes the state and ``now``, and returns the new state with a :data:`Next`, which the caller
carries out. Anybody can write an e-mail, so a report is a set of hints: nothing is removed on its word, and a number
out of line makes the robot ask the server, whose answer decides what was lost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from crawler.rup.info import RupInfo, on_same_site, takes
from crawler.rup.report import Kind, Report, write_report
from crawler.rup.units import Span, span_over
from crawler.url import NotCrawlable, canonicalise, split

#: A report composed just before the last good one came may have been lost with what it said: GetIndex reaches back so
#: much further, in seconds, also for clocks that differ.
OVERLAP_S = 600.0

#: How long after its time a report is missed: a quarter of the latency, within these bounds, in seconds.
MIN_GRACE_S, MAX_GRACE_S = 300.0, 86_400.0

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
    sequence_number: int = 0  # of the last report up to which nothing is missing
    digest: str = ""  # of that report, to tell a duplicate from a forgery
    good_until: float = 0.0  # everything that changed before is known; 0: since registered_at
    heard_at: float = 0.0  # when a report last came or the server last answered; 0: never since registered_at
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


Next = Wait | AskNumber | AskIndex | Reindex | RegisterAgain | GiveUp


@dataclass(frozen=True, slots=True)
class Hint:
    """A page worth a visit: New and Change ask for a (conditional) fetch, Delete for a check."""

    url: str  # canonical
    kind: Kind
    at: float | None


@dataclass(frozen=True, slots=True)
class Heard:
    """What follows from a report: the new state, hints, how many paths were refused as another site's, what to do."""

    server: Server
    hints: tuple[Hint, ...]
    refused: int
    next: Next


@dataclass(frozen=True, slots=True)
class Ignored:
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


def on_report(server: Server | None, report: Report, *, sent_at: float | None, now: float) -> Heard | Ignored:
    """What follows from a report in a mail, whose ``Date`` was ``sent_at``.

    ``server`` is the one registered for the site of the report's URLBase, ``None`` where there is none.
    """
    if server is None:
        return Ignored(f"no registration with {split(report.url_base).site}")
    if split(report.url_base).site != server.site:
        return Ignored(f"a report of {split(report.url_base).site}, not of {server.site}")
    number = report.sequence_number
    if not number:
        return Ignored("a report without a sequence number")
    digest, last = _digest(report), server.sequence_number
    if number < last or (number == last and server.digest in ("", digest)):  # empty: the index told what it says
        return Ignored(f"report {number} again, or late: {last} is known")
    hints, refused = hints_of(report)
    if number == last:  # one of the two is forged, and nobody can tell which
        return Heard(server, hints, refused, Wait(silent_at(server)))
    if number > last + 1:
        return Heard(server, hints, refused, AskNumber(f"report {number} came after {last}"))
    good_until = min(now, now if sent_at is None else max(sent_at, server.known_until))
    heard = replace(
        server, sequence_number=number, digest=digest, good_until=good_until, heard_at=now, quiet=0, refused=0
    )
    return Heard(heard, hints, refused, Wait(silent_at(heard)))


def hints_of(report: Report) -> tuple[tuple[Hint, ...], int]:
    """The pages that a report names, each once with the last that it says of it, and how many are not of its site."""
    site = split(report.url_base).site
    hints: dict[str, Hint] = {}
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
        hints[url] = Hint(url, change.kind, change.at)
    return tuple(hints.values()), refused


def grace_s(latency: Span) -> float:
    """How late a report may come before it is missed, in seconds."""
    return min(max(latency.seconds / 4, MIN_GRACE_S), MAX_GRACE_S)


def silent_at(server: Server) -> float:
    """When silence makes the robot ask: a latency and its grace after it last heard, twice as long after each question
    that brought nothing new, up to :data:`MAX_QUIET_S` (or the latency, where that is longer)."""
    wait_s = server.latency.seconds + grace_s(server.latency)
    patient_s = min(wait_s * 2.0 ** min(server.quiet, 40), max(wait_s, MAX_QUIET_S))
    return max(server.heard_at, server.registered_at) + patient_s


def on_time(server: Server, *, now: float) -> Next:
    """What is to be done when nothing came."""
    if now < silent_at(server):
        return Wait(silent_at(server))
    return AskNumber(f"no report for {server.latency} and {grace_s(server.latency):.0f} s more")


def on_number(server: Server, number: int, *, now: float) -> tuple[Server, Next]:
    """What follows from the answer to GetSequenceNumber. The caller keeps the state only once it has done the rest."""
    heard = replace(server, heard_at=now, refused=0)
    if number == server.sequence_number:
        heard = replace(heard, quiet=server.quiet + 1)
        return heard, Wait(silent_at(heard))
    if number > server.sequence_number:
        why = f"reports {server.sequence_number + 1} to {number} were lost"
    else:
        why = f"the server counts {number}, after {server.sequence_number}: it has begun anew"
    return replace(heard, quiet=0), recover(server, why, now=now)


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
    return replace(server, sequence_number=number, digest="", good_until=now, heard_at=now, quiet=0, refused=0)


def on_refused(server: Server, *, now: float) -> tuple[Server, Next]:
    """What follows where the server answers that it does not know our key (400): once, register again; then give up."""
    refused = replace(server, refused=server.refused + 1, heard_at=now)
    if refused.refused > 1:
        return refused, GiveUp("the server does not know our key, nor takes a new registration")
    return refused, RegisterAgain("the server does not know our key")


def on_unreachable(server: Server, *, now: float) -> tuple[Server, Next]:
    """What follows where the server does not answer: ask again, later each time."""
    waiting = replace(server, heard_at=now, quiet=server.quiet + 1)
    return waiting, Wait(silent_at(waiting))


def _digest(report: Report) -> str:
    return hashlib.sha256(write_report(report).encode("ascii", "replace")).hexdigest()
