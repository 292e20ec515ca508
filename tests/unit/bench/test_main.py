"""The command line of the benchmarks."""

from __future__ import annotations

import pytest


def test_help_loads_and_names_every_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    from tests.bench.__main__ import BENCHES, OTHERS, main, options_of_all

    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"  {name} " in out for name in [*BENCHES, *OTHERS])
    assert list(options_of_all(["--rounds", "7"])) == list(BENCHES)
    for arguments in ([], ["no-such"], ["all", "--no-such", "1"]):
        assert main(arguments) == 2
        assert capsys.readouterr().err
