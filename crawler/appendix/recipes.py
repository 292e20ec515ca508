"""Short programs in the appendix that repeat all estimates with R's ``survey`` and Python's ``svy``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from crawler.appendix.tables import EARLIER
from crawler.export.tables import protected
from crawler.frontier.sample_design import Method, SitesBy
from crawler.store.rows import SampleDraw

if TYPE_CHECKING:
    from crawler.sampling.survey import Source

_R = """\
# The estimates in tables/estimates.csv again, with the package survey of R. Run in this folder: Rscript recipe.R
library(survey)
options(survey.lonely.psu = "adjust", digits = 8)
draws <- read.csv("tables/draws.csv", check.names = FALSE, na.strings = "", quote = "\\"")
draws <- subset(draws, !is.na(weight))
{design}
quantities <- list(
{quantities}
)
for (quantity in names(quantities)) {{
  design$variables$value <- as.numeric(quantities[[quantity]])
  made <- svymean(~value, design, na.rm = TRUE)
  cat(quantity, coef(made), SE(made), sep = "\\t", fill = 1e4)
}}
# A total is calibrated to the size of the frame; units without a value are 0 in it.
print(svytotal(~disallowed, calibrate(design, ~1, c("(Intercept)" = {frame}))))
"""

_PYTHON = """\
# The estimates in tables/estimates.csv again, with the package svy of Python. Run in this folder: python recipe.py
import polars as pl
import svy

texts = dict.fromkeys({texts}, pl.String)
draws = pl.read_csv("tables/draws.csv", infer_schema_length=None, schema_overrides=texts)
draws = draws.filter(pl.col("weight").is_not_null())
{columns}quantities = {{
{quantities}
}}
for quantity, values in quantities.items():
    sample = svy.Sample(draws.with_columns(value=values), svy.Design({design}))
    made = sample.estimation.mean("value", where=pl.col("value").is_not_null()).estimates[0]
    print(quantity, made.est, made.se, sep="\\t")
"""


def recipe_r(draw: SampleDraw, sources: Mapping[str, Source]) -> str:
    """The program for R. ``sources`` has where each estimate is from."""
    if draw.method == Method.RANDOM_WALK:
        design = "design <- svydesign(ids = ~psu, strata = ~psu_stratum, weights = ~weight, data = draws)"
    elif draw.sites is None:
        design = "design <- svydesign(ids = ~psu, strata = ~psu_stratum, fpc = ~fpc, weights = ~weight, data = draws)"
    else:
        pps = ', pps = "brewer"' if draw.sites_by == SitesBy.SIZE else ""
        stages = "ids = ~psu + draw, strata = ~psu_stratum, fpc = ~fpc + second_stage_probability"
        design = f"design <- svydesign({stages}, weights = ~weight,\n                    data = draws{pps})"
    quantities = _lines(sources, "  {} = {}", "draws[[{}]]", "({} == {})")
    return _R.format(design=design, frame=draw.frame, quantities=",\n".join(quantities))


def recipe_python(draw: SampleDraw, sources: Mapping[str, Source]) -> str:
    """The program for Python. It takes random walks, and sites by size, as drawn with replacement."""
    columns, design = "", 'stratum="psu_stratum", psu="psu", wgt="weight", singleton="center"'
    if draw.method == Method.RANDOM_WALK or (draw.sites is not None and draw.sites_by == SitesBy.SIZE):
        design += ", wr=True"
    else:
        columns = '    psus=pl.col("psu").n_unique().over("psu_stratum") / pl.col("fpc"),\n'
        if draw.sites is None:
            design += ', pop_size="psus"'
        else:
            columns += '    urls=pl.len().over("psu") / pl.col("second_stage_probability"),\n'
            design += ', ssu="draw", pop_size=svy.PopSize("psus", "urls")'
        columns = f"draws = draws.with_columns(\n{columns})\n"
    labelled = {source.column for source in sources.values() if source.label is not None}
    changed = {f"{EARLIER}{source.column}" for source in sources.values() if source.is_change} & {
        f"{EARLIER}{column}" for column in labelled
    }
    quantities = _lines(sources, "    {}: {},", "pl.col({})", "({} == {}).cast(pl.Float64)")
    return _PYTHON.format(
        texts=json.dumps(sorted(labelled | changed)), columns=columns, design=design, quantities="\n".join(quantities)
    )


def _lines(sources: Mapping[str, Source], line: str, column: str, equal: str) -> list[str]:
    """A line for each estimate, made of templates: of a column of draws, and of the test whether it is a label.

    JSON texts are texts of R and of Python. An empty text is a missing value in CSV, and has no line.
    """

    def values(name: str, label: str | None) -> str:
        read = column.format(_text(name))
        return read if label is None else equal.format(read, _text(protected(label)))

    return [
        line.format(
            _text(what),
            " - ".join(
                values(f"{prefix}{source.column}", source.label)
                for prefix in (("", EARLIER) if source.is_change else ("",))
            ),
        )
        for what, source in sources.items()
        if source.label != ""
    ]


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
