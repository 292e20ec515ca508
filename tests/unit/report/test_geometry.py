"""Geometry of charts: heights and lengths are in proportion, scales end at round numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.report.charts import Column, ColumnChart, Series, column_chart, histogram, nice_ceiling, stacked_bar
from crawler.report.gather import Distribution

A, B = Series("a", "c1"), Series("b", "c2")


def heights(chart: ColumnChart, colour: str) -> list[float]:
    return [box.height for column in chart.columns for box in column.boxes if box.colour == colour]


@given(st.integers(0, 10**12))
def test_a_scale_ends_at_or_just_above_the_value_in_whole_quarters(value: int) -> None:
    top = nice_ceiling(value)
    assert value <= top <= max(4, 2 * value)
    assert (top / 4).is_integer()


def test_boxes_are_proportional_and_stacked() -> None:
    chart = column_chart("chart", [Column("x", "", (40, 20)), Column("y", "", (80, 0))], [A, B])
    lower, upper = heights(chart, "c1"), heights(chart, "c2")
    assert lower[1] == pytest.approx(2 * lower[0], abs=0.2)
    assert upper == [pytest.approx(lower[0] / 2, abs=0.2)]
    first, second = chart.columns[0].boxes
    assert second.y + second.height == pytest.approx(first.y, abs=0.2)


def test_a_small_value_has_a_visible_box_and_zero_has_none() -> None:
    assert heights(column_chart("chart", [Column("x", "", (1_000_000, 1))], [A, B]), "c2") == [1.5]
    assert heights(column_chart("chart", [Column("x", "", (5, 0))], [A, B]), "c2") == []


def test_a_chart_without_values_has_no_boxes() -> None:
    assert heights(column_chart("chart", [Column("x", "", (0,))], [A]), "c1") == []
    assert column_chart("chart", [], [A]).columns == []


def test_at_most_eight_columns_have_labels_and_every_second_label_is_minor() -> None:
    chart = column_chart("chart", [Column(f"{n}", "", (1,)) for n in range(16)], [A])
    assert [label.text for label in chart.labels] == ["0", "2", "4", "6", "8", "10", "12", "14"]
    assert [label.minor for label in chart.labels] == [False, True] * 4


def test_a_gap_has_a_title_and_no_box_or_label() -> None:
    chart = column_chart("chart", [Column("x", "", (1,)), Column("", "nothing for 2 h", gap=True)], [A])
    assert [(column.title, column.gap, len(column.boxes)) for column in chart.columns] == [
        ("", False, 1),
        ("nothing for 2 h", True, 0),
    ]
    assert [label.text for label in chart.labels] == ["x"]


def test_the_legend_names_the_series_that_have_values() -> None:
    columns = [Column("x", "", (1, 0, 2))]
    assert column_chart("chart", columns, [A, B, Series("c", "c3")]).legend == [A, Series("c", "c3")]
    assert column_chart("chart", [Column("x", "", (1,))], [A]).legend == ()


def test_the_segments_of_a_stacked_bar_fill_it() -> None:
    segments = stacked_bar([(A, 30), (B, 10)])
    assert [(part.x, part.width, part.value, part.share) for part in segments] == [
        (0.0, 75.0, 30, 0.75),
        (75.0, 25.0, 10, 0.25),
    ]
    assert stacked_bar([(A, 0)]) == []


def test_a_histogram_names_its_classes() -> None:
    values = Distribution((0, 10, 20), (1, 0, 3), (5, 20, 20), 25)
    chart = histogram("chart", "answers", values, "{:g} s".format)
    assert [column.title for column in chart.columns] == [
        "0 s to 10 s\n1 answers (25 %)",
        "10 s to 20 s\n0 answers (0 %)",
        "20 s and more\n3 answers (75 %)",
    ]
