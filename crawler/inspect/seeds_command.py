"""The command ``crawler seeds``."""

from __future__ import annotations

import click

from crawler.cli.console import console
from crawler.cli.on_store import on_store, show
from crawler.cli.shared import cli, db_option, json_option
from crawler.clock import SystemClock
from crawler.inspect import seeds as ledger


@cli.command()
@click.option("--all", "all_seeds", is_flag=True, help="List every seed, also those that need nothing.")
@db_option
@json_option
def seeds(all_seeds: bool, db: str, as_json: bool) -> None:
    """Show what became of each seed, those that need a person first, with the command that mends it."""
    read = on_store(db, lambda store: ledger.read_ledger(store, db, SystemClock().now()))
    show(as_json, read.as_json, lambda: ledger.render(read, console, all_seeds=all_seeds))
