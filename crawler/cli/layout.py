"""How reports are set: labels in a column, what belongs to them beside it, wrapped under its own beginning."""

from __future__ import annotations

from collections.abc import Iterable

from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

Fact = tuple[str, str | Text]

STATE_STYLES = {"queued": "cyan", "fetched": "green", "redirected": "blue", "excluded": "yellow", "failed": "red"}


def facts(rows: Iterable[Fact], *, indent: int = 0) -> Table:
    """Labelled lines; a label like the one before it is not repeated. Long URLs are folded, never cut."""
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


def counted(counts: Iterable[tuple[object, int]]) -> str:
    """``3 this, 2 that``."""
    return ", ".join(f"{n:,} {what}" for what, n in counts)


def many(n: int, what: str) -> str:
    """``1 page``, ``2 pages``."""
    return f"{n:,} {what}{'s' * (n != 1)}"


def size(octets: int) -> str:
    """``53.2 kB``."""
    return decimal(octets)


def duration(seconds: float) -> str:
    """``85 ms``, ``7.5 s``, ``12 min 3 s``, ``3 h 20 min``, ``2 d 5 h``: two units at most."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = int(seconds)
    for unit_s, unit, part_s, part in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= unit_s:
            rest = whole % unit_s // part_s
            return f"{whole // unit_s} {unit}" + (f" {rest} {part}" if rest else "")
    raise AssertionError("60 s are a minute")
