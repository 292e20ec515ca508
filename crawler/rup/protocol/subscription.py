"""The robot's registration with a server, and its conclusions from mail, gaps and silence (draft of 1998, 3.3.3).

Every function is pure: it takes the registration and ``now``, and returns the new registration or why the robot must
ask the server.

Anybody can write an e-mail, so a report is a set of hints. Nothing is deleted because of a report. The number of a
report counts only when the server has confirmed it in an answer. Only an answer of the server postpones the question
after silence.

The robot stores a registration before it sends Register, with an empty key. A Register without an answer may have
succeeded, and a second Register could make a second registration.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from crawler.reasons import MailCode, MailVerdict
from crawler.rup.protocol.forms import Agreement, Preferences
from crawler.rup.protocol.info import FoundInfo, RupInfo, allows_patterns
from crawler.rup.protocol.mail import read_mail
from crawler.rup.protocol.report import ChangeKind, Report, Unreadable, write_report
from crawler.rup.protocol.units import UNITS_S, Span, grace_s, span_over
from crawler.url import NotCrawlable, canonicalise, split

#: GetIndex reaches back this many seconds further than necessary: clocks differ, and a report that was composed just
#: before the last good one may have been lost.
OVERLAP_S = 600.0

#: Upper bound of the pause between two questions because of mail, in seconds; below it a quarter of the latency.
MAX_BETWEEN_S = 3600.0

#: The longest pause between two questions to a server that has no news or does not answer, in seconds.
MAX_QUIET_S = 7 * 86_400.0

_DAY = Span(1, "day")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription(Agreement):
    """A registration of this robot. Times in seconds since the epoch.

    ``sequence_number`` is confirmed by the server: no report up to this one is missing.
    """

    site: str  # scheme, host and port, as in crawler.url.split
    cgi: str  # canonical URL
    units: tuple[str, ...] = ()  # units for a span in a request: those of the server's latencies
    max_query_span: Span | None = None
    good_until: float = 0.0  # every change before is known; 0: before registered_at
    heard_at: float = 0.0  # the last question to the server, answered or not; 0: none since registered_at
    quiet: int = 0  # consecutive questions that brought nothing new
    question: str = ""  # why the robot must ask the server at once
    lost: str = ""  # why the robot must revisit the whole site, whatever the server's number is
    given_up: str = ""
    unreached: str = ""  # why the last question had no answer

    @property
    def is_unclear(self) -> bool:
        """The robot sent Register and received no answer."""
        return not self.key

    @property
    def known_until(self) -> float:
        """The robot knows every change before this time."""
        return max(self.registered_at, self.good_until)

    @property
    def ask_at(self) -> float:
        """When silence makes the robot ask.

        The wait is a latency and its grace after the last answer of the server. It doubles after each question that
        brought nothing new, up to :data:`MAX_QUIET_S` (or the latency, if that is longer).
        """
        wait_s = self.latency.seconds + grace_s(self.latency)
        patient_s = min(wait_s * 2.0 ** min(self.quiet, 40), max(wait_s, MAX_QUIET_S))
        return max(self.heard_at, self.registered_at) + patient_s

    @property
    def silent_at(self) -> float:
        """Until then silence means that nothing changed; 0 if that is not reliable."""
        in_doubt = self.is_unclear or self.given_up or self.unreached or self.question or self.lost
        return 0.0 if in_doubt else self.ask_at


@dataclass(frozen=True, slots=True)
class PageHint:
    """A page to visit: New and Change ask for a (conditional) fetch, Delete asks for a check."""

    url: str  # canonical
    kind: ChangeKind
    at: float | None


#: The numbers of the reports of a site that arrived and that the server has not confirmed, each with whether all
#: reports with this number could be read whole.
Heard = Mapping[int, bool]


# --- registering --------------------------------------------------------------------------------------


def may_register(offered: FoundInfo, wanted: Preferences, *, elsewhere: bool = False) -> str | None:
    """Why a robot with these preferences does not use an offer; ``None`` if it may.

    ``elsewhere`` allows a CGI on another site than that of the offer.
    """
    info = offered.info
    if info.authentifier != "none":
        return f"the server requires an unknown authentication: {info.authentifier}"
    if not elsewhere and split(info.cgi).site != offered.site:  # it could belong to anybody
        return f"RUP-CGI is on another site: {info.cgi}"
    if wanted.latency is not None and info.latencies and wanted.latency.unit not in info.latencies:
        return f"the server offers latencies in units of {', '.join(info.latencies)}, not of {wanted.latency.unit}"
    for name, allowed, patterns in (
        ("Exclude", info.exclude, wanted.exclude),
        ("IncludeOnly", info.include_only, wanted.include_only),
    ):
        if patterns and not allows_patterns(allowed, patterns):
            return f"the server accepts only these {name} patterns: {', '.join(allowed) or 'none'}"
    return None


def usual_latency(info: RupInfo) -> Span:
    """The latency if the user names none: a day, or the offered unit nearest to a day."""
    if not info.latencies or _DAY.unit in info.latencies:
        return _DAY
    return Span(1, min(info.latencies, key=lambda unit: abs(UNITS_S[unit] - _DAY.seconds)))


# --- mail ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RawMail:
    """A mail in a mailbox. ``octets`` is ``None`` for a mail that is too large to read."""

    name: str
    octets: bytes | None


@dataclass(frozen=True, slots=True)
class MailRow:
    """A mail that was read, for the store; ``site`` is that of a registration."""

    digest: bytes
    site: str | None
    sequence_number: int | None
    verdict: MailVerdict
    changes: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True)
class OpenedMail:
    """A mail that was read. ``row.digest`` is the same for copies of a mail, whatever way each of them came."""

    row: MailRow
    hints: tuple[PageHint, ...] = ()  # empty unless the report is heeded, as its verdict says
    is_whole: bool = True  # the report was not too long to be read


def open_mail(letter: RawMail, sites: Iterable[str]) -> OpenedMail:
    """Read a mail. The robot heeds a report with a number, of one of the ``sites`` with which it is registered.

    The pages that a report names are worth a visit whatever its number is: a forged report may have arrived under the
    number of a true one. Paths of other sites are refused. Never raises.
    """
    if letter.octets is None:
        digest = hashlib.sha256(letter.name.encode("utf-8", "replace")).digest()
        return OpenedMail(MailRow(digest, None, None, MailVerdict(MailCode.UNREADABLE, "the mail is too large")))
    mail = read_mail(letter.octets)
    if isinstance(mail, Unreadable):
        digest = hashlib.sha256(letter.octets).digest()
        return OpenedMail(MailRow(digest, None, None, MailVerdict(MailCode.UNREADABLE, mail.why)))
    report, site = mail.report, split(mail.report.url_base).site
    content = f"{mail.message_id}\n{mail.date}\n{write_report(report)}"
    row = MailRow(
        hashlib.sha256(content.encode("utf-8", "replace")).digest(),
        site if site in sites else None,
        report.sequence_number,
        MailVerdict(MailCode.TAKEN),
    )
    if row.site is None:
        verdict = MailVerdict(MailCode.UNREGISTERED, site)
        return OpenedMail(replace(row, verdict=verdict, refused=len(report.changes)))
    if not report.sequence_number:
        return OpenedMail(replace(row, verdict=MailVerdict(MailCode.UNNUMBERED)))
    hints, refused = hints_of(report)
    row = replace(row, changes=len(hints), refused=refused + report.skipped)
    return OpenedMail(row, hints, not report.skipped)


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


def noticed(known: Subscription, reports: Heard) -> Subscription:
    """The registration after these reports arrived: the robot must ask the server whether their numbers are right.

    Reports up to one that could not be read whole count as lost.
    """
    last, first = known.sequence_number, min(reports)
    why = f"arrived after {last}" if first > last else f"arrived late or was changed; {last} is known"
    partial = [number - 1 for number, is_whole in reports.items() if not is_whole]
    return replace(known, sequence_number=min([last, *partial]), question=known.question or f"report {first} {why}")


def joined(heard: Heard, more: Heard) -> Heard:
    """The reports of both."""
    return {number: heard.get(number, True) and more.get(number, True) for number in {*heard, *more}}


# --- questions ----------------------------------------------------------------------------------------


def due_question(known: Subscription, *, now: float) -> str:
    """Why the robot must ask the server now; empty if it need not.

    Mail makes it ask after a pause only. The first report is an exception, because some servers send no second report
    before the robot asks.
    """
    pause_s = min(known.latency.seconds / 4, MAX_BETWEEN_S)
    is_new = known.sequence_number == 0 and known.heard_at < known.registered_at + pause_s
    if known.question and (is_new or now >= known.heard_at + pause_s):
        return known.question
    if known.lost and known.quiet == 0:  # a server that did not answer is asked later
        return known.lost
    late = f"no report for {known.latency} and {grace_s(known.latency):.0f} s more"
    return late if now >= known.ask_at else ""


def missing(known: Subscription, number: int, heard: Heard) -> str:
    """Why reports are missing if the server's last one has this ``number``; empty if none is."""
    last = known.sequence_number
    if number < last:
        return f"the server counts {number}, after {last}: it has started again"
    if number - last > len(heard) or not all(heard.get(n) for n in range(last + 1, number + 1)):
        return f"some of the reports {last + 1} to {number} did not arrive"
    return ""


