"""The report's charts: what they show, and its layout, which the template ``charts.html.j2`` draws as SVG.

Horizontal lengths are percentages of the chart's width, so a chart fits a page of any width. Vertical lengths are
pixels, so labels stay readable on a narrow screen. A colour is a class of the style sheet, which has a light and a dark
set of colours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from crawler.formatting import duration, many
from crawler.model import State
from crawler.report.formats import brief, moment, percent, time_label
from crawler.report.gather import Distribution, Facts, Slot

if TYPE_CHECKING:
    from crawler.sampling.survey import Figure

#: Vertical extent of a column chart, in pixels: the top of the highest column, the base line, the whole chart.
TOP, BASE, HEIGHT = 8, 172, 196

_LABELS = 8
_TIME_LABELS = 6
_DEPTH_LABELS = 12
_MAX_EMPTY_SLOTS = 3
_MIN_BOX_PX = 1.5  # a value above 0 is always visible


class Series(NamedTuple):
    """One kind of value in a chart."""

    name: str
    colour: str


class Column(NamedTuple):
    """The data of one column: a value for each series. A ``gap`` stands for a span of time that the chart omits."""

    label: str
    title: str
    values: Sequence[float] = ()
    gap: bool = False


class Box(NamedTuple):
    """A rectangle: ``x`` and ``width`` in percent, ``y`` and ``height`` in pixels."""

    colour: str
    x: float
    width: float
    y: float
    height: float


class DrawnColumn(NamedTuple):
    """A column with its boxes, lowest first. ``title`` is shown when the pointer is on the column."""

    title: str
    x: float
    width: float
    gap: bool
    boxes: Sequence[Box]


class Label(NamedTuple):
    """A label below the columns. The style sheet hides a ``minor`` label on a narrow screen."""

    text: str
    x: float
    minor: bool


class ColumnChart(NamedTuple):
    """A chart of stacked columns. ``name`` describes it to a screen reader; ``legend`` is empty for a single series."""

    name: str
    ticks: Sequence[tuple[str, float]]  # a value on the vertical axis, and its place
    columns: Sequence[DrawnColumn]
    labels: Sequence[Label]
    legend: Sequence[Series]


class Segment(NamedTuple):
    """A part of a stacked bar. ``x`` and ``width`` are in percent, ``share`` is in [0, 1]."""

    series: Series
    value: int
    x: float
    width: float
    share: float


class Interval(NamedTuple):
    """An estimate with its interval, and the bounds over missing units, in percent of the width."""

    value: float
    low: float
    width: float
    lowest: float
    widest: float


STATES: Mapping[State, Series] = {
    State.FETCHED: Series("fetched", "c2"),
    State.REDIRECTED: Series("redirected", "c1"),
    State.QUEUED: Series("queued", "c5"),
    State.EXCLUDED: Series("excluded", "c6"),
    State.FAILED: Series("failed", "c4"),
}

#: In the order of ``ANSWERS`` in :mod:`crawler.report.gather`.
ANSWER_SERIES = (
    Series("2xx success", "c2"),
    Series("3xx redirect", "c1"),
    Series("4xx error", "c3"),
    Series("5xx error", "c4"),
    Series("no answer", "c6"),
)


def intervals(figures: Sequence[Figure]) -> list[Interval | None]:
    """The interval of each estimate, on one scale for all of the same unit and of the same quantity."""

    def scale_of(figure: Figure) -> tuple[object, str]:
        return figure.unit, "" if figure.unit == "share" else figure.what

    most: dict[tuple[object, str], float] = {}
    for figure in figures:
        numbers = (figure.estimate.value, figure.estimate.high)
        high = 1.0 if figure.unit == "share" else max((number for number in numbers if isfinite(number)), default=0.0)
        most[scale_of(figure)] = max(most.get(scale_of(figure), 0.0), high)
    return [
        interval((made.value, made.low, made.high, made.lowest, made.highest), most[scale_of(figure)])
        for figure in figures
        for made in (figure.estimate,)
    ]


def url_states(facts: Facts) -> list[Segment]:
    """URLs by state."""
    return stacked_bar([(series, facts.counts.states[state]) for state, series in STATES.items()])


def pages_over_time(facts: Facts) -> ColumnChart:
    """Pages fetched in each slot of the timeline."""
    columns = _time_columns(facts, lambda slot: (slot.pages,), lambda slot: many(slot.pages, "page"))
    return column_chart("Pages over time", columns, [Series("pages", "c2")], every=-(-len(columns) // _TIME_LABELS))


def requests_over_time(facts: Facts) -> ColumnChart:
    """Requests by answer in each slot of the timeline."""
    columns = _time_columns(facts, lambda slot: slot.requests, _requests_by_answer)
    return column_chart("Requests over time", columns, ANSWER_SERIES, every=-(-len(columns) // _TIME_LABELS))


def _requests_by_answer(slot: Slot) -> str:
    return "\n".join(f"{n:,} × {kind.name}" for n, kind in zip(slot.requests, ANSWER_SERIES, strict=True) if n)


def _time_columns(
    facts: Facts, values: Callable[[Slot], Sequence[float]], title: Callable[[Slot], str]
) -> list[Column]:
    """A column for each slot. A run of empty slots that is longer than 3 becomes one gap."""
    width_s, slots = facts.timeline.width_s, facts.timeline.slots
    empty = (0,) * len(values(slots[0]))
    columns: list[Column] = []
    for before, slot in pairwise((None, *slots)):
        assert slot is not None
        missing = 0 if before is None else slot.number - before.number - 1
        if missing > _MAX_EMPTY_SLOTS:
            columns.append(Column("", f"nothing for {duration(missing * width_s)}", gap=True))
        else:
            columns += [Column("", "nothing", empty)] * missing
        at = slot.number * width_s
        columns.append(Column(time_label(at, width_s), f"{moment(at)} UTC\n{title(slot)}", values(slot)))
    return columns


def urls_by_depth(facts: Facts) -> ColumnChart:
    """URLs by depth and state."""
    columns = []
    for depth in range(max(facts.depths, default=0) + 1):
        urls = facts.depths.get(depth, {})
        by_state = [f"{urls[state]:,} {state}" for state in STATES if urls.get(state)]
        title = "\n".join([f"{many(depth, 'link')} from a seed", *by_state])
        columns.append(Column(str(depth), title, [urls.get(state, 0) for state in STATES]))
    every = -(-len(columns) // _DEPTH_LABELS)
    return column_chart("URLs by depth and state", columns, list(STATES.values()), every=every)


def histogram(name: str, noun: str, values: Distribution, show: Callable[[float], str]) -> ColumnChart:
    """How many values are in each class; ``show`` writes a bound, ``noun`` (a plural) says what has the values."""
    total = values.total or 1
    classes = [f"{show(low)} to {show(high)}" for low, high in pairwise(values.bounds)]
    classes += [f"{show(bound)} and more" for bound in values.bounds[-1:]]
    columns = [
        Column(show(low), f"{title}\n{n:,} {noun} ({percent(n / total)})", (n,))
        for low, title, n in zip(values.bounds, classes, values.counts, strict=True)
    ]
    return column_chart(name, columns, [Series(noun, "c1")], edges=True)


# --- layout ---------------------------------------------------------------------------------


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
        [(brief(top * step / 4), _y(step / 4)) for step in range(5)],
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
