"""The markers of bot defences, each with the page or thread that describes it, and pages that only look like walls."""

import json
import os
from pathlib import Path

import pytest

from crawler.page.walls import wall_in_body, wall_in_headers
from tests.listing import require_none

CASES = [json.loads(line) for line in Path(__file__).with_name("walls.jsonl").read_text("utf-8").splitlines()]
#: A folder of real pages (``tests/bench/realweb.py``), for ``-m long``.
REAL_PAGES = os.environ.get("REAL_PAGES", "")


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_case(case: dict[str, object]) -> None:
    headers = tuple((name, value) for name, value in case["headers"])  # type: ignore[attr-defined]
    wall = wall_in_headers(int(str(case["status"])), headers) or wall_in_body(str(case["body"]).encode())
    assert (wall and wall.by) == case["by"], wall


@pytest.mark.long
def test_no_real_page_is_a_wall() -> None:
    if not REAL_PAGES:
        pytest.skip("REAL_PAGES names no folder")
    pages = [path for path in Path(REAL_PAGES).rglob("*.htm*") if path.suffix in (".htm", ".html") and path.is_file()]
    assert pages, f"{REAL_PAGES} has no HTML files"
    walls = ((path, wall_in_body(path.read_bytes())) for path in pages)
    require_none(f"{path} is said to be {wall}" for path, wall in walls if wall is not None)
