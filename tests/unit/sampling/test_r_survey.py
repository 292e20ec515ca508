"""The estimators agree with R's ``survey`` package on twenty worked designs.

``r_survey.json`` has the figures of survey 4.1.1. Where R is installed, it computes them again.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.survey_designs import DESIGNS, script

KEPT: dict[str, list[float]] = json.loads((Path(__file__).parent / "r_survey.json").read_text())


@cache
def has_survey() -> bool:
    return shutil.which("Rscript") is not None and not run("library(survey)").returncode


def run(statements: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["Rscript", "-"], input=statements, text=True, capture_output=True, check=False)


@pytest.mark.parametrize("name", DESIGNS)
def test_the_figures_are_those_of_r(name: str) -> None:
    estimate = DESIGNS[name].ours(DESIGNS[name].columns)
    assert (estimate.value, estimate.standard_error) == pytest.approx(KEPT[name], rel=1e-9)
    assert estimate.low < estimate.value < estimate.high


@cache
def figures_of_r() -> dict[str, list[float]]:
    """The value and the standard error of each design. One process computes all: loading the package takes seconds."""
    done = run(script(DESIGNS.values()))
    assert not done.returncode, done.stderr
    lines = done.stdout.splitlines()
    return {name: [float(word) for word in line.split()] for name, line in zip(DESIGNS, lines, strict=True)}


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_r_gives_the_figures_that_are_kept(name: str) -> None:
    if not has_survey():
        pytest.skip("R or its package survey is not installed")
    assert figures_of_r()[name] == pytest.approx(KEPT[name], rel=1e-9)
