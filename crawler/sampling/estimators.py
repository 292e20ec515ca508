"""What a sample says of all that it was drawn from: totals, means and shares with confidence intervals (pure).

Each unit counts by one over the probability with which it was drawn: the Horvitz–Thompson estimator for totals, the
Hájek estimator for means and shares. Variances are those of the estimator's linear form (C.-E. Särndal, B. Swensson,
J. Wretman, Model Assisted Survey Sampling, 1992, chapters 4 and 5), by stratum, and between clusters where units were
drawn together; a cluster's own sampling is the second stage.

Intervals are reckoned first as if draws were repeated, then drawn together by the share of the variance that is left
in a finite population (H. Burstein, JASA 70, 1975). A plain "plus or minus two standard errors" would not hold: what
is counted on the web is skewed, and shares are near 0 or 1. For means and totals the skewness is taken out by a cubic
transformation (P. Hall, JRSS B 54, 1992), for shares the exact binomial interval of as large a sample as would be as
precise is taken (E. L. Korn, B. I. Graubard, Survey Methodology 24, 1998).

What no interval can do: tell of what is in no unit drawn. Where one page in a thousand holds a third of all (links
that point at a page are so), or a few large sites most pages and some fifty sites are drawn, it holds less often.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, stdtrit

CONFIDENCE = 0.95

#: A mean or total of fewer units may be of none of a rare kind that decides it: what is 2 % of all is in none of 150
#: once in twenty samples (the rule of three: J. A. Hanley, A. Lippman-Hand, JAMA 249, 1983).
ENOUGH_UNITS = 150
#: The skewness of an estimator from which on its interval is not to be relied on: n > 25 G² for single units drawn at
#: random, whose G has come down by √n in their mean (W. G. Cochran, Sampling Techniques, 3rd edition, 1977, 2.15).
MOST_SKEWED = 0.2

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """``low`` to ``high`` holds the truth with :data:`CONFIDENCE`; infinite where the sample cannot tell."""

    value: float
    low: float
    high: float
    standard_error: float
    units: int
    """How many units have a value."""
    may_be_too_narrow: bool = False
    """Whether the interval may hold the truth less often: of a mean or total, see ``ENOUGH_UNITS``, ``MOST_SKEWED``."""


class Sample:
    """What was drawn, and how. All arrays have a row for each unit drawn.

    ``probability`` is that with which it was drawn, above 0 and at most 1; where draws were repeated, as on a random
    walk, any multiple of it does for means and shares. ``strata`` were drawn from apart (any labels). ``clusters``
    were drawn as a whole, or first and units from them: sites, or walks; each within one stratum. A cluster was drawn
    with ``cluster_probability``; 0, where draws were repeated or it is not known, makes intervals at most too wide.

    Raises :class:`ValueError` for probabilities that are none.
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
        #: The unit of the first stage that each unit belongs to, that one's stratum and sampling fraction.
        self.cluster = np.arange(len(drawn)) if clusters is None else _labels(clusters)
        first = np.unique(self.cluster, return_index=True)[1]
        self.stratum = _labels(np.zeros(len(drawn)) if strata is None else strata)[first]
        whole = drawn if clusters is None else np.broadcast_to(np.asarray(cluster_probability, np.float64), drawn.shape)
        self.fraction: Floats = whole[first]
        #: The fraction of its cluster that was drawn with each unit.
        self.within: Floats = np.divide(drawn, whole, out=np.ones_like(drawn), where=whole > 0)
        for share in (drawn, whole, self.within):
            if not ((share >= 0) & (share <= 1 + 1e-9)).all() or not (drawn > 0).all():
                raise ValueError("a probability is not above 0 and at most 1")
        self.weight: Floats = 1 / drawn

    def total(self, values: ArrayLike) -> Estimate:
        """The sum over all units there are. ``values``: of each unit drawn; NaN of one that has none."""
        y = np.asarray(values, np.float64)
        linear = np.where(np.isnan(y), 0, self.weight * y)
        spread = self._spread(linear, np.zeros_like(linear))
        return _skewed(float(linear.sum()), spread, int((~np.isnan(y)).sum()))

    def mean(self, values: ArrayLike) -> Estimate:
        """The mean over all units that have a value; ``values`` as for :meth:`total`."""
        value, spread, units = self._ratio(np.asarray(values, np.float64))
        return _skewed(value, spread, units)

    def share(self, values: ArrayLike) -> Estimate:
        """The share of ones among all units that have a value; ``values``: 0 or 1, else as for :meth:`total`."""
        y = np.asarray(values, np.float64)
        value, spread, units = self._ratio(y)
        if not units or spread.is_unknown:
            return Estimate(value, 0.0, 1.0, np.inf, units)
        # A stratum in which none of few units was a one seems not to vary. What it adds must not be lost, least of all
        # where one that was drawn whole, and so leaves nothing open, makes up all the variance that is seen.
        squares = self.weight[~np.isnan(y)] ** 2
        most = float(np.sqrt(squares).sum() ** 2 / squares.sum())  # L. Kish's effective size, Survey Sampling, 1965
        left = 1 - float(np.sqrt(squares).sum() / squares.sum())  # of the variance, if all strata varied alike
        spread = replace(spread, left=max(spread.left, left))
        size = self._effective_size(value, min(units, most), spread)
        ones, tail = value * size, (1 - CONFIDENCE) / 2
        low = betaincinv(ones, size - ones + 1, tail) if ones > 0 else 0.0
        high = betaincinv(ones + 1, size - ones, 1 - tail) if ones < size else 1.0
        return _drawn_together(value, float(low), float(high), spread, units)

    def _ratio(self, y: Floats) -> tuple[float, _Spread, int]:
        """The Hájek mean, how it spreads, and of how many units it is."""
        weight = np.where(np.isnan(y), 0, self.weight)
        units, size = int((~np.isnan(y)).sum()), weight.sum()
        if not units:
            return np.nan, self._spread(weight, weight), 0
        y = np.nan_to_num(y)
        value = float(weight @ y / size)
        return value, self._spread(weight * (y - value) / size, weight / size), units

    def _effective_size(self, share: float, units: float, spread: _Spread) -> float:
        """How large a sample of single units drawn at random is as precise, ``units`` at most."""
        if not spread.variance:  # all alike: units of a cluster may be so for one reason
            return float(min(units, len(self.fraction)))
        tail = (1 + CONFIDENCE) / 2
        wider = stdtrit(max(units - 1, 1), tail) / stdtrit(max(spread.degrees, 1), tail)
        return float(min(units, share * (1 - share) / spread.variance) * wider**2)

    def _spread(self, linear: Floats, size: Floats) -> _Spread:
        """How an estimator spreads. ``linear``: what each unit adds to its error in first order; ``size``: which part
        of its denominator each is, where it has one."""
        sums = _sums(self.cluster, linear)
        n = np.bincount(self.stratum)[self.stratum]
        away = np.where(n == 1, sums - sums.sum() / max(len(sums), 1), self._from_mean(sums))  # alone: against all
        # As the jackknife has it: a large cluster does not hide how far it draws the mean towards its own.
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
        """How far each cluster is from the mean of those of its stratum."""
        means = _sums(self.stratum, sums) / np.maximum(np.bincount(self.stratum), 1)
        return sums - means[self.stratum]

    def _second_stage(self, linear: Floats) -> float:
        """The part of the variance that drawing within clusters adds to drawing a finite number of clusters."""
        n = np.bincount(self.cluster)
        away = linear - (_sums(self.cluster, linear) / n)[self.cluster]
        size = n[self.cluster]
        squares = (1 - self.within) * away**2 * size / np.maximum(size - 1, 1)
        return float(self.fraction @ _sums(self.cluster, squares))


