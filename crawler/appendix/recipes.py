"""Short programs in the appendix that repeat estimates with R's ``survey`` and Python's ``svy``."""

from __future__ import annotations

from crawler.frontier.sample_design import Method, SitesBy
from crawler.store.rows import SampleDraw

_R = """\
# The estimates in tables/estimates.csv again, with the package survey of R. Run in this folder: Rscript recipe.R
library(survey)
options(survey.lonely.psu = "adjust", digits = 8)
draws <- read.csv("tables/draws.csv")
draws$disallowed <- as.numeric(draws$reason_code == "robots")
{design}
print(svymean(~disallowed, design))
print(svymean(~size, design, na.rm = TRUE))
print(svytotal(~disallowed, calibrate(design, ~1, c("(Intercept)" = {frame}))))
"""

_PYTHON = """\
# The estimates in tables/estimates.csv again, with the package svy of Python. Run in this folder: python recipe.py
import polars as pl
import svy

draws = pl.read_csv("tables/draws.csv", infer_schema_length=None).filter(pl.col("weight").is_not_null())
draws = draws.with_columns({columns})
sample = svy.Sample(draws, svy.Design({design}))
for quantity, known in {{"disallowed": "disallowed", "size": "size"}}.items():
    made = sample.estimation.mean(quantity, where=pl.col(known).is_not_null()).estimates[0]
    print(quantity, made.est, made.se)
"""


def recipe_r(draw: SampleDraw) -> str:
    """The program for R."""
    known = "data = subset(draws, !is.na(weight))"
    if draw.method == Method.RANDOM_WALK:
        design = f"design <- svydesign(ids = ~psu, strata = ~psu_stratum, weights = ~weight, {known})"
    elif draw.sites is None:
        design = f"design <- svydesign(ids = ~psu, strata = ~psu_stratum, fpc = ~fpc, weights = ~weight, {known})"
    else:
        pps = ', pps = "brewer"' if draw.sites_by == SitesBy.SIZE else ""
        stages = "ids = ~psu + draw, strata = ~psu_stratum, fpc = ~fpc + second_stage_probability"
        design = f"design <- svydesign({stages}, weights = ~weight,\n                    {known}{pps})"
    return _R.format(design=design, frame=draw.frame)


def recipe_python(draw: SampleDraw) -> str:
    """The program for Python. It takes random walks, and sites by size, as drawn with replacement."""
    columns = '\n    disallowed=(pl.col("reason_code") == "robots").cast(pl.Float64),\n'
    design = 'stratum="psu_stratum", psu="psu", wgt="weight", singleton="center"'
    if draw.method == Method.RANDOM_WALK or (draw.sites is not None and draw.sites_by == SitesBy.SIZE):
        return _PYTHON.format(columns=columns, design=f"{design}, wr=True")
    columns += '    psus=pl.col("psu").n_unique().over("psu_stratum") / pl.col("fpc"),\n'
    if draw.sites is None:
        return _PYTHON.format(columns=columns, design=f'{design}, pop_size="psus"')
    columns += '    urls=pl.len().over("psu") / pl.col("second_stage_probability"),\n'
    return _PYTHON.format(columns=columns, design=f'{design}, ssu="draw", pop_size=svy.PopSize("psus", "urls")')
