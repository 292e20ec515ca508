"""A shorter form of `python -m tests.bench coverage`: unmarked intervals hold at least 94 times of 100.

One design is judged each time, all of them with ``-m long``.
"""

from __future__ import annotations

import pytest

from tests.bench.coverage import DESIGNS, MUST, WEBS, WIDE_DESIGNS, WIDE_WEBS, measure

pytestmark = pytest.mark.slow

DRAWS = 400


_CASES = [
    (web, design)
    for web in WEBS
    for design in ("uniform 600", "2 of each of 60 sites", "5 of each of 60 sites", "20 of each of 60 sites")
]
_SHORT = ("hubs", "5 of each of 60 sites")


@pytest.mark.parametrize(
    ("name", "design"), [case if case == _SHORT else pytest.param(*case, marks=pytest.mark.long) for case in _CASES]
)
def test_unmarked_intervals_hold(name: str, design: str) -> None:
    web = WEBS[name]()
    is_large = design in ("uniform 600", "20 of each of 60 sites")
    if not is_large:  # the intervals of means are marked
        web.values = {name: values for name, values in web.values.items() if name not in ("size", "links")}
    found = measure(web, DESIGNS[design], DRAWS)
    shares = {name: each.share()[0] for name, each in found.items() if each.unmarked}
    assert min(shares.values()) >= MUST, shares
    assert {"size", "links"} <= shares.keys() or not is_large or web.name == "nonresponse"


@pytest.mark.long
@pytest.mark.parametrize("design", ["10 of each of 60 of 300 sites by size", "5 of each of 150 of 300 sites by size"])
def test_unmarked_intervals_of_two_stages_hold(design: str) -> None:
    found = measure(WIDE_WEBS["hubs, 300 sites"](), WIDE_DESIGNS[design], DRAWS)
    assert {name for name, each in found.items() if each.unmarked} == found.keys()
    assert min(each.share()[0] for each in found.values()) >= MUST


@pytest.mark.long
@pytest.mark.parametrize("design", ["2 of each of 60 sites", "3 of each of 60 sites", "5 of each of 60 sites"])
def test_marked_intervals_from_few_urls_of_a_site_hold_nearly_as_often(design: str) -> None:
    """Without the one more unit and the moments of the whole, sizes held 87 times and links 88 times of 100 here."""
    found = measure(WEBS["hubs"](), DESIGNS[design], DRAWS)
    for name in ("size", "links"):
        assert found[name].marked == DRAWS
        assert found[name].held / DRAWS >= 0.92, name
