"""The registrations that a robot stores besides :class:`crawler.rup.protocol.robot.Server`, and the effect of mails.

The robot stores a registration before it sends Register, with an empty key. A Register without an answer may have
succeeded, and a second Register could make a second registration.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from crawler.reasons import MailCode, MailVerdict
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

_DAY = Span(1, "day")


@dataclass(frozen=True, slots=True)
class Subscription:
    """A registration: the server, the preferences, and what the robot still has to do."""

    server: Server
    preferences: Preferences = field(default_factory=Preferences)
    question: str = ""  # why the robot must ask the server at once
    lost: str = ""  # why the robot must revisit the whole site, whatever the server's number is
    given_up: str = ""
    unreached: str = ""  # why the last question had no answer

    @property
    def is_unclear(self) -> bool:
        """The robot sent Register and received no answer."""
        return not self.server.key

    @property
    def silent_at(self) -> float:
        """Until then silence means that nothing changed, in seconds since the epoch; 0 if that is not reliable."""
        in_doubt = self.is_unclear or self.given_up or self.unreached or self.question or self.lost
        return 0.0 if in_doubt else silent_at(self.server)


@dataclass(frozen=True, slots=True)
class RawMail:
    """A mail in a mailbox. ``octets`` is ``None`` for a mail that is too large to read."""

    name: str
    octets: bytes | None

    @property
    def digest(self) -> bytes:
        """The SHA-256 of the mail, or of its name if it is too large."""
        return hashlib.sha256(self.name.encode("utf-8", "replace") if self.octets is None else self.octets).digest()


@dataclass(frozen=True, slots=True)
class MailRow:
    """The effect of a mail, for the store."""

    digest: bytes
    site: str | None
    sequence_number: int | None
    verdict: MailVerdict
    changes: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True)
class Read:
    """The effect of several mails: changed registrations, hints, a row for each mail, and the reports of each site."""

    changed: tuple[Subscription, ...]
    hints: tuple[PageHint, ...]
    rows: tuple[MailRow, ...]
    heard: Mapping[str, Unconfirmed]
    partial: frozenset[str]  # sites with reports that could not be read whole


def read_mails(letters: Iterable[RawMail], subscriptions: Mapping[str, Subscription], *, now: float) -> Read:
    """The effect of mails that were not read before; ``subscriptions`` by site.

    Reports of a server are applied in the order of their numbers, so mails in the wrong order are not a gap.
    """
    rows: list[MailRow] = []
    reports: list[tuple[str, int, int, bytes, ReceivedReport]] = []
    for position, letter in enumerate(letters):
        mail = Unreadable("the mail is too large") if letter.octets is None else read_mail(letter.octets)
        if isinstance(mail, Unreadable):
            rows.append(MailRow(letter.digest, None, None, MailVerdict(MailCode.UNREADABLE, mail.why)))
        else:
            site = split(mail.report.url_base).site
            reports.append((site, mail.report.sequence_number or 0, position, letter.digest, mail))
    known, changed, partial = dict(subscriptions), set[str](), set[str]()
    hints, heard = list[PageHint](), dict[str, Unconfirmed]()
    for site, number, _, digest, mail in sorted(reports, key=lambda item: item[:3]):
        report, before = mail.report, known.get(site)
        follows = on_report(None if before is None else before.server, report)
        if before is None or isinstance(follows, IgnoredReport):
            why = follows.why if isinstance(follows, IgnoredReport) else MailVerdict(MailCode.UNREGISTERED, site)
            refused = len(report.changes) if before is None else 0
            rows.append(MailRow(digest, None if before is None else site, report.sequence_number, why, refused=refused))
            continue
        known[site] = replace(before, server=follows.server, question=before.question or follows.why)
        changed.add(site)
        hints += follows.hints
        refused = follows.refused + report.skipped
        rows.append(MailRow(digest, site, number, MailVerdict(MailCode.TAKEN), len(follows.hints), refused))
        if report.skipped:
            partial.add(site)
        received = ReceivedUnder(now if mail.date is None else mail.date, (digest_of(report),))
        heard[site] = joined(heard.get(site, {}), {number: received})
    return Read(tuple(known[site] for site in sorted(changed)), tuple(hints), tuple(rows), heard, frozenset(partial))


def without(subscription: Subscription, reports: Unconfirmed) -> Subscription:
    """The registration if these reports were not read completely: they count as lost."""
    last = min(subscription.server.sequence_number, min(reports) - 1)
    return replace(subscription, server=replace(subscription.server, sequence_number=last))


def usual_latency(info: RupInfo) -> Span:
    """The latency if the user names none: a day, or the offered unit nearest to a day."""
    if not info.latencies or _DAY.unit in info.latencies:
        return _DAY
    return Span(1, min(info.latencies, key=lambda unit: abs(UNITS_S[unit] - _DAY.seconds)))


def modified(before: Subscription, asked: ModifyPreferences) -> Subscription:
    """The registration after the server accepted new preferences.

    Preferences that are not named stay, and a new list replaces the other list.
    """
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
    """The answer to GetIndex of the server of ``site``, or why it is not one."""
    if isinstance(report, Unreadable):
        return f"not an index: {report.why}"
    if split(report.url_base).site != site:
        return f"the index of another site: {report.url_base}"
    return report


def span_fits(asked: GetIndex, info: RupInfo) -> str | None:
    """Why a server refuses a span; ``None`` if it accepts the span, or does not say."""
    most = info.max_query_span
    if most is None or asked.span.seconds <= most.seconds:
        return None
    return f"the server's index reaches back {most}"
