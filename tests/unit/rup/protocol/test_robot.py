"""Decisions of a robot: each failure in section 3.3.3 of the draft."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crawler.rup.protocol import robot
from crawler.rup.protocol.info import RupInfo
from crawler.rup.protocol.report import Change, ChangeKind, Report
from crawler.rup.protocol.robot import (
    AcceptedReport,
    AskIndex,
    AskNumber,
    GiveUp,
    IgnoredReport,
    ReceivedUnder,
    RegisterAgain,
    Reindex,
    Server,
    WaitForReport,
)
from crawler.rup.protocol.units import Span

DAY = 86_400.0
SERVER = Server(
    "http://a.example", "http://a.example/rup", "KEY", "r@b.example", Span(1, "day"), 0.0,
    units=("hour", "day", "week"), max_query_span=Span(30, "day"), sequence_number=5, good_until=10 * DAY,
    heard_at=10 * DAY,
)  # fmt: skip
INFO = RupInfo("http://a.example/rup", latencies=("day",), exclude=("/a",))
URL = "http://a.example/rupinfo.txt"


def report(number: int | None, *paths: str, base: str = "http://a.example/") -> Report:
    return Report(number, base, tuple(Change(ChangeKind.CHANGE, 5.0, path) for path in paths))


def taken(server: Server, said: Report) -> AcceptedReport:
    follows = robot.on_report(server, said)
    assert isinstance(follows, AcceptedReport)
    return follows


def came(*reports: Report, sent_at: float = 10.5 * DAY) -> dict[int, ReceivedUnder]:
    return {said.sequence_number or 0: ReceivedUnder(sent_at, (robot.digest_of(said),)) for said in reports}


def test_the_next_report_is_taken_and_counts_once_the_server_says_so() -> None:
    said = report(6, "/a", "b.html", "http://a.example/c", "/a")
    follows = taken(SERVER, said)
    assert [hint.url for hint in follows.hints] == [f"http://a.example/{path}" for path in ("b.html", "c", "a")]
    assert (follows.server, follows.why) == (SERVER, "report 6 arrived after 5")
    server, then = robot.on_number(SERVER, 6, came(said), now=11 * DAY)
    assert server.sequence_number == 6
    assert then == WaitForReport(11 * DAY + DAY + DAY / 4)
    assert isinstance(robot.on_report(server, said), IgnoredReport)


@pytest.mark.parametrize(
    "said",
    [
        report(None, "/a"),
        report(0, "/a"),
        report(6, "/a", base="http://other.example/"),
        report(6, "/a", base="https://a.example/"),
    ],
)
def test_reports_without_a_number_and_those_of_others_are_ignored(said: Report) -> None:
    assert isinstance(robot.on_report(SERVER, said), IgnoredReport)
    assert isinstance(robot.on_report(None, said), IgnoredReport)


def test_a_changed_report_under_an_old_number_counts_once() -> None:
    once = taken(SERVER, report(4, "/a"))
    assert [hint.url for hint in once.hints] == ["http://a.example/a"]
    assert isinstance(robot.on_report(once.server, report(4, "/a")), IgnoredReport)
    assert taken(once.server, report(4, "/b")).hints


def test_paths_of_other_sites_are_refused_and_counted() -> None:
    follows = taken(SERVER, report(6, "http://other.example/", "//other.example/x", "mailto:a", "/a"))
    assert [hint.url for hint in follows.hints] == ["http://a.example/a"]
    assert follows.refused == 3


def test_the_robot_asks_about_a_gap_and_recovers_lost_changes() -> None:
    for reports in ((report(8),), (report(6), report(8)), (report(6), report(7))):
        server, then = robot.on_number(SERVER, 8, came(*reports), now=11 * DAY)
        assert then == AskIndex(Span(25, "hour"), "some of the reports 6 to 8 did not arrive")
        assert server.sequence_number == 5
    done = robot.recovered(server, 8, now=11 * DAY)
    assert robot.on_number(done, 9, came(report(9)), now=12 * DAY)[0].sequence_number == 9


def test_a_forged_number_is_found_out() -> None:
    server, then = robot.on_number(SERVER, 5, came(report(6), report(7), report(999)), now=11 * DAY)
    assert isinstance(then, WaitForReport)
    assert server.sequence_number == 5
    server, _ = robot.on_number(SERVER, 6, came(report(6), report(7)), now=11 * DAY)
    assert server.sequence_number == 6


def test_mails_cause_requests_at_a_bounded_rate() -> None:
    assert robot.ask_at(SERVER) == 10 * DAY + robot.MAX_BETWEEN_S
    assert robot.ask_at(replace(SERVER, latency=Span(1, "minute"))) == 10 * DAY + 15
    fresh = replace(SERVER, sequence_number=0, registered_at=10 * DAY)
    assert robot.ask_at(fresh) == 0, "the first report is to be answered"
    assert robot.ask_at(replace(fresh, heard_at=11 * DAY)) > 11 * DAY


def test_the_date_of_a_mail_counts_only_up_to_the_last_answer() -> None:
    for sent_at, good_until in ((10.5, 10), (99, 10), (9, 10), (9.5, 10)):
        server, _ = robot.on_number(SERVER, 6, came(report(6), sent_at=sent_at * DAY), now=12 * DAY)
        assert server.good_until == good_until * DAY
    asked = replace(SERVER, heard_at=11 * DAY)
    assert robot.on_number(asked, 6, came(report(6), sent_at=99 * DAY), now=12 * DAY)[0].good_until == 11 * DAY
    assert robot.on_number(asked, 6, came(report(6)), now=12 * DAY)[0].good_until == 10.5 * DAY


def test_requests_grow_rarer_while_the_server_is_silent() -> None:
    assert robot.on_time(SERVER, now=11 * DAY) == WaitForReport(10 * DAY + 1.25 * DAY)
    server, pauses = SERVER, []
    now = robot.silent_at(server)
    for _ in range(6):
        assert isinstance(robot.on_time(server, now=now), AskNumber)
        server, then = robot.on_number(server, 5, {}, now=now)
        assert isinstance(then, WaitForReport)
        pauses.append((then.until - now) / DAY)
        now = then.until
    assert pauses == [2.5, 5, 7, 7, 7, 7]
    assert robot.silent_at(robot.on_number(server, 6, came(report(6)), now=now)[0]) == now + 1.25 * DAY


@pytest.mark.parametrize("latency", [Span(1, "second"), Span(1, "minute"), Span(1, "year")])
def test_grace_is_bounded(latency: Span) -> None:
    assert robot.MIN_GRACE_S <= robot.grace_s(latency) <= robot.MAX_GRACE_S


def test_the_site_is_crawled_again_if_the_index_is_not_enough() -> None:
    _, then = robot.on_number(SERVER, 6, {}, now=41 * DAY)
    assert isinstance(then, Reindex)
    _, then = robot.on_number(replace(SERVER, max_query_span=None), 6, {}, now=11 * DAY)
    assert isinstance(then, Reindex)
    _, then = robot.on_number(replace(SERVER, units=("month",), max_query_span=Span(3, "day")), 6, {}, now=11 * DAY)
    assert isinstance(then, AskIndex)
    assert then.span == Span(3, "day")


def test_a_server_that_begins_anew_is_recovered_from() -> None:
    server, then = robot.on_number(SERVER, 0, {}, now=11 * DAY)
    assert isinstance(then, AskIndex)
    anew = robot.recovered(server, 0, now=11 * DAY)
    assert robot.on_number(anew, 1, came(report(1)), now=12 * DAY)[0].sequence_number == 1


def test_a_key_that_is_lost_leads_to_one_new_registration() -> None:
    once, then = robot.on_refused(SERVER, now=11 * DAY)
    assert isinstance(then, RegisterAgain)
    _, then = robot.on_refused(once, now=12 * DAY)
    assert isinstance(then, GiveUp)
    answered, _ = robot.on_number(once, 5, {}, now=12 * DAY)
    assert isinstance(robot.on_refused(answered, now=13 * DAY)[1], RegisterAgain)


def test_a_server_that_is_gone_is_asked_ever_more_seldom() -> None:
    once, then = robot.on_unreachable(SERVER, now=12 * DAY)
    _, later = robot.on_unreachable(once, now=12 * DAY)
    assert isinstance(then, WaitForReport)
    assert isinstance(later, WaitForReport)
    assert then.until < later.until


def test_a_robot_registers_only_if_it_knows_the_authentication_and_the_server_accepts_its_preferences() -> None:
    assert robot.may_register(INFO, URL, latency=Span(2, "day"), exclude=["/a"]) is None
    assert robot.may_register(replace(INFO, authentifier="kerberos"), URL) is not None
    assert robot.may_register(replace(INFO, cgi="http://b.example/rup"), URL) is not None
    assert robot.may_register(replace(INFO, cgi="http://b.example/rup"), URL, elsewhere=True) is None
    assert robot.may_register(INFO, URL, latency=Span(1, "hour")) is not None
    assert robot.may_register(INFO, URL, exclude=["/b"]) is not None
    assert robot.may_register(INFO, URL, include_only=["/a"]) is not None
    assert robot.may_register(INFO, URL, exclude=["/a"], include_only=["/a"]) is not None
