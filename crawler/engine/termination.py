"""The reason why a crawl is over, once nothing is claimed and there is nothing to wait for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from crawler.engine.crawl_policy import CrawlPolicy
from crawler.engine.crawl_settings import LimitSettings
from crawler.engine.page_counter import PageCounter
from crawler.engine.progress import Progress
from crawler.formatting import many
from crawler.frontier.politeness import PolitenessSettings
from crawler.model import State
from crawler.reasons import EndCode, RunEnd

if TYPE_CHECKING:
    from crawler.store.sections import Store


async def conclude(
    store: Store, policy: CrawlPolicy, pages: PageCounter, progress: Progress, ends_at: float = math.inf
) -> RunEnd | None:
    """The reason why a crawl that has nothing to claim is over; ``None`` if a group was queued meanwhile.

    ``ends_at`` is when the run ends at the latest. Raises :class:`crawler.errors.StoreError`.
    """
    if pages.is_reached:
        code = EndCode.MAX_PAGES_NO_REVISIT_DUE if policy.revisit.enabled else EndCode.MAX_PAGES
        return RunEnd(code, str(policy.limits.max_pages))
    queued = await store.queued_count()
    if queued == 0:
        return await _nothing_left(store, progress, revisits=policy.revisit.enabled)
    if (first := await store.next_ready()) is not None:  # None if a block was lifted
        return None if first.until < ends_at else RunEnd(EndCode.ALL_WAIT, many(queued, "queued URL"))
    return at_their_limit(policy.limits, policy.politeness, queued)


async def _nothing_left(store: Store, progress: Progress, *, revisits: bool) -> RunEnd:
    """Why the frontier is empty: everything was visited, every seed was left out, or nothing was queued.

    ``revisits`` says whether the run also makes revisits.
    """
    done = RunEnd(EndCode.NO_REVISIT_DUE if revisits else EndCode.DONE)
    if progress.pages:
        return done
    seeds = await store.seed_states()
    if seeds and all(state is State.EXCLUDED for state, _ in seeds):
        others = len(seeds) - 1
        more = f"; and {others:,} other reason{'s' * (others > 1)}" if others else ""
        return RunEnd(EndCode.SEEDS_LEFT_OUT, f"{seeds[0][1]}{more}")
    is_idle = not progress.requests and not progress.ends.total() and not await store.sent_last_request()
    if is_idle and not (revisits and await store.fetched_count()):
        return RunEnd(EndCode.NOTHING_QUEUED)
    return done


def at_their_limit(limits: LimitSettings, politeness: PolitenessSettings, queued: int) -> RunEnd:
    """The end of a crawl in which every site with queued URLs has its limit of pages; ``queued`` URLs stay."""
    general = limits.max_pages_per_site
    own = "max_pages in a table [site]" if any(rule.max_pages for rule in politeness.sites) else None
    assert general or own, "without a limit, a group with queued URLs is ready at some time"
    limit = " or ".join(str(each) for each in (general, own) if each)
    left = f"{queued:,} URL stays queued" if queued == 1 else f"{queued:,} URLs stay queued"
    return RunEnd(EndCode.MAX_PAGES_PER_SITE, f"({limit}); {left}")
