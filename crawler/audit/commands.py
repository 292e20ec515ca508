"""The command ``crawler audit``."""

from __future__ import annotations

from pathlib import Path

import click

from crawler.audit.markdown_report import write_report
from crawler.audit.run_audit import run_audit
from crawler.audit.terminal import render
from crawler.cli.output import console, print_json
from crawler.cli.progress import progress_line
from crawler.cli.shared import cli, db_option, json_option, run_async, store_at
from crawler.clock import SystemClock
from crawler.settings.stores import existing_store


@cli.command()
@db_option
@json_option
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.md",
    help="Also write the result as a Markdown document.",
)
def audit(db: str, as_json: bool, report: Path | None) -> int:
    """Check every logged request against robots.txt and the pace; exit code 1 if a rule was broken."""

    async def run() -> int:
        async with existing_store(store_at(db)) as store:
            with progress_line("checking every request"):
                result = await run_audit(store, SystemClock().now())
        if report is not None:
            write_report(report, result)
        if as_json:
            print_json(result.as_json())
        else:
            render(result, console)
        return 1 if result.violation_count else 0

    return run_async(run())
