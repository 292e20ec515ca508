"""The layout of reports on the terminal: labels in one column, values wrapped in a second one."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

Fact = tuple[str, str | Text]

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
