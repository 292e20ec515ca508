"""The picture of the site graph: where its nodes stand (by forces, the same for the same graph), and the drawing."""

from __future__ import annotations

import cmath
import math
from collections.abc import Mapping, Sequence

from crawler.audit.evidence import many
from crawler.report.facts import Graph
from crawler.report.markup import Node, el, short

_ROUNDS = 300
_EDGES_DRAWN = 240
_WIDE, _NARROW = (1130, 660), (330, 480)  # pixels that the picture has at least, as the style sheet sets it
_LETTER, _LINE = 6.2, 13  # of a label
_LABEL_LETTERS = 26
_BELOW, _ABOVE = 1, -1
_FIRST = 10  # the largest are named even if that covers a smaller one


def layout(nodes: int, links: Mapping[tuple[int, int], int]) -> list[complex]:
    """Places in the unit square for nodes joined by weighted links, by Fruchterman and Reingold's forces (1991).

    The beginning is a spiral instead of chance, so that the same graph gives the same picture.
    """
    if not nodes:
        return []
    ideal = 1 / math.sqrt(nodes)
    golden = math.pi * (3 - math.sqrt(5))
    places = [cmath.rect(0.5 * math.sqrt((n + 0.5) / nodes), n * golden) for n in range(nodes)]
    heaviest = math.log1p(max(links.values(), default=1))
    pulls = [(a, b, 0.25 + math.log1p(weight) / heaviest) for (a, b), weight in links.items()]
    for turn in range(_ROUNDS):
        forces = [-place * ideal * 0.8 for place in places]  # a little gravity keeps parts together
        for a in range(nodes):
            for b in range(a):
                apart = places[a] - places[b]
                push = apart * (ideal * ideal / max(abs(apart) ** 2, 1e-6))
                forces[a] += push
                forces[b] -= push
        for a, b, weight in pulls:
            apart = places[a] - places[b]
            pull = apart * (abs(apart) / ideal * weight * 0.35)
            forces[a] -= pull
            forces[b] += pull
        longest = 0.1 * (1 - turn / _ROUNDS)
        for n, force in enumerate(forces):
            places[n] += force * min(1.0, longest / max(abs(force), 1e-9))
    return _fitted(places)


def _fitted(places: Sequence[complex]) -> list[complex]:
    """The same picture, by ranks and sizes stretched to fill the unit square: half each, or a crowd stays a crowd."""
    across = _spread_out([place.real for place in places])
    down = _spread_out([place.imag for place in places])
    return [complex(x, y) for x, y in zip(across, down, strict=True)]


def _spread_out(values: Sequence[float]) -> list[float]:
    low, high = min(values), max(values)
    ranks = {n: rank for rank, n in enumerate(sorted(range(len(values)), key=values.__getitem__))}
    last = max(1, len(values) - 1)
    return [0.5 * ((value - low) / ((high - low) or 1)) + 0.5 * ranks[n] / last for n, value in enumerate(values)]


def picture(graph: Graph, names: Sequence[str]) -> Node:
    """Sites as circles, sized by their pages; lines between them, as wide as their links are many."""
    both: dict[tuple[int, int], int] = {}
    for (a, b), links in graph.links.items():
        pair = (min(a, b), max(a, b))
        both[pair] = both.get(pair, 0) + links
    places = [complex(0.09 + 0.82 * p.real, 0.05 + 0.88 * p.imag) for p in layout(len(names), both)]
    svg = el("svg", class_="graph", role="img", aria_label="Sites, and the links between them")
    heaviest = math.log1p(max(both.values(), default=1))
    for (a, b), links in sorted(both.items(), key=lambda item: -item[1])[:_EDGES_DRAWN]:
        share = math.log1p(links) / heaviest
        svg.append(_edge(graph, names, places, (a, b), share))
    biggest = math.sqrt(max((pages for _, pages in graph.sites), default=1) or 1)
    radii = [4 + 14 * math.sqrt(pages) / biggest if pages else 4.5 for _, pages in graph.sites]
    labels = [short(name, _LABEL_LETTERS) for name in names]
    wide = _labelled(dict.fromkeys(range(len(names)), (_BELOW, _ABOVE)), places, radii, labels, _WIDE)
    fixed = {n: (side,) for n, side in wide.items()}
    narrow = _labelled(fixed, places, [0.0] * len(places), labels, _NARROW)  # there is no room beside the circles
    for n in reversed(range(len(names))):
        kind = "" if n in narrow else "minor" if n in wide else "hidden"
        below = wide.get(n, _BELOW) == _BELOW
        label = el("text", labels[n], class_=kind, dy=f"{radii[n] + 11 if below else -radii[n] - 4:.0f}")
        svg.append(_node(n, names[n], graph.sites[n][1], places[n], radii[n], label))
    return el("figure", svg)


def _edge(graph: Graph, names: Sequence[str], places: Sequence[complex], pair: tuple[int, int], share: float) -> Node:
    """The line between two sites; ``share`` is how much of the heaviest it is, by the logarithm of its links."""
    a, b = pair
    said = [
        f"{names[x]} → {names[y]}: {many(n, 'link')}" for x, y in ((a, b), (b, a)) if (n := graph.links.get((x, y), 0))
    ]
    (x1, y1), (x2, y2) = _where(places[a]), _where(places[b])
    line = el("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke_width=f"{0.6 + 3.4 * share**2:.1f}")
    line.set("opacity", f"{0.25 + 0.6 * share:.2f}")
    return el("g", el("title", "\n".join(said)), line, class_="tip edge", data_a=a, data_b=b)


def _node(n: int, name: str, pages: int, place: complex, radius: float, label: Node) -> Node:
    x, y = _where(place)
    said = f"{name}\n{many(pages, 'page')}" if pages else f"{name}\nlinked to, not fetched"
    label.attrib.update(x=x, y=y)
    kind = "tip node" if pages else "tip node outside"
    return el("g", el("title", said), el("circle", cx=x, cy=y, r=f"{radius:.1f}"), label, class_=kind, data_n=n)


def _labelled(
    nodes: Mapping[int, Sequence[int]],
    places: Sequence[complex],
    radii: Sequence[float],
    labels: Sequence[str],
    frame: tuple[int, int],
) -> dict[int, int]:
    """Which of the nodes get their label in a picture of so many pixels, on which of the sides given: the first ones,
    as long as a label covers no other, and no circle that has a radius (but for the largest)."""
    width, height = frame
    circles = [(place.real * width, place.imag * height, radius) for place, radius in zip(places, radii, strict=True)]
    taken: list[tuple[float, float, float]] = []
    chosen: dict[int, int] = {}
    for n, sides in nodes.items():
        x, half = places[n].real * width, len(labels[n]) * _LETTER / 2
        for side in sides:
            y = places[n].imag * height + side * (radii[n] + 8)
            free = all(abs(x - x2) > half + half2 or abs(y - y2) > _LINE for x2, y2, half2 in taken)
            free &= all(
                abs(x - x2) > half + r or abs(y - y2) > _LINE / 2 + r for x2, y2, r in circles if r and n >= _FIRST
            )
            if free and half <= x <= width - half:
                taken.append((x, y, half))
                chosen[n] = side
                break
    return chosen


def _where(place: complex) -> tuple[str, str]:
    return f"{place.real * 100:.2f}%", f"{place.imag * 100:.2f}%"
