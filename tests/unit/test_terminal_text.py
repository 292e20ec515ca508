"""Untrusted text on a terminal."""

import pytest

from crawler.terminal_text import printable, shown


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
