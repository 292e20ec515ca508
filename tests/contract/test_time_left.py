"""The time that is left is read alike from both databases."""

from __future__ import annotations

from crawler.inspect.time_left import time_left_under
from crawler.settings.settings import Settings
from tests.contract.visits import Harness, fetched


async def test_the_time_left_is_read_from_the_queued_urls(harness: Harness) -> None:
    await harness.seed("http://a.test/")
    claims = await harness.claim()
    outcome = fetched(claims[0].urls[0], [f"http://a.test/{n}" for n in range(9)] + ["http://b.test/"])
    await harness.commit(outcome, released=[claim.group_id for claim in claims])
    left = await time_left_under(harness.store, Settings(), {"started_at": 0.0}, harness.now)
    assert left is not None
    assert (left.slowest, left.slowest_queued) == ("a.test", 9)
    assert left.least_s >= 8 * Settings().politeness.delay_s
