"""The command line of the benchmarks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.__main__ import BENCHES, OTHERS, main, options_of_all


def test_help_names_every_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"  {name} " in out for name in [*BENCHES, *OTHERS])


@pytest.mark.parametrize("arguments", [[], ["no-such"], ["all", "--no-such", "1"]])
def test_bad_usage_gives_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err


def test_a_web_that_is_not_there_is_bad_usage_and_says_how_to_build_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cpu", "--web", str(tmp_path)]) == 2
    assert "python -m tests.bench web" in capsys.readouterr().err


def test_all_gives_an_option_to_those_that_know_it() -> None:
    options = options_of_all(["--rounds", "7", "--json", "figures.json"])
    assert list(options) == list(BENCHES)
    assert options["cpu"].rounds == 7
    assert all(each.json == Path("figures.json") for each in options.values())
