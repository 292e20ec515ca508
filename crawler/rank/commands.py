"""The command ``crawler rank``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from crawler.cli.console import console
from crawler.cli.on_store import on_store, show
from crawler.cli.progress import progress_line
from crawler.cli.shared import cli, db_option, json_option
from crawler.rank import load_ranking

if TYPE_CHECKING:
    from crawler.store.sections import Store


@cli.command()
@db_option
@json_option
@click.option("--top", default=20, show_default=True, type=click.IntRange(min=0), metavar="N", help="How many to show.")
@click.option("--sites", is_flag=True, help="Show sites, not pages.")
def rank(db: str, as_json: bool, top: int, sites: bool) -> None:
    """Rank pages and sites by the links between them (PageRank), into the views `ranks` and `site_ranks`."""
    ranking = load_ranking()

    async def run(store: Store) -> tuple[Any, Any]:
        with progress_line("ranking") as say:
            ranked = await ranking.rank(store, say)
        return ranked, await ranking.top(store, top, sites=sites)

    ranked, rows = on_store(db, run, writes=True)
    show(as_json, lambda: {**asdict(ranked), "top": rows}, lambda: ranking.render(ranked, rows, console))
