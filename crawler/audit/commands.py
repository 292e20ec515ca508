"""``crawler audit``."""

from __future__ import annotations

from pathlib import Path

import click

from crawler.audit import run_audit as audit_report
from crawler.audit.markdown_report import write_report
from crawler.cli.output import print_json
from crawler.cli.progress import progress_line
from crawler.cli.shared import cli, console, db_option, json_option, run_async, store_at
from crawler.clock import SystemClock
from crawler.settings.stores import existing_store


@cli.command()
@db_option
@json_option
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.md", help="A document of it.")
def audit(db: str, as_json: bool, report: Path | None) -> int:
    """Replay every request in the log anew by robots.txt and pace; 1 if any broke a rule."""

    async def judge() -> int:
        async with existing_store(store_at(db)) as store:
            with progress_line("judging every request"):
                found = await audit_report.audit(store, SystemClock().now())
        if report is not None:
            write_report(report, found)
        if as_json:
            print_json(audit_report.as_json(found))
        else:
            audit_report.render(found, console)
        return 1 if found.broken else 0

    return run_async(judge())
