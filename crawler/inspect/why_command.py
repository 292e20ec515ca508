"""The command ``crawler why``."""

from __future__ import annotations

import click

from crawler.cli.console import console
from crawler.cli.output import print_json
from crawler.cli.shared import canonical, cli, db_option, json_option, run_async, store_at
from crawler.clock import SystemClock
from crawler.inspect import why as why_report
from crawler.settings.stores import existing_store


@cli.command()
@click.argument("url")
@db_option
@json_option
def why(url: str, db: str, as_json: bool) -> int:
    """Show everything that is known and decided about URL, with the evidence."""
    target = canonical(url)

    async def explain() -> int:
        async with existing_store(store_at(db)) as store:
            known = await why_report.explain(store, target, now=SystemClock().now())
        if as_json:
            print_json(known)
        else:
            why_report.render(known, db, console)
        return 0

    return run_async(explain())
