"""The command ``crawler rank``."""

from __future__ import annotations

from dataclasses import asdict

import click

from crawler.cli.console import console
from crawler.cli.output import print_json
from crawler.cli.progress import progress_line
from crawler.cli.shared import cli, db_option, json_option, run_async, store_at
from crawler.rank import load_ranking
from crawler.settings.stores import existing_store


@cli.command()
@db_option
@json_option
@click.option("--top", default=20, show_default=True, type=click.IntRange(min=0), metavar="N", help="How many to show.")
@click.option("--sites", is_flag=True, help="Show sites, not pages.")
def rank(db: str, as_json: bool, top: int, sites: bool) -> int:
    """Rank pages and sites by the links between them (PageRank), into the views `ranks` and `site_ranks`."""
    ranking = load_ranking()

    async def run() -> int:
        async with existing_store(store_at(db), read_only=False) as store:
            with progress_line("ranking"):
                ranked = await ranking.rank(store)
            rows = await ranking.top(store, top, sites=sites)
        if as_json:
            print_json({**asdict(ranked), "top": rows})
        else:
            ranking.render(ranked, rows, console)
        return 0

    return run_async(run())
