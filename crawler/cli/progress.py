"""A progress line for commands that take long: what is done, the elapsed time, and the time left."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from crawler.formatting import duration


class Say(Protocol):
    """Shows ``what``; if there is a ``total``, with ``done`` of it before, and the time left behind."""

    def __call__(self, what: str, done: int = 0, total: int | None = None) -> None: ...


@contextmanager
def progress_line(what: str) -> Iterator[Say]:
    """Show ``what`` and the elapsed time on standard error while inside, if that is a terminal.

    Yields a function that changes the text.
    """
    if not sys.stderr.isatty():
        yield lambda what, done=0, total=None: None
        return
    from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
    from rich.text import Text

    from crawler.cli.console import PrintableConsole

    class TimeLeft(ProgressColumn):
        def render(self, task: Task) -> Text:
            """Rich calls this."""
            left = task.time_remaining
            return Text(f"about {duration(left)} left" if left else "")

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn(), TimeLeft())
    with Progress(*columns, console=PrintableConsole(stderr=True), transient=True) as progress:
        line = progress.add_task(what, total=None)
        unit = what

        def say(what: str, done: int = 0, total: int | None = None) -> None:
            nonlocal unit
            is_new = what != unit
            if is_new and total is not None:  # another kind of work has another speed
                progress.reset(line)
                unit = what
            text = what if total is None else f"{done:,} of {total:,} {what}"
            progress.update(line, description=text, completed=done, total=total, refresh=is_new)

        yield say
