"""URLs that are held back until a sample is drawn, and the sample itself."""

from __future__ import annotations

import pytest

from crawler.frontier.hints import Hint, HintKind
from crawler.frontier.revisit import RevisitSettings
from crawler.store.rows import ClaimLimits, CommitBatch, SampleDraw, SampleRow, UrlLimits
from tests.contract.visits import NOW, Harness, excluded, fetched, queued_urls, redirected, robots

DAY_S = 86_400.0
REVISITS = RevisitSettings(True, first_s=DAY_S, min_interval_s=60.0, max_interval_s=30 * DAY_S)

A = "http://a.test/"
DRAW = SampleDraw("uniform", "crawl", 1, 7, NOW, 3, 0, follows=False, held_from=1)


async def with_leaves(harness: Harness) -> list[str]:
    """A start page that links to three; what may be claimed while such pages are held back."""
    await harness.seed(A)
    (claim,) = await harness.claim()
    links = [f"{A}x", f"{A}y", f"{A}z"]
    held = UrlLimits(below_depth=1)
    outcome = fetched(claim.urls[0], links)
    turned = await harness.store.commit(
        CommitBatch(NOW, held, claim_limits=ClaimLimits(10), outcomes=[outcome], released=[claim.group_id])
    )
    return queued_urls(turned.claims)


async def draw(harness: Harness, *names: str, of: SampleDraw = DRAW) -> None:
    """Store the sample of the pages with these names."""
    numbers = [await harness.store.find(f"{A}{name}") for name in names]
    rows = [SampleRow(number, "", None, 1 / 3) for number in numbers if number is not None]
    assert len(rows) == len(names)
    await harness.store.samples.replace(of, rows, None)


async def test_held_back_urls_are_queued_but_never_claimed(harness: Harness) -> None:
    assert await with_leaves(harness) == []
    assert await harness.store.next_ready() is None
    assert await harness.store.queued_count() == 3
    await harness.store.prepare(None)
    assert (
        await harness.store.commit(CommitBatch(NOW, UrlLimits(below_depth=1), claim_limits=ClaimLimits(10)))
    ).claims[0].urls == []


async def test_a_drawn_url_is_claimed_and_the_others_are_excluded(harness: Harness) -> None:
    await with_leaves(harness)
    await draw(harness, "y")
    assert await harness.urls("state, reason") == {
        A: ("fetched", "200"),
        f"{A}x": ("excluded", "sample: not drawn"),
        f"{A}y": ("queued", ""),
        f"{A}z": ("excluded", "sample: not drawn"),
    }
    assert queued_urls(await harness.claim()) == [f"{A}y"]
    assert await harness.store.samples.drawn() == DRAW._replace(number=1)
    (row,) = await harness.store.query("SELECT url, probability, method, state FROM samples")
    assert row == {"url": f"{A}y", "probability": 1 / 3, "method": "uniform", "state": "queued"}


async def test_a_new_sample_takes_the_place_of_the_old(harness: Harness) -> None:
    await with_leaves(harness)
    await draw(harness, *"xyz")
    await harness.store.samples.reopen()
    old = await harness.store.samples.drawn()
    assert old is not None
    assert not old.stands
    await draw(harness, "x", "x")
    assert [row["url"] for row in await harness.store.query("SELECT url FROM samples")] == [f"{A}x", f"{A}x"]


async def test_every_draw_leaves_a_trace(harness: Harness) -> None:
    await with_leaves(harness)
    for seed in (7, 8, 9):
        await harness.store.samples.replace(DRAW._replace(seed=seed, drawn_at=NOW + seed), [], None)
    draws = await harness.store.samples.draws()
    assert [(draw.number, draw.seed, draw.discarded_at, draw.stands) for draw in draws] == [
        (1, 7, NOW + 8, False),
        (2, 8, NOW + 9, False),
        (3, 9, None, True),
    ]
    assert await harness.store.samples.drawn() == draws[2]
    rows = await harness.store.query("SELECT number, seed, discarded_at FROM sample_draws ORDER BY number")
    assert [tuple(row.values()) for row in rows] == [(1, 7, NOW + 8), (2, 8, NOW + 9), (3, 9, None)]


async def test_a_mirror_that_changes_after_the_draw_admits_only_drawn_urls(harness: Harness) -> None:
    await harness.seed(f"{A}1", f"{A}2")
    (claim,) = await harness.claim()
    site, copy = next(iter(claim.sites)), robots()
    await harness.news(site, A[:-1], copy, main_site="http://main.test")
    await harness.finish(claim, *(excluded(queued, "mirror of http://main.test") for queued in claim.urls))
    await draw(harness, "2")
    harness.max_depth = 1
    await harness.news(site, A[:-1], copy)
    assert await harness.urls("state, reason") == {
        f"{A}1": ("excluded", "sample: not drawn"),
        f"{A}2": ("queued", ""),
    }
    assert queued_urls(await harness.claim()) == [f"{A}2"]


