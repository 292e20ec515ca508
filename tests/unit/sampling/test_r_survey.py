"""The estimators agree with R's ``survey`` package on twenty worked designs.

``r_survey.json`` has the figures of survey 4.1.1. Where R is installed, it computes them again.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.survey_designs import DESIGNS, r, script

KEPT: dict[str, list[float]] = json.loads((Path(__file__).parent / "r_survey.json").read_text())


@pytest.mark.parametrize("name", DESIGNS)
def test_the_figures_are_those_of_r(name: str) -> None:
    estimate = DESIGNS[name].ours(DESIGNS[name].columns)
    assert (estimate.value, estimate.standard_error) == pytest.approx(KEPT[name], rel=1e-9)
    assert estimate.low < estimate.value < estimate.high


@pytest.fixture(scope="module")
def figures_of_r() -> dict[str, list[float]]:
    """The value and the standard error of each design. One process computes all: loading the package takes seconds."""
    lines = r(script(DESIGNS.values())).splitlines()
    return {name: [float(word) for word in line.split()] for name, line in zip(DESIGNS, lines, strict=True)}


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_r_gives_the_figures_that_are_kept(figures_of_r: dict[str, list[float]], name: str) -> None:
    assert figures_of_r[name] == pytest.approx(KEPT[name], rel=1e-9)
