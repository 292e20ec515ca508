"""The precision that is forecast from a pilot."""

from __future__ import annotations

from math import isinf, nan, sqrt

import numpy as np
import pytest

from crawler.frontier.sample_design import SitesBy
from crawler.sampling import forecast
from crawler.sampling.estimators import Sample
from crawler.sampling.forecast import Precision, Stratum, precision_of, without_pilot
from crawler.sampling.survey import DrawnUrls, Measure, Unit


@pytest.fixture(autouse=True)
def _fewer_drawings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecast, "_DRAWINGS", 80)


def pilot(values: np.ndarray, labels: np.ndarray | None = None, unit: Unit = Unit.NUMBER) -> DrawnUrls:
    """A pilot in which each unit was drawn with the same probability."""
    names = ["" if labels is None else str(labels[n]) for n in range(len(values))]
    measures = [Measure("size", "pages", unit, values.tolist())]
    return DrawnUrls(Sample(np.full(len(values), 0.1)), measures, names, names)


def only(made: list[Precision]) -> Precision:
    (one,) = made
    return one


def test_the_half_width_is_that_of_the_design() -> None:
    values = np.random.default_rng(1).normal(50, 10, 300)
    made = only(precision_of(pilot(values), [Stratum(2000, 800, np.arange(300))]))
    assert made.half_width == pytest.approx(1.96 * values.std() / sqrt(800) * sqrt(1 - 800 / 2000), rel=0.05)
    assert made.half_width < made.half_width_at_most < 1.2 * made.half_width
    assert made.value == pytest.approx(values.mean())
    assert not made.may_be_too_narrow
    few = only(precision_of(pilot(values), [Stratum(2000, 50, np.arange(300))]))
    assert few.half_width > 3 * made.half_width
    assert few.may_be_too_narrow


def test_units_of_the_pilot_count_with_their_weights() -> None:
    ones = np.array([1.0] * 50 + [0.0] * 50)
    sample = Sample(np.where(ones > 0, 0.9, 0.01))
    drawn = DrawnUrls(sample, [Measure("rare", "URLs", Unit.SHARE, ones.tolist())], [""] * 100, [""] * 100)
    made = only(precision_of(drawn, [Stratum(1e9, 1000, np.arange(100))]))
    assert made.value == pytest.approx(50 / 0.9 / (50 / 0.9 + 50 / 0.01))
    assert made.half_width == pytest.approx(1.96 * sqrt(made.value * (1 - made.value) / 1000), rel=0.2)


def test_strata_that_differ_make_a_stratified_sample_precise() -> None:
    site = np.repeat(np.arange(10), 20)
    values = 100.0 * site + np.random.default_rng(2).normal(0, 1, 200)
    strata = [Stratum(500, 20, np.flatnonzero(site == each)) for each in range(10)]
    together = only(precision_of(pilot(values, site), [Stratum(5000, 200, np.arange(200))]))
    apart = only(precision_of(pilot(values, site), strata))
    assert apart.half_width < together.half_width / 100
    assert only(precision_of(pilot(values, site), strata, 40)).half_width == pytest.approx(
        apart.half_width / 2, rel=0.1
    )


def test_sites_that_differ_make_a_sample_of_few_sites_less_precise() -> None:
    site = np.repeat(np.arange(20), 20)
    values = 100.0 * site + np.random.default_rng(2).normal(0, 1, 400)
    strata = [Stratum(500, 20, np.flatnonzero(site == each)) for each in range(20)]
    all_sites = only(precision_of(pilot(values, site), strata))
    ten, nineteen = (only(precision_of(pilot(values, site), strata, sites=number)) for number in (10, 19))
    assert all_sites.half_width < nineteen.half_width / 10
    assert 2 * nineteen.half_width < ten.half_width
    assert only(precision_of(pilot(values, site), strata, sites=30)).half_width == pytest.approx(
        all_sites.half_width, rel=0.05
    )
    for by in SitesBy:
        more = only(precision_of(pilot(values, site), strata, 80, sites=40, sites_by=by))
        assert more.half_width == pytest.approx(ten.half_width / 2, rel=0.3)


def test_units_without_a_value_widen_the_interval() -> None:
    values = np.random.default_rng(3).normal(50, 10, 200)
    half = np.where(np.arange(200) % 2, values, nan)
    whole, part = (only(precision_of(pilot(each), [Stratum(1e9, 900, np.arange(200))])) for each in (values, half))
    assert part.half_width == pytest.approx(whole.half_width * sqrt(2), rel=0.1)


def test_strata_of_one_unit_in_the_pilot_show_no_spread() -> None:
    made = only(precision_of(pilot(np.array([1.0, 5.0])), [Stratum(10, 2, np.array([n])) for n in range(2)]))
    assert (made.value, made.half_width) == (3.0, np.inf)


def test_what_the_sample_does_not_determine_is_infinite() -> None:
    made = only(precision_of(pilot(np.full(20, nan)), [Stratum(100, 10, np.arange(20))]))
    assert isinf(made.half_width)
    one = only(precision_of(pilot(np.arange(20.0)), [Stratum(100, 1, np.arange(20))]))
    assert isinf(one.half_width)


def test_without_a_pilot_shares_have_the_binomial_precision() -> None:
    half, tenth, hundredth = precision_of(without_pilot(), [Stratum(1e12, 400, np.arange(100))])
    assert (half.value, tenth.value, hundredth.value) == (0.5, 0.1, 0.01)
    assert half.half_width == pytest.approx(0.98 / sqrt(400), rel=0.05)
    assert half.half_width > tenth.half_width > hundredth.half_width
