"""Estimates totals, means and shares of a population from a sample, with confidence intervals (pure).

Each unit is weighted by the inverse of the probability with which it was drawn: the Horvitz–Thompson estimator for
totals, the Hájek estimator for means and shares. Variances are those of the linearised estimator (C.-E. Särndal,
B. Swensson, J. Wretman, Model Assisted Survey Sampling, 1992, chapters 4 and 5), by stratum, and between clusters if
units were drawn together. Sampling within a cluster is the second stage.

An interval is first computed for draws with replacement, then narrowed by the share of the variance that remains in a
finite population (H. Burstein, JASA 70, 1975). An interval of plus or minus two standard errors would be wrong, because
quantities on the web are skewed, and shares are near 0 or 1. For means and totals, a cubic transformation removes the
skewness (P. Hall, JRSS B 54, 1992). For shares, the interval is the exact binomial interval for the effective sample
size (E. L. Korn, B. I. Graubard, Survey Methodology 24, 1998).

No interval accounts for what is in no drawn unit. An interval contains the true value less often than stated if one
page in a thousand holds a third of the total (as with links to a page), or if a few large sites hold most pages and
only about fifty sites are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, stdtrit

CONFIDENCE = 0.95

#: A sample of fewer units may lack a rare kind that dominates a mean or total: one sample of 150 units in twenty lacks
#: a kind that is 2 % of the population (the rule of three: J. A. Hanley, A. Lippman-Hand, JAMA 249, 1983).
ENOUGH_UNITS = 150
#: The skewness of an estimator above which its interval is unreliable. It corresponds to n > 25 G² for units drawn
#: individually, whose mean has the skewness G / √n (W. G. Cochran, Sampling Techniques, 3rd edition, 1977, 2.15).
MAX_SKEWNESS = 0.2

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """``low`` to ``high`` contains the true value with :data:`CONFIDENCE`; infinite if undetermined."""

    value: float
    low: float
    high: float
    standard_error: float
    units: int
    """The number of units with a value."""
    may_be_too_narrow: bool = False
    """Whether the interval of a mean or total may be unreliable, see ``ENOUGH_UNITS`` and ``MAX_SKEWNESS``."""


class Sample:
    """A sample and its design. Each array has one entry for each drawn unit.

    ``probability`` is the probability with which the unit was drawn, above 0 and at most 1. For draws with replacement,
    as on a random walk, any multiple of it suffices for means and shares. ``strata`` are the labels of strata that were
    sampled separately. ``clusters`` are the labels of clusters (sites, or walks) that were drawn whole, or drawn first
    with units drawn from them; a cluster lies within one stratum. ``cluster_probability`` is the probability with which
    the cluster was drawn; 0, for draws with replacement or an unknown probability, makes intervals too wide at worst.

    Raises :class:`ValueError` for an invalid probability.
    """

    def __init__(
        self,
        probability: ArrayLike,
        *,
        strata: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        cluster_probability: ArrayLike = 0.0,
    ) -> None:
        drawn = np.asarray(probability, np.float64)
        #: The cluster of each unit, and the stratum and the sampling fraction of each cluster.
        self.cluster = np.arange(len(drawn)) if clusters is None else _labels(clusters)
        first = np.unique(self.cluster, return_index=True)[1]
        self.stratum = _labels(np.zeros(len(drawn)) if strata is None else strata)[first]
        whole = drawn if clusters is None else np.broadcast_to(np.asarray(cluster_probability, np.float64), drawn.shape)
        self.fraction: Floats = whole[first]
        #: The sampling fraction within the cluster of each unit.
        self.within: Floats = np.divide(drawn, whole, out=np.ones_like(drawn), where=whole > 0)
        for share in (drawn, whole, self.within):
            if not ((share >= 0) & (share <= 1 + 1e-9)).all() or not (drawn > 0).all():
                raise ValueError("a probability must be above 0 and at most 1")
        self.weight: Floats = 1 / drawn

    def total(self, values: ArrayLike) -> Estimate:
        """The sum over the population. ``values`` has the value of each drawn unit, NaN if it has none."""
        y = np.asarray(values, np.float64)
        linear = np.where(np.isnan(y), 0, self.weight * y)
        spread = self._spread(linear, np.zeros_like(linear))
        return _skewed(float(linear.sum()), spread, int((~np.isnan(y)).sum()))

    def mean(self, values: ArrayLike) -> Estimate:
        """The mean over all units with a value; ``values`` as for :meth:`total`."""
        value, spread, units = self._ratio(np.asarray(values, np.float64))
        return _skewed(value, spread, units)

    def share(self, values: ArrayLike, *, open_ended: bool = False) -> Estimate:
        """The share of ones among all units with a value; ``values`` are 0, 1 or NaN.

        ``open_ended``: the frame may lack units, so a share of 0 or 1 gets an interval even if all units were drawn.
        """
        y = np.asarray(values, np.float64)
        value, spread, units = self._ratio(y)
        if not units or spread.is_unknown:
            return Estimate(value, 0.0, 1.0, np.inf, units)
        # A stratum whose few drawn units are all equal seems to have no variance. Its contribution must not be lost,
        # above all if the whole observed variance comes from a stratum that was drawn completely.
        squares = self.weight[~np.isnan(y)] ** 2
        most = float(np.sqrt(squares).sum() ** 2 / squares.sum())  # L. Kish's effective size, Survey Sampling, 1965
        left = 1 - float(
            np.sqrt(squares).sum() / squares.sum()
        )  # the remaining share of the variance, if all strata had the same
        spread = replace(spread, left=max(spread.left, left))
        size = self._effective_size(value, min(units, most), spread)
        ones, tail = value * size, (1 - CONFIDENCE) / 2
        low = betaincinv(ones, size - ones + 1, tail) if ones > 0 else 0.0
        high = betaincinv(ones + 1, size - ones, 1 - tail) if ones < size else 1.0
        if open_ended and min(value, 1 - value) < 1e-12:
            return Estimate(value, float(low), float(high), 0.0, units)
        return _in_finite_population(value, float(low), float(high), spread, units)

    def _ratio(self, y: Floats) -> tuple[float, _Spread, int]:
        """The Hájek mean, its spread, and its number of units."""
        weight = np.where(np.isnan(y), 0, self.weight)
        units, size = int((~np.isnan(y)).sum()), weight.sum()
        if not units:
            return np.nan, self._spread(weight, weight), 0
        y = np.nan_to_num(y)
        value = float(weight @ y / size)
        return value, self._spread(weight * (y - value) / size, weight / size), units

    def _effective_size(self, share: float, units: float, spread: _Spread) -> float:
        """The size of a simple random sample with the same precision, at most ``units``."""
        if not spread.variance:  # all values are equal: the units of a cluster may be so for a common reason
            return float(min(units, len(self.fraction)))
        tail = (1 + CONFIDENCE) / 2
        wider = stdtrit(max(units - 1, 1), tail) / stdtrit(max(spread.degrees, 1), tail)
        return float(min(units, share * (1 - share) / spread.variance) * wider**2)

    def _spread(self, linear: Floats, size: Floats) -> _Spread:
        """The spread of an estimator.

        ``linear`` is the first-order contribution of each unit to the error, ``size`` the share of each unit in the
        denominator of a ratio.
        """
        sums = _sums(self.cluster, linear)
        n = np.bincount(self.stratum)[self.stratum]
        away = np.where(
            n == 1, sums - sums.sum() / max(len(sums), 1), self._from_mean(sums)
        )  # a single cluster is compared with all
        # As in the jackknife, correct for a large cluster, which draws the mean towards its own value.
        without = 1 - self._from_mean(_sums(self.cluster, size)) * n / np.maximum(n - 1, 1)
        away /= np.where(without > 0, without, 1)
        squares = away**2 * n / np.maximum(n - 1, 1)
        variance, free = float(squares.sum()), len(sums) - len(np.unique(self.stratum))
        if not variance:
            return _Spread(0.0, 1 - float(self.fraction.mean()) if len(n) else 0.0, 0.0, free)
        finite = float(((1 - self.fraction) * squares).sum()) + self._second_stage(linear)
        cubes = away**3 * np.where(n < 3, 0, n**2 / np.maximum((n - 1) * (n - 2), 1))
        degrees = _degrees(self.stratum, away, squares) if free else 0.0
        return _Spread(variance, max(finite / variance, 0.0), float(cubes.sum() / variance**1.5), degrees)

    def _from_mean(self, sums: Floats) -> Floats:
        """The deviation of each cluster from the mean of its stratum."""
        means = _sums(self.stratum, sums) / np.maximum(np.bincount(self.stratum), 1)
        return sums - means[self.stratum]

    def _second_stage(self, linear: Floats) -> float:
        """The part of the variance that comes from sampling within clusters."""
        n = np.bincount(self.cluster)
        away = linear - (_sums(self.cluster, linear) / n)[self.cluster]
        size = n[self.cluster]
        squares = (1 - self.within) * away**2 * size / np.maximum(size - 1, 1)
        return float(self.fraction @ _sums(self.cluster, squares))


@dataclass(frozen=True, slots=True)
class _Spread:
    """``variance`` for draws with replacement; ``left`` is the share of it that remains in a finite population."""

    variance: float
    left: float
    skewness: float
    degrees: float

    @property
    def is_unknown(self) -> bool:
        """Whether the spread is undetermined: one draw does not determine it, unless it was the whole population."""
        return self.degrees < 1 and self.left > 0


def _sums(labels: Labels, values: Floats) -> Floats:
    """The sum of the values with each label."""
    return np.bincount(labels, weights=values).astype(np.float64)


def _labels(labels: ArrayLike) -> Labels:
    return np.unique(np.asarray(labels), return_inverse=True)[1].astype(np.int64)


def _degrees(stratum: Labels, away: Floats, squares: Floats) -> float:
    """The degrees of freedom of a variance over strata, which a few strata, and a few of their units, may dominate.

    Source: F. E. Satterthwaite, Biometrics Bulletin 2, 1946, with the kurtosis of each stratum.
    """
    n = np.bincount(stratum)
    variance = _sums(stratum, squares)
    second, fourth = (_sums(stratum, away**power) / n for power in (2, 4))
    kurtosis = np.divide(fourth, second**2, out=np.full(len(n), 3.0), where=second > 0) - 3
    uncertain = variance**2 * (2 / np.maximum(n - 1, 1) + np.maximum(kurtosis, 0) / n)
    return float(max(1.0, 2 * variance.sum() ** 2 / uncertain.sum()))


def _unskewed(x: float, skewness: float) -> float:
    """The quantile of the studentised estimator from the symmetric one: the inverse of Hall's cubic."""
    if abs(skewness) < 1e-6:
        return x
    return float(3 / skewness * (np.cbrt(1 + skewness * (x - skewness / 6)) - 1))


def _skewed(value: float, spread: _Spread, units: int) -> Estimate:
    if not units or spread.is_unknown:
        return Estimate(value, -np.inf, np.inf, np.inf, units)
    error = np.sqrt(spread.variance)
    t = float(stdtrit(max(spread.degrees, 1), (1 + CONFIDENCE) / 2))
    low, high = (value - error * _unskewed(x, spread.skewness) for x in (t, -t))
    doubtful = spread.left > 0 and (units < ENOUGH_UNITS or abs(spread.skewness) > MAX_SKEWNESS)
    return replace(_in_finite_population(value, low, high, spread, units), may_be_too_narrow=doubtful)


def _in_finite_population(value: float, low: float, high: float, spread: _Spread, units: int) -> Estimate:
    left = np.sqrt(spread.left)
    error = float(np.sqrt(spread.variance) * left)
    return Estimate(value, float(value - (value - low) * left), float(value + (high - value) * left), error, units)
