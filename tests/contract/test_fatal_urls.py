"""Groups whose worker died are visited with caution, and a URL whose visits killed three workers fails."""

from __future__ import annotations

from crawler.reasons import EndCode, RunEnd
from tests.contract.visits import Harness, fetched, queued_urls, retried

STOPPED = RunEnd(EndCode.STOPPED)
A = "http://a.test/"
URLS = [f"{A}{n}" for n in range(5)]


async def died(harness: Harness) -> None:
    """The worker dies, and another one begins a minute later."""
    await harness.reopen()
    harness.now += 60


async def test_a_group_is_in_caution_from_the_death_of_its_worker_until_it_is_given_back(harness: Harness) -> None:
    await harness.seed(*URLS)
    for deaths in range(4):
        (claim,) = await harness.claim()
        assert claim.in_caution == (deaths > 0)
        assert sorted(queued_urls([claim])) == URLS, "a batch is as large as always"
        await died(harness)
    (claim,) = await harness.claim()
    await harness.finish(claim, fetched(claim.urls[0]))
    (claim,) = await harness.claim()
    assert not claim.in_caution


async def test_other_groups_are_not_in_caution(harness: Harness) -> None:
    await harness.seed(A)
    await harness.claim()
    await died(harness)
    await harness.seed("http://b.test/")
    assert {claim.group: claim.in_caution for claim in await harness.claim()} == {"a.test": True, "b.test": False}


async def test_the_third_death_fails_the_marked_url_and_no_other(harness: Harness) -> None:
    await harness.seed(*URLS)
    for deaths in range(3):
        assert set((await harness.urls()).values()) == {"queued"}, deaths
        (claim,) = await harness.claim()
        await harness.store.mark_url(claim.urls[0].id)
        await harness.store.mark_url(None)
        await harness.store.mark_url(claim.urls[2].id)
        await died(harness)
    killer = claim.urls[2].url
    states = await harness.urls("state, reason_code")
    assert states.pop(killer) == ("failed", "worker_died")
    assert {state for state, _ in states.values()} == {"queued"}
    reasons = await harness.urls("reason")
    assert reasons[killer] == "the crawler died 3 times while it worked on this URL; please report it"
    assert sorted(queued_urls(await harness.claim())) == [url for url in URLS if url != killer]


async def test_a_death_is_counted_once(harness: Harness) -> None:
    await harness.seed(*URLS)
    (claim,) = await harness.claim()
    await harness.store.mark_url(claim.urls[0].id)
    for _ in range(4):
        await died(harness)
    assert set((await harness.urls()).values()) == {"queued"}


async def test_a_death_without_a_mark_blames_no_url(harness: Harness) -> None:
    await harness.seed(*URLS)
    for _ in range(6):
        (claim,) = await harness.claim()
        await harness.store.mark_url(claim.urls[0].id)
        await harness.store.mark_url(None)
        await died(harness)
    assert set((await harness.urls()).values()) == {"queued"}


async def test_a_death_after_the_outcome_was_committed_blames_no_url(harness: Harness) -> None:
    await harness.seed(A)
    (claim,) = await harness.claim()
    await harness.store.mark_url(claim.urls[0].id)
    await harness.finish(claim, fetched(claim.urls[0]))
    await died(harness)
    assert await harness.urls() == {A: "fetched"}


async def test_the_deaths_of_a_url_are_forgotten_with_its_next_outcome(harness: Harness) -> None:
    await harness.seed(A)
    for _ in range(2):
        for _ in range(2):
            (claim,) = await harness.claim()
            await harness.store.mark_url(claim.urls[0].id)
            await died(harness)
        (claim,) = await harness.claim()
        await harness.finish(claim, retried(claim.urls[0], harness.now))
    assert await harness.urls() == {A: "queued"}


async def test_a_worker_that_ends_in_order_blames_no_url(harness: Harness) -> None:
    await harness.seed(*URLS)
    for _ in range(4):
        (claim,) = await harness.claim()
        await harness.store.mark_url(claim.urls[0].id)
        await harness.store.end_run(STOPPED, harness.now)
        await died(harness)
    assert set((await harness.urls()).values()) == {"queued"}
