"""The picture of the site graph: the places of its nodes, and the geometry that ``charts.html.j2`` draws.

The layout is deterministic: the same graph gives the same picture.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crawler.formatting import many
from crawler.report.facts import SiteGraph
from crawler.report.formats import short

_ROUNDS = 300
_MAX_EDGES = 240
_WIDE, _NARROW = (1130, 660), (330, 480)  # the least size of the picture in pixels, as the style sheet sets it
_LETTER_PX, _LINE_PX = 6.2, 13  # of a label
_LABEL_LETTERS = 26
_BELOW, _ABOVE = 1, -1
_ALWAYS_LABELLED = 10  # the largest sites have a label even if the label covers a smaller circle


@dataclass(frozen=True, slots=True)
class Edge:
    """A line between two sites; ``x`` and ``y`` in percent of the picture, ``width`` in pixels."""

    a: int
    b: int
    title: str
    x1: float
    y1: float
    x2: float
    y2: float
    width: float
    opacity: float


@dataclass(frozen=True, slots=True)
class Node:
    """A circle with its label; ``x`` and ``y`` in percent of the picture, ``radius`` and ``label_dy`` in pixels.

    ``label_class`` is ``minor`` if the label is hidden on a narrow screen, ``hidden`` if it is always hidden.
    """

    number: int
    title: str
    fetched: bool
    x: float
    y: float
    radius: float
    label: str
    label_class: str
    label_dy: int


@dataclass(frozen=True, slots=True)
class Picture:
    """The edges, heaviest first, and the nodes, the largest last, so that it is drawn above the others."""

    edges: Sequence[Edge]
    nodes: Sequence[Node]


def layout(nodes: int, links: Mapping[tuple[int, int], int]) -> list[complex]:
    """Places in the unit square for nodes joined by weighted links, by the forces of Fruchterman and Reingold (1991).

    The nodes start on a spiral instead of at random.
    """
    if not nodes:
        return []
    ideal = 1 / math.sqrt(nodes)
    golden = math.pi * (3 - math.sqrt(5))
    places = [cmath.rect(0.5 * math.sqrt((n + 0.5) / nodes), n * golden) for n in range(nodes)]
    heaviest = math.log1p(max(links.values(), default=1))
    pulls = [(a, b, 0.25 + math.log1p(weight) / heaviest) for (a, b), weight in links.items()]
    for step in range(_ROUNDS):
        forces = [-place * ideal * 0.8 for place in places]  # a little gravity keeps separate parts together
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
        longest = 0.1 * (1 - step / _ROUNDS)
        for n, force in enumerate(forces):
            places[n] += force * min(1.0, longest / max(abs(force), 1e-9))
    return _stretched(places)


def _stretched(places: Sequence[complex]) -> list[complex]:
    """Stretch the picture to fill the unit square. Each coordinate is the mean of its rank and its scaled value.

    Values alone would leave a dense part dense; ranks alone would lose the distances.
    """
    across = _spread_out([place.real for place in places])
    down = _spread_out([place.imag for place in places])
    return [complex(x, y) for x, y in zip(across, down, strict=True)]


def _spread_out(values: Sequence[float]) -> list[float]:
    low, high = min(values), max(values)
    ranks = {n: rank for rank, n in enumerate(sorted(range(len(values)), key=values.__getitem__))}
    last = max(1, len(values) - 1)
    return [0.5 * ((value - low) / ((high - low) or 1)) + 0.5 * ranks[n] / last for n, value in enumerate(values)]


def picture(graph: SiteGraph) -> Picture:
    """Lay out a site graph: a circle's size grows with the pages of its site, a line's width with its links."""
    names = host_names([site for site, _ in graph.sites])
    both: dict[tuple[int, int], int] = {}
    for (a, b), links in graph.links.items():
        pair = (min(a, b), max(a, b))
        both[pair] = both.get(pair, 0) + links
    places = [complex(0.09 + 0.82 * p.real, 0.05 + 0.88 * p.imag) for p in layout(len(names), both)]
    heaviest = math.log1p(max(both.values(), default=1))
    edges = [
        _edge(graph, names, places, pair, math.log1p(links) / heaviest)
        for pair, links in sorted(both.items(), key=lambda item: -item[1])[:_MAX_EDGES]
    ]
    biggest = math.sqrt(max((pages for _, pages in graph.sites), default=1) or 1)
    radii = [4 + 14 * math.sqrt(pages) / biggest if pages else 4.5 for _, pages in graph.sites]
    labels = [short(name, _LABEL_LETTERS) for name in names]
    wide = _placed_labels(dict.fromkeys(range(len(names)), (_BELOW, _ABOVE)), places, radii, labels, _WIDE)
    # A narrow picture has no room beside the circles, so there a label may cover a circle.
    kept_sides = {n: (side,) for n, side in wide.items()}
    narrow = _placed_labels(kept_sides, places, [0.0] * len(places), labels, _NARROW)
    nodes = []
    for n in reversed(range(len(names))):
        pages = graph.sites[n][1]
        nodes.append(
            Node(
                number=n,
                title=f"{names[n]}\n{many(pages, 'page') if pages else 'linked to, not fetched'}",
                fetched=pages > 0,
                x=_percent(places[n].real),
                y=_percent(places[n].imag),
                radius=round(radii[n], 1),
                label=labels[n],
                label_class="" if n in narrow else "minor" if n in wide else "hidden",
                label_dy=round(radii[n] + 11 if wide.get(n, _BELOW) == _BELOW else -radii[n] - 4),
            )
        )
    return Picture(edges, nodes)


def host_names(sites: Sequence[str]) -> list[str]:
    """Sites without their scheme, unless two sites differ only in that."""
    hosts = [site.partition("://")[2] or site for site in sites]
    return [host if hosts.count(host) == 1 else site for host, site in zip(hosts, sites, strict=True)]


def _edge(
    graph: SiteGraph, names: Sequence[str], places: Sequence[complex], pair: tuple[int, int], share: float
) -> Edge:
    """The line between two sites; ``share`` is the logarithm of its links, as a share of that of the heaviest line."""
    a, b = pair
    title = [
        f"{names[x]} → {names[y]}: {many(n, 'link')}" for x, y in ((a, b), (b, a)) if (n := graph.links.get((x, y), 0))
    ]
    return Edge(
        a=a,
        b=b,
        title="\n".join(title),
        x1=_percent(places[a].real),
        y1=_percent(places[a].imag),
        x2=_percent(places[b].real),
        y2=_percent(places[b].imag),
        width=round(0.6 + 3.4 * share**2, 1),
        opacity=round(0.25 + 0.6 * share, 2),
    )


def _placed_labels(
    nodes: Mapping[int, Sequence[int]],
    places: Sequence[complex],
    radii: Sequence[float],
    labels: Sequence[str],
    size: tuple[int, int],
) -> dict[int, int]:
    """The nodes that have a label in a picture of ``size`` pixels, and the side that the label is on.

    ``nodes`` gives the allowed sides of each node, in order of preference. A node has a label if the label covers no
    label before it and no circle whose radius is above 0. The first nodes may cover circles.
    """
    width, height = size
    circles = [(place.real * width, place.imag * height, radius) for place, radius in zip(places, radii, strict=True)]
    taken: list[tuple[float, float, float]] = []
    chosen: dict[int, int] = {}
    for n, sides in nodes.items():
        x, half = places[n].real * width, len(labels[n]) * _LETTER_PX / 2
        for side in sides:
            y = places[n].imag * height + side * (radii[n] + 8)
            free = all(abs(x - x2) > half + half2 or abs(y - y2) > _LINE_PX for x2, y2, half2 in taken)
            free &= all(
                abs(x - x2) > half + r or abs(y - y2) > _LINE_PX / 2 + r
                for x2, y2, r in circles
                if r and n >= _ALWAYS_LABELLED
            )
            if free and half <= x <= width - half:
                taken.append((x, y, half))
                chosen[n] = side
                break
    return chosen


def _percent(share: float) -> float:
    return round(share * 100, 2)
