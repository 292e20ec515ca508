"""The command ``crawler seeds``."""

from __future__ import annotations

import click

from crawler.cli.console import console
from crawler.cli.output import print_json
from crawler.cli.shared import cli, db_option, json_option, run_async, store_at
from crawler.clock import SystemClock
from crawler.inspect import seeds as ledger
from crawler.settings.stores import existing_store


@cli.command()
@click.option("--all", "all_seeds", is_flag=True, help="List every seed, also those that need nothing.")
@db_option
@json_option
def seeds(all_seeds: bool, db: str, as_json: bool) -> int:
    """Show what became of each seed, those that need a person first, with the command that mends it."""

    async def look() -> int:
        async with existing_store(store_at(db)) as store:
            read = await ledger.read_ledger(store, db, SystemClock().now())
        if as_json:
            print_json(read.as_json())
        else:
            ledger.render(read, console, all_seeds=all_seeds)
        return 0

    return run_async(look())
