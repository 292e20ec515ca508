"""Twenty worked designs: their data, the estimators of this project, and the statements of R's ``survey`` package."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from crawler.sampling import Estimate, Sample

Column = NDArray[np.float64]

_CHANCE = np.random.default_rng(42)
_N = 24


def _drawn(*shape: int) -> Column:
    return np.round(_CHANCE.lognormal(2, 0.8, shape or _N), 3)


@dataclass(frozen=True)
class Design:
    """A design: ``columns`` of the sample, ``ours`` and ``r``, which prints a value and its standard error."""

    columns: dict[str, Column]
    ours: Callable[[dict[str, Column]], Estimate]
    r: str


_STRATA = np.repeat([1.0, 2, 3], [10, 8, 6])
_STRATUM_SIZE = np.repeat([100.0, 40, 12], [10, 8, 6])
_PAIRS = np.repeat(np.arange(12.0), 2)
_PAIR_SIZE = np.repeat(np.round(_CHANCE.uniform(3, 60, 12)), 2)
_CLUSTERS = np.repeat(np.arange(6.0), [2, 5, 4, 3, 6, 4])
_EQUAL_CLUSTERS = np.repeat(np.arange(6.0), 4)
_SITE_SIZE = np.repeat([10.0, 40, 25, 60, 15, 30], 4)  # of a frame of 600
_ONE_CERTAIN = np.repeat(np.arange(5.0), [4, 4, 4, 4, 8])
_SIZE_OF_FIVE = np.repeat([30.0, 60, 50, 80, 200], [4, 4, 4, 4, 8])  # of a frame of 600: the last is certain
_OF_FIVE = np.where(_ONE_CERTAIN == 4, 1, 4 * _SIZE_OF_FIVE / 400)
_WAVE = _drawn()

_MEAN = "m <- svymean(~y, d); cat(coef(m), SE(m))"
_TOTAL = "m <- svytotal(~y, d); cat(coef(m), SE(m))"
_STAGES = "x$i <- 1:24; d <- svydesign(ids=~c+i, data=x, fpc=~{}); "
_BREWER = "x$i <- 1:24; d <- svydesign(ids=~c+i, strata=~h, data=x, fpc=~p+q, pps='brewer'); "
_JACKKNIFE_MEAN = "d <- as.svrepdesign(d, type='{}', mse=TRUE); " + _MEAN

DESIGNS = {
    "simple, without replacement: mean": Design(
        {"y": _drawn()},
        lambda c: Sample(np.full(_N, _N / 200)).mean(c["y"]),
        f"d <- svydesign(ids=~1, data=x, fpc=rep(200, 24)); {_MEAN}",
    ),
    "simple, without replacement: total": Design(
        {"y": _drawn()},
        lambda c: Sample(np.full(_N, _N / 200)).total(c["y"]),
        f"d <- svydesign(ids=~1, data=x, fpc=rep(200, 24)); {_TOTAL}",
    ),
    "with replacement, in proportion to size: total": Design(
        {"y": _drawn(), "w": np.round(_drawn() + 1, 2)},
        lambda c: Sample(1 / c["w"], clusters=np.arange(_N)).total(c["y"]),
        f"d <- svydesign(ids=~1, data=x, weights=~w); {_TOTAL}",
    ),
    "with replacement, in proportion to size: mean, by the jackknife": Design(
        {"y": _drawn(), "w": np.round(_drawn() + 1, 2)},
        lambda c: Sample(1 / c["w"], clusters=np.arange(_N)).mean(c["y"]),
        f"d <- svydesign(ids=~1, data=x, weights=~w); {_JACKKNIFE_MEAN.format('JK1')}",
    ),
    "three strata: mean": Design(
        {"y": _drawn(), "h": _STRATA, "size": _STRATUM_SIZE},
        lambda c: Sample(np.repeat([10 / 100, 8 / 40, 6 / 12], [10, 8, 6]), strata=c["h"]).mean(c["y"]),
        f"d <- svydesign(ids=~1, strata=~h, data=x, fpc=~size); {_MEAN}",
    ),
    "two of each of twelve sites: mean": Design(
        {"y": _drawn(), "h": _PAIRS, "size": _PAIR_SIZE},
        lambda c: Sample(2 / c["size"], strata=c["h"]).mean(c["y"]),
        f"d <- svydesign(ids=~1, strata=~h, data=x, fpc=~size); {_MEAN}",
    ),
    "three strata: share of a part, by the jackknife": Design(
        {"y": (_drawn() > 8).astype(float), "part": (_drawn() > 5).astype(float), "h": _STRATA, "size": _STRATUM_SIZE},
        lambda c: (
            Sample(np.repeat([10 / 100, 8 / 40, 6 / 12], [10, 8, 6]), strata=c["h"]).among(c["part"]).mean(c["y"])
        ),
        "d <- svydesign(ids=~1, strata=~h, data=x, fpc=~size); "
        "d <- as.svrepdesign(d, type='JKn', mse=TRUE); d <- subset(d, part == 1); " + _MEAN,
    ),
    "whole clusters: mean, by the jackknife": Design(
        {"y": _drawn(), "c": _CLUSTERS},
        lambda c: Sample(np.full(_N, 0.2), clusters=c["c"], cluster_probability=0.2).mean(c["y"]),
        f"d <- svydesign(ids=~c, data=x, fpc=rep(30, 24)); {_JACKKNIFE_MEAN.format('JK1')}",
    ),
    "sites, then pages of them: mean": Design(
        {"y": _drawn(), "c": _EQUAL_CLUSTERS},
        lambda c: Sample(np.full(_N, 6 / 30 * 4 / 10), clusters=c["c"], cluster_probability=6 / 30).mean(c["y"]),
        f"x$i <- 1:24; x$sites <- 30; x$pages <- 10; d <- svydesign(ids=~c+i, data=x, fpc=~sites+pages); {_MEAN}",
    ),
    "three strata: difference of two waves": Design(
        {"y": _WAVE, "z": np.round(_WAVE * 0.8 + 0.3 * _drawn(), 3), "h": _STRATA, "size": _STRATUM_SIZE},
        lambda c: Sample(np.repeat([10 / 100, 8 / 40, 6 / 12], [10, 8, 6]), strata=c["h"]).mean(c["z"] - c["y"]),
        "d <- svydesign(ids=~1, strata=~h, data=x, fpc=~size); "
        "m <- svycontrast(svymean(~y + z, d), c(-1, 1)); cat(coef(m), SE(m))",
    ),
    "sites with equal probabilities, then pages: total": Design(
        {
            "y": _drawn(),
            "c": _CLUSTERS,
            "sites": np.full(_N, 30.0),
            "pages": np.repeat([2.0, 9, 40, 6, 60, 10], [2, 5, 4, 3, 6, 4]),
        },
        lambda c: Sample(
            6 / 30 * np.bincount(c["c"].astype(int))[c["c"].astype(int)] / c["pages"],
            clusters=c["c"],
            cluster_probability=6 / 30,
        ).total(c["y"]),
        _STAGES.format("sites+pages") + _TOTAL,
    ),
    "sites in proportion to size, then pages: mean": Design(
        {"y": _drawn(), "c": _EQUAL_CLUSTERS, "p": 6 * _SITE_SIZE / 600, "q": 4 / _SITE_SIZE, "h": np.zeros(_N)},
        lambda c: Sample(c["p"] * c["q"], clusters=c["c"], cluster_probability=c["p"]).mean(c["y"]),
        _BREWER + _MEAN,
    ),
    "sites in proportion to size, then pages: mean, with replacement": Design(
        {"y": _drawn(), "c": _EQUAL_CLUSTERS, "w": np.full(_N, 600 / 24)},
        lambda c: Sample(1 / c["w"], clusters=c["c"]).mean(c["y"]),
        f"d <- svydesign(ids=~c, data=x, weights=~w); {_MEAN}",
    ),
    "sites in proportion to size, one of them certain, then pages: total": Design(
        {
            "y": _drawn(),
            "c": np.where(_ONE_CERTAIN == 4, 10.0 + np.arange(_N), _ONE_CERTAIN),
            "site": _ONE_CERTAIN,
            "p": np.where(_ONE_CERTAIN == 4, 8 / 200, _OF_FIVE),
            "q": np.where(_ONE_CERTAIN == 4, 1.0, 4 / _SIZE_OF_FIVE),
            "h": np.where(_ONE_CERTAIN == 4, 1.0, 0.0),
        },
        lambda c: Sample(c["p"] * c["q"], clusters=c["site"], cluster_probability=_OF_FIVE).total(c["y"]),
        _BREWER + _TOTAL,
    ),
}


# Designs of a later date, so that the columns of the designs above stay as they were.
_KIND = np.where(_drawn() > 6, (_drawn() > 8).astype(float), np.nan)
_CALIBRATED = "d <- calibrate(d, ~1, c('(Intercept)'={})); "
DESIGNS |= {
    "simple, without replacement: number of a kind, some units without a value": Design(
        {"y": np.nan_to_num(_KIND), "has": (~np.isnan(_KIND)).astype(float)},
        lambda c: Sample(np.full(_N, _N / 200)).share(c["y"]).times(200),
        f"d <- subset(svydesign(ids=~1, data=x, fpc=rep(200, 24)), has == 1); {_TOTAL}",
    ),
    "three strata: total, of a frame of known size": Design(
        {"y": _drawn(), "h": _STRATA, "size": _STRATUM_SIZE},
        lambda c: Sample(np.repeat([10 / 100, 8 / 40, 6 / 12], [10, 8, 6]), strata=c["h"]).mean(c["y"]).times(152),
        f"d <- svydesign(ids=~1, strata=~h, data=x, fpc=~size); {_TOTAL}",
    ),
    "three strata: total of one of them": Design(
        {"y": _drawn(), "h": _STRATA, "size": _STRATUM_SIZE},
        lambda c: (
            Sample(np.repeat([10 / 100, 8 / 40, 6 / 12], [10, 8, 6]), strata=c["h"])
            .among(c["h"] == 2)
            .mean(c["y"])
            .times(40)
        ),
        f"d <- subset(svydesign(ids=~1, strata=~h, data=x, fpc=~size), h == 2); {_TOTAL}",
    ),
    "with replacement, in proportion to size: total, calibrated, by the jackknife": Design(
        {"y": _drawn(), "w": np.round(_drawn() + 1, 2)},
        lambda c: Sample(1 / c["w"], clusters=np.arange(_N)).mean(c["y"]).times(300),
        f"d <- as.svrepdesign(svydesign(ids=~1, data=x, weights=~w), type='JK1', mse=TRUE); "
        f"{_CALIBRATED.format(300)}{_TOTAL}",
    ),
    "sites, then pages of them: total, calibrated": Design(
        {"y": _drawn(), "c": _EQUAL_CLUSTERS},
        lambda c: (
            Sample(np.full(_N, 6 / 30 * 4 / 10), clusters=c["c"], cluster_probability=6 / 30).mean(c["y"]).times(310)
        ),
        "x$i <- 1:24; x$sites <- 30; x$pages <- 10; d <- svydesign(ids=~c+i, data=x, fpc=~sites+pages); "
        f"{_CALIBRATED.format(310)}{_TOTAL}",
    ),
    "sites in proportion to size, then pages: number of a kind, calibrated": Design(
        {
            "y": (_drawn() > 8).astype(float),
            "c": _EQUAL_CLUSTERS,
            "p": 6 * _SITE_SIZE / 600,
            "q": 4 / _SITE_SIZE,
            "h": np.zeros(_N),
        },
        lambda c: Sample(c["p"] * c["q"], clusters=c["c"], cluster_probability=c["p"]).share(c["y"]).times(600),
        f"{_BREWER}{_CALIBRATED.format(600)}{_TOTAL}",
    ),
}


def script(designs: Iterable[Design]) -> str:
    """The statements of R for some designs, which print one line for each."""
    return "suppressMessages(library(survey)); options(digits=15)\n" + "".join(map(_statements, designs))


def _statements(design: Design) -> str:
    columns = ", ".join(
        f"{name}=c({', '.join(repr(float(value)) for value in column)})" for name, column in design.columns.items()
    )
    return f"x <- data.frame({columns}); {design.r}; cat('\\n')\n"


def r(statements: str) -> str:
    """What R prints. Skips the test if R or its package ``survey`` is not installed."""
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    statements = f"if (!requireNamespace('survey', quietly=TRUE)) quit(status=77)\n{statements}"
    done = subprocess.run(["Rscript", "-"], input=statements, text=True, capture_output=True, check=False)
    if done.returncode == 77:
        pytest.skip("R's package survey is not installed")
    assert not done.returncode, done.stderr
    return done.stdout