@dataclass(frozen=True, slots=True)
class _Spread:
    """``variance`` as if draws were repeated, ``left`` the share of it that is left in a finite population."""

    variance: float
    left: float
    skewness: float
    degrees: float

    @property
    def is_unknown(self) -> bool:
        """One draw tells nothing of its spread, unless it was of all there is."""
        return self.degrees < 1 and self.left > 0


def _sums(labels: Labels, values: Floats) -> Floats:
    """The sum of the values with each label."""
    return np.bincount(labels, weights=values).astype(np.float64)


def _labels(labels: ArrayLike) -> Labels:
    return np.unique(np.asarray(labels), return_inverse=True)[1].astype(np.int64)


def _degrees(stratum: Labels, away: Floats, squares: Floats) -> float:
    """Degrees of freedom of a variance that strata make up, of which a few may have nearly all, and in these a few
    units (F. E. Satterthwaite, Biometrics Bulletin 2, 1946, with the kurtosis of each stratum)."""
    n = np.bincount(stratum)
    variance = _sums(stratum, squares)
    second, fourth = (_sums(stratum, away**power) / n for power in (2, 4))
    kurtosis = np.divide(fourth, second**2, out=np.full(len(n), 3.0), where=second > 0) - 3
    uncertain = variance**2 * (2 / np.maximum(n - 1, 1) + np.maximum(kurtosis, 0) / n)
    return float(max(1.0, 2 * variance.sum() ** 2 / uncertain.sum()))


def _unskewed(x: float, skewness: float) -> float:
    """The quantile of the studentised estimator, from the symmetric one: the inverse of Hall's cubic."""
    if abs(skewness) < 1e-6:
        return x
    return float(3 / skewness * (np.cbrt(1 + skewness * (x - skewness / 6)) - 1))


def _skewed(value: float, spread: _Spread, units: int) -> Estimate:
    if not units or spread.is_unknown:
        return Estimate(value, -np.inf, np.inf, np.inf, units)
    error = np.sqrt(spread.variance)
    t = float(stdtrit(max(spread.degrees, 1), (1 + CONFIDENCE) / 2))
    low, high = (value - error * _unskewed(x, spread.skewness) for x in (t, -t))
    doubtful = spread.left > 0 and (units < ENOUGH_UNITS or abs(spread.skewness) > MOST_SKEWED)
    return replace(_drawn_together(value, low, high, spread, units), may_be_too_narrow=doubtful)


def _drawn_together(value: float, low: float, high: float, spread: _Spread, units: int) -> Estimate:
    left = np.sqrt(spread.left)
    error = float(np.sqrt(spread.variance) * left)
    return Estimate(value, float(value - (value - low) * left), float(value + (high - value) * left), error, units)
