"""The report's charts, made from the facts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING

from crawler.formatting import duration, many
from crawler.report.facts import Distribution, Facts, Slot
from crawler.report.formats import moment, percent, time_label
from crawler.report.geometry import Column, ColumnChart, Interval, Segment, Series, column_chart, interval, stacked_bar
from crawler.report.labels import ANSWER_SERIES, STATES

if TYPE_CHECKING:
    from crawler.sampling.survey import Figure

_TIME_LABELS = 6
_DEPTH_LABELS = 12
_MAX_EMPTY_SLOTS = 3


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
