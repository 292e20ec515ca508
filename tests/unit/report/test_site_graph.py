"""The picture of the site graph: the same graph gives the same picture, and linked sites are near each other."""

from __future__ import annotations

from itertools import combinations
from statistics import mean

import pytest

from crawler.report.facts import SiteGraph
from crawler.report.site_graph import host_names, layout, picture


def two_groups() -> dict[tuple[int, int], int]:
    """Two groups of eight, each linked all to all, and one link between them."""
    return {pair: 10 for start in (0, 8) for pair in combinations(range(start, start + 8), 2)} | {(0, 8): 1}


def test_linked_nodes_are_near_each_other() -> None:
    places = layout(16, two_groups())
    within = mean(abs(places[a] - places[b]) for a, b in combinations(range(8), 2))
    across = mean(abs(places[a] - places[b]) for a in range(8) for b in range(8, 16))
    assert within < 0.7 * across


@pytest.mark.parametrize("nodes", [0, 1, 2, 60])
def test_places_are_distinct_inside_the_unit_square_and_deterministic(nodes: int) -> None:
    links = {(n, n + 1): n + 1 for n in range(nodes - 1)}
    places = layout(nodes, links)
    assert layout(nodes, links) == places
    assert len(set(places)) == len(places) == nodes
    assert all(0 <= place.real <= 1 and 0 <= place.imag <= 1 for place in places)


def test_both_directions_are_one_edge_whose_title_names_both() -> None:
    drawn = picture(
        SiteGraph(
            [("http://a.test", 9), ("http://b.test", 4), ("http://c.test", 0)], {(0, 1): 5, (1, 0): 2, (0, 2): 1}, 2
        )
    )
    assert {edge.title for edge in drawn.edges} == {
        "a.test → b.test: 5 links\nb.test → a.test: 2 links",
        "a.test → c.test: 1 link",
    }
    assert {node.title for node in drawn.nodes} == {
        "a.test\n9 pages",
        "b.test\n4 pages",
        "c.test\nlinked to, not fetched",
    }
    assert len(drawn.edges) == 2


def test_a_host_name_keeps_its_scheme_if_two_sites_differ_only_in_that() -> None:
    sites = ["http://a.test", "https://a.test", "http://b.test"]
    assert host_names(sites) == ["http://a.test", "https://a.test", "b.test"]


def test_labels_do_not_cover_each_other() -> None:
    """In a picture of the size that labels are measured for: 6.2 pixels a letter, 13 pixels a line."""
    names = [f"a-rather-long-name-{n}.test" for n in range(60)]
    drawn = picture(SiteGraph([(name, 60 - n) for n, name in enumerate(names)], {(0, n): 1 for n in range(1, 60)}, 60))
    boxes = [
        (node.x * 11.30, node.y * 6.60 + node.label_dy, len(node.label) * 3.1)
        for node in drawn.nodes
        if node.label_class != "hidden"
    ]
    assert len(boxes) > 10
    for (x, y, half), (x2, y2, half2) in combinations(boxes, 2):
        assert abs(x - x2) > half + half2 or abs(y - y2) > 12
