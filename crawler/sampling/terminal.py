"""A sample's estimates, for people on a terminal."""

from __future__ import annotations

from math import isfinite

from rich.console import Console
from rich.table import Table

from crawler.formatting import many, size
from crawler.sampling.survey import Figure, Survey, Unit


def render(survey: Survey, console: Console) -> None:
    """Print what was drawn, and every estimate with its interval."""
    for line in told(survey):
        console.print(line, markup=False, soft_wrap=True)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for name in ("", "estimate", "95 % interval", "units"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    table.add_column("among", overflow="fold")
    for figure in survey.figures:
        table.add_row(figure.what, value(figure), interval(figure), f"{figure.estimate.units:,}", figure.among)
    console.print(table)
    for line in doubts(survey):
        console.print(line, markup=False, soft_wrap=True)


def told(survey: Survey) -> list[str]:
    """How the sample was drawn, and what is to be known before it is quoted."""
    draw = survey.draw
    each = " of each site" if draw.per == "site" else ""
    drawn = f"{many(survey.draws, 'draw')} ({many(survey.urls, 'URL')})" if survey.draws != survey.urls else ""
    lines = [
        f"Sample: {draw.method}, {draw.size:,}{each}, seed {draw.seed}: "
        f"{drawn or many(survey.urls, 'URL')} of {draw.frame:,}"
    ]
    if survey.waiting:
        lines.append(f"{many(survey.waiting, 'URL')} of it not asked for yet; the same `crawler run` goes on")
    if survey.over_budget:
        lines.append(
            f"{many(survey.over_budget, 'URL')} of it not asked for: the site has its --max-pages-per-site; "
            "with more, the sample is drawn anew"
        )
    if survey.blocked:
        lines.append(f"{many(survey.blocked, 'URL')} of it blocked by the operator: no estimate is of them")
    if survey.left_out:
        lines.append(
            f"Not in it: {many(survey.left_out, 'URL')} of blocked sites, and what only they lead to; once they are "
            "unblocked, the sample is drawn anew"
        )
    if draw.cut_sites:
        lines.append(
            f"{many(draw.cut_sites, 'site')} reached --max-pages-per-site: of these it is of what was asked for until "
            "then, and hangs on the order in which pages came"
        )
    if not draw.stands:
        lines.append("Seeds or settings have changed since it was drawn")
    return lines


def doubts(survey: Survey) -> list[str]:
    """What is to be known of the intervals."""
    if not any(figure.estimate.may_be_too_narrow for figure in survey.figures):
        return []
    return [
        "or wider: so few units, or so skewed, that the interval may hold the truth less often than 95 times of 100"
    ]


def value(figure: Figure) -> str:
    """The estimate itself."""
    return shown(figure.estimate.value, figure.unit)


def interval(figure: Figure) -> str:
    """From where to where the truth lies, or that nothing is known of it."""
    low, high = figure.estimate.low, figure.estimate.high
    if not (isfinite(low) and isfinite(high)) or not isfinite(figure.estimate.standard_error):
        return "too few to tell"
    doubt = " or wider" if figure.estimate.may_be_too_narrow else ""
    return f"{shown(low, figure.unit)} to {shown(high, figure.unit)}{doubt}"


def shown(number: float, unit: Unit) -> str:
    """A figure in its unit; a minus where there is none."""
    if not isfinite(number):
        return "-"
    if unit is Unit.SHARE:
        return f"{100 * number:.1f} %"
    return size(round(number)) if unit is Unit.BYTES else f"{number:.1f}"
