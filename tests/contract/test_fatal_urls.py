"""URLs of groups whose workers died are tried one by one, and a URL that killed three of them fails."""

from __future__ import annotations

from crawler.reasons import EndCode, RunEnd
from tests.contract.visits import Harness, fetched, queued_urls

STOPPED = RunEnd(EndCode.STOPPED)
A = "http://a.test/"
URLS = [f"{A}{n}" for n in range(5)]


async def died(harness: Harness) -> None:
    """The worker dies, and another one begins a minute later."""
    await harness.reopen()
    harness.now += 60


async def under_suspicion(harness: Harness) -> None:
    await harness.seed(*URLS)
    for _ in range(2):
        (claim,) = await harness.claim()
        assert (claim.alone, len(claim.urls)) == (False, 5)
        await died(harness)


async def test_after_two_deaths_in_a_row_urls_are_claimed_one_by_one(harness: Harness) -> None:
    await under_suspicion(harness)
    for left in range(5, 0, -1):
        (claim,) = await harness.claim()
        assert (claim.alone, len(claim.urls)) == (True, 1), left
        await harness.store.begin_trial(claim)
        await harness.finish(claim, fetched(claim.urls[0]))
    assert set((await harness.urls()).values()) == {"fetched"}


async def test_one_death_between_two_releases_changes_nothing(harness: Harness) -> None:
    await harness.seed(*URLS)
    for _ in range(4):
        (claim,) = await harness.claim()
        await died(harness)
        (claim,) = await harness.claim()
        assert not claim.alone
        await harness.finish(claim)


async def test_a_url_that_kills_three_workers_fails_and_no_other(harness: Harness) -> None:
    await under_suspicion(harness)
    (claim,) = await harness.claim()
    killer = claim.urls[0]
    for deaths in range(3):
        assert (await harness.urls())[killer.url] == "queued", deaths
        while claim.urls[0].id != killer.id:  # after a death, the others come first
            await harness.store.begin_trial(claim)
            await harness.finish(claim, fetched(claim.urls[0]))
            (claim,) = await harness.claim()
        await harness.store.begin_trial(claim)
        await died(harness)
        claims = await harness.claim()
        if deaths < 2:
            (claim,) = claims
    states = await harness.urls("state, reason_code")
    assert states.pop(killer.url) == ("failed", "worker_died")
    assert {state for state, _ in states.values()} <= {"queued", "fetched"}
    reasons = await harness.urls("reason")
    assert reasons[killer.url] == "the crawler died 3 times while it worked on this URL; please report it"


async def test_a_death_before_the_trial_or_after_its_commit_blames_no_url(harness: Harness) -> None:
    await under_suspicion(harness)
    for _ in range(6):
        assert len(queued_urls(await harness.claim())) == 1
        await died(harness)
    (claim,) = await harness.claim()
    await harness.store.begin_trial(claim)
    await harness.finish(claim, fetched(claim.urls[0]))
    await died(harness)
    assert sorted((await harness.urls()).values()) == ["fetched", *["queued"] * 4]


async def test_a_worker_that_ends_in_order_blames_no_url(harness: Harness) -> None:
    await under_suspicion(harness)
    for _ in range(4):
        (claim,) = await harness.claim()
        await harness.store.begin_trial(claim)
        await harness.store.end_run(STOPPED, harness.now)
        await died(harness)
    assert set((await harness.urls()).values()) == {"queued"}
