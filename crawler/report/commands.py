"""``crawler report``: the crawl as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from crawler.audit.run_audit import audit_for
from crawler.cli.console import console
from crawler.cli.on_store import on_rows
from crawler.cli.progress import progress_line
from crawler.cli.shared import cli, db_option
from crawler.clock import SystemClock
from crawler.errors import UsageError
from crawler.formatting import many, size
from crawler.report.gather import Facts, gather
from crawler.report.write import require_html, write
from crawler.sampling.commands import by_option, variable_option, variables_of
from crawler.store.location import names_dataset, store_name

if TYPE_CHECKING:
    from crawler.store.sections import Store


@cli.command()
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path), metavar="OUT.html")
@db_option
@variable_option
@by_option
def report(out: Path, db: str, texts: tuple[str, ...], by: str | None) -> None:
    """Write a crawl as one HTML file with figures, charts and the audit. The file loads nothing.

    --variable and --by are for the estimates from a sample.
    """
    if require_html(out).resolve() == Path(db).resolve():
        raise UsageError(f"{out}: this is the store itself; name another file")

    async def read(store: Store) -> Facts:
        with progress_line(f"reading the {'dataset' if names_dataset(db) else 'store'}"):
            return await gather(store, store_name(db), SystemClock().now(), variables_of(texts), by, audit_for(db))

    facts = on_rows(db, read)
    console.print(f"{out}: {size(write(out, facts))}; {_said(facts)}", soft_wrap=True)


def _said(facts: Facts) -> str:
    pages = f"{many(facts.counts.pages, 'page')} of {many(facts.fetched_sites, 'site')}"
    if isinstance(facts.audit, str):
        return f"{pages}; the audit is impossible: {facts.audit}"
    violations = facts.audit.violation_count
    return f"{pages}, {many(violations, 'violation') if violations else 'no violation'} of politeness"
