"""The time that is left is read alike from both databases."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crawler.frontier.scope import ScopeMode
from crawler.frontier.time_left import End
from crawler.inspect.time_left import time_left_under
from crawler.settings.settings import Settings
from tests.contract.visits import Harness, fetched


async def test_the_time_left_is_read_from_the_queued_urls(harness: Harness) -> None:
    await harness.seed("http://a.test/")
    claims = await harness.claim()
    outcome = fetched(claims[0].urls[0], [f"http://a.test/{n}" for n in range(9)] + ["http://b.test/"])
    await harness.commit(outcome, released=[claim.group_id for claim in claims])
    left = await time_left_under(harness.store, Settings(), {"started_at": 0.0, "finished_at": None}, harness.now)
    assert left is not None
    assert (left.slowest, left.slowest_queued) == ("a.test", 9)
    assert left.least_s >= 8 * Settings().politeness.delay_s


async def test_a_time_limit_bounds_the_time_left_only_while_its_run_goes_on(harness: Harness) -> None:
    await harness.seed(*(f"http://a.test/{n}" for n in range(9)))
    settings = replace(Settings(), limits=replace(Settings().limits, max_time_s=12.0))

    async def least_s(started_at: float, finished_at: float | None = None) -> float:
        run = {"started_at": started_at, "finished_at": finished_at}
        left = await time_left_under(harness.store, settings, run, harness.now)
        assert left is not None
        return left.least_s

    whole_s = 8 * settings.politeness.delay_s
    assert await least_s(harness.now - 10) == pytest.approx(2)
    assert await least_s(harness.now - 11, harness.now) >= whole_s, "the next run has a time limit of its own"
    assert await least_s(harness.now - 60) >= whole_s, "the run was killed, and could not record its end"


async def test_the_limit_of_pages_per_site_bounds_the_time_left(harness: Harness) -> None:
    await harness.seed(*(f"http://a.test/{n}" for n in range(12)))
    (claim,) = await harness.claim()
    outcomes = [fetched(queued, [f"{queued.url}/{n}" for n in range(3)]) for queued in claim.urls]
    await harness.commit(*outcomes, released=[claim.group_id])
    assert len(outcomes) == 12
    run = {"started_at": 0.0, "finished_at": None}

    async def end(**scope: ScopeMode) -> End:
        limits = replace(Settings().limits, max_pages_per_site=13)
        settings = replace(Settings(), limits=limits, scope=replace(Settings().scope, **scope))
        left = await time_left_under(harness.store, settings, run, harness.now)
        assert left is not None
        assert left.slowest_queued == 1
        return left.end

    assert await end() is End.BOUNDED
    assert await end(mode=ScopeMode.ANY) is End.NO_END_IN_SIGHT, "new sites may come without end"
