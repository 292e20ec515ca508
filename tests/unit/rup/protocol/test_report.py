"""Reports and rupinfo files in the format of the draft, and in other formats that are accepted."""

from __future__ import annotations

import pytest

from crawler.rup.protocol import answers
from crawler.rup.protocol.info import NoInfo, RupInfo, allows_patterns, read_info, write_info
from crawler.rup.protocol.mail import ReceivedReport, read_mail
from crawler.rup.protocol.report import Change, ChangeKind, Report, Unreadable, read_report, write_report
from crawler.rup.protocol.units import Span

AT = 883_821_600.0  # Sat, 03 Jan 1998 10:00:00 GMT
REPORT = Report(
    12,
    "http://www.example.org/",
    (
        Change(ChangeKind.NEW, AT, "/a.html"),
        Change(ChangeKind.NEW, AT, "/b/c,d.html"),
        Change(ChangeKind.CHANGE, AT + 60, "/index.html"),
        Change(ChangeKind.DELETE, AT + 60, "/old.html"),
    ),
)
TEXT = """\
SequenceNumber: 12
URLBase: http://www.example.org/

New[Sat, 03 Jan 1998 10:00:00 GMT]: /a.html, /b/c%2Cd.html
Change[Sat, 03 Jan 1998 10:01:00 GMT]: /index.html
Delete[Sat, 03 Jan 1998 10:01:00 GMT]: /old.html
"""


def test_a_text_that_is_too_long_is_read_in_part_and_says_so() -> None:
    head = "SequenceNumber: 1\nURLBase: http://a.example/\n\nNew: /a\n"
    for text, skipped in ((head + "\n" * 2_000_000, 0), (head + "x\n" * 500_000, 1), (head + " " * 9_000_000, 1)):
        report = read_report(text)
        assert isinstance(report, Report)
        assert (len(report.changes), report.skipped) == (1, skipped)


def test_a_report_is_written_as_the_draft_prints_it() -> None:
    assert write_report(REPORT) == TEXT


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.replace("\n", "\r\n"),
        TEXT.replace("Sat, 03 Jan 1998 10:00:00 GMT", "1998-01-03T10:00:00Z"),
        TEXT.replace("Sat, 03 Jan 1998 10:00:00 GMT", "Saturday, 03-Jan-98 10:00:00 GMT"),
        TEXT.replace("Sat, 03 Jan 1998 10:00:00 GMT", "Sat Jan  3 10:00:00 1998"),
        TEXT.replace("SequenceNumber: ", "sequencenumber=").replace("URLBase", "urlbase").replace("New", "NEW"),
        TEXT.replace(", /b", ",/b"),
        TEXT.replace(", /b", ",\n    /b"),
        TEXT.replace("/a.html", "http://www.example.org/a.html").replace("http://www.example.org/a", "/a"),
        TEXT.replace("\n", "\n\n"),
        TEXT.replace("%2C", ","),
        answers.page("Index", TEXT),
        f"<html><body>{TEXT.replace(chr(10), '<br>')}</body></html>",
        f"<HTML>\n<P>{TEXT.replace(chr(10), '</p>  <p>')}",
        f"Dear robot,\n\n{TEXT}\n-- \nyours",
    ],
)
def test_a_report_is_read_in_each_accepted_format(text: str) -> None:
    assert read_report(text) == REPORT


def test_a_date_may_be_missing_or_nonsense() -> None:
    text = "SequenceNumber: 1\nURLBase: http://a.example\nNew: /a\nChange[yesterday]: /b\nDelete[]: /c\n"
    read = read_report(text)
    assert isinstance(read, Report)
    assert [(change.kind, change.at) for change in read.changes] == [(kind, None) for kind in ChangeKind]


@pytest.mark.parametrize("text", ["", "hello", "New: /a", "SequenceNumber: 1", "URLBase: mailto:a@b", "URLBase:"])
def test_a_text_without_a_base_is_not_a_report(text: str) -> None:
    assert isinstance(read_report(text), Unreadable)


MULTIPART = """\
From: server@www.example.org
Content-Type: multipart/alternative;
 boundary="=_x"

preamble, SequenceNumber: 99
--=_x
Content-Type: application/octet-stream

SequenceNumber: 98
URLBase: http://www.example.org/
--=_x
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: quoted-printable

{}
--=_x--
SequenceNumber: 97
"""


def test_a_report_is_found_in_a_multipart_and_only_in_a_text() -> None:
    arrived = read_mail(MULTIPART.format(TEXT.replace("=", "=3D").replace("/b/", "=\n/b/")).encode())
    assert isinstance(arrived, ReceivedReport)
    assert arrived.report == REPORT


def test_multiparts_nested_deep_are_left_alone() -> None:
    octets = TEXT.encode()
    for depth in range(8):
        start = f"Content-Type: multipart/mixed; boundary=b{depth}\n\n--b{depth}\n".encode()
        octets = start + (b"\n" if depth == 0 else b"") + octets + f"\n--b{depth}--\n".encode()
        assert isinstance(read_mail(octets), ReceivedReport if depth < 4 else Unreadable)


def test_rupinfo_is_written_as_the_draft_prints_it() -> None:
    info = RupInfo("http://a.example/rup", "none", ("day", "week"), (r"\.gif$", "/tmp/.*"), (), Span(30, "day"))
    assert write_info(info) == (
        "RUP-CGI: http://a.example/rup\n"
        "Authentifier: none\n"
        "Latency: day, week\n"
        "Exclude: \\.gif$, /tmp/.*\n"
        "MaxQuerySpan: 30-day\n"
    )


def test_rupinfo_is_read_in_each_accepted_format() -> None:
    body = b"\xef\xbb\xbfrup-cgi:/cgi-bin/rup.pl\r\nX-New: 1\r\n"
    body += b"latency : Days,\r\n  weeks,fortnight\r\nAUTHENTIFIER:None\r\n"
    info = read_info(body, "https://a.example/rupinfo.txt")
    assert info == RupInfo("https://a.example/cgi-bin/rup.pl", "none", ("day", "week"))


@pytest.mark.parametrize("body", [b"", b"<html>Not found</html>", b"Latency: day", b"RUP-CGI: ftp://a.example/"])
def test_a_text_without_a_cgi_is_not_a_rupinfo(body: bytes) -> None:
    assert isinstance(read_info(body, "https://a.example/rupinfo.txt"), NoInfo)


def test_a_server_states_its_accepted_patterns() -> None:
    assert allows_patterns([".*"], ["/a", "/b"])
    assert allows_patterns(["/a", "/b"], ["/a"])
    assert not allows_patterns(["/a"], ["/b"])
    assert not allows_patterns([], ["/b"])
