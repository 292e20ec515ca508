"""Small worlds: a drawn web, drawn disturbances, the real engine and the real store. See :mod:`tests.world`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.world.plan import draw_plan
from tests.world.worlds import report, run_world, shrink

_CHUNKS, _WORLDS_PER_CHUNK, _HOSTS = 10, 10, 8
_SHORT = 1  # chunks; the others are long tests


@pytest.mark.slow
@pytest.mark.parametrize(
    "chunk", [*range(_SHORT), *(pytest.param(chunk, marks=pytest.mark.long) for chunk in range(_SHORT, _CHUNKS))]
)
def test_small_worlds(chunk: int) -> None:
    for seed in range(chunk * _WORLDS_PER_CHUNK, (chunk + 1) * _WORLDS_PER_CHUNK):
        result = run_world(draw_plan(seed, _HOSTS))
        if result.violations:
            smaller = shrink(result.plan, lambda plan: bool(run_world(plan).violations))
            pytest.fail(f"{report(result)}\nshrunk: {report(run_world(smaller))}")


def test_a_world_repeats_exactly_in_another_process() -> None:
    """The hashes of texts differ between both: those of this process are drawn at its start."""
    seed = 17
    here = run_world(draw_plan(seed, _HOSTS)).digest
    said = subprocess.run(
        [sys.executable, "-m", "tests.world", "--seed", str(seed), "--hosts", str(_HOSTS)],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert here[:12] in said.stdout, said.stdout + said.stderr


def test_a_world_with_several_workers_repeats_exactly() -> None:
    plan = draw_plan(22, _HOSTS, is_quiet=False, workers=3)
    first = run_world(plan)
    assert first.violations == []
    assert run_world(plan).digest == first.digest


def test_a_world_of_days_visits_pages_again() -> None:
    result = run_world(draw_plan(3, _HOSTS, days=20))
    assert result.violations == []
    assert result.pages > result.urls


def test_a_crawl_does_not_end_while_an_order_is_carried_out() -> None:
    """A worker that stood still reads the order to unblock a site when nothing else is left."""
    assert run_world(draw_plan(47, 8, is_quiet=False, workers=2)).violations == []
