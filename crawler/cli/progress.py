"""A progress line for commands that take long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from crawler.cli.console import PrintableConsole


@contextmanager
def progress_line(what: str) -> Iterator[Callable[[str], None]]:
    """Show ``what`` and the elapsed time on standard error while inside, if that is a terminal.

    Yields a function that changes the text.
    """
    console = PrintableConsole(stderr=True)
    if not console.is_terminal:
        yield lambda what: None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        line = progress.add_task(what, total=None)
        yield lambda what: progress.update(line, description=what)
