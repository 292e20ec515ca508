"""URLs in a redirect loop, and URLs that lead into it, fail once the whole loop is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.contract.visits import Harness, failed, fetched, redirected

if TYPE_CHECKING:
    from crawler.store.sections import Store

A, B = "http://a.test", "http://b.test"
CIRCLE = {f"{A}/1": f"{B}/2", f"{B}/2": f"{A}/3", f"{A}/3": f"{A}/1", f"{A}/into": f"{B}/2", f"{B}/far": f"{A}/into"}
ENDING = {f"{A}/old": f"{A}/older", f"{A}/older": f"{B}/page", f"{B}/broken": f"{B}/gone"}


async def visit_all(harness: Harness) -> None:
    leads = CIRCLE | ENDING
    while claims := await harness.claim():
        for claim in claims:
            outcomes = []
            for queued in claim.urls:
                if queued.url in leads:
                    outcomes.append(redirected(queued, leads[queued.url]))
                else:
                    outcomes.append(failed(queued) if queued.url.endswith("gone") else fetched(queued))
            await harness.finish(claim, *outcomes)


async def ends(store: Store) -> dict[str, tuple[str, str]]:
    return {
        row["url"]: (row["state"], row["reason"]) for row in await store.query("SELECT url, state, reason FROM urls")
    }


async def test_urls_in_or_before_a_redirect_loop_fail_and_no_others(harness: Harness) -> None:
    await harness.seed(*CIRCLE, *ENDING)
    await visit_all(harness)
    before = await ends(harness.store)
    await harness.store.fail_circles()
    after = await ends(harness.store)
    assert {url for url in after if after[url] != before[url]} == set(CIRCLE)
    assert {after[url] for url in CIRCLE} == {
        ("failed", f"redirects in a circle (302 to {target})") for target in CIRCLE.values()
    }
    await harness.store.fail_circles()
    assert await ends(harness.store) == after, "once is enough"


async def test_the_seeds_without_a_page_are_counted_by_cause(harness: Harness) -> None:
    await harness.seed(*CIRCLE, *ENDING)
    await visit_all(harness)
    assert [(state, reason, urls) for state, _, reason, urls in await harness.store.seed_causes()] == [
        ("failed", "gone", 1)
    ], "the target of a redirect counts once"
    await harness.store.fail_circles()
    assert sum(urls for *_, urls in await harness.store.seed_causes()) == 1 + len(CIRCLE)


async def test_a_chain_with_a_queued_url_does_not_fail_yet(harness: Harness) -> None:
    await harness.seed(f"{A}/1")
    (claim,) = await harness.claim()
    await harness.finish(claim, redirected(claim.urls[0], f"{B}/2"))
    await harness.store.fail_circles()
    assert (await ends(harness.store))[f"{A}/1"] == ("redirected", f"302 to {B}/2")
