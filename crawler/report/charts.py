"""Charts as SVG without a script or a library: lengths across are shares of the width, so that a chart fits any page.

Letters and heights are in pixels and stay readable on a narrow screen; colours are the style sheet's, by class, so that
they follow light and dark. Every column tells its figures in a ``title``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from crawler.report.markup import Node, el

_TOP, _BOTTOM = 8, 172  # pixels
_HEIGHT = 196
_LABELS = 8


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its label below, what it is in full, a value for each series. A ``gap`` is time left out."""

    label: str
    title: str
    values: Sequence[float] = ()
    gap: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """One kind of value; ``colour`` is a class of the style sheet."""

    name: str
    colour: str


def columns(
    columns: Sequence[Column], series: Sequence[Series], what: str, *, every: int | None = None, edges: bool = False
) -> Node:
    """Stacked columns. ``what`` is told to those who cannot see them; every how many columns a label stands, at their
    middles or their left ``edges``."""
    top = nice_ceiling(max((sum(column.values) for column in columns), default=0))
    svg = el("svg", class_="columns", height=_HEIGHT, role="img", aria_label=what)
    for step in range(5):
        y = _y(step / 4)
        svg.append(el("line", class_="grid", x1="0", x2="100%", y1=y, y2=y))
        svg.append(el("text", brief(top * step / 4), class_="ylabel", x="-8", y=y + 4))
    width = 100 / max(1, len(columns))
    distance = every or max(1, -(-len(columns) // _LABELS))
    for n, column in enumerate(columns):
        svg.append(_gap(column, n * width, width) if column.gap else _column(column, series, n * width, width, top))
        if n % distance == 0 and not column.gap:
            x = f"{(n if edges else n + 0.5) * width:.2f}%"
            minor = "xlabel minor" if n // distance % 2 else "xlabel"
            svg.append(el("text", column.label, class_=minor, x=x, y=_HEIGHT - 6))
    shown = [kind for n, kind in enumerate(series) if any(c.values[n] for c in columns if not c.gap)]
    return el("figure", svg, legend(shown) if len(series) > 1 else None)


def _column(column: Column, series: Sequence[Series], x: float, width: float, top: float) -> Node:
    group = el("g", el("title", column.title), class_="tip")
    group.append(el("rect", class_="hit", x=f"{x:.2f}%", width=f"{width:.2f}%", y=_TOP, height=_BOTTOM - _TOP))
    below = 0.0
    for kind, value in zip(series, column.values, strict=True):
        if value:
            y, base = _y((below + value) / top), _y(below / top)
            below += value
            height = max(base - y, 1.5)  # what is there is seen
            box = {"x": f"{x + width * 0.08:.2f}%", "width": f"{width * 0.84:.2f}%"}
            group.append(el("rect", class_=kind.colour, y=f"{base - height:.1f}", height=f"{height:.1f}", **box))
    return group


def _gap(column: Column, x: float, width: float) -> Node:
    middle = f"{x + width / 2:.2f}%"
    hit = el("rect", class_="hit", x=f"{x:.2f}%", width=f"{width:.2f}%", y=_TOP, height=_BOTTOM - _TOP)
    line = el("line", class_="gap", x1=middle, x2=middle, y1=_TOP, y2=_BOTTOM)
    return el("g", el("title", column.title), hit, line, class_="tip")


def _y(share: float) -> float:
    return round(_BOTTOM - share * (_BOTTOM - _TOP), 1)


def legend(series: Sequence[Series]) -> Node:
    keys = [el("li", el("span", class_=f"key {kind.colour}"), kind.name) for kind in series]
    return el("ul", *keys, class_="legend")


def bar(share: float, colour: str = "c1") -> Node:
    """A bar across ``share`` of where it stands, of a row that gives its figure beside it."""
    length = f"{max(0.0, min(1.0, share)) * 100:.2f}%"
    return el("svg", el("rect", class_=colour, width=length, height="100%", rx=2), class_="bar", aria_hidden="true")


def stacked_bar(parts: Sequence[tuple[Series, int]], what: str) -> Node:
    """One whole divided into its parts, with a legend that counts them."""
    total = sum(value for _, value in parts) or 1
    svg = el("svg", class_="stack", role="img", aria_label=what)
    x = 0.0
    for kind, value in parts:
        if value:
            title = el("title", f"{kind.name}: {value:,} ({percent(value / total)})")
            box = el("rect", class_=kind.colour, x=f"{x:.3f}%", width=f"{value / total * 100:.3f}%", height="100%")
            svg.append(el("g", title, box, class_="tip"))
            x += value / total * 100
    keys = [Series(f"{kind.name} {value:,}", kind.colour) for kind, value in parts if value]
    return el("figure", svg, legend(keys))


def histogram(
    bounds: Sequence[float], counts: Sequence[int], show: Callable[[float], str], noun: str, what: str
) -> Node:
    """Columns for classes between bounds, the last one open."""
    total = sum(counts) or 1
    spans = [f"{show(low)} to {show(high)}" for low, high in pairwise(bounds)] + [f"{show(bounds[-1])} and more"]
    made = [
        Column(show(low), f"{span}\n{count:,} {noun} ({percent(count / total)})", (count,))
        for low, span, count in zip(bounds, spans, counts, strict=True)
    ]
    return columns(made, [Series(noun, "c1")], what, edges=True)


def nice_ceiling(value: float) -> float:
    """The least of 4, 8, 12, 20, 24, 32, 40, 60, 80, 100, 120, 160, 200 … not below it: a quarter of it is whole."""
    if value <= 12:
        return next(top for top in (4.0, 8.0, 12.0) if value <= top)
    power = 10.0 ** math.floor(math.log10(value))
    return next(top for factor in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10) if (top := factor * power) >= value)


def brief(value: float) -> str:
    """``950``, ``1.5k``, ``20k``, ``3M``."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.2f}".rstrip("0").rstrip(".") + name
    return f"{value:g}"


def percent(share: float) -> str:
    """``12 %``, ``0.3 %``, ``< 0.1 %``."""
    if 0 < share < 0.001:
        return "< 0.1 %"
    return f"{share * 100:.0f} %" if share >= 0.1 or not share else f"{share * 100:.1f} %"
