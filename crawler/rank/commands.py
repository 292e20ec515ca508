"""The command ``crawler rank``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from crawler.cli.console import console
from crawler.cli.on_store import on_rows, show
from crawler.cli.progress import progress_line
from crawler.cli.shared import cli, db_option, json_option
from crawler.rank import load_ranking

if TYPE_CHECKING:
    from crawler.store.sections import Store


@cli.command()
@db_option
@json_option
def rank(db: str, as_json: bool) -> None:
    """Rank pages and sites by the links between them (PageRank), into the views `ranks` and `site_ranks`.

    Shows the 20 highest pages and the 20 highest sites; `crawler export csv FILE --table ranks` has all.
    """
    ranking = load_ranking()

    async def run(store: Store) -> tuple[Any, Any]:
        with progress_line("ranking") as say:
            ranked = await ranking.rank(store, say)
        return ranked, await ranking.tops(store)

    ranked, tops = on_rows(db, run, writes=True)
    document = asdict(ranked) | dict(zip(("top", "top_sites"), tops, strict=True))
    show(as_json, lambda: document, lambda: ranking.render(ranked, tops, console))
