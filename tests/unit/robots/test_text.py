"""The neutral parse: 1996 draft, 3.2, 3.3 and 4.2; docs/protocols.md, section 1, "The file"."""

import pytest

from crawler.robots import text
from crawler.robots.text import Line, parse, whole_lines


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_lines_end_in_cr_lf_or_crlf(end: bytes) -> None:
    file = parse(end.join([b"User-agent: *", b"Disallow: /a", b""]))
    assert [(line.number, line.field, line.value) for line in file.lines if line.text] == [
        (1, "user-agent", "*"),
        (2, "disallow", "/a"),
    ]


def test_line_ends_may_be_mixed() -> None:
    file = parse(b"A: 1\rB: 2\r\nC: 3\n\r\nD: 4")
    assert [(line.number, line.field) for line in file.lines] == [(1, "a"), (2, "b"), (3, "c"), (4, ""), (5, "d")]


def test_fields_are_lower_case_and_white_space_is_ignored() -> None:
    assert parse(b" \tDISALLOW\t :\t /A b \t").lines == (Line(1, "disallow", "/A b", "DISALLOW\t :\t /A b"),)


def test_a_bom_is_skipped_at_the_start_only() -> None:
    assert [line.field for line in parse(b"\xef\xbb\xbfallow: /\n\xef\xbb\xbfallow: /").lines] == [
        "allow",
        "\ufeffallow",
    ]


def test_a_comment_may_start_anywhere() -> None:
    file = parse(b"# all of it\nDisallow: /a#b\nDisallow: #nothing\nDis#allow: /\n")
    assert [(line.number, line.field, line.value, line.text) for line in file.lines if line.text] == [
        (2, "disallow", "/a", "Disallow: /a"),
        (3, "disallow", "", "Disallow:"),
    ]


def test_blank_lines_are_kept_as_separators_comments_and_lines_without_colon_are_not_blank() -> None:
    file = parse(b"\na: 1\n# comment\n  # comment\nno colon here\nb: 2\n\n \t\n\nc: 3\n")
    assert [(line.number, line.text) for line in file.lines] == [
        (2, "a: 1"),
        (6, "b: 2"),
        (7, ""),
        (10, "c: 3"),
        (11, ""),
    ]


def test_octets_that_are_not_utf8_survive() -> None:
    (line,) = parse(b"disallow: /\xfc\x00\xe3\x83\x84").lines
    assert line.value.encode("utf-8", "surrogateescape") == b"/\xfc\x00\xe3\x83\x84"


def test_no_other_character_ends_a_line() -> None:
    file = parse("disallow: /a\x0bb\x1c\u2028\x85c".encode())
    assert [line.value for line in file.lines] == ["/a\x0bb\x1c\u2028\x85c"]


def test_octets_past_the_limit_and_half_a_line_are_ignored() -> None:
    file = parse(b"allow: /a\nallow: /b/c\n", max_bytes=18)
    assert [line.text for line in file.lines if line.text] == ["allow: /a"]
    assert file.truncated
    assert file.notes == ("longer than 18 bytes; the rest is ignored",)
    assert not parse(b"allow: /a\n", max_bytes=10).truncated


def test_only_lines_of_unknown_fields_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "MAX_EXTENSIONS", 1)
    file = parse(b"a: 1\n\nb: 2\n\nallow: /\nc: 3\n")
    assert [(line.number, line.text) for line in file.lines] == [(1, "a: 1"), (2, ""), (5, "allow: /"), (7, "")]
    assert not file.truncated
    assert file.notes == ("3 lines of unknown fields, of which 1 are kept",)


def test_a_rule_after_a_hundred_thousand_others_counts() -> None:
    file = parse(b":\n" * 200_000 + b"user-agent:*\n" + b"allow:/a\n" * 10_000 + b"disallow:/\n")
    assert file.lines[-2].text == "disallow:/"
    assert len(file.lines) == 1000 + 10_003


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b"Disallow: /caf\xe9", "Disallow: /caf\ufffd"),
        (b"Disallow:\t/\x00\x1b[2J\xe2\x80\xae", "Disallow: /\ufffd\ufffd[2J\ufffd"),
        ("Disallow: /ツ".encode(), "Disallow: /ツ"),
        (b"Disallow: /" + b"x" * 10_000, "Disallow: /" + "x" * 189 + "…"),
    ],
)
def test_a_line_is_shown_printable_and_bounded(body: bytes, shown: str) -> None:
    """Evidence is stored and printed: no database takes a lone surrogate, no terminal should get an escape."""
    assert parse(body).lines[0].shown == shown


def test_whole_lines() -> None:
    assert whole_lines(b"a\nb", 3) == b"a\nb"
    assert whole_lines(b"a\nb", 2) == b"a\n"
    assert whole_lines(b"a\rb", 3, cut=True) == b"a\r"
    assert whole_lines(b"abc", 2) == b""


@pytest.mark.parametrize("start", [b"<!DOCTYPE html>", b"\n <HTML lang=en>", b"\xef\xbb\xbf<html>"])
def test_html_has_a_note_and_no_lines(start: bytes) -> None:
    file = parse(start + b"\n<p>What are you looking for?</p>\n")
    assert file.notes == ("HTML served as robots.txt",)
    assert not any(line.text for line in file.lines)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_has_a_note_and_its_rules_apply(encoding: str) -> None:
    body = "\ufeffUser-agent: *\r\nDisallow: /ü\n".encode(encoding)
    file = parse(body)
    assert "UTF-16" in file.notes[0]
    assert [(line.number, line.field, line.value) for line in file.lines if line.text] == [
        (1, "user-agent", "*"),
        (2, "disallow", "/ü"),
    ]
    assert parse(body + b"x\xd8\xd8" * 3, max_bytes=len(body) + 3).truncated
