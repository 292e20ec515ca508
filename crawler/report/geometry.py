"""The geometry of the report's charts. The template ``charts.html.j2`` draws it as SVG.

Horizontal lengths are percentages of the chart's width, so a chart fits a page of any width. Vertical lengths are
pixels, so labels stay readable on a narrow screen. A colour is a class of the style sheet, which has a light and a dark
set of colours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from crawler.report.formats import brief

#: Vertical extent of a column chart, in pixels: the top of the highest column, the base line, the whole chart.
TOP, BASE, HEIGHT = 8, 172, 196

_LABELS = 8
_MIN_BOX_PX = 1.5  # a value above 0 is always visible


@dataclass(frozen=True, slots=True)
class Series:
    """One kind of value in a chart."""

    name: str
    colour: str


@dataclass(frozen=True, slots=True)
class Column:
    """The data of one column: a value for each series. A ``gap`` stands for a span of time that the chart omits."""

    label: str
    title: str
    values: Sequence[float] = ()
    gap: bool = False


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle: ``x`` and ``width`` in percent, ``y`` and ``height`` in pixels."""

    colour: str
    x: float
    width: float
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class DrawnColumn:
    """A column with its boxes, lowest first. ``title`` is shown when the pointer is on the column."""

    title: str
    x: float
    width: float
    gap: bool
    boxes: Sequence[Box]


@dataclass(frozen=True, slots=True)
class Label:
    """A label below the columns. The style sheet hides a ``minor`` label on a narrow screen."""

    text: str
    x: float
    minor: bool


@dataclass(frozen=True, slots=True)
class Tick:
    """A value on the vertical axis."""

    text: str
    y: float


@dataclass(frozen=True, slots=True)
class ColumnChart:
    """A chart of stacked columns. ``name`` describes it to a screen reader; ``legend`` is empty for a single series."""

    name: str
    ticks: Sequence[Tick]
    columns: Sequence[DrawnColumn]
    labels: Sequence[Label]
    legend: Sequence[Series]


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a stacked bar. ``x`` and ``width`` are in percent, ``share`` is in [0, 1]."""

    series: Series
    value: int
    x: float
    width: float
    share: float


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its interval, and the bounds over missing units, in percent of the width."""

    value: float
    low: float
    width: float
    lowest: float
    widest: float


def interval(numbers: Sequence[float | None], most: float) -> Interval | None:
    """Lay out ``value, low, high, lowest, highest`` on a scale from 0 to ``most``; ``None`` if there is no interval.

    The bounds may be ``None``. What is off the scale is cut.
    """
    value, low, high, lowest, highest = numbers
    if not most or value is None or low is None or high is None or not all(map(math.isfinite, (value, low, high))):
        return None
    lowest, highest = (low if lowest is None else lowest), (high if highest is None else highest)
    places = [round(100 * min(max(number / most, 0.0), 1.0), 2) for number in (value, low, high, lowest, highest)]
    return Interval(places[0], places[1], places[2] - places[1], places[3], places[4] - places[3])


def column_chart(
    name: str, columns: Sequence[Column], series: Sequence[Series], *, every: int | None = None, edges: bool = False
) -> ColumnChart:
    """Lay out stacked columns.

    Every ``every``-th column has a label, by default so that a chart has at most 8 labels. A label stands below the
    middle of its column, or below the left edge if ``edges`` is true.
    """
    top = nice_ceiling(max((sum(column.values) for column in columns), default=0))
    width = 100 / max(1, len(columns))
    distance = every or max(1, -(-len(columns) // _LABELS))
    used = [kind for n, kind in enumerate(series) if any(column.values[n] for column in columns if not column.gap)]
    return ColumnChart(
        name,
        [Tick(brief(top * step / 4), _y(step / 4)) for step in range(5)],
        [_drawn(column, series, n * width, width, top) for n, column in enumerate(columns)],
        [
            Label(column.label, round((n if edges else n + 0.5) * width, 2), n // distance % 2 == 1)
            for n, column in enumerate(columns)
            if n % distance == 0 and not column.gap
        ],
        used if len(series) > 1 else (),
    )


def _drawn(column: Column, series: Sequence[Series], x: float, width: float, top: float) -> DrawnColumn:
    boxes = []
    below = 0.0
    for kind, value in zip(series, () if column.gap else column.values, strict=not column.gap):
        if value:
            base = _y(below / top)
            below += value
            height = max(base - _y(below / top), _MIN_BOX_PX)
            box_x, box_width = round(x + width * 0.08, 2), round(width * 0.84, 2)
            boxes.append(Box(kind.colour, box_x, box_width, round(base - height, 1), round(height, 1)))
    return DrawnColumn(column.title, round(x, 2), round(width, 2), column.gap, boxes)


def _y(share: float) -> float:
    return round(BASE - share * (BASE - TOP), 1)


def stacked_bar(parts: Sequence[tuple[Series, int]]) -> list[Segment]:
    """Lay out the parts above 0 of a whole, from left to right."""
    total = sum(value for _, value in parts)
    segments = []
    x = 0.0
    for series, value in parts:
        if value:
            share = value / total
            segments.append(Segment(series, value, round(x, 3), round(share * 100, 3), share))
            x += share * 100
    return segments


def nice_ceiling(value: float) -> float:
    """The least of 4, 8, 12, 20, 24, 32, 40, 60, 80, 100, 120, 160, 200 … that is at least ``value``.

    A quarter of each of these is a whole number.
    """
    if value <= 12:
        return next(top for top in (4.0, 8.0, 12.0) if value <= top)
    power = 10.0 ** math.floor(math.log10(value))
    return next(top for factor in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10) if (top := factor * power) >= value)
