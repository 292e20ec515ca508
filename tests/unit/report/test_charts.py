"""Charts: heights and lengths are in proportion, scales are round, figures are told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.report.charts import (
    Column,
    Series,
    bar,
    brief,
    columns,
    histogram,
    nice_ceiling,
    percent,
    stacked_bar,
)
from crawler.report.markup import Node

A, B = Series("a", "c1"), Series("b", "c2")


def boxes(node: Node, colour: str, what: str) -> list[float]:
    return [float(box.attrib[what].rstrip("%")) for box in node.iter("rect") if box.get("class") == colour]


@given(st.integers(0, 10**12))
def test_a_scale_ends_just_above_with_whole_quarters(value: int) -> None:
    top = nice_ceiling(value)
    assert value <= top <= max(4, 2 * value)
    assert (top / 4).is_integer()


def test_columns_are_as_high_as_their_values_and_stand_on_each_other() -> None:
    node = columns([Column("x", "", (40, 20)), Column("y", "", (80, 0))], [A, B], "what")
    lower, upper = boxes(node, "c1", "height"), boxes(node, "c2", "height")
    assert lower[1] == pytest.approx(2 * lower[0], abs=0.2)
    assert upper == [pytest.approx(lower[0] / 2, abs=0.2)]
    assert boxes(node, "c2", "y")[0] + upper[0] == pytest.approx(boxes(node, "c1", "y")[0], abs=0.2)


def test_what_is_there_is_seen_and_what_is_not_has_no_box() -> None:
    node = columns([Column("x", "", (1_000_000, 1))], [A, B], "what")
    assert boxes(node, "c2", "height") == [1.5]
    assert boxes(columns([Column("x", "", (5, 0))], [A, B], "what"), "c2", "height") == []


def test_nothing_at_all_is_still_a_chart() -> None:
    assert boxes(columns([Column("x", "", (0,))], [A], "what"), "c1", "height") == []
    assert boxes(columns([], [A], "what"), "c1", "height") == []


def test_labels_stand_at_some_columns_and_every_second_may_be_left_out() -> None:
    node = columns([Column(f"{n}", "", (1,)) for n in range(16)], [A], "what")
    labels = [(text.text, text.get("class")) for text in node.iter("text") if "xlabel" in text.get("class", "")]
    assert [label for label, _ in labels] == ["0", "2", "4", "6", "8", "10", "12", "14"]
    assert [kind for _, kind in labels] == ["xlabel", "xlabel minor"] * 4


def test_time_that_was_cut_out_is_a_line_that_says_so() -> None:
    node = columns([Column("x", "", (1,)), Column("", "nothing for 2 h", gap=True)], [A], "what")
    assert [line.get("class") for line in node.iter("line")].count("gap") == 1
    assert "nothing for 2 h" in [title.text for title in node.iter("title")]


def test_a_bar_stays_within_its_frame() -> None:
    assert [boxes(bar(share), "c1", "width") for share in (-1, 0.25, 7)] == [[0.0], [25.0], [100.0]]


def test_the_parts_of_a_whole_fill_it() -> None:
    node = stacked_bar([(A, 30), (B, 10)], "what")
    assert boxes(node, "c1", "width") + boxes(node, "c2", "width") == [75.0, 25.0]
    assert boxes(node, "c2", "x") == [75.0]
    assert [title.text for title in node.iter("title")] == ["a: 30 (75 %)", "b: 10 (25 %)"]
    assert boxes(stacked_bar([(A, 0)], "what"), "c1", "width") == []


def test_a_histogram_tells_its_classes() -> None:
    node = histogram((0, 10, 20), (1, 0, 3), "{:g} s".format, "answers", "what")
    assert [title.text for title in node.iter("title")] == [
        "0 s to 10 s\n1 answers (25 %)",
        "10 s to 20 s\n0 answers (0 %)",
        "20 s and more\n3 answers (75 %)",
    ]


@pytest.mark.parametrize(
    ("value", "words"), [(0, "0"), (950, "950"), (1500, "1.5k"), (20_000, "20k"), (3e6, "3M"), (2.5e9, "2.5G")]
)
def test_figures_of_a_scale_are_short(value: float, words: str) -> None:
    assert brief(value) == words


@pytest.mark.parametrize(
    ("share", "words"), [(0, "0 %"), (0.0004, "< 0.1 %"), (0.0123, "1.2 %"), (0.1, "10 %"), (1, "100 %")]
)
def test_shares_are_told_as_exactly_as_they_matter(share: float, words: str) -> None:
    assert percent(share) == words
