"""The store's depths are breadth-first distances, whatever the web and the order in which its pages come."""

from __future__ import annotations

import asyncio
import random
import tempfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from crawler.frontier.decide import Outcome, Queued
from crawler.model import Link, State
from crawler.store.sqlite.store import SqliteStore
from tests.contract.visits import Harness, fetched, link, redirected

PAGES = 12
names = st.integers(0, PAGES - 1)
graphs = st.lists(st.lists(st.tuples(names, st.booleans()), max_size=4), min_size=PAGES, max_size=PAGES)
#: Page 4 is a redirect to 5. In the order of the seed, 2 links to it when it is being fetched by way of 1 and 3.
late_shortcut = [[(1, True), (2, True)], [(3, True)], [(4, True)], [(4, True)], *([] for _ in range(4, PAGES))]
redirects = st.dictionaries(st.integers(1, PAGES - 1), names, max_size=3)


def url(page: int) -> str:
    return f"http://h{page % 3}.test/{page}"


def distances(graph: list[list[tuple[int, bool]]], moved: dict[int, int], max_depth: int | None) -> dict[int, int]:
    """By relaxation until nothing changes: slow, and plainly right. A redirect costs nothing, nofollow is no way."""
    depths = {0: 0}
    while True:
        before = dict(depths)
        for page, depth in before.items():
            ways = [(moved[page], depth)] if page in moved else [(t, depth + 1) for t, follow in graph[page] if follow]
            for target, near in ways:
                if max_depth is None or near <= max_depth:
                    depths[target] = min(near, depths.get(target, near))
        if depths == before:
            return depths


@given(graphs, redirects, st.none() | st.integers(0, 4), st.integers())
@example(late_shortcut, {4: 5}, None, 11)
def test_depths_are_distances(
    graph: list[list[tuple[int, bool]]], moved: dict[int, int], max_depth: int | None, seed: int
) -> None:
    moved = {page: target for page, target in moved.items() if page != target}
    links = {url(n): _links(row) for n, row in enumerate(graph)}
    targets = {url(page): url(target) for page, target in moved.items()}
    got = asyncio.run(crawl(links, targets, max_depth, random.Random(seed)))
    assert got == {url(page): depth for page, depth in distances(graph, moved, max_depth).items()}


def _links(row: list[tuple[int, bool]]) -> list[str | Link]:
    """One link for each target, to follow where any is, as the page reader gives them."""
    follow: dict[int, bool] = {}
    for target, may in row:
        follow[target] = may or follow.get(target, False)
    return [link(url(target), follow=may) for target, may in follow.items()]


async def crawl(
    links: dict[str, list[str | Link]], targets: dict[str, str], max_depth: int | None, chance: random.Random
) -> dict[str, int]:
    """Visit in random order, now and then several at once; returns the depths of all that were visited."""
    with tempfile.TemporaryDirectory() as folder:
        harness = Harness(lambda: SqliteStore.open(Path(folder) / "crawl.db"))
        harness.max_depth = max_depth
        await harness.reopen()
        await harness.seed(url(0))
        while claims := await harness.claim():
            batch = [queued for claim in claims for queued in claim.urls]
            chance.shuffle(batch)
            batch = batch[: chance.randint(1, len(batch))]
            outcomes = [_visit(queued, links, targets, max_depth) for queued in batch]
            split = chance.randint(0, len(outcomes))
            await harness.commit(*outcomes[:split])
            await harness.commit(*outcomes[split:], released=[claim.group_id for claim in claims])
        rows = await harness.urls("state, depth")
        await harness.close()
        return {url: depth for url, (state, depth) in rows.items() if state in (State.FETCHED, State.REDIRECTED)}


def _visit(
    queued: Queued, links: dict[str, list[str | Link]], targets: dict[str, str], max_depth: int | None
) -> Outcome:
    if queued.url in targets:
        return redirected(queued, targets[queued.url])
    return fetched(queued, links[queued.url], max_depth=max_depth)
