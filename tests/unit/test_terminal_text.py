"""Untrusted text on a terminal."""

import json

import pytest

from crawler.terminal_text import escaped_json, printable, printable_lines, shown


@pytest.mark.parametrize(
    ("text", "made"),
    [("ツ a", "ツ a"), ("a\nb\tc", "a\ufffdb\ufffdc"), ("\x1b[2J\u202e\ud800", "\ufffd[2J\ufffd\ufffd")],
)
def test_printable_text_has_no_effect_on_a_terminal(text: str, made: str) -> None:
    assert printable(text) == shown(text) == made


def test_a_message_is_bounded() -> None:
    assert shown("x" * 200) == "x" * 200
    assert shown("x" * 10_000) == "x" * 200 + "…"
    assert shown("\0" * 9, 2) == "\ufffd\ufffd…"


def test_lines_stay_lines() -> None:
    assert printable_lines("a\nb\x1b\n") == "a\nb\ufffd\n"


def test_escaped_json_means_the_same() -> None:
    document = {"ツ\x9b": "\u202e\u2028 \x00\U000e0001 é"}
    text = escaped_json(json.dumps(document, ensure_ascii=False, indent=1))
    assert json.loads(text) == document
    assert all(line.isprintable() for line in text.split("\n"))
    assert "ツ" in text
