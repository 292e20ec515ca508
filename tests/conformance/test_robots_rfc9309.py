"""The cases of Google's two public robots.txt suites, all of which the ``rfc9309`` reading must agree with."""

import json
from pathlib import Path

import pytest

from crawler.robots import check_case

CASES = [json.loads(line) for line in Path(__file__).with_name("robots_rfc9309.jsonl").read_text("utf-8").splitlines()]


def test_all_cases_are_there() -> None:
    assert len(CASES) == 325


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_rfc9309_conformance(case: dict[str, object]) -> None:
    assert check_case({**case, "reading": "rfc9309"})["allowed"] is case["allowed"]


@pytest.mark.parametrize("case", [case for case in CASES if not case["allowed"]], ids=lambda case: case["name"])
def test_strict_forbids_what_rfc9309_forbids(case: dict[str, object]) -> None:
    assert check_case({**case, "reading": "strict"})["allowed"] is False
