"""Tables and styles on standard output, by Rich. Commands that print neither do without this module.

No character that is not printable leaves through it (:mod:`crawler.cli.output`).
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterable
from typing import IO, Any, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from crawler.terminal_text import printable_lines


class PrintableConsole(Console):
    """A console that shows text as it is: no highlighting, no mark-up, and U+FFFD for what is not printable."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of what is to be printed; Rich calls this for everything that it prints."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(printable_lines(text), style)

    def on_broken_pipe(self) -> None:
        """Rich calls this when the reader has closed the pipe."""
        raise BrokenPipeError


class _Trimmed(io.TextIOBase):
    """The current standard output, without the blanks that tables leave at the ends of lines."""

    def write(self, text: str) -> int:
        return sys.stdout.write(re.sub(r" +(?=\n)", "", text))

    def flush(self) -> None:
        stream = getattr(sys, "stdout", None)  # at the end of the process, neither may exist
        if stream is not None:
            stream.flush()


def _standard_output() -> PrintableConsole:
    made = PrintableConsole()
    if made.is_terminal:
        return made
    made = PrintableConsole(file=cast(IO[str], _Trimmed()))
    if "COLUMNS" not in os.environ:
        made.width = 1000  # a file or another program gets unwrapped lines
    return made


#: The console of standard output.
console = _standard_output()
