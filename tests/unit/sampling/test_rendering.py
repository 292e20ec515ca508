"""How figures and intervals are printed."""

from __future__ import annotations

import pytest

from crawler.sampling.estimators import Estimate
from crawler.sampling.rendering import interval, shown
from crawler.sampling.survey import Unit


@pytest.mark.parametrize(
    ("unit", "small", "large", "negative", "close"),
    [
        (Unit.SHARE, "25.6 %", "1234560.0 %", "-204800.0 %", "50.0010 % to 50.0020 %"),
        (Unit.POINTS, "+25.6 points", "+1234560.0 points", "-204800.0 points", "+50.0010 points to +50.0020 points"),
        (Unit.BYTES, "0 B", "12.3 kB", "-2 kB", "0.5 B to 0.5 B"),
        (Unit.LINKS, "0.3", "12345.6", "-2048.0", "0.5000 to 0.5000"),
        (Unit.NUMBER, "0.256", "12,346", "-2,048", "0.5000 to 0.5000"),
        (Unit.COUNT, "0", "12,346", "-2,048", "0.5000 to 0.5000"),
    ],
)
def test_each_unit_has_its_form(unit: Unit, small: str, large: str, negative: str, close: str) -> None:
    assert [shown(number, unit) for number in (0.256, 12_345.6, -2048.0)] == [small, large, negative]
    assert shown(float("nan"), unit) == "-"
    assert interval(Estimate(0.5, 0.50001, 0.50002, 0.1, 10), unit) == close
