"""Estimates totals, means and shares of a population from a sample, with confidence intervals (pure).

Each unit is weighted by the inverse of the probability with which it was drawn: the Horvitz–Thompson estimator for
totals, the Hájek estimator for means and shares. Variances are those of the linearised estimator (C.-E. Särndal,
B. Swensson, J. Wretman, Model Assisted Survey Sampling, 1992, chapters 4 and 5), by stratum, and between clusters if
units were drawn together. Sampling within a cluster is the second stage. If clusters were drawn with unequal
probabilities, the variance between them is that of K. R. W. Brewer (Australian Journal of Statistics 17, 1975), which
needs no joint probabilities. A cluster that was certain to be drawn is a stratum, and its units are the first stage.

An interval is first computed for draws with replacement, then narrowed by the share of the variance that remains in a
finite population (H. Burstein, JASA 70, 1975). An interval of plus or minus two standard errors would be wrong, because
quantities on the web are skewed, and shares are near 0 or 1. For means and totals, a cubic transformation removes the
skewness (P. Hall, JRSS B 54, 1992). Small samples underestimate variance and skewness, because they lack the end of the
tail. So the interval is that of a sample with one more unit, as far from the mean as the farthest. The few units of a
small stratum do not determine skewness and kurtosis; small strata have those of the deviations from the mean of the
whole. For shares, the interval is the exact binomial interval (C. J. Clopper, E. S. Pearson, Biometrika 26, 1934) for
the effective sample size (E. L. Korn, B. I. Graubard, Survey Methodology 24, 1998), with the degrees of freedom of the
design. If no unit is of a kind, its upper end is the bound for the share of that kind, and no upper end is below it.

No interval accounts for what is in no drawn unit. An interval contains the true value less often than stated if one
page in a thousand holds a third of the total (as with links to a page), or if a few large sites hold most pages and
only about fifty sites are drawn.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, stdtrit

CONFIDENCE = 0.95

#: Marks depend on the design and on nonresponse alone: whether a sample lacks a rare kind of page cannot be seen in it.
#: They stand where fewer than 94 of 100 intervals held in the trial (`python -m tests.bench coverage`). Means and
#: totals need so many effective units, or so many if clusters were drawn by chance. If a page in 100 has 15 times the
#: links of the others, 86 of 100 intervals hold from 200 units, 93 from 300 and 95 from 350.
ENOUGH_UNITS = 350
ENOUGH_CLUSTERED_UNITS = 400
#: The number of clusters that means and totals need if clusters were drawn by chance.
ENOUGH_CLUSTERS = 15
#: The effective number of clusters by their estimated sizes, divided by their number. Clusters of unequal size that
#: were drawn with nearly equal probabilities may lack a large one: for means, and for shares if one dominates.
_NEARLY_EQUAL, _DOMINATED = 0.9, 0.5
#: Strata with fewer clusters are too small for a third and a fourth moment of their own.
_SMALL_STRATUM = 10

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
    """Whether the interval may contain the true value less often than 94 times in 100: too many units are missing, a
    mean or total has too few units or clusters, or the clusters drawn by chance have unequal sizes."""
    missing: int = 0
    """The number of units whose value is unknown because they have not answered."""
    lowest: float | None = None
    highest: float | None = None
    """For shares and counts with missing units: the interval that holds whatever these would have answered."""

    def times(self, factor: float) -> Estimate:
        """The estimate of the quantity multiplied by ``factor``, a known number above 0."""
        names = ("value", "low", "high", "standard_error", "lowest", "highest")
        changed = {name: factor * number for name in names if (number := getattr(self, name)) is not None}
        return replace(self, **changed)


class SurveyUnit(NamedTuple):
    """How survey software describes a drawn unit that has answered.

    The primary unit ``psu`` is the cluster that was drawn by chance, or else the unit itself; ``stratum`` is that of
    the primary units. ``fpc`` is the sampling fraction of the primary unit, ``None`` for draws with replacement;
    ``second`` is that of the unit within it. ``weight`` accounts for the units that did not answer.
    """

    stratum: int
    psu: int
    fpc: float | None
    second: float
    weight: float


class Sample:
    """A sample and its design. Each array has one entry for each drawn unit.

    ``probability`` is the probability with which the unit was drawn, above 0 and at most 1. For draws with replacement,
    as on a random walk, any multiple of it suffices for means and shares. ``strata`` are the labels of strata that were
    sampled separately. ``clusters`` are the labels of clusters (sites, or walks) that were drawn whole, or drawn first
    with units drawn from them; a cluster lies within one stratum. ``cluster_probability`` is the probability with which
    the cluster was drawn, 1 if that was certain; 0, for draws with replacement or an unknown probability, makes
    intervals too wide at worst.
    ``answered`` says of each unit whether its value is known; by default, all are. In each stratum, the units that
    answered stand for those that did not.

    Raises :class:`ValueError` for an invalid probability.
    """

    def __init__(
        self,
        probability: ArrayLike,
        *,
        strata: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        cluster_probability: ArrayLike = 0.0,
        answered: ArrayLike | None = None,
    ) -> None:
        drawn = np.asarray(probability, np.float64)
        first_stage = np.broadcast_to(np.asarray(cluster_probability, np.float64), drawn.shape)
        self._design = drawn, strata, clusters, first_stage
        stratum, single = _labels(np.zeros(len(drawn)) if strata is None else strata), np.arange(len(drawn))
        whole, cluster, is_certain = drawn, single, np.ones(len(drawn), bool)
        if clusters is not None:
            whole, cluster = first_stage, _labels(clusters)
            is_certain = whole > 1 - 1e-9
            stratum = _labels(np.where(is_certain, len(drawn) + cluster, stratum))
            cluster = _labels(np.where(is_certain, len(drawn) + single, cluster))
            whole = np.where(is_certain, drawn, whole)
        #: The cluster of each unit, and the stratum and the sampling fraction of each cluster.
        self.cluster = cluster
        first = np.unique(cluster, return_index=True)[1]
        self.stratum = stratum[first]
        self.fraction: Floats = whole[first]
        #: The number of clusters that were drawn by chance, and whether each unit is of one, with a known probability.
        self.chosen = len(np.unique(cluster[~is_certain]))
        self.is_chosen = ~is_certain & (whole > 0)
        #: Whether some clusters that were drawn by chance have several units.
        self.has_clusters = self.chosen < int((~is_certain).sum())
        #: The sampling fraction within the cluster of each unit.
        self.within: Floats = np.divide(drawn, whole, out=np.ones_like(drawn), where=whole > 0)
        for share in (drawn, whole, self.within):
            if not ((share >= 0) & (share <= 1 + 1e-9)).all() or not (drawn > 0).all():
                raise ValueError("a probability must be above 0 and at most 1")
        self.weight: Floats = 1 / drawn
        self.answered = np.ones(len(drawn), bool) if answered is None else np.asarray(answered, bool)
        self.part = np.ones(len(drawn), bool)
        self.given: Sample = self
        if not self.answered.all():
            known, of = self.answered, self.stratum[self.cluster]
            rate = np.bincount(of, known) / np.bincount(of)
            self.given = Sample(
                (drawn * rate[of])[known],
                strata=of[known],
                clusters=None if clusters is None else np.asarray(clusters)[known],
                cluster_probability=first_stage[known],
            )

    def units(self) -> list[SurveyUnit | None]:
        """How survey software describes each drawn unit; ``None`` for a unit that has not answered."""
        given = self.given
        columns = (given.stratum[given.cluster], given.cluster, given.fraction[given.cluster], given.within)
        known = [
            SurveyUnit(int(stratum), int(psu), float(fpc) or None, float(second), float(weight))
            for stratum, psu, fpc, second, weight in zip(*columns, given.weight, strict=True)
        ]
        rest = iter(known)
        return [next(rest) if is_known else None for is_known in self.answered.tolist()]

    def total(self, values: ArrayLike) -> Estimate:
        """The sum over the population. ``values`` has the value of each drawn unit, NaN if it has none.

        If the number of units in the population is known, the mean of values with 0 for NaN, :meth:`Estimate.times`
        that number, is at least as precise: it is this total with weights that are calibrated to the number.
        """
        y = self._values(values)
        if self.given is not self:
            return self._unlike(self.given.total(y[self.answered]))
        linear = np.where(np.isnan(y), 0, self.weight * y)
        mean = linear.sum() / self.weight.sum() if len(y) else 0.0
        spread = self._spread(linear, np.zeros_like(linear), self.weight * (np.nan_to_num(y) - mean))
        return self._skewed(float(linear.sum()), spread, ~np.isnan(y))

    def mean(self, values: ArrayLike) -> Estimate:
        """The mean over all units with a value; ``values`` as for :meth:`total`."""
        y = self._values(values)
        if self.given is not self:
            return self._unlike(self.given.mean(y[self.answered]))
        value, spread, _ = self._ratio(y)
        return self._skewed(value, spread, ~np.isnan(y))

    def share(self, values: ArrayLike, *, open_ended: bool = False) -> Estimate:
        """The share of ones among all units with a value; ``values`` are 0, 1 or NaN.

        ``open_ended``: the frame may lack units, so a share of 0 or 1 gets an interval even if all units were drawn.
        """
        y = self._values(values)
        if self.given is not self:
            made = self._unlike(self.given.share(y[self.answered], open_ended=open_ended))
            if not made.missing:
                return made
            whole = copy(self)
            whole.given = whole
            least, most = (whole.share(np.where(self.answered, y, rest)) for rest in (0.0, 1.0))
            # The interval given response cannot reach beyond what holds for any answers.
            low, high = max(made.low, least.low), min(made.high, most.high)
            return replace(made, low=low, high=high, lowest=least.low, highest=most.high)
        value, spread, units = self._ratio(y)
        clusters = self._clusters_of(~np.isnan(y))
        if not units or spread.is_unknown or clusters == 1 < units:
            return Estimate(value, 0.0, 1.0, np.inf, units)
        known = ~np.isnan(y)
        weight = self.weight[known]
        error = float(np.sqrt(spread.variance * spread.left))
        # A stratum whose few drawn units are all equal seems to have no variance. Its contribution must not be lost,
        # above all if the whole observed variance comes from a stratum that was drawn completely.
        left = 1 - float(weight.sum() / (weight**2).sum())  # the rest of the variance, if all strata had the same
        spread = replace(spread, left=max(spread.left, left))
        effective = min(units, _effective(weight))
        # The units of a cluster may be of a kind for a common reason. So a kind may fill a cluster that was not drawn,
        # whether or not some units of it were drawn: neither end is nearer than if all units were alike.
        alike: float = min(effective, clusters)
        size: float = alike
        if spread.variance:
            tail = (1 + CONFIDENCE) / 2
            wider = stdtrit(max(effective - 1, 1), tail) / stdtrit(max(self._degrees_of(known), 1), tail)
            size = min(effective, value * (1 - value) / spread.variance) * wider**2
        low, high = _binomial(value, size)
        low, high = min(low, _binomial(1.0, alike)[0]), max(high, _binomial(0.0, alike)[1])
        is_doubtful = self.has_clusters and spread.left > 0 and self._may_lack_a_large_cluster(known)
        if open_ended and min(value, 1 - value) < 1e-12:
            return Estimate(value, low, high, error, units, is_doubtful)
        made = _in_finite_population(value, low, high, spread, units)
        return replace(made, standard_error=error, may_be_too_narrow=is_doubtful)

    def share_change(self, changes: ArrayLike) -> Estimate:
        """The change of a share between two waves of a panel, -1 to 1, over all units with a value in both.

        ``changes`` are 1 for a unit that has come, -1 for one that has gone, 0 or NaN. The change is the share that has
        come less the share that has gone, and its interval combines the intervals of both (G. Y. Zou, A. Donner,
        Statistics in Medicine 27, 2008) with the correlation of two kinds that exclude each other. The change of a mean
        is :meth:`mean` of the changes.
        """
        y = np.asarray(changes, np.float64)
        came, went = (self.share(np.where(np.isnan(y), np.nan, y == sign), open_ended=True) for sign in (1.0, -1.0))
        p, q = came.value, went.value
        apart = -np.sqrt(p * q / ((1 - p) * (1 - q))) if max(p, q) < 1 else 0.0

        def reach(one: float, other: float) -> float:
            return float(np.sqrt(one**2 + other**2 - 2 * apart * one * other))

        made = replace(
            came,
            value=p - q,
            low=max(p - q - reach(p - came.low, went.high - q), -1.0),
            high=min(p - q + reach(came.high - p, q - went.low), 1.0),
            standard_error=self.mean(y).standard_error,
            may_be_too_narrow=came.may_be_too_narrow or went.may_be_too_narrow,
        )
        if came.lowest is None or came.highest is None or went.lowest is None or went.highest is None:
            return made
        return replace(made, lowest=max(came.lowest - went.highest, -1.0), highest=min(came.highest - went.lowest, 1.0))

    def among(self, units: ArrayLike) -> Sample:
        """The same sample for estimates of a part of the population: of those units for which ``units`` is true.

        The others have no value. Which units the part has may depend on chance, and the variances take that into
        account.
        """
        part = copy(self)
        part.part = self.part & np.asarray(units, bool)
        part.given = part if self.given is self else self.given.among(part.part[self.answered])
        return part

    def without_answer(self, units: ArrayLike) -> Sample:
        """The sample in which ``units`` (a truth value for each unit) have not answered either."""
        drawn, strata, clusters, cluster_probability = self._design
        answered = self.answered & ~np.asarray(units, bool)
        made = Sample(
            drawn, strata=strata, clusters=clusters, cluster_probability=cluster_probability, answered=answered
        )
        return made if self.part.all() else made.among(self.part)

    def _values(self, values: ArrayLike) -> Floats:
        return np.where(self.part, np.asarray(values, np.float64), np.nan)

    def _unlike(self, estimate: Estimate) -> Estimate:
        """An estimate from the units that answered.

        It is marked if more units are missing than the square root of their number: then it may be off by more than a
        standard error, if the others are unlike these by a standard deviation.
        """
        missing, units = int((self.part & ~self.answered).sum()), int(self.part.sum())
        return replace(estimate, missing=missing, may_be_too_narrow=estimate.may_be_too_narrow or missing**2 > units)

    def _ratio(self, y: Floats) -> tuple[float, _Spread, int]:
        """The Hájek mean, its spread, and its number of units."""
        weight = np.where(np.isnan(y), 0, self.weight)
        units, size = int((~np.isnan(y)).sum()), weight.sum()
        if not units:
            return np.nan, self._spread(weight, weight, weight), 0
        y = np.nan_to_num(y)
        # Rounding must not place the mean outside the range of the values.
        value = float(np.clip(weight @ y / size, y[weight > 0].min(), y[weight > 0].max()))
        linear = weight * (y - value) / size
        return value, self._spread(linear, weight / size, linear), units

    def _skewed(self, value: float, spread: _Spread, known: NDArray[np.bool_]) -> Estimate:
        units = int(known.sum())
        if not units or spread.is_unknown or (self._clusters_of(known) == 1 and spread.left > 0):
            return Estimate(value, -np.inf, np.inf, np.inf, units)
        if not spread.variance and spread.left > 0:  # units that are all alike do not say how far others are away
            return Estimate(value, -np.inf, np.inf, 0.0, units)
        error, skewness = spread.with_one_more
        t = float(stdtrit(max(spread.degrees, 1), (1 + CONFIDENCE) / 2))
        low, high = (value - error * _unskewed(x, skewness) for x in (t, -t))
        made = _in_finite_population(value, low, high, spread, units)
        return replace(made, may_be_too_narrow=spread.left > 0 and self._are_few(known))

    def _are_few(self, known: NDArray[np.bool_]) -> bool:
        """Whether the design is too small for a mean, or may lack a site that is large by chance."""
        enough = ENOUGH_CLUSTERED_UNITS if self.has_clusters else ENOUGH_UNITS
        is_small = _effective(self.weight[known]) < enough - 1e-6 or 0 < self.chosen < ENOUGH_CLUSTERS
        return is_small or self._likeness_of_clusters() < _NEARLY_EQUAL

    def _may_lack_a_large_cluster(self, known: NDArray[np.bool_]) -> bool:
        """Whether a cluster that decides a share may be missing: clusters were drawn whatever their sizes."""
        chances = self.fraction[self.cluster[self.is_chosen]]
        if not len(chances) or np.ptp(chances) > 1e-9:
            return False
        return _effective(self.weight[known]) < ENOUGH_CLUSTERED_UNITS - 1e-6 or (
            self._likeness_of_clusters() < _DOMINATED
        )

    def _likeness_of_clusters(self) -> float:
        """The effective number of clusters drawn by chance by their estimated sizes, divided by their number."""
        sizes = _sums(self.cluster, np.where(self.is_chosen, self.weight, 0.0))
        sizes = sizes[sizes > 0]
        return _effective(sizes) / len(sizes) if len(sizes) else 1.0

    def _clusters_of(self, units: NDArray[np.bool_]) -> int:
        """The number of clusters that have some of ``units``. A single one shows no variance between clusters."""
        return len(np.unique(self.cluster[units]))

    def _degrees_of(self, units: NDArray[np.bool_]) -> float:
        """The degrees of freedom of the design: its effective number of clusters less a part for the strata.

        They do not depend on the values: few units of a kind say too little about the spread of its variance.
        """
        weights = _sums(self.cluster, np.where(units, self.weight, 0.0))
        there = weights > 0
        strata = len(np.unique(self.stratum[there]))
        return _effective(weights[there]) * (1 - strata / int(there.sum()))

    def _spread(self, linear: Floats, size: Floats, overall: Floats) -> _Spread:
        """The spread of an estimator.

        ``linear`` is the first-order contribution of each unit to the error, ``size`` the share of each unit in the
        denominator of a ratio, ``overall`` the contribution as a deviation from the mean of the whole.
        """
        sums = _sums(self.cluster, linear)
        n = np.bincount(self.stratum)[self.stratum]
        # The deviation of each cluster from the mean of its stratum. A single cluster is compared with all.
        away = np.where(n == 1, sums - sums.sum() / max(len(sums), 1), self._from_mean(sums))
        # As in the jackknife, correct for a large cluster, which draws the mean towards its own value.
        without = 1 - self._from_mean(_sums(self.cluster, size)) * n / np.maximum(n - 1, 1)
        without = np.where(without > 0, without, 1)
        away /= without
        # Small strata have the moments of the deviations from the mean of the whole.
        wide = np.where(n < _SMALL_STRATUM, _sums(self.cluster, overall) / without, away)
        squares = away**2 * n / np.maximum(n - 1, 1)
        free = len(away) - len(np.unique(self.stratum))
        finite = float(((1 - self.fraction) * squares).sum()) + self._second_stage(linear)
        # Clusters may be alike by chance, and differ less than their units.
        variance = max(float(squares.sum()), finite)
        if not variance:
            return _Spread(0.0, 1 - float(self.fraction.mean()) if len(n) else 0.0, free)
        cubes = wide**3 * np.where(n < _SMALL_STRATUM, 1, n**2 / np.maximum((n - 1) * (n - 2), 1))
        degrees = _degrees(self.stratum, away, squares, wide) if free and squares.any() else float(free)
        farthest = float(wide[np.argmax(np.abs(wide))])
        return _Spread(variance, max(finite / variance, 0.0), degrees, float(cubes.sum()), farthest)

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
    """The ``variance`` and the third moment (``cubes``) of an estimator for draws with replacement.

    ``left`` is the share of the variance that remains in a finite population, ``farthest`` the greatest contribution.
    """

    variance: float
    left: float
    degrees: float
    cubes: float = 0.0
    farthest: float = 0.0

    @property
    def is_unknown(self) -> bool:
        """Whether the spread is undetermined: one draw does not determine it, unless it was the whole population."""
        return self.degrees < 1 and self.left > 0

    @property
    def with_one_more(self) -> tuple[float, float]:
        """The standard error and the skewness if the sample had one more unit, as far away as the farthest."""
        variance = self.variance + self.farthest**2
        return float(np.sqrt(variance)), (self.cubes + self.farthest**3) / variance**1.5 if variance else 0.0


def _sums(labels: Labels, values: Floats) -> Floats:
    """The sum of the values with each label."""
    return np.bincount(labels, weights=values).astype(np.float64)


def _labels(labels: ArrayLike) -> Labels:
    return np.unique(np.asarray(labels), return_inverse=True)[1].astype(np.int64)


def _effective(weight: Floats) -> float:
    """The effective number of units with unequal weights (L. Kish, Survey Sampling, 1965)."""
    return float(weight.sum() ** 2 / (weight**2).sum())


def _binomial(share: float, size: float) -> tuple[float, float]:
    """The exact interval of a share in ``size`` draws, which need not be a whole number."""
    ones, tail = share * size, (1 - CONFIDENCE) / 2
    low = betaincinv(ones, size - ones + 1, tail) if ones > 0 else 0.0
    high = betaincinv(ones + 1, size - ones, 1 - tail) if ones < size else 1.0
    return float(low), float(high)


def _degrees(stratum: Labels, away: Floats, squares: Floats, wide: Floats) -> float:
    """The degrees of freedom of a variance over strata, which a few strata, and a few of their units, may dominate.

    Source: F. E. Satterthwaite, Biometrics Bulletin 2, 1946, with the kurtosis of each stratum; for small strata, with
    that of all deviations in ``wide``.
    """
    n = np.bincount(stratum)
    variance = _sums(stratum, squares)
    second, fourth = (_sums(stratum, away**power) / n for power in (2, 4))
    own = np.divide(fourth, second**2, out=np.full(len(n), 3.0), where=second > 0)
    is_small = n < _SMALL_STRATUM
    kurtosis = np.where(is_small, len(wide) * (wide**4).sum() / (wide**2).sum() ** 2, own) - 3
    uncertain = 2 / np.maximum(n - 1, 1) + np.maximum(kurtosis, 0) / n  # the relative variance of each variance
    # The expected square of an estimated variance exceeds the square of the true one by the relative variance.
    uncertain = variance**2 * uncertain / np.where(is_small, 1 + uncertain, 1)
    return float(max(1.0, 2 * variance.sum() ** 2 / uncertain.sum()))


def _unskewed(x: float, skewness: float) -> float:
    """The quantile of the studentised estimator from the symmetric one: the inverse of Hall's cubic."""
    if abs(skewness) < 1e-6:
        return x
    return float(3 / skewness * (np.cbrt(1 + skewness * (x - skewness / 6)) - 1))


def _in_finite_population(value: float, low: float, high: float, spread: _Spread, units: int) -> Estimate:
    left = np.sqrt(spread.left)
    error = float(np.sqrt(spread.variance) * left)
    return Estimate(value, float(value - (value - low) * left), float(value + (high - value) * left), error, units)
