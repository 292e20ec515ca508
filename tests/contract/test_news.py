"""A worker on PostgreSQL is woken when another one may have stored work for it."""

from __future__ import annotations

import asyncio

from crawler.store.rows import ClaimLimits, CommitBatch
from tests.contract.conftest import TwoWorkers
from tests.contract.visits import fetched


async def test_a_commit_wakes_the_other_worker(workers: TwoWorkers) -> None:
    first, second, now = workers
    woken = asyncio.Event()
    second.on_news(woken.set)
    (claim, *_) = (await first.commit(CommitBatch(now, claim_limits=ClaimLimits(groups=1)))).claims
    assert await second.next_ready() is not None  # from now on its connection listens
    await first.commit(CommitBatch(now, claim_limits=ClaimLimits(0), outcomes=[fetched(claim.urls[0])]))
    await asyncio.wait_for(woken.wait(), 60)