def confirmed(known: Subscription, number: int, *, now: float) -> Subscription:
    """The registration if no report up to ``number`` is missing, the server's answer at ``now``."""
    answered = replace(known, heard_at=now, unreached="")
    if number == known.sequence_number:
        return replace(answered, quiet=known.quiet + (not known.question))  # mail is no silence
    # The reports were composed after the last answer, which did not count them. The dates in their mails prove nothing.
    counted_at = 0.0 if known.unreached else known.heard_at
    return replace(answered, sequence_number=number, good_until=max(known.known_until, counted_at), quiet=0)


def index_span(known: Subscription, *, now: float) -> Span | str:
    """The span of GetIndex that has all changes since :attr:`Subscription.known_until`, or why there is none."""
    most = known.max_query_span
    since_s = now - known.known_until + OVERLAP_S
    if most is None:
        return "the server has no index"
    if since_s > most.seconds:
        return f"the server's index reaches back only {most}"
    span = span_over(since_s, known.units or (most.unit,))
    return span if span.seconds <= most.seconds else most


def recovered(known: Subscription, number: int, *, now: float) -> Subscription:
    """The registration after GetIndex or a revisit of the whole site.

    Every change up to ``now`` is known, the time of the question that the server answered with ``number``.
    """
    return replace(known, sequence_number=number, good_until=now, heard_at=now, quiet=0, lost="", unreached="")


def unanswered(known: Subscription, why: str, *, now: float) -> Subscription:
    """The registration if the server does not answer: the robot asks again, later each time."""
    return replace(known, heard_at=now, quiet=known.quiet + 1, unreached=why[:200])
