"""What a robot keeps of its dealings with servers beside :class:`crawler.rup.protocol.robot.Server`, and
of the mails it reads.

Pure, as all here. A registration is noted before it is asked for, with an empty key: a Register that is not answered
may have registered us all the same, and asking twice could make two registrations.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from crawler.rup.protocol.forms import GetIndex, ModifyPreferences, Preferences
from crawler.rup.protocol.info import RupInfo
from crawler.rup.protocol.mail import ReceivedReport, read_mail
from crawler.rup.protocol.report import Report, Unreadable
from crawler.rup.protocol.robot import (
    IgnoredReport,
    PageHint,
    ReceivedUnder,
    Server,
    Unconfirmed,
    digest_of,
    joined,
    on_report,
    silent_at,
)
from crawler.rup.protocol.units import UNITS_S, Span
from crawler.url import split

TAKEN = "taken"
_DAY = Span(1, "day")


@dataclass(frozen=True, slots=True)
class FoundInfo:
    """A ``/rupinfo.txt`` as it was found at ``url``. Times in seconds since the epoch."""

    url: str
    found_at: float
    info: RupInfo

    @property
    def site(self) -> str:
        return split(self.url).site


@dataclass(frozen=True, slots=True)
class Subscription:
    """A registration: the server, what we asked to be told, and what is still to be done about it."""

    server: Server
    preferences: Preferences = field(default_factory=Preferences)
    question: str = ""  # why the server is to be asked at once
    lost: str = ""  # why the whole site is to be looked at again, whatever the server's number says
    given_up: str = ""
    unreached: str = ""  # why the server's last answer did not come

    @property
    def is_unclear(self) -> bool:
        """Register was sent, and no answer came."""
        return not self.server.key

    @property
    def silent_at(self) -> float:
        """Until when no news is that nothing changed, in seconds since the epoch; 0 where that cannot be relied on."""
        in_doubt = self.is_unclear or self.given_up or self.unreached or self.question or self.lost
        return 0.0 if in_doubt else silent_at(self.server)


@dataclass(frozen=True, slots=True)
class RawMail:
    """A mail as it lies in a mailbox. ``octets`` is ``None`` for one too large to be read."""

    name: str
    octets: bytes | None

    @property
    def digest(self) -> bytes:
        return hashlib.sha256(self.name.encode("utf-8", "replace") if self.octets is None else self.octets).digest()


@dataclass(frozen=True, slots=True)
class MailRow:
    """What became of a mail, for the store."""

    digest: bytes
    site: str | None
    sequence_number: int | None
    verdict: str
    changes: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True)
class Read:
    """What follows from a batch of mails: the registrations that changed, what to look at, a row for each mail, and
    which reports of each site there were."""

    changed: tuple[Subscription, ...]
    hints: tuple[PageHint, ...]
    rows: tuple[MailRow, ...]
    heard: Mapping[str, Unconfirmed]
    partial: frozenset[str]  # sites with reports that could not be read whole


@dataclass(slots=True)
class _Reader:
    known: dict[str, Subscription]
    now: float
    changed: set[str] = field(default_factory=set)
    hints: list[PageHint] = field(default_factory=list)
    heard: dict[str, Unconfirmed] = field(default_factory=dict)
    partial: set[str] = field(default_factory=set)

    def take(self, digest: bytes, mail: ReceivedReport) -> MailRow:
        report = mail.report
        site = split(report.url_base).site
        before = self.known.get(site)
        follows = on_report(None if before is None else before.server, report)
        number = report.sequence_number
        if isinstance(follows, IgnoredReport) or before is None or number is None:
            why = follows.why if isinstance(follows, IgnoredReport) else ""
            refused = len(report.changes) if before is None else 0
            return MailRow(digest, None if before is None else site, number, why[:200], refused=refused)
        self.known[site] = replace(before, server=follows.server, question=before.question or follows.why)
        self.changed.add(site)
        self.hints += follows.hints
        row = MailRow(digest, site, number, TAKEN, len(follows.hints), follows.refused + report.skipped)
        if report.skipped:
            self.partial.add(site)
        told = ReceivedUnder(self.now if mail.date is None else mail.date, (digest_of(report),))
        self.heard[site] = joined(self.heard.get(site, {}), {number: told})
        return row


def read_mails(letters: Iterable[RawMail], subscriptions: Mapping[str, Subscription], *, now: float) -> Read:
    """What follows from mails that were not read before; ``subscriptions`` by site.

    Reports of a server are taken in the order of their numbers, so that mail which overtook other mail is no gap.
    """
    rows: list[MailRow] = []
    reports: list[tuple[str, int, int, bytes, ReceivedReport]] = []
    for place, letter in enumerate(letters):
        mail = Unreadable("a mail too large to be read") if letter.octets is None else read_mail(letter.octets)
        if isinstance(mail, Unreadable):
            rows.append(MailRow(letter.digest, None, None, f"no report: {mail.why}"[:200]))
        else:
            report = mail.report
            site = split(report.url_base).site
            reports.append((site, report.sequence_number or 0, place, letter.digest, mail))
    reader = _Reader(dict(subscriptions), now)
    rows += [reader.take(digest, mail) for *_, digest, mail in sorted(reports, key=lambda item: item[:3])]
    return Read(
        tuple(reader.known[site] for site in sorted(reader.changed)),
        tuple(reader.hints),
        tuple(rows),
        reader.heard,
        frozenset(reader.partial),
    )


def without(subscription: Subscription, reports: Unconfirmed) -> Subscription:
    """The registration where these reports were not taken whole: they count as lost."""
    last = min(subscription.server.sequence_number, min(reports) - 1)
    return replace(subscription, server=replace(subscription.server, sequence_number=last))


def usual_latency(info: RupInfo) -> Span:
    """The latency to ask for where the user names none: a day, or what the server offers nearest to it."""
    if not info.latencies or _DAY.unit in info.latencies:
        return _DAY
    return Span(1, min(info.latencies, key=lambda unit: abs(UNITS_S[unit] - _DAY.seconds)))


def modified(before: Subscription, asked: ModifyPreferences) -> Subscription:
    """The registration after the server took new preferences: what is not named stays, one list replaces the other."""
    preferences = asked.preferences
    exclude = before.preferences.exclude if preferences.exclude is None else preferences.exclude
    include_only = before.preferences.include_only if preferences.include_only is None else preferences.include_only
    server = replace(
        before.server,
        email=asked.new_email or before.server.email,
        latency=preferences.latency or before.server.latency,
    )
    kept = Preferences(
        server.latency, None if preferences.include_only else exclude, None if preferences.exclude else include_only
    )
    return replace(before, server=server, preferences=kept)


def index_of(report: Report | Unreadable, site: str) -> Report | str:
    """An answer to GetIndex of the server of ``site``, or why it is none."""
    if isinstance(report, Unreadable):
        return f"no index: {report.why}"
    if split(report.url_base).site != site:
        return f"the index of another site: {report.url_base}"
    return report


def span_fits(asked: GetIndex, info: RupInfo) -> str | None:
    """Why a server will not tell of so long a time; ``None`` where it may, or does not say."""
    most = info.max_query_span
    if most is None or asked.span.seconds <= most.seconds:
        return None
    return f"the server's index reaches back {most}"
