"""The command ``crawler status``."""

from __future__ import annotations

from crawler.cli.console import console
from crawler.cli.output import print_json
from crawler.cli.shared import cli, db_option, json_option, run_async, store_at
from crawler.clock import SystemClock
from crawler.inspect import status as status_report
from crawler.settings.stores import existing_store


@cli.command()
@db_option
@json_option
def status(db: str, as_json: bool) -> int:
    """Show the URLs in the store by state and site, and what the crawl waits for."""

    async def look() -> int:
        async with existing_store(store_at(db)) as store:
            seen = await status_report.look(store, SystemClock().now())
        if as_json:
            print_json(status_report.as_json(seen))
        else:
            status_report.render(seen, db, console)
        return 0

    return run_async(look())
