"""The estimates of a sample as a figure (SVG, PDF) and as a table (CSV, LaTeX), ready for a paper."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

from crawler.errors import UsageError, require
from crawler.sampling.estimators import Estimate
from crawler.sampling.rendering import rounded
from crawler.sampling.survey import Figure, Survey, Unit, plain

_NUMBERS = ("low", "high", "standard_error", "units", "missing", "lowest", "highest")
#: The columns of the table of numbers.
COLUMNS = ("quantity", "among", "unit", "estimate", *_NUMBERS, "may_be_too_narrow")
_AXES = {
    Unit.SHARE: "share of URLs (%)",
    Unit.POINTS: "change (percentage points)",
    Unit.BYTES: "octets",
    Unit.LINKS: "links",
    Unit.NUMBER: "value",
    Unit.COUNT: "number",
}
_ROW_INCHES, _FRAME_INCHES, _WIDTH_INCHES = 0.22, 0.75, 6.5  # a row, what is around the rows, a page of text
_LATEX = str.maketrans(
    {
        **{mark: f"\\{mark}" for mark in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': r"\textquotedbl{}",
    }
)


def publish(survey: Survey, suffix: str) -> bytes:
    """The estimates in the form that the suffix of a file names: one of :data:`FORMS`.

    Raises :class:`UsageError` for another suffix, for a survey without estimates, and if a figure is asked for and the
    extra ``figure`` is not installed.
    """
    if suffix not in FORMS:
        raise UsageError(f"{suffix or 'a file without suffix'}: no form of estimates; choose one of {', '.join(FORMS)}")
    if not survey.figures:
        raise UsageError("the sample has no answer yet, so there is nothing to estimate")
    return FORMS[suffix](survey)


def rows_of(survey: Survey) -> Iterator[tuple[Any, ...]]:
    """The estimates and the totals, unrounded; an undetermined number is empty."""
    for figure in (*survey.figures, *survey.totals):
        known = plain(figure.estimate)
        numbers = (known[name] for name in ("value", *_NUMBERS))
        yield (figure.what, figure.among, figure.unit.value, *numbers, int(figure.estimate.may_be_too_narrow))


def _csv(survey: Survey) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows([COLUMNS, *rows_of(survey)])  # RFC 4180
    return text.getvalue().encode()


def _latex(survey: Survey) -> bytes:
    """A ``tabular`` of the package booktabs: rounded as on the terminal."""
    columns = rounded(survey.figures)
    cells = zip(*columns.values(), strict=True)
    lines = [
        f"% Sample with seed {survey.draw.seed}, design {survey.draw.design_sha256}",
        rf"\begin{{tabular}}{{ll{'r' * len(columns)}}}",
        r"\toprule",
        _latex_row(["", "among", *columns]),
        r"\midrule",
        *(_latex_row([one.what, one.among, *row]) for one, row in zip(survey.figures, cells, strict=True)),
        r"\bottomrule",
        r"\end{tabular}",
        "",
    ]
    return "\n".join(lines).encode()


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(cell.translate(_LATEX) for cell in cells) + r" \\"


def _drawn(form: str) -> Callable[[Survey], bytes]:
    """A figure: a row for each estimate, with its interval; a panel for each unit."""

    def draw(survey: Survey) -> bytes:
        require("figure", "a figure", "matplotlib")
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Sheet

        known = [figure for figure in survey.figures if _is_determined(figure.estimate)]
        if not known:
            raise UsageError("no estimate has an interval yet: the sample has too few units")
        by_unit = {unit: found for unit in Unit if (found := [one for one in known if one.unit is unit])}
        heights = [_ROW_INCHES * len(found) + _FRAME_INCHES for found in by_unit.values()]
        # Texts stay texts, fonts are embedded as outlines of characters, and the same estimates make the same file.
        with rc_context({"svg.fonttype": "none", "svg.hashsalt": "estimates", "pdf.fonttype": 42, "font.size": 8}):
            sheet = Sheet(figsize=(_WIDTH_INCHES, sum(heights)), layout="constrained")
            FigureCanvasAgg(sheet)
            panels = sheet.subplots(len(by_unit), 1, squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
            for panel, (unit, found) in zip(panels, by_unit.items(), strict=True):
                _draw_panel(panel, unit, found)
            made = io.BytesIO()
            sheet.savefig(made, format=form, metadata={"Date": None} if form == "svg" else {"CreationDate": None})
        return made.getvalue()

    return draw


def _is_determined(made: Estimate) -> bool:
    return all(map(isfinite, (made.value, made.low, made.high)))


def _draw_panel(panel: Any, unit: Unit, figures: Sequence[Figure]) -> None:
    """Estimates of one unit, from top to bottom; thin lines are the bounds whatever missing units would answer."""
    scale = 100.0 if unit in (Unit.SHARE, Unit.POINTS) else 1.0
    for place, figure in enumerate(figures):
        made = figure.estimate
        if made.lowest is not None and made.highest is not None:
            panel.plot([scale * made.lowest, scale * made.highest], [place, place], color="0.6", linewidth=0.8)
        panel.plot([scale * made.low, scale * made.high], [place, place], color="black", linewidth=1.6)
        panel.plot([scale * made.value], [place], "o", color="black", markersize=3.5)
    labels = [figure.name.replace("$", r"\$") for figure in figures]  # $…$ would be a formula
    panel.set_yticks(range(len(figures)), labels)
    panel.set_ylim(len(figures) - 0.5, -0.5)
    panel.set_xlabel(_AXES[unit])
    if unit is Unit.SHARE:
        panel.set_xlim(0, 100)
    panel.grid(axis="x", color="0.9", linewidth=0.5)
    panel.set_axisbelow(True)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)


#: The forms of the estimates by the suffix of the file.
FORMS: Mapping[str, Callable[[Survey], bytes]] = {
    ".svg": _drawn("svg"),
    ".pdf": _drawn("pdf"),
    ".csv": _csv,
    ".tex": _latex,
}
