"""Estimates as a figure and as a table."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
from math import inf, nan
from pathlib import Path
from xml.etree import ElementTree

import pypdfium2
import pytest

from crawler.errors import UsageError
from crawler.sampling.estimators import Estimate, Sample
from crawler.sampling.publication import COLUMNS, publish
from crawler.sampling.survey import DrawnUrls, Figure, Survey, Unit
from crawler.store.rows import SampleDraw

SHARE = Figure(
    "100 % <b>_of_ $x$",
    "URLs & pages",
    Unit.SHARE,
    Estimate(0.25, 0.1, 0.4, 0.07, 30, missing=2, lowest=0.05, highest=0.5),
)
TOTAL = Figure("total: size", "pages", Unit.BYTES, Estimate(2e6, 1e6, 3e6, 5e5, 20))
SIZE = Figure("size", "pages", Unit.BYTES, Estimate(2048.5, 1000, 3000, 500, 20), TOTAL)
UNKNOWN = Figure("links per page", "pages", Unit.LINKS, Estimate(nan, -inf, inf, nan, 0))


def survey_of(*figures: Figure) -> Survey:
    draw = SampleDraw("uniform", "crawl", 30, 7, 0.0, 100, 0, False, None, design_sha256="abc")
    return Survey(draw, [], [], DrawnUrls(Sample([0.3]), [], [""], [""]), 0, figures, {}, 0.1)


def test_the_table_of_numbers_is_unrounded_and_has_the_totals() -> None:
    head, *rows = csv.reader(io.StringIO(publish(survey_of(SHARE, SIZE, UNKNOWN), ".csv").decode(), newline=""))
    assert tuple(head) == COLUMNS
    by_what = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    assert by_what["100 % <b>_of_ $x$"] == dict(
        zip(
            COLUMNS,
            ("100 % <b>_of_ $x$", "URLs & pages", "share", "0.25", "0.1", "0.4", "0.07", "30", "2", "0.05", "0.5", "0"),
            strict=True,
        )
    )
    assert by_what["size"]["estimate"] == "2048.5"
    assert by_what["total: size"]["high"] == "3000000.0"
    assert (by_what["links per page"]["estimate"], by_what["links per page"]["low"]) == ("", "")


def test_the_latex_table_has_every_estimate_with_its_marks_escaped() -> None:
    made = publish(survey_of(SHARE, SIZE), ".tex").decode()
    assert (
        r"100 \% \textless{}b\textgreater{}\_of\_ \$x\$ & URLs \& pages & 25.0 \% & 10.0 \% to 40.0 \% & 30 & 2" in made
    )
    rows = [line for line in made.splitlines() if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {6}, "every row has the columns of the head"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX here")
def test_latex_sets_the_table(tmp_path: Path) -> None:
    (tmp_path / "table.tex").write_bytes(publish(survey_of(SHARE, SIZE), ".tex"))
    head = r"\documentclass{article}\usepackage{booktabs}\usepackage[T1]{fontenc}"
    text = head + r"\begin{document}\input{table}\end{document}"
    (tmp_path / "paper.tex").write_text(text)
    subprocess.run(["pdflatex", "-halt-on-error", "paper.tex"], cwd=tmp_path, check=True, capture_output=True)


def test_the_figure_draws_each_interval_that_is_determined_and_is_the_same_each_time() -> None:
    survey = survey_of(SHARE, SIZE, UNKNOWN)
    made = publish(survey, ".svg")
    assert made == publish(survey, ".svg")
    texts = " ".join(
        "".join(node.itertext()) for node in ElementTree.fromstring(made).iter() if node.tag.endswith("text")
    )
    assert "100 % <b>_of_ $x$ (URLs & pages)" in texts
    assert "size (pages)" in texts
    assert "octets" in texts
    assert "links" not in texts


def test_the_pdf_has_the_same_labels_as_text() -> None:
    document = pypdfium2.PdfDocument(publish(survey_of(SHARE, SIZE), ".pdf"))
    text = document[0].get_textpage().get_text_range()
    assert "size (pages)" in text
    assert "share of URLs (%)" in text


@pytest.mark.parametrize(
    ("survey", "suffix", "why"),
    [
        (survey_of(SIZE), ".png", r"\.png: no form of estimates; choose one of \.svg, \.pdf, \.csv, \.tex"),
        (survey_of(SIZE), "", "a file without suffix"),
        (survey_of(), ".csv", "nothing to estimate"),
        (survey_of(UNKNOWN), ".svg", "no estimate has an interval yet"),
    ],
)
def test_what_cannot_be_written_says_why(survey: Survey, suffix: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        publish(survey, suffix)
