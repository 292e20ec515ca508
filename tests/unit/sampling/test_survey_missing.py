"""Missing values: by the reason code of a URL, and as a variable of the user says."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest

from crawler.model import MISSING
from crawler.sampling.estimators import Sample
from crawler.sampling.survey import NONRESPONSE, NONRESPONSE_BY_CODE, Measure, Quantity, Unit
from crawler.sampling.variables import NullIsMissing, Value, variable_of

ONES = [1.0, 1.0, 0.0, 0.0, nan, 1.0]


def test_a_missing_value_has_bounds_and_a_page_outside_the_population_has_none() -> None:
    sample = Sample([0.1] * 6)
    without = Measure("x", "pages", Unit.SHARE, ONES).of(sample).estimate
    assert (without.units, without.missing, without.lowest) == (5, 0, None)
    values = [*ONES[:5], nan]
    known = Measure("x", "pages", Unit.SHARE, values, [False] * 5 + [True]).of(sample).estimate
    assert (known.units, known.missing, known.value) == (4, 1, 0.5)
    assert known.lowest is not None
    assert known.highest is not None
    assert known.lowest < known.low < known.high < known.highest


def test_every_quantity_has_its_changes_among_the_units_of_both_waves() -> None:
    """A page that is gone is a change of its answer, and no change of its size."""
    sample, unknown = Sample([0.1] * 6), [False] * 5 + [True]

    def changes(unit: Unit, old: list[Value], new: list[Value]) -> dict[str, tuple[Unit, float, int, int]]:
        before, after = (Quantity("x", "x ", "URLs", unit, values) for values in (old, new))
        made = [measure.of(sample, 60) for measure in after.changes(before, sample, unknown)]
        assert {figure.total for figure in made} <= {None}
        assert all(figure.among == "URLs in both waves" for figure in made)
        return {
            one.what: (one.unit, round(one.estimate.value, 9), one.estimate.units, one.estimate.missing) for one in made
        }

    assert changes(Unit.SHARE, [*"aaaaaa"], [*"aabba", None]) == {
        "change of x a": (Unit.POINTS, -0.4, 5, 1),
        "change of x b": (Unit.POINTS, 0.4, 5, 1),
    }
    sizes: list[Value] = [10, 20, 30, 40, None, 60]
    assert changes(Unit.BYTES, sizes, [12, 20, None, 44, 50, 60]) == {"change of x ": (Unit.BYTES, 2, 3, 1)}
    assert changes(Unit.SHARE, [True] * 6, [False, True, MISSING, True, True, True]) == {
        "change of x ": (Unit.POINTS, -0.25, 4, 2)
    }


def test_a_missing_unit_of_a_part_is_like_one_that_has_not_answered() -> None:
    answered = [True, True, True, False, True, True]
    inside = [True, True, True, True, False, False]
    values = [1.0, 0.0, 1.0, nan, 0.0, 1.0]
    expected = Sample([0.2] * 6, answered=answered).among(inside).share(values)
    made = Sample([0.2] * 6).among(inside).without_answer(~np.asarray(answered)).share(values)
    assert made == expected


def test_a_code_of_a_wall_is_nonresponse() -> None:
    assert {"wall", "refused_at_the_edge", "payment_required", "blocked", "forgotten"} == NONRESPONSE_BY_CODE.keys()
    assert set(NONRESPONSE_BY_CODE.values()) < set(NONRESPONSE)


@pytest.mark.parametrize("text", ["chars?=length(title)", "chars ? = length(title)"])
def test_null_may_be_declared_missing(text: str) -> None:
    name, variable = variable_of(text)
    assert (name, variable, type(variable)) == ("chars", "length(title)", NullIsMissing)
    assert not isinstance(variable_of("chars=length(title)")[1], NullIsMissing)
