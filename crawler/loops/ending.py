"""Why a crawl with nothing more to claim has ended, in the words of its summary."""

from __future__ import annotations

from crawler.loops.progress import Progress
from crawler.model import State
from crawler.store.interface import Store


async def nothing_left(store: Store, progress: Progress, no_revisit: str) -> str:
    """Why the frontier is empty: all was visited, or the crawl was kept from all it began with, or had nothing to do.

    ``no_revisit`` is what there is to say of revisits."""
    ended_by = f"nothing is left in the frontier{no_revisit}"
    if progress.ends[State.FETCHED]:
        return ended_by
    seeds = await store.query("SELECT state, reason, count(*) AS n FROM url WHERE seed GROUP BY 1, 2 ORDER BY n DESC")
    if seeds and all(row["state"] == State.EXCLUDED for row in seeds):
        more = f"; and {len(seeds) - 1:,} other reasons" if len(seeds) > 1 else ""
        return f"{ended_by}: every seed was left out: {seeds[0]['reason']}{more}"
    if not progress.requests and not progress.ends.total():
        return f"{ended_by}: nothing was queued when this run began"
    return ended_by


def at_their_limit(limit: int | None, queued: int) -> str:
    """What is left may not be had: every site has ``limit`` pages, and ``queued`` URLs stay."""
    assert limit is not None, "without a limit, a group with queued URLs is ready at some time"
    return f"every site with URLs left has its --max-pages-per-site ({limit}), {queued:,} URLs stay queued"
