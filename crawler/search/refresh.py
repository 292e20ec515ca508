"""The command ``crawler refresh-search``: all that a search needs besides the crawl, in one call."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from crawler.cli.console import console
from crawler.cli.on_store import on_rows, show
from crawler.cli.progress import Say, progress_line
from crawler.cli.shared import cli, db_option, json_option
from crawler.duplicates.find import find_duplicates
from crawler.errors import UsageError
from crawler.rank import load_ranking
from crawler.search.build_index import build_index, is_complete
from crawler.store.computed import Computed
from crawler.texts.reader import ReadsTexts, TextReader

if TYPE_CHECKING:
    from crawler.store.sections import Store


@cli.command("refresh-search")
@db_option
@json_option
def refresh_search(db: str, as_json: bool) -> None:
    """Bring near-duplicates, ranks and the search index up to date with the crawl.

    Does what `crawler duplicates`, `crawler rank` and `crawler index` do, and leaves out those whose result is up to
    date, and the ranks if the extra `rank` is missing. The search answers meanwhile. For a timer after each run.
    """

    async def run(store: Store) -> dict[Computed, Any]:
        async with TextReader() as reader:
            with progress_line("looking for changed pages") as say:
                return await refresh(db, store, reader, say)

    done = on_rows(db, run, writes=True)
    lines = {each: f"{each.label}: {done.get(each, 'up to date')}" for each in Computed}
    if why := _without_ranks():
        lines[Computed.RANKS] = f"ranks: none, {why}"
    show(
        as_json,
        lambda: {each.value: asdict(done[each]) if each in done else None for each in Computed},
        lambda: console.print("\n".join(lines.values()), soft_wrap=True),
    )


async def refresh(
    db: str, store: Store, reader: ReadsTexts, say: Say = lambda what, done=0, total=None: None
) -> dict[Computed, Any]:
    """Compute what is older than the crawl; returns the summary of each that was computed.

    The caller holds ``store``, the one at ``db``, open for writing. ``say`` is told the progress. A cancellation keeps
    what is done. Raises :class:`crawler.errors.StoreError` if the store fails.
    """
    is_behind = await store.computed() | ({Computed.RANKS: False} if _without_ranks() else {})
    if not await is_complete(db, store):
        is_behind[Computed.INDEX] = True
    done: dict[Computed, Any] = {}
    for each in Computed:
        if is_behind.get(each, True) or (each is Computed.INDEX and done):  # the index holds ranks and near-duplicates
            done[each] = await _compute(each, db, store, reader, say)
    return done


def _without_ranks() -> str:
    """Why no ranks can be computed, without which a search works, too; empty if they can."""
    try:
        load_ranking()
    except UsageError as error:
        return str(error)
    return ""


async def _compute(each: Computed, db: str, store: Store, reader: ReadsTexts, say: Say) -> Any:
    match each:
        case Computed.NEAR_DUPLICATES:
            return await find_duplicates(store, reader, say)
        case Computed.RANKS:
            return await load_ranking().rank(store, say)
        case Computed.INDEX:
            return await build_index(db, store, reader, partial(say, "pages checked"))
