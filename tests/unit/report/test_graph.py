"""The picture of the site graph: the same graph gives the same picture, and what hangs together stands together."""

from __future__ import annotations

from itertools import combinations
from statistics import mean

import pytest

from crawler.report.facts import Graph
from crawler.report.graph import layout, picture
from crawler.report.markup import Node


def two_groups() -> dict[tuple[int, int], int]:
    """Two groups of eight, each linked all to all, and one link between them."""
    return {pair: 10 for start in (0, 8) for pair in combinations(range(start, start + 8), 2)} | {(0, 8): 1}


def test_what_hangs_together_stands_together() -> None:
    places = layout(16, two_groups())
    within = mean(abs(places[a] - places[b]) for a, b in combinations(range(8), 2))
    across = mean(abs(places[a] - places[b]) for a in range(8) for b in range(8, 16))
    assert within < 0.7 * across


@pytest.mark.parametrize("nodes", [0, 1, 2, 60])
def test_places_are_distinct_within_the_picture_and_always_the_same(nodes: int) -> None:
    links = {(n, n + 1): n + 1 for n in range(nodes - 1)}
    places = layout(nodes, links)
    assert layout(nodes, links) == places
    assert len(set(places)) == len(places) == nodes
    assert all(0 <= place.real <= 1 and 0 <= place.imag <= 1 for place in places)


def drawn(graph: Graph) -> Node:
    return picture(graph, [site for site, _ in graph.sites])


def test_both_directions_are_one_line_that_tells_both() -> None:
    node = drawn(Graph([("a.test", 9), ("b.test", 4), ("c.test", 0)], {(0, 1): 5, (1, 0): 2, (0, 2): 1}, 2))
    said = {title.text for title in node.iter("title")}
    assert {"a.test → b.test: 5 links\nb.test → a.test: 2 links", "a.test → c.test: 1 link"} <= said
    assert {"a.test\n9 pages", "b.test\n4 pages", "c.test\nlinked to, not fetched"} <= said
    assert len(list(node.iter("line"))) == 2


def test_labels_do_not_cover_each_other() -> None:
    """On a picture as wide as labels are measured for: 6.2 pixels a letter, 13 a line."""
    names = [f"a-rather-long-name-{n}.test" for n in range(60)]
    node = drawn(Graph([(name, 60 - n) for n, name in enumerate(names)], {(0, n): 1 for n in range(1, 60)}, 60))
    boxes = []
    for text in node.iter("text"):
        if text.get("class") != "hidden":
            x, y = (float(text.attrib[key].rstrip("%")) / 100 for key in ("x", "y"))
            boxes.append((x * 1130, y * 660 + float(text.attrib["dy"]), len(text.text or "") * 3.1))
    assert len(boxes) > 10
    for (x, y, half), (x2, y2, half2) in combinations(boxes, 2):
        assert abs(x - x2) > half + half2 or abs(y - y2) > 12
