"""The short form of ``python -m tests.kill``: sixteen kills, and nothing is lost, doubled or impolite."""

from __future__ import annotations

import pytest

from tests import kill


def test_sixteen_kills(capsys: pytest.CaptureFixture[str]) -> None:
    assert kill.main(["--rounds", "16", "--seed", "1"]) == 0, capsys.readouterr().out
    lines = capsys.readouterr().out.splitlines()
    assert sum(int(line.split()[3]) for line in lines) == 16
    assert len(lines) >= 2, "several webs were crawled to their end"


@pytest.mark.long
def test_three_hundred_kills(capsys: pytest.CaptureFixture[str]) -> None:
    assert kill.main(["--rounds", "300", "--seed", "1000"]) == 0, capsys.readouterr().out
