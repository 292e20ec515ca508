"""The figures of a benchmark as people and programs read them."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import pytest

from tests.bench.table import Row, number, show, write_json


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.08251, "0.0825"), (2.6, "2.60"), (99.94, "99.9"), (99.96, "100"), (12_345.6, "12,346"), (0.0, "0")],
)
def test_a_figure_has_three_digits_and_no_exponent(value: float, shown: str) -> None:
    assert number(value) == shown


@pytest.mark.parametrize("value", [None, math.nan])
def test_what_is_not_known_shows_as_nothing(value: float | None) -> None:
    assert number(value) == ""


def shown(*rows: Row) -> list[str]:
    out = io.StringIO()
    show(rows, out)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_figures_stand_right_and_no_line_is_broken_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    met = Row("a long name of a measure", 1.0, "ms", floor=0.5, ratio=2.0, must="≤ 3 × floor", ok=True)
    missed = Row("memory", 1234.0, "MB", must="≤ 150 MB", ok=False, note="why [so] much")
    assert shown(met, missed) == [
        "measure                     figure  floor  ratio  must",
        "a long name of a measure   1.00 ms  0.500   2.00  ≤ 3 × floor  ok",
        "memory                    1,234 MB                ≤ 150 MB     MISSED",
        "* memory: why [so] much",
    ]


def test_json_names_the_machine_and_has_no_value_that_is_not_json(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    write_json(file, [("cpu", [Row("peer", math.nan, "ms", note="not installed")])])
    kept = json.loads(file.read_text(encoding="utf-8"))
    assert set(kept["machine"]) == {"cpu", "cores", "python", "kernel", "date"}
    assert all(kept["machine"].values())
    (row,) = kept["benches"]["cpu"]
    assert (row["measure"], row["figure"], row["note"]) == ("peer", None, "not installed")
