"""The part of the report about links that lead nowhere: where to, and on which pages they stand."""

from __future__ import annotations

from crawler.audit.evidence import many
from crawler.report.blocks import Cell, card, number, table, url
from crawler.report.facts import Broken, Facts
from crawler.report.markup import Node, el, short

#: How all of them are had as data.
EXPORT = """crawler export csv broken.csv --table links \
--where "target_id IN (SELECT url_id FROM urls WHERE state = 'failed')\""""


def broken(facts: Facts) -> list[Node]:
    """What links lead to that failed, the most linked first; nothing where no page was fetched."""
    found = facts.broken
    if not facts.counts.links:
        return []
    if not found.first:
        return [card(el("p", "No link leads to a URL that failed."), whole=True)]
    shown = "" if found.targets == len(found.first) else f" The {len(found.first):,} most linked of them are shown."
    note = el(
        "p",
        f"{many(found.links, 'link')} to {many(found.targets, 'URL')} that failed or redirect to what failed.{shown} "
        "For every link to what failed: ",
        el("code", EXPORT),
        "; docs/store.md has a query that follows redirects, too.",
        class_="note",
    )
    rows = [
        [url(row.url), Cell(short(row.reason, 120), row.reason, "named"), number(row.pages), _pages(row)]
        for row in found.first
    ]
    heads = ("address", "what happened", "pages link to it", "some of them")
    return [card(note, table(heads, rows, long=True), whole=True)]


def _pages(row: Broken) -> Cell:
    shown = [el("div", el("span", short(page, 120), class_="url")) for page in row.linked_from]
    return Cell(el("div", *shown), row.linked_from[0], "address")
