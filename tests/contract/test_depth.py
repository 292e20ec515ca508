"""The depth of a URL is the length of its shortest known path, in whatever order pages arrive."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from crawler.frontier.decide import Outcome, Queued
from crawler.model import Link
from tests.contract.visits import Harness, excluded, fetched, link, queued_urls, redirected

SITE = "http://a.test/"


def url(name: str) -> str:
    return SITE + name


async def visit(harness: Harness, name: str, *links: str | Link) -> None:
    """Claim everything, visit the one URL, release."""
    claims = await harness.claim()
    queued = {queued.url: queued for claim in claims for queued in claim.urls}
    outcome = fetched(queued[url(name)], links, max_depth=harness.max_depth)
    await harness.commit(outcome, released=[claim.group_id for claim in claims])


async def test_a_shorter_path_to_a_fetched_page_lowers_the_depth_of_its_targets(harness: Harness) -> None:
    await harness.seed(url("s"))
    await visit(harness, "s", url("1"), url("x"))
    await visit(harness, "1", url("2"))
    await visit(harness, "2", url("3"))
    await visit(harness, "3", url("4"))
    assert (await harness.urls("depth"))[url("4")] == 4
    await visit(harness, "x", url("3"))
    assert await harness.urls("depth, discovered_from") == {
        url("s"): (0, None),
        url("1"): (1, url("s")),
        url("x"): (1, url("s")),
        url("2"): (2, url("1")),
        url("3"): (2, url("x")),
        url("4"): (3, url("3")),
    }


async def test_a_shorter_way_reaches_through_redirects(harness: Harness) -> None:
    await harness.seed(url("s"))
    await visit(harness, "s", url("1"), url("x"))
    await visit(harness, "1", url("moved"))
    (claim,) = await harness.claim()
    moved = next(queued for queued in claim.urls if queued.url == url("moved"))
    await harness.finish(claim, redirected(moved, url("there")))
    assert await harness.urls("state, depth, target") | {} == {
        url("s"): ("fetched", 0, None),
        url("1"): ("fetched", 1, None),
        url("x"): ("queued", 1, None),
        url("moved"): ("redirected", 2, url("there")),
        url("there"): ("queued", 2, None),
    }
    await harness.seed(url("moved"))
    depths = await harness.urls("depth")
    assert (depths[url("moved")], depths[url("there")]) == (0, 0)


@pytest.mark.parametrize(
    ("visited", "depth"),
    [(lambda queued: fetched(queued, [url("to")]), 3), (lambda queued: redirected(queued, url("to")), 2)],
    ids=["page", "redirect"],
)
async def test_a_url_found_to_be_nearer_while_it_was_being_fetched(
    visited: Callable[[Queued], Outcome], depth: int, harness: Harness
) -> None:
    await harness.seed(url("s"))
    await visit(harness, "s", url("1"), url("x"))
    await visit(harness, "1", url("2"))
    await visit(harness, "2", url("deep"))
    (claim,) = await harness.claim()
    claimed = {queued.url: queued for queued in claim.urls}
    assert claimed[url("deep")].depth == 3
    await harness.commit(fetched(claimed[url("x")], [url("deep")]))
    await harness.finish(claim, visited(claimed[url("deep")]))
    assert (await harness.urls("depth"))[url("to")] == depth


async def test_max_depth_admits_urls_that_a_shorter_path_reaches(harness: Harness) -> None:
    harness.max_depth = 2
    await harness.seed(url("s"))
    await visit(harness, "s", url("1"), url("x"))
    await visit(harness, "1", url("2"))
    await visit(harness, "2", url("3"))
    assert (await harness.urls("state, depth"))[url("3")] == ("excluded", 3)
    await visit(harness, "x", url("3"))
    assert (await harness.urls("state, reason, depth"))[url("3")] == ("queued", "", 2)
    assert queued_urls(await harness.claim()) == [url("3")]


async def test_a_url_too_deep_at_its_claim_is_kept_if_it_is_nearer_now(harness: Harness) -> None:
    await harness.seed(url("s"))
    await visit(harness, "s", url("1"), url("x"))
    await visit(harness, "1", url("2"))
    await visit(harness, "2", url("3"))
    harness.max_depth = 2  # going on with a smaller limit
    (claim,) = await harness.claim()
    claimed = {queued.url: queued for queued in claim.urls}
    near = fetched(claimed[url("x")], [url("3")])
    await harness.finish(claim, near, excluded(claimed[url("3")], "depth: 3 links from a seed, limits.max_depth is 2"))
    assert (await harness.urls("state, depth"))[url("3")] == ("queued", 2)
    assert queued_urls(await harness.claim()) == [url("3")]


async def test_a_link_to_follow_lifts_nofollow(harness: Harness) -> None:
    await harness.seed(url("s"))
    await visit(harness, "s", link(url("x"), follow=False), url("1"))
    assert (await harness.urls("state, depth"))[url("x")] == ("excluded", 1)
    await visit(harness, "1", url("x"))
    assert (await harness.urls("state, depth"))[url("x")] == ("queued", 2)


@pytest.mark.parametrize("nofollow_first", [True, False])
async def test_nofollow_and_depth_are_lifted_together_in_any_order(harness: Harness, nofollow_first: bool) -> None:
    harness.max_depth = 2
    await harness.seed(url("s"))
    await visit(harness, "s", url("1"), url("b"), url("near"))
    await visit(harness, "1", url("2"))
    steps: list[tuple[str, list[str | Link]]] = [("b", [link(url("x"), follow=False)]), ("2", [url("x")])]
    for name, links in steps if nofollow_first else reversed(steps):
        await visit(harness, name, *links)
    assert (await harness.urls())[url("x")] == "excluded"
    await visit(harness, "near", url("2"))
    assert (await harness.urls("depth"))[url("2")] == 2
    await harness.seed(url("2"))
    assert (await harness.urls("state, depth"))[url("x")] == ("queued", 1)


async def test_a_url_excluded_by_robots_txt_comes_nearer_with_the_page_that_links_to_it(harness: Harness) -> None:
    await harness.seed(url("s"))
    await visit(harness, "s", url("1"))
    await visit(harness, "1", url("2"))
    await visit(harness, "2", url("closed"))
    (claim,) = await harness.claim()
    closed = next(queued for queued in claim.urls if queued.url == url("closed"))
    await harness.finish(claim, excluded(closed, "robots: line 2"))
    assert (await harness.urls("state, depth"))[url("closed")] == ("excluded", 3)
    await harness.seed(url("2"))
    assert (await harness.urls("state, depth"))[url("closed")] == ("excluded", 1)


async def test_robots_exclusions_are_not_lifted_by_links(harness: Harness) -> None:
    await harness.seed(url("s"), url("x"))
    (claim,) = await harness.claim()
    claimed = {queued.url: queued for queued in claim.urls}
    await harness.finish(claim, excluded(claimed[url("x")], "robots: line 2"), fetched(claimed[url("s")], [url("x")]))
    assert await harness.urls() == {url("s"): "fetched", url("x"): "excluded"}
    assert await harness.claim() == []


async def test_links_into_a_wider_scope_lift_its_earlier_exclusions(harness: Harness) -> None:
    await harness.seed(url("s"))
    (claim,) = await harness.claim()
    refused = {url("x"): "scope: not yet"}
    await harness.finish(claim, fetched(claim.urls[0], [url("x"), url("1")], refusals=refused))
    assert (await harness.urls())[url("x")] == "excluded"
    await visit(harness, "1", url("x"))
    assert (await harness.urls("state, depth"))[url("x")] == ("queued", 1)


def _distances(pages: dict[str, list[str]], seed: str) -> dict[str, int]:
    depths, waiting = {seed: 0}, [seed]
    for page in waiting:
        for target in pages[page]:
            if target not in depths:
                depths[target] = depths[page] + 1
                waiting.append(target)
    return depths


@pytest.mark.parametrize(("seed", "max_depth"), [(0, None), (1, 2), (2, 4)])
async def test_in_any_order_every_url_gets_its_distance(harness: Harness, seed: int, max_depth: int | None) -> None:
    chance = random.Random(seed)
    names = [f"http://h{n % 3}.test/{n}" for n in range(40)]
    pages = {name: [*chance.sample(names, 2), names[(n + 1) % 40]] for n, name in enumerate(names)}
    harness.max_depth = max_depth

    def deepest_or_any(urls: list[Queued]) -> Queued:
        return max(urls, key=lambda queued: queued.depth) if chance.random() < 0.7 else chance.choice(urls)

    await harness.seed(names[0])
    await harness.crawl({page: list(links) for page, links in pages.items()}, deepest_or_any)
    distances = _distances(pages, names[0])
    got = await harness.urls("state, depth")
    fetched_at = {page: depth for page, (state, depth) in got.items() if state == "fetched"}
    assert fetched_at == {page: depth for page, depth in distances.items() if max_depth is None or depth <= max_depth}
    beyond = {page: depth for page, (state, depth) in got.items() if state == "excluded"}
    assert all(depth == distances[page] for page, depth in beyond.items())
