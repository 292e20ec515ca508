"""The short form of the hostile web: what ``python -m tests.hostile`` runs, with fewer behaviours and nothing timed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile import catalogue
from tests.hostile.__main__ import run


@pytest.mark.slow
def test_the_crawl_stands_a_hostile_web(tmp_path: Path) -> None:
    verdict = run((), quick=True, folder=tmp_path)
    assert {subject: faults for subject, faults in verdict.whole.items() if faults} == {}
    wrong = {name: faults for name, faults in verdict.wrong.items() if faults}
    assert wrong.keys() == verdict.wrong.keys() & catalogue.NOT_YET.keys(), wrong
