"""The short form of the hostile web: what ``python -m tests.hostile`` runs, with fewer behaviours and nothing timed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.verdict import table, wrong_ones


@pytest.mark.slow
def test_the_crawl_stands_a_hostile_web(tmp_path: Path) -> None:
    from tests.hostile.__main__ import run  # the answers of its servers are 100 MB

    verdict = run((), quick=True, folder=tmp_path)
    assert wrong_ones(verdict) == set(), table(verdict)
