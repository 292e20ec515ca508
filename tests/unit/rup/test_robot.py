"""What a robot concludes: each failure of the draft's section 3.3.3."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crawler.rup import robot
from crawler.rup.info import RupInfo
from crawler.rup.report import Change, Kind, Report
from crawler.rup.robot import AskIndex, AskNumber, GiveUp, Heard, Ignored, RegisterAgain, Reindex, Server, Wait
from crawler.rup.units import Span

DAY = 86_400.0
SERVER = Server(
    "http://a.example", "http://a.example/rup", "KEY", "r@b.example", Span(1, "day"), 0.0,
    units=("hour", "day", "week"), max_query_span=Span(30, "day"), sequence_number=5, good_until=10 * DAY,
    heard_at=10 * DAY,
)  # fmt: skip
INFO = RupInfo("http://a.example/rup", latencies=("day",), exclude=("/a",))
URL = "http://a.example/rupinfo.txt"


def report(number: int | None, *paths: str, base: str = "http://a.example/") -> Report:
    return Report(number, base, tuple(Change(Kind.CHANGE, 5.0, path) for path in paths))


def heard(server: Server, said: Report, now: float = 11 * DAY) -> Heard:
    follows = robot.on_report(server, said, sent_at=None, now=now)
    assert isinstance(follows, Heard)
    return follows


def test_the_next_report_is_taken() -> None:
    follows = heard(SERVER, report(6, "/a", "b.html", "http://a.example/c", "/a"))
    assert [hint.url for hint in follows.hints] == [f"http://a.example/{path}" for path in ("b.html", "c", "a")]
    assert follows.server.sequence_number == 6
    assert follows.next == Wait(11 * DAY + DAY + DAY / 4)


@pytest.mark.parametrize(
    "said",
    [
        report(4, "/a"),
        report(None, "/a"),
        report(0, "/a"),
        report(6, "/a", base="http://other.example/"),
        report(6, "/a", base="https://a.example/"),
    ],
)
def test_old_reports_and_those_of_others_are_ignored(said: Report) -> None:
    assert isinstance(robot.on_report(SERVER, said, sent_at=None, now=11 * DAY), Ignored)
    assert isinstance(robot.on_report(None, said, sent_at=None, now=11 * DAY), Ignored)


def test_a_report_that_comes_twice_is_ignored() -> None:
    once = heard(SERVER, report(6, "/a")).server
    assert isinstance(robot.on_report(once, report(6, "/a"), sent_at=None, now=12 * DAY), Ignored)


def test_paths_of_other_sites_are_refused_and_counted() -> None:
    follows = heard(SERVER, report(6, "http://other.example/", "//other.example/x", "mailto:a", "/a"))
    assert [hint.url for hint in follows.hints] == ["http://a.example/a"]
    assert follows.refused == 3


def test_a_gap_is_asked_about_and_what_was_lost_is_fetched() -> None:
    follows = heard(SERVER, report(8, "/a"))
    assert isinstance(follows.next, AskNumber)
    assert follows.server.sequence_number == 5
    server, then = robot.on_number(follows.server, 8, now=11 * DAY)
    assert then == AskIndex(Span(25, "hour"), "reports 6 to 8 were lost")
    done = robot.recovered(server, 8, now=11 * DAY)
    assert isinstance(robot.on_report(done, report(7, "/x"), sent_at=None, now=11 * DAY), Ignored)
    assert heard(done, report(9, "/a")).server.sequence_number == 9


def test_a_forged_number_is_found_out() -> None:
    follows = heard(SERVER, report(999, "/a"))
    server, then = robot.on_number(follows.server, 5, now=11 * DAY)
    assert isinstance(then, Wait)
    assert heard(server, report(6, "/b")).server.sequence_number == 6


def test_silence_makes_it_ask_ever_more_seldom() -> None:
    assert robot.on_time(SERVER, now=11 * DAY) == Wait(10 * DAY + 1.25 * DAY)
    server, pauses = SERVER, []
    now = robot.silent_at(server)
    for _ in range(6):
        assert isinstance(robot.on_time(server, now=now), AskNumber)
        server, then = robot.on_number(server, 5, now=now)
        assert isinstance(then, Wait)
        pauses.append((then.until - now) / DAY)
        now = then.until
    assert pauses == [2.5, 5, 7, 7, 7, 7]
    assert robot.silent_at(heard(server, report(6), now).server) == now + 1.25 * DAY


@pytest.mark.parametrize("latency", [Span(1, "second"), Span(1, "minute"), Span(1, "year")])
def test_grace_is_bounded(latency: Span) -> None:
    assert robot.MIN_GRACE_S <= robot.grace_s(latency) <= robot.MAX_GRACE_S


def test_what_the_index_cannot_give_is_read_anew() -> None:
    _, then = robot.on_number(SERVER, 6, now=41 * DAY)
    assert isinstance(then, Reindex)
    _, then = robot.on_number(replace(SERVER, max_query_span=None), 6, now=11 * DAY)
    assert isinstance(then, Reindex)
    _, then = robot.on_number(replace(SERVER, units=("month",), max_query_span=Span(3, "day")), 6, now=11 * DAY)
    assert isinstance(then, AskIndex)
    assert then.span == Span(3, "day")


def test_a_server_that_begins_anew_is_recovered_from() -> None:
    server, then = robot.on_number(SERVER, 0, now=11 * DAY)
    assert isinstance(then, AskIndex)
    assert heard(robot.recovered(server, 0, now=11 * DAY), report(1, "/a")).server.sequence_number == 1


def test_a_mail_delayed_does_not_shorten_what_is_asked_for_later() -> None:
    follows = robot.on_report(SERVER, report(6), sent_at=10.5 * DAY, now=15 * DAY)
    assert isinstance(follows, Heard)
    assert follows.server.good_until == 10.5 * DAY
    forged = robot.on_report(SERVER, report(6), sent_at=99 * DAY, now=15 * DAY)
    assert isinstance(forged, Heard)
    assert forged.server.good_until == 15 * DAY


def test_a_key_that_is_lost_leads_to_one_new_registration() -> None:
    once, then = robot.on_refused(SERVER, now=11 * DAY)
    assert isinstance(then, RegisterAgain)
    _, then = robot.on_refused(once, now=12 * DAY)
    assert isinstance(then, GiveUp)
    answered, _ = robot.on_number(once, 5, now=12 * DAY)
    assert isinstance(robot.on_refused(answered, now=13 * DAY)[1], RegisterAgain)


def test_a_server_that_is_gone_is_asked_ever_more_seldom() -> None:
    once, then = robot.on_unreachable(SERVER, now=12 * DAY)
    _, later = robot.on_unreachable(once, now=12 * DAY)
    assert isinstance(then, Wait)
    assert isinstance(later, Wait)
    assert then.until < later.until


def test_a_robot_registers_only_where_it_understands_and_is_understood() -> None:
    assert robot.may_register(INFO, URL, latency=Span(2, "day"), exclude=["/a"]) is None
    assert robot.may_register(replace(INFO, authentifier="kerberos"), URL) is not None
    assert robot.may_register(replace(INFO, cgi="http://b.example/rup"), URL) is not None
    assert robot.may_register(replace(INFO, cgi="http://b.example/rup"), URL, elsewhere=True) is None
    assert robot.may_register(INFO, URL, latency=Span(1, "hour")) is not None
    assert robot.may_register(INFO, URL, exclude=["/b"]) is not None
    assert robot.may_register(INFO, URL, include_only=["/a"]) is not None
    assert robot.may_register(INFO, URL, exclude=["/a"], include_only=["/a"]) is not None
