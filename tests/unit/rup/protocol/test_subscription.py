"""The stored registrations of a robot, and the effect of mails on them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crawler.reasons import MailCode, MailVerdict
from crawler.rup.protocol.forms import ModifyPreferences, Preferences
from crawler.rup.protocol.info import RupInfo
from crawler.rup.protocol.mail import Mail, write_mail
from crawler.rup.protocol.report import Change, ChangeKind, Report
from crawler.rup.protocol.robot import Server
from crawler.rup.protocol.subscription import RawMail, Subscription, modified, read_mails, usual_latency
from crawler.rup.protocol.units import Span

SITE = "http://www.example.org"
NOW = 1_000_000.0
SERVER = Server(SITE, f"{SITE}/cgi", "key", "me@robot.test", Span(1, "day"), NOW - 5000)
KNOWN = Subscription(SERVER, Preferences(Span(1, "day"), ("a", "b")))


def letter(number: int, *paths: str, base: str = SITE) -> RawMail:
    report = Report(number, f"{base}/", tuple(Change(ChangeKind.CHANGE, NOW - 50, path) for path in paths))
    mail = Mail("rup@example.org", "me@robot.test", f"<{number}@x>", NOW - 40, "Changes", report)
    return RawMail(f"m{number}", write_mail(mail))


def test_reports_are_taken_in_the_order_of_their_numbers() -> None:
    read = read_mails([letter(3, "/c"), letter(1, "/a"), letter(2, "/b")], {SITE: KNOWN}, now=NOW)
    (after,) = read.changed
    assert sorted(read.heard[SITE]) == [1, 2, 3]
    assert after.server.sequence_number == 0, "until the server has confirmed it"
    assert [hint.url for hint in read.hints] == [f"{SITE}/a", f"{SITE}/b", f"{SITE}/c"]
    assert [row.verdict for row in read.rows] == [MailVerdict(MailCode.TAKEN)] * 3
    assert after.question == "report 1 arrived after 0"


def test_a_gap_is_noted_with_the_state_that_it_leaves() -> None:
    read = read_mails([letter(4, "/d")], {SITE: KNOWN}, now=NOW)
    (after,) = read.changed
    assert (after.server, after.question) == (SERVER, "report 4 arrived after 0")
    assert [hint.url for hint in read.hints] == [f"{SITE}/d"], "what it says may be true all the same"


def test_a_report_of_a_stranger_is_counted_and_refused() -> None:
    read = read_mails([letter(1, "/a", "/b", base="http://other.test"), RawMail("big", None)], {SITE: KNOWN}, now=NOW)
    assert (read.changed, read.hints) == ((), ())
    assert sorted((row.site, row.changes, row.refused) for row in read.rows) == [(None, 0, 0), (None, 0, 2)]
    assert [str(row.verdict) for row in read.rows] == [
        "not a report: the mail is too large",
        "no registration with http://other.test",
    ]


REPORTS = st.text().map(lambda text: f"Subject: x\n\nSequenceNumber: 1\nURLBase: {SITE}\n\nNew: {text}".encode())


@given(st.lists(st.binary(max_size=300) | REPORTS, max_size=5))
def test_no_mail_raises_and_none_speaks_for_another_site(mails: list[bytes]) -> None:
    read = read_mails([RawMail(str(n), octets) for n, octets in enumerate(mails)], {SITE: KNOWN}, now=NOW)
    assert len(read.rows) == len(mails)
    assert all(hint.url.startswith(f"{SITE}/") for hint in read.hints)
    assert all(len(row.verdict.sentence) <= 200 for row in read.rows)
    assert read_mails([RawMail(str(n), octets) for n, octets in enumerate(mails)], {}, now=NOW).hints == ()


def test_preferences_that_are_not_named_stay_and_a_new_list_replaces_the_other() -> None:
    slower = modified(KNOWN, ModifyPreferences("key", "me@robot.test", None, Preferences(Span(2, "week"))))
    assert (slower.server.latency, slower.preferences.exclude) == (Span(2, "week"), ("a", "b"))
    only = modified(
        KNOWN, ModifyPreferences("key", "me@robot.test", "new@robot.test", Preferences(include_only=("c",)))
    )
    assert (only.server.email, only.server.latency) == ("new@robot.test", Span(1, "day"))
    assert (only.preferences.exclude, only.preferences.include_only) == (None, ("c",))


def test_the_usual_latency_is_a_day_or_the_nearest_unit() -> None:
    cgi = f"{SITE}/cgi"
    assert usual_latency(RupInfo(cgi)) == Span(1, "day")
    assert usual_latency(RupInfo(cgi, latencies=("hour", "day", "week"))) == Span(1, "day")
    assert usual_latency(RupInfo(cgi, latencies=("minute", "hour"))) == Span(1, "hour")
    assert usual_latency(RupInfo(cgi, latencies=("month", "week"))) == Span(1, "week")
