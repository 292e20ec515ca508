"""The result of an audit on the terminal."""

from __future__ import annotations

from rich.text import Text

from crawler.audit.run_audit import AuditResult
from crawler.audit.totals import unsent_sentence
from crawler.cli.console import PrintableConsole
from crawler.cli.layout import table
from crawler.formatting import many


def render(result: AuditResult, console: PrintableConsole, registered: str = "") -> None:
    """Print the result for people. ``registered`` is the digest of the design that the sample should have."""
    totals = result.totals
    if not totals.requests + totals.unsent:
        console.print("The log is empty: no request was ever sent, and there is nothing to judge.")
    rows = [
        (
            check.sentence,
            f"{count.judged:,}",
            Text(
                f"{count.violations:,}",
                style="bold red" if count.violations else "green" if count.judged else "dim",
            ),
        )
        for check, count in result.counts.items()
    ]
    console.print(table({"check": "fold", "judged": "right", "violations": "right"}, rows))
    for violation in result.violations:
        console.print(Text(f"{violation.check}: {violation.url or 'the log'}", style="bold red"))
        for label, fact in violation.evidence():
            console.print(Text(f"  {label:12} {fact}"))
    if more := result.violation_count - len(result.violations):
        console.print(f"… and {many(more, 'more violation')}")
    for limit in result.limits:
        console.print(Text(f"Not proven: {limit}", style="yellow"))
    for draw in result.study.draws:
        console.print(Text(f"Sample: {draw.description}"), soft_wrap=True)
    if registered:
        style = "green" if result.study.is_registered(registered) else "bold red"
        console.print(Text(result.study.describe_registration(registered), style=style), soft_wrap=True)
    verdict = many(result.violation_count, "violation") if result.violation_count else "No violation"
    request = "logged request" if any(run.finished_at is None for run in result.runs) else "request"
    console.print(
        Text(
            f"{verdict} in {many(totals.requests, request)} to {many(totals.sites, 'site')}",
            style="bold red" if result.violation_count else "bold green",
        )
    )
    if unsent := unsent_sentence(totals):
        console.print(unsent)
    console.print(f"SHA-256 of what was judged: {result.sha256}", soft_wrap=True)
