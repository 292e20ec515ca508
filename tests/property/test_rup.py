"""The Remote Update Protocol: readers read what writers write, never raise, and take linear time."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawler.rup.protocol import answers, forms
from crawler.rup.protocol import subscription as robot
from crawler.rup.protocol.forms import (
    GetIndex,
    GetSequenceNumber,
    ModifyPreferences,
    Register,
    Unregister,
    is_address,
)
from crawler.rup.protocol.info import NoInfo, RupInfo, read_info, write_info
from crawler.rup.protocol.mail import Mail, ReceivedReport, read_mail, write_mail
from crawler.rup.protocol.report import Change, ChangeKind, Report, Unreadable, read_report, write_report
from crawler.rup.protocol.server import condense
from crawler.rup.protocol.units import UNITS_S, Span, read_span, span_over
from crawler.url import NotCrawlable, canonicalise, split

SPANS = st.builds(Span, st.integers(1, 999_999), st.sampled_from(list(UNITS_S)))
WORDS = st.text(st.characters(codec="ascii", exclude_categories=["Cc", "Zs"]), min_size=1, max_size=12)
PATTERNS = st.lists(WORDS.filter(lambda word: not word.endswith(",")), max_size=4).map(tuple)
ADDRESSES = st.from_regex(r"[a-z0-9+_-]{1,20}@[a-z0-9]{1,9}(\.[a-z]{2,5}){0,2}", fullmatch=True)
KEYS = st.from_regex(r"[A-Za-z0-9_-]{1,60}", fullmatch=True)
SECONDS = st.integers(0, 2**33).map(float)


def _path(text: str) -> str:
    try:
        return split(canonicalise(f"http://a.example/{text}")).path
    except NotCrawlable:
        return "/"


PATHS = st.text(max_size=30).map(_path).filter(lambda path: "%2c" not in path.lower())
CHANGES = st.lists(st.builds(Change, st.sampled_from(ChangeKind), SECONDS, PATHS), max_size=12).map(tuple)
REPORTS = st.builds(Report, st.integers(0, 10**12), st.just("http://a.example/"), CHANGES)
NONE = st.none() | st.just(())
LISTS = st.one_of(st.tuples(st.none() | PATTERNS, NONE), st.tuples(NONE, st.none() | PATTERNS))
WISHES = st.tuples(st.none() | SPANS, LISTS).map(
    lambda wish: {"latency": wish[0], "exclude": wish[1][0], "include_only": wish[1][1]}
)
ASKED = st.one_of(
    st.tuples(ADDRESSES, WISHES).map(lambda given: Register(given[0], **given[1])),
    st.builds(Unregister, KEYS, ADDRESSES),
    st.builds(GetSequenceNumber, KEYS, ADDRESSES),
    st.tuples(KEYS, ADDRESSES, st.none() | ADDRESSES, WISHES).map(
        lambda given: ModifyPreferences(*given[:3], **given[3])
    ),
    st.builds(GetIndex, SPANS),
)

FRAGMENTS = [
    *("SequenceNumber", "URLBase", "RUP-CGI", "Latency", "Exclude", "RegistrationKey", "New", "Changed", "Delete"),
    *(
        ":",
        "=",
        ": ",
        "[",
        "]",
        ", ",
        ",",
        "\n",
        "\r\n",
        "\r",
        "\n ",
        " ",
        "\t",
        "12",
        "http://a.example/",
        "/a",
        "%2C",
    ),
    *("<html>", "<pre>", "<br", ">", "&amp;", "&#", "\x00", "ü", "\u2028", "1998-01-03T10:00:00Z", "9999-12-31"),
    *("Content-Type: ", "text/plain", "multipart/mixed; boundary=x", "\n\n", "--x", "--x--", "; charset=", "idna"),
    *("Content-Transfer-Encoding: ", "base64", "quoted-printable", "=", "=0A", "From: a", "Date: ", "day", "30-day"),
]
TEXTS = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=5), max_size=40).map("".join)
OCTETS = st.binary(max_size=200) | TEXTS.map(lambda text: text.encode("utf-8", "replace"))


@given(SPANS)
def test_a_span_reads_back(span: Span) -> None:
    assert read_span(str(span)) == span


@given(st.floats(0, 1e12), st.lists(st.sampled_from([*UNITS_S, "fortnight"]), max_size=4))
def test_a_span_over_seconds_covers_them_as_far_as_spans_go(seconds: float, units: list[str]) -> None:
    span = span_over(seconds, units)
    assert read_span(str(span)) == span
    assert span.seconds >= seconds or span.count == 999_999
    assert span.unit in units or not set(units) & set(UNITS_S)


@given(
    st.lists(st.sampled_from(list(UNITS_S)), unique=True).map(tuple), PATTERNS, PATTERNS, st.none() | SPANS,
    st.sampled_from(["\n", "\r\n", "\r"]), st.booleans(),
)  # fmt: skip
def test_rupinfo_reads_back(
    units: tuple[str, ...],
    exclude: tuple[str, ...],
    include: tuple[str, ...],
    span: Span | None,
    end: str,
    folded: bool,
) -> None:
    info = RupInfo("http://a.example/cgi-bin/rup", "none", units, exclude, include, span)
    text = write_info(info)
    if folded:
        text = text.replace(", ", ",\n\t")
    assert read_info(text.replace("\n", end).encode(), "http://a.example/rupinfo.txt") == info


@given(REPORTS, st.sampled_from(["\n", "\r\n", "\r"]), st.booleans(), st.booleans())
@example(Report(1, "http://a.example/", (Change(ChangeKind.NEW, 0.0, "/" + "x" * 5000),)), "\n", False, False)
@example(
    Report(1, "http://a.example/", tuple(Change(ChangeKind.NEW, 0.0, f"/{n},") for n in range(999))), "\n", True, True
)
def test_a_report_reads_back(report: Report, end: str, in_html: bool, folded: bool) -> None:
    text = write_report(report)
    assert text.isascii()
    assert all(len(line) <= 990 or line.count(", ") == 1 for line in text.split("\n"))
    if folded:
        text = text.replace(", /", ",\n /")
    if in_html:
        text = answers.page("Index", text)
    assert read_report(text.replace("\n", end)) == report


@given(REPORTS, ADDRESSES, ADDRESSES)
@example(Report(1, "http://a.example/", (Change(ChangeKind.NEW, 0.0, "/" + "x" * 5000),)), "a@b.example", "c@d.example")
def test_a_mail_reads_back(report: Report, sender: str, recipient: str) -> None:
    mail = Mail(sender, recipient, "<1@a.example>", 884_000_000.0, "Changes", report)
    octets = write_mail(mail)
    assert all(len(line) <= 998 for line in octets.split(b"\r\n"))
    assert b"\n" not in octets.replace(b"\r\n", b"")
    received = ReceivedReport(report, "<1@a.example>", "Mon, 05 Jan 1998 11:33:20 +0000")
    assert read_mail(octets) == read_mail(octets.replace(b"\r\n", b"\n")) == received


@given(ASKED)
def test_a_form_reads_back(asked: forms.RupRequest) -> None:
    assert forms.read_form(forms.write_form(asked)) == asked
    assert forms.read_form([(name.upper(), value) for name, value in forms.write_form(asked)]) == asked


@given(ADDRESSES)
def test_addresses_are_taken_as_they_are(address: str) -> None:
    assert is_address(address)
    assert not is_address(f"{address}\r\nBcc: x@b.example")
    assert not is_address(f"{address},x@b.example")
    assert not is_address(f"<{address}>")


@given(KEYS, st.integers(0, 10**14), st.booleans())
def test_answers_read_back(key: str, number: int, as_page: bool) -> None:
    lines = (f"RegistrationKey: {key}", f"SequenceNumber={number}")
    key_page, number_page = ((answers.page("x", line) if as_page else line).encode() for line in lines)
    assert answers.read_key(key_page) == key
    assert answers.read_sequence_number(number_page) == number
    assert answers.read_sequence_number(number_page.replace(b"=", b": ").lower()) == number


@given(OCTETS)
def test_anything_at_all_can_be_read(octets: bytes) -> None:
    assert isinstance(read_info(octets, "http://a.example/rupinfo.txt"), RupInfo | NoInfo)
    for found in (read_report(octets), read_mail(octets)):
        assert isinstance(found, Report | ReceivedReport | Unreadable)
        report = found.report if isinstance(found, ReceivedReport) else found
        if isinstance(report, Report):
            write_report(report)
            robot.hints_of(report)
    answers.read_key(octets)
    answers.read_sequence_number(octets)
    read_span(octets.decode("latin-1"))


@given(st.lists(st.tuples(TEXTS | st.sampled_from(["Action", "Span", "Latency", "RobotEmail", "Exclude"]), TEXTS)))
def test_any_fields_can_be_read(fields: list[tuple[str, str]]) -> None:
    forms.read_form([("Action", "Register"), ("RobotEmail", "a@b.example"), *fields])
    forms.read_form(fields)


@given(st.lists(st.builds(Change, st.sampled_from(ChangeKind), SECONDS, st.sampled_from(["/a", "/b", "/c"]))))
def test_a_condensed_story_ends_the_same(changes: list[Change]) -> None:
    short = list(condense(changes))
    assert {change.path: change for change in short} == {change.path: change for change in changes}
    for path in ("/a", "/b", "/c"):
        kinds = [change.kind for change in changes if change.path == path]
        runs = [kind for at, kind in enumerate(kinds) if at == 0 or kinds[at - 1] is not kind]
        assert [change.kind for change in short if change.path == path] == runs


KNOWN = robot.Subscription(
    "r@b.example", "k", Span(1, "day"), 1000.0, site="http://a.example", cgi="http://a.example/rup",
    units=("day", "week"), max_query_span=Span(30, "day"),
)  # fmt: skip


STEPS = st.lists(
    st.one_of(
        st.just("send"),  # the server composes a report
        st.tuples(st.just("deliver"), st.integers(0, 8)),  # one of those under way arrives
        st.tuples(st.just("forge"), st.integers(1, 12), st.sampled_from(["/forged", "/true1", "/true2", "/true3"])),
        st.just("sync"),
    ),
    max_size=40,
)


@given(STEPS)
def test_every_true_report_counts_despite_forged_ones_and_silence_is_noticed(steps: list[object]) -> None:
    """Reports arrive in any order or never, between forged ones.

    The robot visits the pages of every report, trusts only numbers from the server, and in the end knows every change
    or asks for the changes since the last known one.
    """
    known, now, sent, heard = KNOWN, 2000.0, 0, dict[int, bool]()
    pending: list[int] = []
    index_since = now

    def hear(number: int, path: str, name: str) -> set[str]:
        nonlocal known, heard
        said = Report(number, "http://a.example/", (Change(ChangeKind.CHANGE, None, path),))
        octets = write_mail(Mail("rup@a.example", "r@b.example", name, now + 500, "Changes", said))
        mail = robot.open_mail(robot.RawMail("m", octets), {known.site})
        heard = dict(robot.joined(heard, {number: True}))
        known = robot.noticed(known, heard)
        return {hint.url for hint in mail.hints}

    for step in [*steps, "sync"]:
        now += 100
        match step:
            case "send":
                sent += 1
                pending.append(sent)
            case ("deliver", int(which)) if pending:
                number = pending.pop(which % len(pending))
                assert hear(number, f"/true{number}", f"<{number}@a.example>") == {f"http://a.example/true{number}"}
            case ("forge", int(number), str(path)):
                before = known.ask_at
                hear(number, path, "<forged@x>")
                assert known.ask_at == before, "no mail puts off the question after silence"
            case "sync":
                assert robot.due_question(known, now=now + 1e6)
                if robot.missing(known, sent, heard):
                    span = robot.index_span(known, now=now)
                    assert isinstance(span, Span)
                    assert now - span.seconds <= index_since
                    known = robot.recovered(known, sent, now=now)
                else:
                    known = robot.confirmed(known, sent, now=now)
                heard = {}
                assert known.sequence_number == sent
                index_since = known.known_until


@pytest.mark.parametrize(
    "octets",
    [
        b"SequenceNumber" + b" " * 200_000,
        b"New" + b" " * 200_000 + b"x",
        b"New[" * 60_000,
        b"<" * 200_000,
        b"<br " * 60_000,
        b"New: /a" + b"," * 200_000,
        b"New: /a" + b", " * 200_000,
        b"New: /a\n" + b" /b,\n" * 60_000,
        b"Content-Type: multipart/mixed; boundary=x\n\n" + b"--x\nContent-Type: multipart/mixed; boundary=x\n\n" * 9000,
        b"Content-Type: multipart/mixed; boundary=x\n\n" + b"--x\n\n" * 60_000,
        b"X: " + b"y" * 200_000 + b"\n\nSequenceNumber: 1",
        b"Content-Type: text/plain;" + b' charset="x' * 5000 + b"\n\n",
        b"\r" * 200_000,
        b"SequenceNumber: 1\nURLBase: http://a.example/\n" + b"\n" * 8_000_000,
        b"SequenceNumber: 1\nURLBase: http://a.example/\n" + b" \n" * 4_000_000,
        b"Exclude: " + b", ".join([b"(a+)+$"] * 20_000),
        b"RegistrationKey" + b" " * 200_000,
        b"Content-Transfer-Encoding: base64\n\n" + b"A" * 300_001,
        b"RUP-CGI: /\n" + b"Latency: day, " * 9000,
    ],
    ids=lambda octets: octets[:30].decode(),
)
def test_hostile_texts_cost_little(octets: bytes) -> None:
    """Each text takes some milliseconds; a quadratic reader would take minutes."""
    began = time.process_time()
    test_anything_at_all_can_be_read.hypothesis.inner_test(octets)  # type: ignore[attr-defined]
    assert time.process_time() - began < 20
