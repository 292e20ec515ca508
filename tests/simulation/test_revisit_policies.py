"""On a web whose changes are known, the policy finds at least as many as other policies.

The same from a seed at each run; ``python -m tests.bench revisit`` is the long form, with the figures.
"""

from __future__ import annotations

import pytest

from tests.bench.revisit import PEERS, POLICIES, World, play


@pytest.mark.parametrize(
    "dated", [True, pytest.param(False, marks=pytest.mark.long)], ids=["with Last-Modified", "without"]
)
def test_the_policy_finds_at_least_as_many_changes_as_others(dated: bool) -> None:
    world = World(pages=30, days=4, per_day=16, seed=1, dated=dated)
    ours = play(world, None)
    peers = [play(world, POLICIES[name]) for name in PEERS]
    assert {score.visits for score in peers} == {ours.visits}, "all have the same budget, and spend it"
    assert ours.found >= max(score.found for score in peers) > 0
