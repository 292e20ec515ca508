"""The commands that read a store: ``status``, ``why``, ``audit``."""

from __future__ import annotations

from pathlib import Path

import click

from crawler.assemble import existing_store
from crawler.cli.base import canonical, cli, console, db_option, json_option, run_async, store_at
from crawler.cli.progress import progress_line
from crawler.clock import SystemClock
from crawler.config import Settings
from crawler.display import print_json
from crawler.report import audit as audit_report
from crawler.report import status as status_report
from crawler.report import why as why_report
from crawler.report.audit_report import write_report


@cli.command()
@db_option
@json_option
def status(db: str, as_json: bool) -> int:
    """What the store holds: per state, per site, what is waited for and until when."""

    async def look() -> int:
        async with existing_store(store_at(db)) as store:
            seen = await status_report.look(store, SystemClock().now())
        if as_json:
            print_json(status_report.as_json(seen))
        else:
            status_report.render(seen, console)
        return 0

    return run_async(look())


@cli.command()
@click.argument("url")
@db_option
@json_option
def why(url: str, db: str, as_json: bool) -> int:
    """Everything known and decided about URL, with the evidence."""
    target = canonical(url)

    async def explain() -> int:
        async with existing_store(store_at(db)) as store:
            token = Settings().identity.agent
            known = await why_report.explain(store, target, token=token, now=SystemClock().now())
        if as_json:
            print_json(known)
        else:
            why_report.render(known, console)
        return 0

    return run_async(explain())


@cli.command()
@db_option
@json_option
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.md", help="A document of it.")
def audit(db: str, as_json: bool, report: Path | None) -> int:
    """Judge every request in the log anew by robots.txt and pace; 1 if any broke a rule."""

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
