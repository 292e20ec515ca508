"""``crawler report``: the crawl as one HTML file."""

from __future__ import annotations

from pathlib import Path

import click

from crawler.cli.console import console
from crawler.cli.progress import progress_line
from crawler.cli.shared import cli, db_option, run_async, store_at
from crawler.clock import SystemClock
from crawler.errors import UsageError
from crawler.formatting import many, size
from crawler.report.facts import Facts
from crawler.report.gather import gather
from crawler.report.write import require_html, write
from crawler.settings.stores import existing_store
from crawler.store.location import store_name


@cli.command()
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path), metavar="OUT.html")
@db_option
def report(out: Path, db: str) -> int:
    """Write a crawl as one HTML file with figures, charts and the audit. The file loads nothing."""
    if require_html(out).resolve() == Path(db).resolve():
        raise UsageError(f"{out}: this is the store itself; name another file")

    async def show() -> int:
        async with existing_store(store_at(db)) as store:
            with progress_line("reading the store"):
                facts = await gather(store, store_name(db), SystemClock().now())
        console.print(f"{out}: {size(write(out, facts))}; {_said(facts)}", soft_wrap=True)
        return 0

    return run_async(show())


def _said(facts: Facts) -> str:
    pages = f"{many(facts.counts.pages, 'page')} of {many(facts.fetched_sites, 'site')}"
    if isinstance(facts.audit, str):
        return f"{pages}; the audit is impossible: {facts.audit}"
    violations = facts.audit.violation_count
    return f"{pages}, {many(violations, 'violation') if violations else 'no violation'} of politeness"
