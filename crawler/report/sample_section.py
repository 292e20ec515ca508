"""The part of the report about the sample, where one was drawn."""

from __future__ import annotations

from crawler.report.blocks import Cell, card, number, plain, table
from crawler.report.facts import Facts
from crawler.report.markup import Node, el
from crawler.sampling import load


def sample(facts: Facts) -> list[Node]:
    """How it was drawn, and what it says of all that it was drawn of."""
    survey = facts.survey
    if survey is None:
        return []
    if isinstance(survey, str):
        return [card(el("p", survey), whole=True)]
    show = load("terminal")
    rows = [
        [
            plain(figure.what),
            Cell(show.value(figure), figure.estimate.value, "n"),
            Cell(show.interval(figure), figure.estimate.low, "n"),
            number(figure.estimate.units),
            plain(figure.among),
        ]
        for figure in survey.figures
    ]
    told = [el("p", line) for line in show.told(survey)]
    doubts = [el("p", line, class_="note") for line in show.doubts(survey)]
    note = el("p", "Estimates are of all that the sample was drawn of, not of the pages fetched.", class_="note")
    return [card(*told, table(("", "estimate", "95 % interval", "units", "among"), rows), *doubts, note, whole=True)]
