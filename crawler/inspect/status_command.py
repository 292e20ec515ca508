"""The command ``crawler status``."""

from __future__ import annotations

from crawler.cli.console import console
from crawler.cli.on_store import on_store, show
from crawler.cli.shared import cli, db_option, json_option
from crawler.clock import SystemClock
from crawler.inspect import status as status_report


@cli.command()
@db_option
@json_option
def status(db: str, as_json: bool) -> None:
    """Show the URLs in the store by state and site, and what the crawl waits for."""
    seen = on_store(db, lambda store: status_report.read_status(store, SystemClock().now()))
    show(as_json, lambda: status_report.as_json(seen), lambda: status_report.render(seen, db, console))
