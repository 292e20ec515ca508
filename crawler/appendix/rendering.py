"""What the checks of a data appendix found, on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from crawler.appendix.check import AppendixCheck
from crawler.cli.console import PrintableConsole
from crawler.formatting import many

MAX_FAULTS = 20


def render(checks: Sequence[AppendixCheck], digest: str, console: PrintableConsole) -> None:
    """Print what the checks found, for people."""
    for check in checks:
        style = "bold red" if check.faults else "green"
        console.print(Text(f"{'fault' if check.faults else 'ok':5} {check.title} ({check.judged})", style=style))
        for fault in check.faults[:MAX_FAULTS]:
            console.print(f"      {fault}", soft_wrap=True)
        if (more := len(check.faults) - MAX_FAULTS) > 0:
            console.print(f"      … and {many(more, 'more fault')}")
    console.print(f"SHA-256 of SHA256SUMS: {digest}", soft_wrap=True)
