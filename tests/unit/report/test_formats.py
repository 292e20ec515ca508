"""Formats of numbers, sizes and times: as many digits as the reader needs."""

from __future__ import annotations

import pytest

from crawler.report.formats import brief, percent, short, time_label


@pytest.mark.parametrize(
    ("value", "words"), [(0, "0"), (950, "950"), (1500, "1.5k"), (20_000, "20k"), (3e6, "3M"), (2.5e9, "2.5G")]
)
def test_brief(value: float, words: str) -> None:
    assert brief(value) == words


@pytest.mark.parametrize(
    ("share", "words"), [(0, "0 %"), (0.0004, "< 0.1 %"), (0.0123, "1.2 %"), (0.1, "10 %"), (1, "100 %")]
)
def test_percent(share: float, words: str) -> None:
    assert percent(share) == words


@pytest.mark.parametrize(
    ("width_s", "label"),
    [(5, "08:00:01"), (300, "08:00"), (3600, "15 Jan 08h"), (86400, "15 Jan 2027")],
)
def test_a_time_label_is_as_precise_as_its_slot(width_s: float, label: str) -> None:
    assert time_label(1_800_000_001.5, width_s) == label


def test_a_long_text_keeps_its_beginning_and_its_end() -> None:
    text = "http://a.test/" + "x" * 1000 + "/end"
    cut = short(text, 60)
    assert len(cut) <= 63
    assert (cut[:14], cut[-4:]) == (text[:14], "/end")
    assert short("as it is") == "as it is"
