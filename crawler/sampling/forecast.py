"""The precision to expect of a design, which is drawn many times from the draws of a pilot (pure).

A unit that the design would draw is like a unit of the pilot, chosen with the weight that it has in the estimates of
the pilot. The estimators are those of `crawler sample`, so corrections for small samples, missing units and finite
populations are in the result. A kind of unit that the pilot does not contain is not in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crawler.frontier.sample_design import SitesBy, draw_sites
from crawler.sampling.estimators import Sample
from crawler.sampling.survey import DrawnUrls, Measure, Unit

#: The number of drawings, if the samples are small; with large samples, fewer determine the widths as well.
_DRAWINGS = 200
_FEWEST_DRAWINGS = 20
_UNITS_IN_ALL = 2_000_000
_USUAL, _NEARLY_ALWAYS = 0.5, 0.9
_KINDS = (50, 10, 1)  # the percentages of kinds of URLs, if nothing is known


@dataclass(frozen=True, slots=True)
class Stratum:
    """A stratum of the design: ``drawn`` of ``size`` units, which are like the draws ``pool`` of the pilot."""

    size: float
    drawn: int
    pool: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Precision:
    """The half width of the 95 % interval to expect for ``what`` among ``among``; infinite if undetermined.

    ``value`` is the pilot's estimate, ``half_width`` the median, and nine of ten samples have ``half_width_at_most``.
    ``may_be_too_narrow`` says that the intervals will be marked so.
    """

    what: str
    among: str
    unit: Unit
    value: float
    half_width: float
    half_width_at_most: float
    may_be_too_narrow: bool


def precision_of(
    pilot: DrawnUrls,
    strata: Sequence[Stratum],
    number: int | None = None,
    *,
    sites: int | None = None,
    sites_by: SitesBy = SitesBy.EQUAL,
) -> list[Precision]:
    """The precision of each quantity of the pilot in a sample with these strata.

    ``number``: the design has so many strata that are like ``strata``; each drawing chooses them at random. ``sites``:
    the strata are sites, of which the design draws so many first.
    """
    there = number or len(strata)
    usual_units = sum(stratum.drawn for stratum in strata) / len(strata) * min(there, sites or there)
    times = int(np.clip(_UNITS_IN_ALL // max(usual_units, 1), _FEWEST_DRAWINGS, _DRAWINGS))
    rng = np.random.default_rng(20)
    weights = [_cumulated(pilot.sample.weight[stratum.pool]) for stratum in strata]
    measures = [measure.at(...) for measure in pilot.measures]
    widths = np.full((len(measures), times), np.inf)
    marked = np.zeros(len(measures), np.int64)
    for time in range(times):
        chosen = np.arange(len(strata)) if number is None else rng.integers(len(strata), size=number)
        first = np.ones(len(chosen))
        if sites is not None:
            sizes_there = {str(place): round(strata[n].size) for place, n in enumerate(chosen)}
            taken = draw_sites(sizes_there, sites, sites_by, seed=time)
            chosen, first = chosen[[int(place) for place in taken]], np.array(list(taken.values()))
        units = np.concatenate(
            [strata[n].pool[np.searchsorted(weights[n], rng.random(strata[n].drawn), side="right")] for n in chosen]
        )
        drawn = np.array([strata[n].drawn for n in chosen])
        sizes = np.array([strata[n].size for n in chosen])
        labels = np.repeat(np.arange(len(drawn)), drawn)
        sample = Sample(
            np.repeat(first * drawn / sizes, drawn),
            strata=labels if sites is None else None,
            clusters=None if sites is None else labels,
            cluster_probability=np.repeat(first, drawn),
            answered=pilot.sample.answered[units],
        )
        for n, measure in enumerate(measures):
            made = measure.at(units).of(sample).estimate
            is_known = np.isfinite(made.high - made.low) and np.isfinite(made.standard_error)
            widths[n, time] = (made.high - made.low) / 2 if is_known else np.inf
            marked[n] += made.may_be_too_narrow
    half = np.quantile(widths, (_USUAL, _NEARLY_ALWAYS), axis=1, method="higher")
    return [
        Precision(
            measure.what,
            measure.among,
            measure.unit,
            measure.of(pilot.sample).estimate.value,
            float(half[0, n]),
            float(half[1, n]),
            bool(2 * marked[n] > times),
        )
        for n, measure in enumerate(pilot.measures)
    ]


def _cumulated(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    summed: NDArray[np.float64] = np.cumsum(weight) / weight.sum()
    summed[-1] = 1.0
    return summed


def without_pilot() -> DrawnUrls:
    """Draws in which some kinds of URLs have known shares, in place of those of a pilot."""
    measures = [
        Measure("a kind of URL", "URLs", Unit.SHARE, [float(n < share) for n in range(100)]) for share in _KINDS
    ]
    return DrawnUrls(Sample(np.ones(100)), measures, [""] * 100, [""] * 100)
