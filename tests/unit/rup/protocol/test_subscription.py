"""Decisions of a robot: the effect of mails, and each failure in section 3.3.3 of the draft."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crawler.reasons import MailCode, MailVerdict
from crawler.rup.protocol import subscription as robot
from crawler.rup.protocol.forms import Preferences
from crawler.rup.protocol.info import FoundInfo, RupInfo
from crawler.rup.protocol.mail import Mail, write_mail
from crawler.rup.protocol.report import Change, ChangeKind, Report
from crawler.rup.protocol.subscription import Heard, OpenedMail, RawMail, Subscription, open_mail, usual_latency
from crawler.rup.protocol.units import MAX_GRACE_S, MIN_GRACE_S, Span, grace_s

DAY = 86_400.0
SITE = "http://a.example"
KNOWN = Subscription(
    "r@b.example", "KEY", Span(1, "day"), 0.0, exclude=("a", "b"), site=SITE, cgi=f"{SITE}/rup",
    units=("hour", "day", "week"), max_query_span=Span(30, "day"), sequence_number=5, good_until=10 * DAY,
    heard_at=10 * DAY,
)  # fmt: skip
ANYTHING = Preferences()
INFO = RupInfo(f"{SITE}/rup", latencies=("day",), exclude=("/a",))


def opened(number: int | None, *paths: str, base: str = f"{SITE}/", name: str = "<1@x>") -> OpenedMail:
    report = Report(number, base, tuple(Change(ChangeKind.CHANGE, 50.0, path) for path in paths))
    octets = write_mail(Mail("rup@a.example", "r@b.example", name, 60.0, "Changes", report))
    return open_mail(RawMail("m", octets if number is not None else octets.replace(b"Sequence", b"X")), {SITE})


def heard(*numbers: int, whole: bool = True) -> Heard:
    return dict.fromkeys(numbers, whole)


# --- mail -----------------------------------------------------------------------------------------


def test_a_report_is_a_set_of_hints_and_paths_of_other_sites_are_refused() -> None:
    mail = opened(6, "/a", "b.html", f"{SITE}/c", "/a", "http://other.example/", "//other.example/x", "mailto:a")
    assert [hint.url for hint in mail.hints] == [f"{SITE}/{path}" for path in ("b.html", "c", "a")]
    assert (mail.row.site, mail.row.sequence_number, mail.row.changes, mail.row.refused) == (SITE, 6, 3, 3)
    assert mail.row.verdict == MailVerdict(MailCode.TAKEN)


def test_mails_that_are_no_report_of_a_server_are_counted() -> None:
    mails = [
        open_mail(RawMail("big", None), {SITE}),
        opened(1, "/a", "/b", base="https://a.example/"),
        opened(0, "/a"),
        opened(None, "/a"),
    ]
    assert [mail.hints for mail in mails] == [()] * 4
    assert [(mail.row.site, mail.row.changes, mail.row.refused, str(mail.row.verdict)) for mail in mails] == [
        (None, 0, 0, "not a report: the mail is too large"),
        (None, 0, 2, "no registration with https://a.example"),
        (SITE, 0, 0, "a report without a sequence number"),
        (SITE, 0, 0, "a report without a sequence number"),
    ]


def test_copies_of_a_mail_have_one_digest() -> None:
    assert opened(6, "/a").row.digest == opened(6, "/a").row.digest
    others = [opened(6, "/b"), opened(7, "/a"), opened(6, "/a", name="<2@x>")]
    assert len({mail.row.digest for mail in [opened(6, "/a"), *others]}) == 4


def test_reports_make_the_robot_ask_and_count_when_the_server_has_confirmed_them() -> None:
    after = robot.noticed(KNOWN, heard(8, 6))
    assert (after.sequence_number, after.question) == (5, "report 6 arrived after 5")
    assert robot.noticed(KNOWN, heard(4)).question == "report 4 arrived late or was changed; 5 is known"
    assert robot.noticed(after, heard(9)).question == after.question
    assert robot.confirmed(KNOWN, 6, now=11 * DAY).sequence_number == 6


def test_a_report_that_could_not_be_read_whole_counts_as_lost() -> None:
    assert robot.joined(heard(6, 7, whole=False), heard(6, 8)) == {6: False, 7: False, 8: True}
    assert robot.missing(KNOWN, 6, heard(6, whole=False))
    assert robot.noticed(KNOWN, heard(4, whole=False)).sequence_number == 3


# --- questions ------------------------------------------------------------------------------------


def test_the_robot_notices_a_gap_and_a_forged_number() -> None:
    for numbers in ((8,), (6, 8), (6, 7)):
        assert robot.missing(KNOWN, 8, heard(*numbers)) == "some of the reports 6 to 8 did not arrive"
    assert robot.index_span(KNOWN, now=11 * DAY) == Span(25, "hour")
    done = robot.recovered(KNOWN, 8, now=11 * DAY)
    assert robot.missing(done, 9, heard(9)) == ""
    assert robot.missing(KNOWN, 5, heard(6, 7, 999)) == ""
    assert robot.missing(KNOWN, 6, heard(6, 7)) == ""
    assert robot.missing(KNOWN, 10**14, heard(6, 7)) != "", "without counting that far"
    assert robot.missing(KNOWN, 0, {}) == "the server counts 0, after 5: it has started again"


def test_mails_cause_requests_at_a_bounded_rate() -> None:
    asked = replace(KNOWN, question="mail")
    assert robot.due_question(asked, now=10 * DAY + robot.MAX_BETWEEN_S - 1) == ""
    assert robot.due_question(asked, now=10 * DAY + robot.MAX_BETWEEN_S) == "mail"
    assert robot.due_question(replace(asked, latency=Span(1, "minute")), now=10 * DAY + 15) == "mail"
    fresh = replace(asked, sequence_number=0, registered_at=10 * DAY)
    assert robot.due_question(fresh, now=10 * DAY) == "mail", "the first report is to be answered"
    assert robot.due_question(replace(fresh, heard_at=11 * DAY), now=11 * DAY) == ""


def test_every_change_before_the_last_answer_is_known_by_a_confirmed_report() -> None:
    asked = replace(KNOWN, heard_at=11 * DAY)
    assert robot.confirmed(asked, 6, now=12 * DAY).good_until == 11 * DAY
    unreached = robot.unanswered(KNOWN, "no answer", now=11 * DAY)
    assert robot.confirmed(unreached, 6, now=12 * DAY).good_until == 10 * DAY, "the server has not counted then"


def test_requests_grow_rarer_while_the_server_is_silent() -> None:
    known, pauses = KNOWN, list[float]()
    assert known.ask_at == 10 * DAY + 1.25 * DAY
    for _ in range(6):
        now = known.ask_at
        assert robot.due_question(known, now=now - 1) == ""
        assert robot.due_question(known, now=now) == "no report for 1-day and 21600 s more"
        known = robot.confirmed(known, 5, now=now)
        pauses.append((known.ask_at - now) / DAY)
    assert pauses == [2.5, 5, 7, 7, 7, 7]
    assert robot.confirmed(known, 6, now=now).ask_at == now + 1.25 * DAY
    mail = replace(known, question="mail")
    assert robot.confirmed(mail, 5, now=now).quiet == known.quiet, "mail is no silence"


def test_a_server_that_is_gone_is_asked_ever_more_seldom_and_its_silence_means_nothing() -> None:
    once = robot.unanswered(KNOWN, "no answer", now=12 * DAY)
    twice = robot.unanswered(once, "no answer", now=12 * DAY)
    assert KNOWN.ask_at < once.ask_at < twice.ask_at
    assert (KNOWN.silent_at, once.silent_at) == (KNOWN.ask_at, 0)
    lost = replace(KNOWN, lost="all")
    assert robot.due_question(lost, now=10 * DAY) == "all"
    assert robot.due_question(replace(lost, quiet=1), now=10 * DAY) == "", "asked later"


@pytest.mark.parametrize("latency", [Span(1, "second"), Span(1, "minute"), Span(1, "year")])
def test_grace_is_bounded(latency: Span) -> None:
    assert MIN_GRACE_S <= grace_s(latency) <= MAX_GRACE_S


def test_the_index_may_not_be_enough() -> None:
    assert robot.index_span(KNOWN, now=41 * DAY) == "the server's index reaches back only 30-day"
    assert robot.index_span(replace(KNOWN, max_query_span=None), now=11 * DAY) == "the server has no index"
    assert robot.index_span(replace(KNOWN, units=("month",), max_query_span=Span(3, "day")), now=11 * DAY) == Span(
        3, "day"
    )


# --- preferences ----------------------------------------------------------------------------------


def test_a_robot_registers_only_if_it_knows_the_authentication_and_the_server_accepts_its_preferences() -> None:
    def refusal(wanted: Preferences = ANYTHING, info: RupInfo = INFO, *, elsewhere: bool = False) -> str | None:
        return robot.may_register(FoundInfo(f"{SITE}/rupinfo.txt", 1.0, info), wanted, elsewhere=elsewhere)

    assert refusal(Preferences(latency=Span(2, "day"), exclude=("/a",))) is None
    assert refusal(info=replace(INFO, authentifier="kerberos")) is not None
    assert refusal(info=replace(INFO, cgi="http://b.example/rup")) is not None
    assert refusal(info=replace(INFO, cgi="http://b.example/rup"), elsewhere=True) is None
    assert refusal(Preferences(latency=Span(1, "hour"))) is not None
    assert refusal(Preferences(exclude=("/b",))) is not None
    assert refusal(Preferences(include_only=("/a",))) is not None
    with pytest.raises(ValueError, match="not both"):
        Preferences(exclude=("/a",), include_only=("/a",))


def test_preferences_that_are_not_named_stay_and_a_new_list_replaces_the_other() -> None:
    slower = KNOWN.with_preferences(Preferences(latency=Span(2, "week")))
    assert (slower.latency, slower.exclude, slower.include_only) == (Span(2, "week"), ("a", "b"), ())
    only = KNOWN.with_preferences(Preferences(include_only=("c",)))
    assert (only.latency, only.exclude, only.include_only) == (Span(1, "day"), (), ("c",))
    assert KNOWN.with_preferences(Preferences(exclude=())).exclude == ()


def test_the_usual_latency_is_a_day_or_the_nearest_unit() -> None:
    cgi = f"{SITE}/cgi"
    assert usual_latency(RupInfo(cgi)) == Span(1, "day")
    assert usual_latency(RupInfo(cgi, latencies=("hour", "day", "week"))) == Span(1, "day")
    assert usual_latency(RupInfo(cgi, latencies=("minute", "hour"))) == Span(1, "hour")
    assert usual_latency(RupInfo(cgi, latencies=("month", "week"))) == Span(1, "week")
