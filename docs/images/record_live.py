"""Record the live display of a real ``crawler demo`` as an animated SVG: ``python docs/images/record_live.py``.

The script captures each panel that the display draws, keeps one a second, and writes ``live.svg`` beside itself.
"""

from __future__ import annotations

import asyncio
import io
import tempfile
import time
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any
from unittest.mock import patch

from rich.console import Console, RenderableType
from rich.live import Live
from rich.segment import Segment
from rich.terminal_theme import MONOKAI

from crawler.demo.commands import run_demo

OUT = Path(__file__).with_name("live.svg")
COLUMNS = 88
CHAR_PX, LINE_PX, PAD_PX = 8.4, 20, 16
FRAME_S = 0.9


def record() -> list[RenderableType]:
    """Run the demo and return the panels that it drew, at most one for each :data:`FRAME_S` seconds."""
    frames: list[RenderableType] = []
    last_at = 0.0
    update = Live.update

    def capture(self: Live, renderable: RenderableType, *, refresh: bool = False) -> None:
        nonlocal last_at
        if time.monotonic() - last_at >= FRAME_S:
            last_at = time.monotonic()
            frames.append(renderable)
        update(self, renderable, refresh=refresh)

    console = Console(file=io.StringIO(), force_terminal=True, width=COLUMNS)
    with tempfile.TemporaryDirectory() as folder, patch.object(Live, "update", capture):
        asyncio.run(run_demo(Path(folder) / "demo.db", console, live=True, as_json=False))
    return frames


def lines_of(frame: RenderableType) -> list[list[Segment]]:
    """The lines of a panel as styled segments."""
    console = Console(file=io.StringIO(), force_terminal=True, width=COLUMNS, color_system="truecolor")
    return [list(line) for line in console.render_lines(frame, pad=False)]


def tspans(line: list[Segment]) -> Iterator[str]:
    """One ``tspan`` for each segment."""
    for text, style, _ in line:
        attributes: dict[str, Any] = {}
        if style is not None and style.color is not None:
            attributes["fill"] = style.color.get_truecolor(MONOKAI).hex
        if style is not None and style.bold:
            attributes["font-weight"] = "bold"
        if style is not None and style.dim:
            attributes["opacity"] = "0.7"
        given = "".join(f' {name}="{value}"' for name, value in attributes.items())
        yield f"<tspan{given}>{escape(text, quote=False)}</tspan>"


def svg(frames: list[list[list[Segment]]], command: str, label: str, columns: int = COLUMNS) -> str:
    """An SVG that shows each frame for :data:`FRAME_S` seconds, in a loop. Without animation it shows the last one."""
    width = round(columns * CHAR_PX + 2 * PAD_PX)
    height = PAD_PX * 2 + LINE_PX * (1 + max(map(len, frames)))
    total_s, share = len(frames) * FRAME_S, 100 / len(frames)
    rules = [
        "text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #d9d9d9; white-space: pre }",
        f".f {{ opacity: 0; animation: {total_s:.1f}s step-end infinite }}",
        f"@media (prefers-reduced-motion: reduce) {{ .f {{ animation: none }} .f{len(frames) - 1} {{ opacity: 1 }} }}",
    ]
    body = [f'<text x="{PAD_PX}" y="{PAD_PX + 14}">{escape(command, quote=False)}</text>']
    for number, lines in enumerate(frames):
        begin, end = number * share, (number + 1) * share
        steps = ["0% { opacity: 0 }"] if number else []
        steps.append(f"{begin:.2f}% {{ opacity: 1 }}")
        if number < len(frames) - 1:
            steps.append(f"{end:.2f}% {{ opacity: 0 }}")
        rules.append(f"@keyframes k{number} {{ {' '.join(steps)} }} .f{number} {{ animation-name: k{number} }}")
        body.append(f'<g class="f f{number}">')
        for row, line in enumerate(lines):
            y = PAD_PX + 14 + LINE_PX * (row + 1)
            body.append(f'<text x="{PAD_PX}" y="{y}">{"".join(tspans(line))}</text>')
        body.append("</g>")
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
            f' role="img" aria-label="{label}">',
            f"<style>{' '.join(rules)}</style>",
            f'<rect width="{width}" height="{height}" rx="8" fill="#1e1e24"/>',
            *body,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    OUT.write_text(svg([lines_of(frame) for frame in record()], "$ crawler demo", "The live display of a crawl"))
