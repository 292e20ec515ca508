"""The command ``crawler audit``."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crawler.audit.rendering import render
from crawler.audit.run_audit import AuditResult, audit_for
from crawler.audit.study import StudyFacts
from crawler.audit.totals import write_sites
from crawler.cli.console import console
from crawler.cli.on_store import on_rows, show
from crawler.cli.progress import progress_line
from crawler.cli.shared import cli, db_option, json_option
from crawler.clock import SystemClock
from crawler.errors import UsageError, requiring

if TYPE_CHECKING:
    from crawler.store.sections import Store


def _digest(context: click.Context, option: click.Parameter, value: str) -> str:
    if not re.fullmatch("[0-9a-fA-F]{64}|", value):
        raise click.BadParameter(f"{value[:100]!r} is no SHA-256 in hex, which has 64 digits")
    return value.lower()


@cli.command()
@click.argument("appendix", required=False, type=click.Path(file_okay=False, exists=True, path_type=Path))
@db_option
@json_option
@click.option(
    "--report",
    "reports",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write the result as a Markdown document to FILE.md (needs the extra `report`), or how often each site "
    "was contacted and what is kept of it to FILE.csv; may be repeated.",
)
@click.option(
    "--registered",
    callback=_digest,
    default="",
    metavar="DIGEST",
    help="Also require that the sample was drawn by the design with this digest (`crawler sample design`).",
)
def audit(appendix: Path | None, db: str, as_json: bool, reports: tuple[Path, ...], registered: str) -> int:
    """Check every logged request against robots.txt and the pace; exit code 1 if a rule was broken.

    With APPENDIX, a folder of `crawler export appendix`, check that folder instead of a store.
    """
    if appendix is not None:
        if reports or registered:
            raise UsageError("--report and --registered need a store; leave them out for an appendix")
        from crawler.appendix.commands import check

        return check(appendix, as_json=as_json)

    tables = [file for file in reports if file.suffix == ".csv"]
    documents = [file for file in reports if file.suffix != ".csv"]
    if documents:
        with requiring("report", "--report"):
            from crawler.audit.document import write_report

    async def judge(store: Store) -> AuditResult:
        with progress_line("reading the log") as say:
            result = await audit_for(db)(store, SystemClock().now(), partial(say, "requests judged"))
        for file in tables:
            await write_sites(file, store)
        return result

    result = on_rows(db, judge)
    for file in documents:
        write_report(file, result)
    show(
        as_json,
        lambda: result.as_json() | _registration(result.study, registered),
        lambda: render(result, console, registered),
    )
    return 1 if result.violation_count or (registered and not result.study.is_registered(registered)) else 0


def _registration(study: StudyFacts, registered: str) -> dict[str, Any]:
    if not registered:
        return {}
    text = study.describe_registration(registered)
    return {"registered": {"sha256": registered, "is_kept": study.is_registered(registered), "text": text}}
