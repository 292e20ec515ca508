"""Whether a crawl is over, when nobody is at work on anything: the end and its reason, or when to look again."""

from __future__ import annotations

from crawler.clock import Clock
from crawler.engine.claim_capacity import ClaimCapacity
from crawler.engine.crawl_policy import CrawlPolicy
from crawler.engine.page_budget import Budget
from crawler.engine.progress import Progress
from crawler.engine.sampling_frame import SamplingFrame
from crawler.model import State
from crawler.reasons import EndCode, RunEnd
from crawler.store.protocols import Store

_LOOK_EVERY_S = 1.0  # for work that other workers have made, beside their telling


class Ending:
    """Of one crawl."""

    def __init__(
        self,
        store: Store,
        policy: CrawlPolicy,
        clock: Clock,
        progress: Progress,
        budget: Budget,
        crowd: ClaimCapacity,
    ) -> None:
        self._store = store
        self._policy = policy
        self._clock = clock
        self._progress = progress
        self._budget = budget
        self._crowd = crowd

    async def look(self, frame: SamplingFrame | None) -> RunEnd | float:
        """Why the crawl is over; or after how many seconds there may be something to do."""
        if self._budget.is_spent and not self._budget.only_revisits:
            if not self._policy.revisit.enabled:
                return RunEnd(EndCode.MAX_PAGES, str(self._policy.crawl.max_pages))
            self._budget.only_revisits = True
            await self._store.prepare(0)
        is_idle = self._budget.waits_for_others
        ready = None if is_idle else await self._store.next_ready()
        if ready is not None:
            self._progress.idle_for = ready
            wait_s = max(0.0, ready.until - self._clock.now() - self._crowd.horizon_s())
            return wait_s if self._store.lease_s is None else min(wait_s, _LOOK_EVERY_S)
        if is_idle or await self._store.others_at_work():
            return _LOOK_EVERY_S
        return 0.0 if await self.queue_due() else await self._nothing_left(frame)

    async def queue_due(self) -> bool:
        """With --revisit: queue what is due and this run has not visited, so that it ends; whether there was any."""
        revisit, now, since = self._policy.revisit, self._clock.now(), self._progress.started_at
        return revisit.enabled and await self._store.queue_due(revisit, now, since, self.pages_per_site()) > 0

    def pages_per_site(self) -> int | None:
        return 0 if self._budget.only_revisits else self._policy.crawl.max_pages_per_site

    async def _nothing_left(self, frame: SamplingFrame | None) -> RunEnd | float:
        if frame is not None and not frame.is_closed:
            await frame.close()
            return 0.0
        revisits = self._policy.revisit.enabled
        if self._budget.only_revisits:
            return RunEnd(EndCode.MAX_PAGES, f"{self._policy.crawl.max_pages}; no revisit is due")
        queued = await self._store.queued_count()
        if queued == 0:
            return await nothing_left(self._store, self._progress, revisits=revisits)
        if await self._store.next_ready() is not None:
            return 0.0  # a block was lifted meanwhile
        return at_their_limit(self._policy.crawl.max_pages_per_site, queued)


async def nothing_left(store: Store, progress: Progress, *, revisits: bool) -> RunEnd:
    """Why the frontier is empty: everything was visited, every seed was left out, or nothing was queued.

    ``revisits`` says whether the run also makes revisits.
    """
    done = RunEnd(EndCode.NO_REVISIT_DUE if revisits else EndCode.DONE)
    if progress.pages:
        return done
    seeds = await store.query(
        "SELECT state, reason, count(*) AS n FROM url WHERE seed = 1 GROUP BY 1, 2 ORDER BY n DESC"
    )
    if seeds and all(row["state"] == State.EXCLUDED for row in seeds):
        others = len(seeds) - 1
        more = f"; and {others:,} other reason{'s' * (others > 1)}" if others else ""
        return RunEnd(EndCode.SEEDS_LEFT_OUT, f"{seeds[0]['reason']}{more}")
    last = await store.query("SELECT run_id FROM request ORDER BY id DESC LIMIT 1")
    others_asked = bool(last) and last[0]["run_id"] == store.run_id
    if not progress.requests and not progress.ends.total() and not others_asked:
        return RunEnd(EndCode.NOTHING_QUEUED)
    return done


def at_their_limit(limit: int | None, queued: int) -> RunEnd:
    """The end of a crawl in which every site with queued URLs has its ``limit`` of pages; ``queued`` URLs stay."""
    assert limit is not None, "without a limit, a group with queued URLs is ready at some time"
    left = f"{queued:,} URL stays" if queued == 1 else f"{queued:,} URLs stay"
    return RunEnd(EndCode.MAX_PAGES_PER_SITE, f"({limit}), {left}")
