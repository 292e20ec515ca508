"""How much of a document is searched for the markers of a wall; the markers are in ``conformance/walls.jsonl``."""

from __future__ import annotations

import json
from pathlib import Path

from crawler.page.walls import MAX_WALL_BYTES, wall_in_body

CASES = Path(__file__).parents[2] / "conformance" / "walls.jsonl"


def test_a_document_that_is_larger_than_any_wall_is_none() -> None:
    cases = map(json.loads, CASES.read_text("utf-8").splitlines())
    wall = next(case["body"].encode() for case in cases if "managed" in case["name"])
    assert wall_in_body(wall.ljust(MAX_WALL_BYTES)) is not None
    assert wall_in_body(wall.ljust(MAX_WALL_BYTES + 1)) is None
