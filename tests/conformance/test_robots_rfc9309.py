"""The cases of Google's two public robots.txt suites, all of which the ``rfc9309`` reading must agree with."""

import json
from pathlib import Path
from typing import Any

from crawler.robots.check import check_case
from tests.listing import require_none

CASES = [json.loads(line) for line in Path(__file__).with_name("robots_rfc9309.jsonl").read_text("utf-8").splitlines()]


def answers(reading: str) -> list[tuple[dict[str, Any], bool]]:
    """Each case with the answer of a reading."""
    return [(case, bool(check_case({**case, "reading": reading})["allowed"])) for case in CASES]


def test_all_cases_are_there() -> None:
    assert len(CASES) == 325


def test_rfc9309_conformance() -> None:
    require_none(f"{case} got {allowed}" for case, allowed in answers("rfc9309") if allowed is not case["allowed"])


def test_strict_forbids_what_rfc9309_forbids() -> None:
    require_none(f"{case} is allowed" for case, allowed in answers("strict") if allowed and not case["allowed"])
