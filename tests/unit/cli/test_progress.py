"""The progress line of commands that take long."""

from __future__ import annotations

import io

import pytest

from crawler.cli import progress
from crawler.cli.console import PrintableConsole


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_counts_and_the_step_at_work_are_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, now_s = _Terminal(), 0.0
    monkeypatch.setattr("sys.stderr", shown)
    monkeypatch.setattr("crawler.cli.console.PrintableConsole", lambda stderr: terminal)
    terminal = PrintableConsole(file=shown, force_terminal=True, width=100, get_time=lambda: now_s)
    with progress.progress_line("reading the log") as say:
        say("requests judged", 3, 1000)
        terminal.print("above")  # Rich draws the line again
        now_s = 60.0
        say("writing")
        terminal.print("above")
    assert "3 of 1,000 requests judged" in shown.getvalue()
    assert "writing \x1b[33m0:01:00" in shown.getvalue()


def test_nothing_is_shown_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.progress_line("reading the log") as say:
        say("requests judged", 3, 10)
    assert capsys.readouterr().err == ""
