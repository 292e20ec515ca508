"""URLs that are held back until a sample is drawn, and the sample itself."""

from __future__ import annotations

from crawler.store.protocols import ClaimLimits, CommitBatch, SampleDraw, SampleRow
from tests.contract.visits import NOW, Harness, excluded, fetched, queued_urls, robots

A = "http://a.test/"
DRAW = SampleDraw("uniform", "crawl", 1, 7, NOW, 3, 0, follows=False)


async def with_leaves(harness: Harness) -> list[str]:
    """A start page that links to three; what may be claimed while such pages are held back."""
    await harness.seed(A)
    (claim,) = await harness.claim()
    links = [f"{A}x", f"{A}y", f"{A}z"]
    held = ClaimLimits(10, below_depth=1)
    outcome = fetched(claim.urls[0], links)
    turned = await harness.store.commit(CommitBatch(NOW, held, [outcome], released=[claim.group_id]))
    return queued_urls(turned.claims)


async def test_held_back_urls_are_queued_but_never_claimed(harness: Harness) -> None:
    assert await with_leaves(harness) == []
    assert await harness.store.next_ready() is None
    assert await harness.store.queued_count() == 3
    await harness.store.prepare(None)
    assert (await harness.store.commit(CommitBatch(NOW, ClaimLimits(10, below_depth=1)))).claims[0].urls == []


async def test_a_drawn_url_is_claimed_and_the_others_are_excluded(harness: Harness) -> None:
    await with_leaves(harness)
    number = await harness.store.find(f"{A}y")
    assert number is not None
    await harness.store.replace_sample(DRAW, [SampleRow(number, "", None, 1 / 3)], 1, None)
    assert await harness.urls("state, reason") == {
        A: ("fetched", "200"),
        f"{A}x": ("excluded", "sample: not drawn"),
        f"{A}y": ("queued", ""),
        f"{A}z": ("excluded", "sample: not drawn"),
    }
    assert queued_urls(await harness.claim()) == [f"{A}y"]
    assert await harness.store.sample_draw() == DRAW
    (row,) = await harness.store.query("SELECT url, probability, method, state FROM samples")
    assert row == {"url": f"{A}y", "probability": 1 / 3, "method": "uniform", "state": "queued"}


async def test_a_new_sample_takes_the_place_of_the_old(harness: Harness) -> None:
    await with_leaves(harness)
    numbers = [await harness.store.find(f"{A}{name}") for name in "xyz"]
    rows = [SampleRow(number, "s", walk, 0.5) for walk, number in enumerate(numbers) if number is not None]
    await harness.store.replace_sample(DRAW, rows, None, None)
    await harness.store.reopen_sample()
    draw = await harness.store.sample_draw()
    assert draw is not None
    assert not draw.stands
    await harness.store.replace_sample(DRAW, [rows[0], rows[0]], None, None)
    assert [row["walk"] for row in await harness.store.query("SELECT walk FROM samples")] == [0, 0]


async def test_a_mirror_that_changes_after_the_draw_admits_only_drawn_urls(harness: Harness) -> None:
    await harness.seed(f"{A}1", f"{A}2")
    (claim,) = await harness.claim()
    site, copy = next(iter(claim.sites)), robots()
    await harness.news(site, A[:-1], copy, main_site="http://main.test")
    await harness.finish(claim, *(excluded(queued, "mirror of http://main.test") for queued in claim.urls))
    number = await harness.store.find(f"{A}2")
    assert number is not None
    await harness.store.replace_sample(DRAW, [SampleRow(number, "", None, 0.5)], 1, None)
    harness.max_depth = 1
    await harness.news(site, A[:-1], copy)
    assert await harness.urls("state, reason") == {
        f"{A}1": ("excluded", "sample: not drawn"),
        f"{A}2": ("queued", ""),
    }
    assert queued_urls(await harness.claim()) == [f"{A}2"]


async def test_there_is_none_at_first(harness: Harness) -> None:
    assert await harness.store.sample_draw() is None
    await harness.store.reopen_sample()
    assert await harness.store.sample_draw() is None
