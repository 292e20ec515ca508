"""The command ``crawler why``."""

from __future__ import annotations

import click

from crawler.cli.console import console
from crawler.cli.on_store import on_store, show
from crawler.cli.shared import canonical, cli, db_option, json_option
from crawler.clock import SystemClock
from crawler.inspect import why as why_report


@cli.command()
@click.argument("url")
@db_option
@json_option
def why(url: str, db: str, as_json: bool) -> None:
    """Show everything that is known and decided about URL, with the evidence."""
    target = canonical(url)
    known = on_store(db, lambda store: why_report.explain(store, target, now=SystemClock().now()))
    show(as_json, lambda: known, lambda: why_report.render(known, db, console))
