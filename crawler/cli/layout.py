"""The layout of results on the terminal: facts with their labels, and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from rich.table import Table
from rich.text import Text

Fact = tuple[str, str | Text]
#: Where the cells of a column stand: to the left, to the right, or to the left and folded if the terminal is narrow.
Align = Literal["left", "right", "fold"]

STATE_STYLES = {"queued": "cyan", "fetched": "green", "redirected": "blue", "excluded": "yellow", "failed": "red"}


def facts(rows: Iterable[Fact], *, indent: int = 0) -> Table:
    """A table of labels and values. A label equal to the one above it is left out. A long URL is folded, never cut."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    before = None
    for label, value in rows:
        table.add_row(
            " " * indent + (label if label != before else ""), value if isinstance(value, Text) else Text(value)
        )
        before = label
    return table


def table(columns: Mapping[str, Align], rows: Iterable[Sequence[str | Text]]) -> Table:
    """A table with a heading for each of ``columns``, by their names. No text in a cell is read as mark-up."""
    made = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for name, align in columns.items():
        if align == "fold":
            made.add_column(name, overflow="fold")
        else:
            made.add_column(name, justify=align, no_wrap=True)
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    return made
