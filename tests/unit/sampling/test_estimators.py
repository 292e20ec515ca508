"""Estimates on populations that are known: intervals of 95 % hold the truth at least 93 times of 100.

``python -m tests.bench coverage`` measures it with more draws.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from crawler.frontier.sample_design import Listed, Sampler, draw_stratified
from crawler.sampling.estimators import ENOUGH_UNITS, Estimate, Sample
from tests.binomial import RUNS, require_coverage

pytestmark = pytest.mark.slow

Floats = NDArray[np.float64]


class Web:
    """Sites of very different size, and what is to be estimated of their pages, which are more alike within one."""

    def __init__(self, pages: int, sites: int) -> None:
        chance = np.random.default_rng(11)
        sizes = np.maximum(2, chance.lognormal(np.log(pages / sites), 0.5, sites)).astype(int)
        self.site = np.repeat(np.arange(sites), sizes)
        own = chance.normal(0, 0.3, sites)[self.site]
        self.pages = len(self.site)
        self.bytes = chance.lognormal(9 + own, 1)
        self.links = np.floor(chance.lognormal(2.5 + own, 1))
        self.is_english = (chance.random(self.pages) < 1 / (1 + np.exp(-0.5 - 3 * own))).astype(float)
        self.is_missing = (chance.random(self.pages) < 0.02).astype(float)
        self.bytes[self.is_missing == 1] = np.nan  # a page that is missing has no size

    def urls(self) -> list[str]:
        return [f"http://s{site}.test/{page}" for page, site in enumerate(self.site)]

    def held(self, sample: Sample, drawn: NDArray[np.int64]) -> dict[str, bool]:
        def holds(estimate: Estimate, truth: float) -> bool:
            assert estimate.low <= estimate.value <= estimate.high
            return estimate.low <= truth <= estimate.high

        return {
            "bytes a page": holds(sample.mean(self.bytes[drawn]), float(np.nanmean(self.bytes))),
            "bytes in all": holds(sample.total(self.bytes[drawn]), float(np.nansum(self.bytes))),
            "links a page": holds(sample.mean(self.links[drawn]), self.links.mean()),
            "in English": holds(sample.share(self.is_english[drawn]), self.is_english.mean()),
            "missing": holds(sample.share(self.is_missing[drawn]), self.is_missing.mean()),
        }


@pytest.fixture(scope="module")
def web() -> Web:
    return Web(1000, 40)


def by_stratum(n: int) -> str:
    """Strata of 50, 200 and the rest, of which as many are drawn: 30 of 50, and 30 of 800."""
    return "first" if n < 50 else "next" if n < 250 else "rest"


@pytest.mark.parametrize(
    ("per", "size"),
    [
        ("crawl", 100),
        pytest.param("crawl", 400, marks=pytest.mark.long),
        ("site", 3),
        pytest.param("site", 10, marks=pytest.mark.long),
        ("list", 90),
        pytest.param("list", 300, marks=pytest.mark.long),
    ],
)
def test_a_sample_of_the_crawl_of_each_site_and_of_a_list(web: Web, per: str, size: int) -> None:
    strata = {
        "crawl": [""] * web.pages,
        "site": [str(site) for site in web.site],
        "list": [by_stratum(n) for n in range(web.pages)],
    }[per]
    rows = [Listed(url, stratum) for url, stratum in zip(web.urls(), strata, strict=True)]
    place = {row.url: n for n, row in enumerate(rows)}

    def run(seed: int) -> dict[str, bool]:
        sampler = Sampler(size, seed)
        for row in rows:
            sampler.offer(row.url, row.stratum)
        drawn = draw_stratified(rows, size, seed) if per == "list" else list(sampler.drawn())
        sample = Sample([d.probability for d in drawn], strata=[d.stratum for d in drawn])
        return web.held(sample, np.array([place[d.url] for d in drawn]))

    require_coverage(run)


@pytest.mark.parametrize(
    "most",
    [pytest.param(5, id="five pages of a site"), pytest.param(10_000, id="whole sites", marks=pytest.mark.long)],
)
def test_sites_drawn_first_and_pages_from_them(most: int) -> None:
    web, sites = Web(8000, 300), 120
    of_site = [np.flatnonzero(web.site == site) for site in range(300)]

    def run(seed: int) -> dict[str, bool]:
        chance = np.random.default_rng(seed)
        taken = [of_site[n] for n in chance.choice(len(of_site), sites, replace=False)]
        drawn = [chance.choice(pages, min(most, len(pages)), replace=False) for pages in taken]
        first = sites / len(of_site)
        probability = [np.full(len(d), first * len(d) / len(pages)) for d, pages in zip(drawn, taken, strict=True)]
        rows = np.concatenate(drawn)
        sample = Sample(np.concatenate(probability), clusters=web.site[rows], cluster_probability=first)
        return web.held(sample, rows)

    require_coverage(run)


@pytest.mark.parametrize("size", [60, 200, 350, 1500])
def test_an_interval_that_may_be_too_narrow_says_so(size: int) -> None:
    """One page in a hundred has 300 links more: 200 pages show none of these in 13 samples of 100.

    These samples look regular, so the mark must not depend on the values.
    """
    chance = np.random.default_rng(7)
    links = chance.poisson(20, 3000) + (chance.random(3000) < 0.01) * 300
    marked = 0

    def run(seed: int) -> dict[str, bool]:
        nonlocal marked
        drawn = np.random.default_rng(seed).choice(3000, size, replace=False)
        estimate = Sample(np.full(size, size / 3000)).mean(links[drawn])
        marked += estimate.may_be_too_narrow
        return {"links": estimate.may_be_too_narrow or estimate.low <= links.mean() <= estimate.high}

    require_coverage(run)
    assert marked == (RUNS if size < ENOUGH_UNITS else 0)


def test_the_mark_depends_on_the_design() -> None:
    values = np.arange(400.0)
    assert not Sample(np.full(350, 0.1)).mean(values[:350]).may_be_too_narrow
    assert not Sample(np.full(350, 0.1)).mean(1.02 ** values[:350]).may_be_too_narrow
    assert Sample(np.full(349, 0.1)).mean(values[:349]).may_be_too_narrow
    assert Sample(np.r_[np.full(390, 0.9), np.full(10, 0.01)]).mean(values).may_be_too_narrow, "ten units decide"
    clustered = Sample(np.full(400, 0.1), clusters=np.arange(400) % 15, cluster_probability=0.2)
    assert not clustered.mean(values).may_be_too_narrow
    assert not clustered.share(values > 9).may_be_too_narrow
    few = Sample(np.full(400, 0.1), clusters=np.arange(400) % 14, cluster_probability=0.2)
    assert few.mean(values).may_be_too_narrow
    assert not few.share(values > 9).may_be_too_narrow
    short = Sample(np.full(380, 0.1), clusters=np.arange(380) % 20, cluster_probability=0.2)
    assert short.mean(values[:380]).may_be_too_narrow
    assert short.share(values[:380] > 9).may_be_too_narrow, "drawn whatever the size of the sites"
    by_size = np.where(np.arange(380) % 2, 0.2, 0.4)
    short = Sample(by_size / 4, clusters=np.arange(380) % 20, cluster_probability=by_size)
    assert not short.share(values[:380] > 9).may_be_too_narrow
    assert not Sample(np.ones(9)).mean(values[:9]).may_be_too_narrow, "who has all knows all"


def test_a_few_missing_units_mark_nothing() -> None:
    values, answered = np.arange(400.0), np.ones(400, bool)
    answered[:20] = False
    made = Sample(np.full(400, 0.1), answered=answered).mean(values)
    assert (made.missing, made.may_be_too_narrow) == (20, False)
    answered[:21] = False
    assert Sample(np.full(400, 0.1), answered=answered).mean(values).may_be_too_narrow


def test_a_certain_site_is_a_stratum() -> None:
    values, site = np.random.default_rng(1).normal(5, 1, 24) + np.repeat([0, 90, 0, 0], 6), np.repeat(np.arange(4), 6)
    first, within = np.where(site == 1, 1.0, 0.3), 0.2
    mixed = Sample(first * within, clusters=site, cluster_probability=first).total(values)
    certain = Sample(np.full(6, within)).total(values[site == 1])
    others = Sample(np.full(18, 0.3 * within), clusters=site[site != 1], cluster_probability=0.3).total(
        values[site != 1]
    )
    assert mixed.value == pytest.approx(certain.value + others.value)
    assert mixed.standard_error**2 == pytest.approx(certain.standard_error**2 + others.standard_error**2)
    strata = Sample(np.full(24, within), strata=site).mean(values)
    assert Sample(np.full(24, within), clusters=site, cluster_probability=1).mean(values) == strata


def test_one_site_of_many_shows_no_variance_between_sites() -> None:
    values, site = np.arange(24.0) % 5, np.repeat(np.arange(4), 6)
    part = Sample(np.full(24, 0.1), clusters=site, cluster_probability=0.3).among(site == 2)
    assert np.isinf(part.mean(values).high)
    share = part.share(values > 1)
    assert (share.low, share.high) == (0, 1)


def test_sites_that_are_alike_by_chance_do_not_make_an_interval_without_width() -> None:
    values, site = np.tile([0.0, 0, 0, 1, 1, 1], 4), np.repeat(np.arange(4), 6)
    sample = Sample(np.full(24, 0.1), clusters=site, cluster_probability=0.5)
    assert sample.mean(values).standard_error > 0
    assert sample.mean(values).high > 0.55
    share = sample.share(values)
    assert 0 <= share.low < 0.45
    assert 0.55 < share.high <= 1


def test_missing_units_mark_an_estimate_and_bound_a_share() -> None:
    """Of two strata, half and none of the units have answered."""
    sample = Sample(np.full(8, 0.5), strata=[1, 1, 1, 1, 2, 2, 2, 2], answered=[1, 0, 1, 0, 1, 1, 1, 1])
    values = np.array([1.0, 9, 3, 9, 5, 5, 5, 5])
    mean = sample.mean(values)
    assert (mean.value, mean.units, mean.missing, mean.may_be_too_narrow) == (3.5, 6, 2, True)
    share = sample.share(values > 4)
    assert (share.value, share.missing) == (0.5, 2)
    assert share.lowest == Sample(np.full(8, 0.5), strata=sample.stratum).share([0, 0, 0, 0, 1, 1, 1, 1]).low
    assert share.highest == Sample(np.full(8, 0.5), strata=sample.stratum).share([0, 1, 0, 1, 1, 1, 1, 1]).high


def test_a_kind_not_seen_has_the_exact_upper_bound() -> None:
    """With replacement, none of n: (1 - u) ** n = 0.025 (Clopper and Pearson)."""
    estimate = Sample(np.full(100, 1e-9)).share(np.zeros(100))
    assert (estimate.value, estimate.low) == (0, 0)
    assert (1 - estimate.high) ** 100 == pytest.approx(0.025)


@pytest.mark.parametrize("share", [0.004, 0.05, 0.5, 0.98])
@pytest.mark.parametrize("size", [20, pytest.param(200, marks=pytest.mark.long), 900])
def test_shares_of_a_small_web(share: float, size: int) -> None:
    values = np.arange(1000) < share * 1000

    def run(seed: int) -> dict[str, bool]:
        drawn = np.random.default_rng(seed).choice(1000, size, replace=False)
        estimate = Sample(np.full(size, size / 1000)).share(values[drawn])
        return {"share": estimate.low <= share <= estimate.high}

    require_coverage(run)


def test_a_strong_correction_for_what_was_drawn_unequally() -> None:
    """Horvitz and Thompson by hand: 2 / 0.5 + 3 / 0.25; Hájek: that over 1 / 0.5 + 1 / 0.25."""
    sample = Sample([0.5, 0.25])
    assert sample.total([2, 3]).value == pytest.approx(16)
    assert sample.mean([2, 3]).value == pytest.approx(16 / 6)
    assert sample.share([1, 0]).value == pytest.approx(1 / 3)
    assert sample.mean([2, np.nan]).value == 2
    assert sample.mean([2, np.nan]).units == 1


def test_who_has_all_knows_all() -> None:
    values = np.array([1.0, 5, 5, 9])
    for sample in (
        Sample(np.ones(4)),
        Sample(np.ones(4), strata=[1, 1, 2, 3]),
        Sample(np.ones(4), clusters=[1, 1, 2, 2], cluster_probability=1),
    ):
        assert (sample.mean(values).low, sample.mean(values).high) == (5, 5)
        assert (sample.total(values).low, sample.total(values).high) == (20, 20)
        share = sample.share(values == 9)
        assert (share.low, share.value, share.high) == (0.25, 0.25, 0.25)
        assert Sample(np.ones(4)).share(np.zeros(4)).high == 0


@pytest.mark.parametrize("values", [[3.0], [np.nan, np.nan], []])
def test_who_has_next_to_nothing_knows_nothing(values: list[float]) -> None:
    sample = Sample(np.full(len(values), 0.1))
    assert (sample.mean(values).low, sample.mean(values).high) == (-np.inf, np.inf)
    share = sample.share(np.minimum(values, 1))
    assert (share.low, share.high) == (0, 1)


@pytest.mark.parametrize("probability", [[0.0], [-0.1], [1.1], [np.nan]])
def test_what_is_no_probability_is_refused(probability: list[float]) -> None:
    with pytest.raises(ValueError, match="probability"):
        Sample(probability)


def test_the_interval_of_regular_values_is_wider_than_the_textbooks_by_one_more_unit() -> None:
    """Nothing is skewed but the tenth value is added again: mean ± t · s / √n · √(1 − n / N), and a little more."""
    values = np.arange(10.0)
    estimate = Sample(np.full(10, 0.1)).mean(values)
    error = values.std(ddof=1) / np.sqrt(10) * np.sqrt(0.9)
    assert estimate.standard_error == pytest.approx(error)
    assert 1 < (4.5 - estimate.low) / (2.262157 * error) < 1.25
    assert 1 < (estimate.high - 4.5) / (2.262157 * error) < 1.25
    many = Sample(np.full(1000, 0.1)).mean(np.arange(1000.0) % 10)
    error = (np.arange(1000) % 10).std(ddof=1) / np.sqrt(1000) * np.sqrt(0.9)
    assert (many.low, many.high) == pytest.approx((4.5 - 1.96234 * error, 4.5 + 1.96234 * error), rel=1e-3)


def test_changes_of_a_panel_hold() -> None:
    """Two waves covary; pages that have come or gone have no change. Some shares change seldom, and some not at all."""
    web = Web(1000, 40)
    chance = np.random.default_rng(3)
    after = np.where(chance.random(web.pages) < 0.05, np.nan, web.links * 0.9 + chance.poisson(2, web.pages))
    kinds = [np.sign(chance.random(web.pages) - gone) * (chance.random(web.pages) < 0.1) for gone in (0.1, 0.5, 1)]

    def run(seed: int) -> dict[str, bool]:
        drawn = np.random.default_rng(seed).choice(web.pages, 150, replace=False)
        sample = Sample(np.full(150, 150 / web.pages))
        found = sample.mean((after - web.links)[drawn])
        assert found.standard_error < sample.mean(web.links[drawn]).standard_error
        held = {"links": found.low <= np.nanmean(after - web.links) <= found.high}
        for n, kind in enumerate(kinds):
            change = sample.share_change(kind[drawn])
            assert change.low < change.value < change.high
            held[f"share {n}"] = change.low <= kind.mean() <= change.high
        return held

    require_coverage(run)


def test_a_share_that_has_not_changed_may_have() -> None:
    """No unit of 100 has come or gone: the exact bound of a share of 0 lies on both sides."""
    change = Sample(np.full(100, 0.01)).share_change(np.zeros(100))
    assert (change.value, change.low, change.lowest) == (0, -change.high, None)
    assert change.high == pytest.approx(1 - 0.025 ** (1 / 100))
    answered = np.arange(100) < 90
    missing = Sample(np.full(100, 0.01), answered=answered).share_change(np.where(answered, 0, np.nan))
    assert missing.lowest == -(missing.highest or 0)
    assert (missing.highest or 0) > 0.1 > change.high, "the ten that are missing may all have come"


def test_units_that_are_all_alike_have_no_interval_without_width() -> None:
    assert np.isinf(Sample(np.full(100, 0.1)).mean(np.full(100, 5.0)).high)
    assert Sample(np.ones(100)).mean(np.full(100, 5.0)).high == 5, "the whole population was drawn"


def test_a_part_without_a_spread_is_not_known() -> None:
    sample = Sample(np.full(4, 0.5), answered=[1, 1, 1, 0])
    values = np.array([3.0, 4, 5, 6])
    assert np.isinf(sample.among([1, 0, 0, 0]).mean(values).high), "one unit shows no spread"
    assert sample.among([1, 1, 0, 0]).mean(values).missing == 0
    assert sample.among([1, 1, 0, 1]).mean(values).missing == 1
    assert np.isnan(sample.among([0, 0, 0, 0]).mean(values).value)
    assert sample.among([0, 0, 0, 1]).share([0, 0, 0, 1]).highest == 1


def test_sites_of_unequal_size_that_were_drawn_equally_mark_means_and_shares() -> None:
    """Of 160 sites one has 180 of 2,250 pages, all of a kind. Four of five samples lack it, and cannot show that."""
    sizes = np.where(np.arange(160) == 7, 180, 13)
    of_site = np.split(np.arange(sizes.sum()), np.cumsum(sizes)[:-1])
    site = np.repeat(np.arange(160), sizes)
    kind = np.isin(site, [7, *range(20, 34)])
    unmarked = []
    for seed in range(20):
        chance = np.random.default_rng(seed)
        rows = np.concatenate([of_site[n][: -(-len(of_site[n]) * 3 // 10)] for n in chance.permutation(160)[:40]])
        sample = Sample(np.full(len(rows), 0.25 * 0.3), clusters=site[rows], cluster_probability=0.25)
        estimate = sample.share(kind[rows])
        held = estimate.low <= kind.mean() <= estimate.high
        unmarked += [held] if not estimate.may_be_too_narrow else []
    assert all(unmarked)
    sizes = ([2] * 9 + [102]) * 10
    large = Sample(np.full(1200, 0.1), clusters=np.repeat(np.arange(100), sizes), cluster_probability=0.2)
    assert large.share(np.arange(1200) % 2).may_be_too_narrow
    assert large.mean(np.arange(1200) % 2).may_be_too_narrow
    even = Sample(np.full(1200, 0.1), clusters=np.repeat(np.arange(100), 12), cluster_probability=0.2)
    assert not even.share(np.arange(1200) % 2).may_be_too_narrow
    whole = Sample(np.full(1200, 0.1), clusters=np.repeat(np.arange(100), sizes), cluster_probability=1)
    assert not whole.share(np.arange(1200) % 2).may_be_too_narrow


@pytest.mark.parametrize("probability", [0.15, 0.3, 1 / 7])
def test_a_share_of_all_or_none_is_exact(probability: float) -> None:
    sample = Sample(np.full(300, probability))
    every, none = sample.share(np.ones(300)), sample.share(np.zeros(300))
    assert (every.value, every.high, none.value, none.low) == (1, 1, 0, 0)
    assert every.low == pytest.approx(1 - none.high)
    assert 0.98 < every.low < 1
    assert sample.mean(np.full(300, 0.7)).value == 0.7


@pytest.mark.parametrize("size", [60, 300])
def test_the_interval_of_a_rare_kind_is_close_to_the_binomial_and_monotone(size: int) -> None:
    """Clopper and Pearson of ``size`` units; with sites, no upper end is below that of no unit."""
    from scipy.special import betaincinv

    plain, sites = Sample(np.full(size, 1e-9)), np.arange(size) % 30
    two_stages = Sample(np.full(size, 1e-9), clusters=sites, cluster_probability=1e-4)
    for sample in (plain, two_stages):
        found = [sample.share(np.arange(size) < ones) for ones in range(size + 1)]
        for less, more in itertools.pairwise(found[:10]):
            assert less.high <= more.high + 1e-12
            assert less.low <= more.low + 1e-12
    for ones in (1, 2, 5):
        exact = betaincinv(ones + 1, size - ones, 0.975)
        assert plain.share(np.arange(size) < ones).high == pytest.approx(exact, rel=0.03)


def test_the_bounds_contain_the_interval_given_response() -> None:
    for seed in range(40):
        chance = np.random.default_rng(seed)
        answered = chance.random(24) < 0.7
        sample = Sample(np.full(24, 0.5), strata=np.arange(24) % 3, answered=answered)
        for values in (chance.random(24) < 0.2, np.ones(24)):
            share = sample.share(values)
            assert share.lowest is not None
            assert share.highest is not None
            assert 0 <= share.lowest <= share.low <= share.value <= share.high <= share.highest <= 1


def test_the_standard_error_of_a_share_is_that_of_the_mean() -> None:
    ones = np.arange(30) < 5  # the whole observed variance is in a stratum that is nearly complete
    probability = np.repeat([0.9, 0.1, 0.02], 10)
    sites = np.repeat(np.arange(6), 5)
    for sample in (
        Sample(probability, strata=np.repeat([1, 2, 3], 10)),
        Sample(probability / 2, clusters=sites, cluster_probability=0.5),
    ):
        assert sample.share(ones).standard_error == pytest.approx(sample.mean(ones).standard_error, rel=1e-12)


def test_a_variance_that_a_few_values_make_is_less_certain() -> None:
    """Both have the same mean, variance, skewness and farthest value; only the kurtosis differs."""
    few = np.array([10.0, -10.0] * 2 + [0.0] * 16)
    many = np.array([10.0, -10.0] + [np.sqrt(200 / 18), -np.sqrt(200 / 18)] * 9)
    of_few, of_many = (Sample(np.full(20, 1e-6)).mean(values) for values in (few, many))
    assert of_few.standard_error == pytest.approx(of_many.standard_error)
    assert of_few.high > 1.05 * of_many.high
    assert of_few.low < 1.05 * of_many.low