async def drawn(harness: Harness) -> None:
    """The start page is visited, ``y`` is the sample, and has been visited too."""
    await with_leaves(harness)
    await draw(harness, "y")
    (claim,) = await harness.claim()
    await harness.finish(claim, *(fetched(queued) for queued in claim.urls))


NOT_DRAWN = ("excluded", "sample")


async def test_a_revisit_queues_no_page_that_was_not_drawn(harness: Harness) -> None:
    await drawn(harness)
    harness.now += 2 * DAY_S
    assert await harness.store.revisits.queue_due(REVISITS, harness.now, harness.now, None) == 2
    (claim,) = await harness.claim()
    assert sorted(queued_urls([claim])) == [A, f"{A}y"]
    start = next(queued for queued in claim.urls if queued.url == A)
    await harness.finish(claim, fetched(start, [f"{A}x", f"{A}y", f"{A}z", f"{A}new"]))
    assert queued_urls(await harness.claim()) == [f"{A}y"]
    states = await harness.urls("state, reason_code")
    assert [states[f"{A}{name}"] for name in ("x", "z", "new")] == [NOT_DRAWN] * 3


async def test_a_shorter_path_does_not_bring_in_what_was_not_drawn(harness: Harness) -> None:
    """The pages at depth 2 were held back. A revisit finds one at depth 1, and another that is new."""
    await harness.seed(A)
    (claim,) = await harness.claim()
    await harness.finish(claim, fetched(claim.urls[0], [f"{A}hub"]))
    (claim,) = await harness.claim()
    held = UrlLimits(below_depth=2)
    leaves = fetched(claim.urls[0], [f"{A}x", f"{A}y"])
    await harness.store.commit(
        CommitBatch(NOW, held, claim_limits=ClaimLimits(10), outcomes=[leaves], released=[claim.group_id])
    )
    await draw(harness, "y", of=DRAW._replace(held_from=2))
    harness.now += 2 * DAY_S
    await harness.store.revisits.queue_due(REVISITS, harness.now, harness.now, None)
    (claim,) = await harness.claim()
    start = next(queued for queued in claim.urls if queued.url == A)
    await harness.finish(claim, fetched(start, [f"{A}hub", f"{A}x", f"{A}new"]))
    states = await harness.urls("state, reason_code")
    assert (states[f"{A}x"], states[f"{A}new"]) == (NOT_DRAWN, NOT_DRAWN)


@pytest.mark.parametrize("source", ["sitemap", "rup", "operator"])
async def test_a_hint_queues_no_page_that_was_not_drawn(harness: Harness, source: str) -> None:
    await drawn(harness)
    harness.now += 2 * DAY_S
    hints = [Hint(f"{A}{name}", HintKind.CHANGED, harness.now, source) for name in ("x", "y", "new")]
    await harness.store.revisits.apply_hints(hints, REVISITS, harness.now, refusal=lambda url, depth: None)
    await harness.store.revisits.queue_due(REVISITS, harness.now, harness.now, None)
    assert sorted(queued_urls(await harness.claim())) == [A, f"{A}y"]
    states = await harness.urls("state, reason_code")
    assert states[f"{A}x"] == NOT_DRAWN
    assert states.get(f"{A}new", NOT_DRAWN) == NOT_DRAWN


async def test_what_other_options_admit_is_not_requested_if_it_was_not_drawn(harness: Harness) -> None:
    await drawn(harness)
    numbers = [await harness.store.find(f"{A}{name}") for name in "xz"]
    await harness.store.requeue([number for number in numbers if number is not None])
    assert queued_urls(await harness.claim()) == []
    assert (await harness.urls("state, reason_code"))[f"{A}x"] == NOT_DRAWN


async def test_a_page_of_an_earlier_sample_is_not_visited_again(harness: Harness) -> None:
    await drawn(harness)
    await draw(harness, "z")
    harness.now += 2 * DAY_S
    assert await harness.store.revisits.queue_due(REVISITS, harness.now, harness.now, None) == 1
    assert (await harness.urls("state, reason_code"))[f"{A}y"] == ("fetched", "fetched")


async def test_the_target_of_a_drawn_redirect_is_requested(harness: Harness) -> None:
    await with_leaves(harness)
    await draw(harness, "y")
    (claim,) = await harness.claim()
    await harness.finish(claim, redirected(claim.urls[0], f"{A}x"))
    assert queued_urls(await harness.claim()) == [f"{A}x"]


async def test_if_the_crawl_requests_everything_a_sample_leaves_nothing_out(harness: Harness) -> None:
    await with_leaves(harness)
    await harness.store.samples.replace(DRAW._replace(held_from=None), [], None)
    (claim,) = await harness.claim()
    await harness.finish(claim, fetched(claim.urls[0], [f"{A}new"]))
    assert f"{A}new" in queued_urls(await harness.claim())


async def test_there_is_none_at_first(harness: Harness) -> None:
    assert await harness.store.samples.drawn() is None
    await harness.store.samples.reopen()
    assert await harness.store.samples.drawn() is None
