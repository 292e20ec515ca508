"""Carries out ``crawler refresh-search``: all that a search needs besides the crawl, in one call."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from crawler.cli.progress import Say
from crawler.duplicates.find import find_duplicates
from crawler.errors import UsageError
from crawler.rank import load_ranking
from crawler.search.build_index import build_index, is_complete
from crawler.store.computed import Computed
from crawler.texts.reader import ReadsTexts

if TYPE_CHECKING:
    from crawler.store.sections import Store


async def refresh(
    db: str, store: Store, reader: ReadsTexts, say: Say = lambda what, done=0, total=None: None
) -> dict[Computed, Any]:
    """Compute what is older than the crawl; returns the summary of each that was computed.

    The caller holds ``store``, the one at ``db``, open for writing. ``say`` is told the progress. A cancellation keeps
    what is done. Raises :class:`crawler.errors.StoreError` if the store fails.
    """
    is_behind = await store.computed() | ({Computed.RANKS: False} if without_ranks() else {})
    if not await is_complete(db, store):
        is_behind[Computed.INDEX] = True
    done: dict[Computed, Any] = {}
    for each in Computed:
        if is_behind.get(each, True) or (each is Computed.INDEX and done):  # the index holds ranks and near-duplicates
            done[each] = await _compute(each, db, store, reader, say)
    return done


def without_ranks() -> str:
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
