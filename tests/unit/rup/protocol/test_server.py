"""Answers of a server to each action, and when a report is due."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import pytest

from crawler.rup.protocol.answers import read_key, read_sequence_number
from crawler.rup.protocol.forms import (
    BadForm,
    GetIndex,
    GetSequenceNumber,
    Leave,
    ModifyPreferences,
    Register,
    RupRequest,
    Unregister,
    read_form,
    read_multipart,
)
from crawler.rup.protocol.patterns import wanted
from crawler.rup.protocol.report import Change, ChangeKind, Report, read_report
from crawler.rup.protocol.server import (
    Client,
    FormAnswer,
    Known,
    Registration,
    ServerOffer,
    answer_index,
    decide,
    due_at,
    ended,
    may_report,
    stale_at,
)
from crawler.rup.protocol.units import Span
from crawler.rup.server.responder import RateLimiter, client_network

OFFER = ServerOffer("http://a.example/rup", "http://a.example/", ("hour", "day"), Span(30, "day"))
ROBOT = Registration("r@b.example", "KEY", Span(1, "day"), 1000.0, client="192.0.2.1", reported_to=7)
DAY = 86_400


def ask(asked: RupRequest | BadForm, known: Known | None = None) -> tuple[FormAnswer, tuple[Registration, ...]]:
    client = Client("192.0.2.1", "indie")
    return decide(asked, known or Known(), client, OFFER, now=5000.0, new_key="NEW", new_token="SECRET")


def form(**fields: str) -> RupRequest | BadForm:
    return read_form(fields.items())


def test_a_robot_registers() -> None:
    exclude = ("^/tmp/", r"\.gif$")
    answer, effect = ask(Register("r@b.example", latency=Span(2, "hour"), exclude=exclude), Known(log_end=42))
    assert answer.status == 200
    assert "\nRegistrationKey: NEW\n" in answer.html
    assert read_key(answer.html.encode()) == "NEW"
    wanted = Registration(
        "r@b.example",
        "NEW",
        Span(2, "hour"),
        5000.0,
        exclude,
        client="192.0.2.1",
        agent="indie",
        reported_to=42,
        token="SECRET",
    )
    assert effect == (wanted,)


def test_the_default_latency_is_a_day() -> None:
    _, (registration,) = ask(Register("r@b.example"))
    assert registration.latency == Span(1, "day")


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        (400, {}),
        (400, {"Action": "Register"}),
        (400, {"Action": "Register", "RobotEmail": "nobody"}),
        (400, {"Action": "Register", "RobotEmail": "a@b\r\nBcc: c@d"}),
        (400, {"Action": "Register", "RobotEmail": "a@b", "Latency": "1-month"}),
        (400, {"Action": "Register", "RobotEmail": "a@b", "Latency": "0-day"}),
        (400, {"Action": "Register", "RobotEmail": "a@b", "Latency": "400-day"}),
        (400, {"Action": "Register", "RobotEmail": "a@b", "Latency": "soon"}),
        (400, {"Action": "Register", "RobotEmail": "a@b", "Exclude": "/a", "IncludeOnly": "/b"}),
        (400, {"Action": "Register", "RobotEmail": "a@b", "Exclude": "("}),
        (400, {"Action": "Register", "RobotEmail": "a@b", "Exclude": "(?=a)"}),
        (400, {"Action": "Register", "RobotEmail": "a@b", "Exclude": "((a{50}){10}){2}b{900}c{900}"}),
        (400, {"Action": "Register", "RobotEmail": "a@b", "Exclude": "/a " * 21}),
        (400, {"Action": "Register", "RobotEmail": "a@b", "Exclude": "a" * 201}),
        (400, {"Action": "Unregister", "RegistrationKey": "x", "RegisteredRobotEmail": "a@b"}),
        (400, {"Action": "GetSequenceNumber", "RegistrationKey": "x"}),
        (400, {"Action": "GetIndex"}),
        (400, {"Action": "GetIndex", "Span": "many"}),
        (501, {"Action": "Authenticate"}),
    ],
)
def test_wrong_requests_get_the_status_of_the_draft(status: int, fields: dict[str, str]) -> None:
    answer, effect = ask(form(**fields))
    assert (answer.status, effect) == (status, ())
    assert "Error: " in answer.html


def test_received_text_is_escaped() -> None:
    answer, _ = ask(form(Action="<script>alert(1)</script>"))
    assert "<script>" not in answer.html


def test_registrations_are_limited() -> None:
    for full in (Known(registrations=10_000), Known(registrations_of_client=100)):
        answer, effect = ask(Register("r@b.example"), full)
        assert (answer.status, effect) == (503, ())
        assert answer.retry_after_s is not None
    assert ask(Register("r@b.example"), Known(replace(ROBOT, confirmed=True)))[0].status == 400


def test_a_robot_that_never_answered_may_register_again_but_is_mailed_no_more_for_it() -> None:
    before = replace(ROBOT, reported_at=2000.0, token="OLD")
    _, (registration,) = ask(Register("r@b.example"), Known(before, log_end=9))
    assert (registration.key, registration.token) == ("NEW", "OLD")
    assert not may_report(registration)


@pytest.mark.parametrize(
    "asked",
    [
        Unregister("WRONG", "r@b.example"),
        GetSequenceNumber("KEY2", "r@b.example"),
        GetSequenceNumber("", "r@b.example"),
        ModifyPreferences("\ud800", "r@b.example", latency=Span(1, "hour")),
    ],
)
def test_a_wrong_key_changes_nothing_and_tells_nothing(asked: RupRequest) -> None:
    with_robot, effect = ask(asked, Known(ROBOT))
    without, _ = ask(asked, Known())
    assert effect == ()
    assert with_robot.status == 400
    assert with_robot == without == ask(asked, Known(ended(ROBOT)))[0]


def test_the_number_is_of_the_last_report_that_left() -> None:
    known = Known(replace(ROBOT, sequence_number=7), unsent=2)
    answer, effect = ask(GetSequenceNumber("KEY", "r@b.example"), known)
    assert "\nSequenceNumber=5\n" in answer.html
    assert read_sequence_number(answer.html.encode()) == 5
    assert effect == ()


def test_a_signed_request_confirms_an_address_once_a_report_to_it_has_left() -> None:
    asks: list[GetSequenceNumber | ModifyPreferences] = [
        GetSequenceNumber("KEY", "r@b.example"),
        ModifyPreferences("KEY", "r@b.example"),
    ]
    for asked in asks:
        for before in (ROBOT, replace(ROBOT, reported_at=2000.0, sequence_number=1)):
            _, effect = ask(asked, Known(before))
            assert effect in ((), (before,))
        taken = replace(ROBOT, reported_at=2000.0, accepted_at=2001.0)
        assert ask(asked, Known(taken))[1] == (replace(taken, confirmed=True),)


def test_the_link_to_leave_shows_a_button_and_the_button_leaves() -> None:
    link, button = form(Action="Leave", Token="SECRET"), Leave("SECRET", "One-Click")
    assert form(**{"Action": "Leave", "Token": "SECRET", "List-Unsubscribe": "One-Click"}) == button
    assert isinstance(link, Leave)
    answer, effect = ask(link, Known(ROBOT))
    assert (answer.status, effect) == (200, ())
    assert '<button name="List-Unsubscribe" value="One-Click">' in answer.html
    [left] = ask(button, Known(replace(ROBOT, reported_at=2000.0, accepted_at=2001.0, confirmed=True)))[1]
    assert (left.has_ended, left.reported_at, left.accepted_at) == (True, 5000.0, None)
    [again] = ask(Register("r@b.example"), Known(left))[1]
    assert not may_report(again)
    assert ask(GetSequenceNumber("NEW", "r@b.example"), Known(again))[1] == (), "no signed request confirms it"
    assert (ask(button)[0].status, ask(button)[1]) == (200, ())


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (b'--X\r\nContent-Disposition: form-data; name="Action"\r\n\r\nGetIndex\r\n--X\r\n'
         b'Content-Disposition: form-data; name="Span"\r\n\r\n1-day\r\n--X--\r\n',
         [("Action", "GetIndex"), ("Span", "1-day")]),
        (b'--X\r\nContent-Disposition: form-data; name="a"; filename="b"\r\n\r\nc\r\n--X--', []),
        (b'--X\r\nContent-Type: multipart/mixed; boundary=Y\r\n\r\n--Y\r\n\r\na\r\n--Y--\r\n--X--', []),
        (b"--X--", []), (b"", []), (b"\x00\xff", []), (b"--X\r\n--X\r\n" * 99, []),
    ],
)  # fmt: skip
def test_forms_in_parts_are_read(body: bytes, fields: list[tuple[str, str]]) -> None:
    assert read_multipart("multipart/form-data; boundary=X", body) == fields
    assert read_multipart("multipart/form-data", body) == []


def test_an_address_that_had_mail_under_another_registration_gets_no_first_report_again() -> None:
    past = ended(replace(ROBOT, reported_at=2000.0, accepted_at=2001.0))
    answer, (registration,) = ask(Register("r@b.example"), Known(past))
    assert "address now: " in answer.html
    assert not may_report(registration)
    assert (registration.accepted_at, registration.token) == (2001.0, "SECRET")
    known = Known(replace(ROBOT, confirmed=True), replace(past, email="new@b.example"))
    _, (_, moved) = ask(ModifyPreferences("KEY", "r@b.example", "new@b.example"), known)
    assert not may_report(moved)
    never = ended(replace(ROBOT, reported_at=2000.0))
    assert may_report(ask(Register("r@b.example"), Known(never))[1][0]), "its report did not leave"


def test_modify_keeps_preferences_that_are_not_named() -> None:
    robot = replace(ROBOT, exclude=("/a",), sequence_number=3, confirmed=True)
    changes: list[tuple[dict[str, Any], Registration]] = [
        ({}, robot),
        ({"latency": Span(3, "hour")}, replace(robot, latency=Span(3, "hour"))),
        ({"exclude": ()}, replace(robot, exclude=())),
        ({"include_only": ("/b",)}, replace(robot, exclude=(), include_only=("/b",))),
    ]
    for asked, changed in changes:
        answer, effect = ask(ModifyPreferences("KEY", "r@b.example", **asked), Known(robot))
        assert answer.status == 200
        assert effect == (changed,)


def test_a_new_address_must_be_confirmed() -> None:
    robot = replace(ROBOT, confirmed=True, reported_at=3000.0, accepted_at=3001.0, token="OLD")
    _, effect = ask(ModifyPreferences("KEY", "r@b.example", "new@b.example"), Known(robot))
    moved = replace(
        robot, email="new@b.example", registered_at=5000.0, confirmed=False, reported_at=None, accepted_at=None,
        token="SECRET",
    )  # fmt: skip
    assert effect == (ended(robot), moved)
    answer, effect = ask(ModifyPreferences("KEY", "r@b.example", "x@b.example"), Known(robot, other=ROBOT))
    assert (answer.status, effect) == (400, ())


def test_a_robot_unregisters() -> None:
    answer, effect = ask(Unregister("KEY", "r@b.example"), Known(ROBOT))
    assert (answer.status, effect) == (200, (ended(ROBOT),))


def test_an_index_is_a_report_in_html_without_a_number() -> None:
    changes = (Change(ChangeKind.NEW, 1000.0, "/a&b,c<d>.html"), Change(ChangeKind.CHANGE, 2000.0, "/x"))
    answer = answer_index(GetIndex(Span(30, "day")), OFFER, changes)
    assert answer.status == 200
    assert "\nURLBase: http://a.example/\n\nNew[Thu, 01 Jan 1970 00:16:40 GMT]: " in answer.html
    read = read_report(answer.html)
    assert isinstance(read, Report)
    assert (read.sequence_number, [change.at for change in read.changes]) == (0, [1000.0, 2000.0])
    assert read.changes[0].path.startswith("/a&b,c")


def test_an_unconfirmed_address_gets_one_report() -> None:
    assert may_report(ROBOT)
    assert not may_report(replace(ROBOT, reported_at=2000.0))
    assert may_report(replace(ROBOT, reported_at=2000.0, confirmed=True))


@pytest.mark.parametrize("days", [1, 30, 365])
def test_a_robot_has_thirty_days_to_answer_after_it_must_have_missed_its_second_report(days: int) -> None:
    robot = replace(ROBOT, latency=Span(days, "day"))
    grace_days = min(days / 4, 1)
    assert stale_at(robot) == 1000.0 + (3 * days + grace_days + 30) * DAY
    late = 1000.0 + 2 * days * DAY  # as where the mail server was away, or the tree did not change
    assert stale_at(replace(robot, reported_at=late)) == late + (2 * days + grace_days + 30) * DAY
    assert stale_at(replace(robot, confirmed=True)) == inf


def test_reports_are_due_a_latency_apart_and_in_quiet_times_once_a_day() -> None:
    hourly = replace(ROBOT, latency=Span(1, "hour"), confirmed=True, reported_at=10_000.0)
    assert due_at(hourly, changed=True) == 13_600
    assert due_at(hourly, changed=False) == 10_000 + DAY
    assert due_at(replace(hourly, latency=Span(7, "day")), changed=False) == 10_000 + 7 * DAY
    assert due_at(replace(hourly, confirmed=False, reported_at=None), changed=True) == 4600
    assert due_at(replace(hourly, confirmed=False, reported_at=None), changed=False) == 1000 + DAY


def test_patterns_are_searched_for_in_paths() -> None:
    site = "http://a.example"
    for pattern, path, found in [
        (r"\.gif$", "/x.gif", True),
        (r"\.gif$", "/x.gif.html", False),
        ("^/docs/", "/docs/a", True),
        ("^/docs/", "/old/docs/a", False),
        ("http://a.example/b.*", "/b/c", True),
        ("^http://a.example/b$", "/b/c", False),
    ]:
        assert wanted((), (pattern,), site)(path) is found
        assert wanted((pattern,), (), site)(path) is not found
    assert wanted((), (), site)("/anything")


def test_buckets_bound_requests_and_their_own_memory() -> None:
    buckets = RateLimiter(burst=3, per_s=0.5, most=10)
    assert [buckets.wait_s("a", 0.0) for _ in range(4)] == [0, 0, 0, 2]
    assert buckets.wait_s("b", 0.0, 2) == 0
    assert buckets.wait_s("b", 0.0, 2) == 2
    assert buckets.wait_s("b", 0.0) == 0
    assert buckets.wait_s("a", 2.0) == 0
    for number in range(100):
        buckets.wait_s(str(number), 3.0)
    assert len(buckets._levels) == 10


def test_a_network_of_ipv6_is_one_client() -> None:
    assert client_network("2001:db8:1:2:3::4") == client_network("2001:db8:1:2:ffff::") == "2001:db8:1:2::"
    assert client_network("::ffff:192.0.2.1") == client_network("192.0.2.1") == "192.0.2.1"
    assert client_network("nonsense") == "nonsense"
