"""The figures of a benchmark: one row per measure, as a table, and as JSON with the description of the machine."""

from __future__ import annotations

import json
import math
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, TextIO

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

HEADINGS = ("measure", "figure", "floor", "peer", "peer's figure", "ratio", "must", "")
NUMERIC = {"figure", "floor", "peer's figure", "ratio"}


@dataclass(frozen=True, slots=True)
class Row:
    """One measured figure, with its floor or peer and its target."""

    measure: str
    figure: float
    """In `unit`; `math.nan` if it could not be measured, and then the note says why."""
    unit: str
    floor: float | None = None
    """The least possible cost of the work, in `unit`."""
    peer: str = ""
    peer_figure: float | None = None
    """The figure of `peer` for the same work, in `unit`."""
    ratio: float | None = None
    """The ratio of `figure` and the floor or peer. The measure or the note says which divides which."""
    must: str = ""
    """The target in words, such as "≤ 150 MB"."""
    ok: bool | None = None
    """Whether the target is met; None when there is none or it could not be judged."""
    note: str = ""


def number(value: float | None) -> str:
    """Three significant digits, a whole number from 100 on; empty for None and NaN."""
    if value is None or math.isnan(value):
        return ""
    if value == 0 or abs(value) >= 99.95:
        return f"{value:,.0f}"
    return f"{value:#.3g}"


def cells(row: Row) -> tuple[str, ...]:
    """The cells of the row in the order of HEADINGS. The note is shown below the row."""
    figure = "–" if math.isnan(row.figure) else f"{number(row.figure)} {row.unit}".strip()
    held_against = (number(row.floor), row.peer, number(row.peer_figure), number(row.ratio))
    verdict = {None: "", True: "ok", False: "MISSED"}[row.ok]
    return (row.measure, figure, *held_against, row.must, verdict)


def show(rows: Sequence[Row], file: TextIO | None = None) -> None:
    """Print the rows as an aligned table, without empty columns, and with the notes below.

    No line is wrapped, even on a narrow terminal, so the table can also be read in a file.
    """
    console = Console(file=file, highlight=False, markup=False, emoji=False)
    lines = [cells(row) for row in rows]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    used = [index for index in range(len(HEADINGS)) if any(line[index] for line in lines)]
    for index in used:
        justify: Literal["left", "right"] = "right" if HEADINGS[index] in NUMERIC else "left"
        table.add_column(HEADINGS[index], justify=justify, no_wrap=True)
    for line in lines:
        table.add_row(*(line[index] for index in used))
    console.width = max(console.width, Measurement.get(console, console.options.update(max_width=1000), table).maximum)
    console.print(table)
    for row in rows:
        if row.note:
            console.print(f"* {row.measure}: {row.note}", soft_wrap=True)


def machine() -> dict[str, object]:
    """The facts about the machine that a figure depends on."""
    return {
        "cpu": cpu_model(Path("/proc/cpuinfo")),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "kernel": f"{platform.system()} {platform.release()}",
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def cpu_model(cpuinfo: Path) -> str:
    """The name of the processor from Linux, otherwise from Python."""
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def as_json(row: Row) -> dict[str, object]:
    return asdict(row) | ({"figure": None} if math.isnan(row.figure) else {})


def write_json(path: Path, benches: Sequence[tuple[str, Sequence[Row]]]) -> None:
    """Write the rows of each benchmark by its name, and the facts about the machine."""
    figures = {name: [as_json(row) for row in rows] for name, rows in benches}
    text = json.dumps({"machine": machine(), "benches": figures}, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
