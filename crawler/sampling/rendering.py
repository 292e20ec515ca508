"""The estimates from a sample on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from crawler.cli.console import PrintableConsole
from crawler.cli.layout import Align, table
from crawler.formatting import many, size
from crawler.frontier.sample_design import amount_of
from crawler.sampling.estimators import ENOUGH_CLUSTERED_UNITS, ENOUGH_CLUSTERS, ENOUGH_UNITS, Estimate
from crawler.sampling.seed_groups import describe_seed_groups
from crawler.sampling.survey import NONRESPONSE_BY_CODE, Figure, Outcome, Survey, Unit


def render(survey: Survey, console: PrintableConsole) -> None:
    """Print how the sample was drawn, every estimate with its interval, and the totals."""
    for line in describe_survey(survey):
        console.print(line, soft_wrap=True)
    print_columns(survey.figures, rounded(survey.figures), console)
    if totals := survey.totals:
        console.print(f"\n{describe_totals(survey)}", soft_wrap=True)
        columns = rounded(totals)
        other = {name: cells for name, cells in columns.items() if name in ("95 % interval", "bounds")}
        print_columns(totals, {"total": columns["estimate"], **other}, console)
    for line in doubts(survey):
        console.print(line, soft_wrap=True)


def rounded(figures: Sequence[Figure]) -> dict[str, list[str]]:
    """The columns of a table of estimates by their names; ``missing`` and ``bounds`` only if units are missing."""
    made = {
        "estimate": [shown(figure.estimate.value, figure.unit) for figure in figures],
        "95 % interval": [interval(figure.estimate, figure.unit) for figure in figures],
        "units": [f"{figure.estimate.units:,}" for figure in figures],
    }
    if any(figure.estimate.missing for figure in figures):
        made["missing"] = [f"{figure.estimate.missing:,}" for figure in figures]
        made["bounds"] = [bounds(figure.estimate, figure.unit) for figure in figures]
    return made


def print_columns(of: Sequence[Any], made: Mapping[str, Sequence[str]], console: PrintableConsole) -> None:
    """Print a table with columns between ``what`` and ``among`` of the rows."""
    columns: dict[str, Align] = {"": "left", **dict.fromkeys(made, "right"), "among": "fold"}
    whats, amongs = ([getattr(row, name) for row in of] for name in ("what", "among"))
    console.print(table(columns, list(zip(whats, *made.values(), amongs, strict=True))))


def describe_totals(survey: Survey) -> str:
    """The meaning of the totals, in a sentence."""
    return (
        f"Totals over the {many(survey.draw.frame, 'URL')} of the frame: the number of URLs or pages of a kind; the "
        "sum of sizes, links and values"
    )


def describe_survey(survey: Survey) -> list[str]:
    """How the sample was drawn, and its limitations, in sentences."""
    draw = survey.draw
    drawn = f"{many(survey.draws, 'draw')} ({many(survey.urls, 'URL')})" if survey.draws != survey.urls else ""
    lines = describe_seed_groups(survey.seeds)
    lines.append(
        f"Sample: {draw.method}, {amount_of(draw)}, seed {draw.seed}: "
        f"{drawn or many(survey.urls, 'URL')} of {draw.frame:,}"
    )
    listed = ", ".join(f"{survey.outcomes[outcome]:,} {outcome}" for outcome in Outcome if survey.outcomes.get(outcome))
    lines.append(f"Response: {survey.responded:,} of {many(survey.urls, 'URL')} ({listed or 'none drawn'})")
    lines += survey.codes
    if waiting := survey.outcomes.get(Outcome.WAITING):
        lines.append(f"{many(waiting, 'URL')} of it not requested yet; the same command continues")
    if over_budget := survey.outcomes.get(Outcome.OVER_BUDGET):
        lines.append(
            f"{many(over_budget, 'URL')} of it not requested: the site has reached --max-pages-per-site; "
            "with a higher limit, the sample is drawn anew"
        )
    lines += (
        f"{many(survey.outcomes[outcome], 'URL')} of it {outcome}: no estimate includes them"
        for outcome in NONRESPONSE_BY_CODE.values()
        if survey.outcomes.get(outcome)
    )
    if survey.left_out:
        lines.append(
            f"Not in it: {many(survey.left_out, 'URL')} of blocked sites, and the URLs that only these link to; after "
            "unblocking, the sample is drawn anew"
        )
    if draw.cut_sites:
        lines.append(
            f"{many(draw.cut_sites, 'site')} reached --max-pages-per-site: their part of the sample depends on the "
            "order in which pages were fetched"
        )
    if draw.missed:
        lines.append(
            f"Frame error: {many(draw.missed, 'URL')} of {many(draw.missed_sites, 'site')} not reached before the "
            "frame was closed (sample.frame_patience): these, and URLs that only they lead to, are not in the frame"
        )
    lines.append(f"Design {draw.design_sha256}")
    lines += (f"Earlier {each.description}" for each in survey.discarded)
    if not draw.stands:
        lines.append("Seeds or settings have changed since the sample was drawn")
    return lines


def doubts(survey: Survey) -> list[str]:
    """Limitations of the sample, in sentences."""
    notes = []
    if any(figure.estimate.missing for figure in survey.figures):
        notes.append(
            "missing: units that have not answered; the interval is that of the units that have. bounds: the interval "
            "whatever the missing units would answer; a size or number of links has none"
        )
    if any(figure.estimate.may_be_too_narrow for figure in survey.figures):
        notes.append(
            "or wider: the interval may miss the true value more than 6 times in 100. Sizes, links, values and totals: "
            f"draw at least {ENOUGH_UNITS} URLs that count ({ENOUGH_CLUSTERED_UNITS} on at least {ENOUGH_CLUSTERS} "
            "sites if sites are drawn first). Drawn sites of unequal size: draw them in proportion to their size. Many "
            "missing units: run again to ask them, and quote the bounds"
        )
    if survey.draws:
        notes.append(
            "A kind of URL that the sample does not contain: at most "
            f"{shown(survey.unseen_at_most, Unit.SHARE)} of the URLs"
        )
    return notes


def interval(made: Estimate, unit: Unit) -> str:
    """The confidence interval, or a note that the sample does not determine it."""
    if not (isfinite(made.low) and isfinite(made.high)) or not isfinite(made.standard_error):
        return "too few to tell" if made.standard_error else "all units alike"
    doubt = " or wider" if made.may_be_too_narrow else ""
    low, high = shown(made.low, unit), shown(made.high, unit)
    if low == high and made.low != made.high:
        low, high = shown(made.low, unit, in_full=True), shown(made.high, unit, in_full=True)
    return f"{low} to {high}{doubt}"


def bounds(made: Estimate, unit: Unit) -> str:
    """The worst-case bounds over what has not answered; ``-`` if there are none."""
    if made.lowest is None or made.highest is None:
        return "-"
    return f"{shown(made.lowest, unit)} to {shown(made.highest, unit)}"


def shown(number: float | None, unit: Unit, *, in_full: bool = False) -> str:
    """A figure with its unit; ``-`` if there is none. ``in_full``: with more digits."""
    if number is None or not isfinite(number):
        return "-"
    digits = 4 if in_full else 1
    if unit is Unit.SHARE:
        return f"{100 * number:.{digits}f} %"
    if unit is Unit.POINTS:
        return f"{100 * number:+.{digits}f} points"
    if unit is Unit.BYTES:
        return f"{number:,.1f} B" if in_full else "-" * (number < 0) + size(round(abs(number)))
    if in_full:
        return f"{number:,.4f}"
    if unit is Unit.COUNT or (unit is Unit.NUMBER and abs(number) >= 10_000):
        return f"{number:,.0f}"
    return f"{number:,.4g}" if unit is Unit.NUMBER else f"{number:.1f}"
