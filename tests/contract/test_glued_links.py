"""The view ``links_glued`` and the mirrors found by content."""

from __future__ import annotations

import pytest

from crawler.frontier.decide import Outcome
from crawler.frontier.offers import Offer
from crawler.model import State
from crawler.store.rows import AgentLine, RobotsNews
from tests.contract.visits import NOW, Harness, deferred, fetched, robots
from tests.reasons import reason
from tests.records import replace

A, B, C = "http://a.test", "http://b.test", "http://c.test"


async def claims(harness: Harness, **main_sites: str) -> None:
    """Host lines: ``a=B`` has a.test name b.test as its main site."""
    for name, main_site in main_sites.items():
        site = f"http://{name}.test"
        await harness.news(await harness.site_number(site), site, robots(), main_site=main_site)


async def visit(
    harness: Harness, links: dict[str, list[str]], canonical: dict[str, str], mirrors: dict[str, str]
) -> None:
    """Fetch everything queued: pages with these links and canonical URLs; those of a mirror end as such."""
    await harness.seed(*links)
    while found := await harness.claim():
        for queued in [queued for claim in found for queued in claim.urls]:
            target = canonical.get(queued.url)
            site = queued.url[: queued.url.index("/", 8)]
            if main := mirrors.get(site):
                target = main + queued.url.removeprefix(site)
                offers = (Offer(target, queued.depth),)
                outcome = Outcome(
                    queued, State.EXCLUDED, reason(f"mirror of {main} (Host)"), offers=offers, target=target
                )
            else:
                outcome = fetched(queued, links.get(queued.url, []), canonical_url=target)
                if target is not None:
                    outcome = replace(outcome, target=target, offers=(*outcome.offers, Offer(target, queued.depth)))
            await harness.commit(outcome)
        await harness.commit(released=[claim.group_id for claim in found])


async def edges(harness: Harness, view: str = "links_glued") -> set[tuple[str, str]]:
    rows = await harness.store.query(f"SELECT source, target, anchor, rel FROM {view}")
    assert len({(row["source"], row["target"]) for row in rows}) == len(rows), "once each"
    return {(row["source"], row["target"]) for row in rows}


async def test_mirrors_and_duplicates_are_folded_and_the_links_kept_as_they_were(harness: Harness) -> None:
    links = {
        f"{A}/": [f"{B}/x", f"{C}/x", f"{A}/copy"],
        f"{A}/copy": [f"{A}/", f"{B}/x"],
        f"{C}/x": [f"{A}/z"],
    }
    await claims(harness, b=C)
    await visit(harness, links, {f"{A}/copy": f"{A}/original"}, {B: C})
    assert await edges(harness) == {
        (f"{A}/", f"{C}/x"),
        (f"{A}/", f"{A}/original"),
        (f"{A}/original", f"{A}/"),
        (f"{A}/original", f"{C}/x"),
        (f"{C}/x", f"{A}/z"),
    }
    assert await edges(harness, "links") == {(source, target) for source in links for target in links[source]}


async def test_a_canonical_url_that_was_not_fetched_folds_nothing(harness: Harness) -> None:
    """Neither one outside the scope, nor one that failed: the page would lose its links to a URL without content."""
    links = {f"{A}/": [f"{A}/page"], f"{A}/page": [f"{A}/"]}
    await harness.seed(*links)
    (claim,) = await harness.claim()
    outcomes = []
    for queued in claim.urls:
        outcome = fetched(queued, links[queued.url], canonical_url=f"{B}/page")
        offer = Offer(f"{B}/page", queued.depth, reason("scope: other domain"))
        is_page = queued.url.endswith("page")
        outcomes.append(replace(outcome, target=offer.url, offers=(*outcome.offers, offer)) if is_page else outcome)
    await harness.finish(claim, *outcomes)
    assert await edges(harness) == {(f"{A}/", f"{A}/page"), (f"{A}/page", f"{A}/")}


async def test_chains_of_mirrors_and_canonical_urls_are_followed_to_their_end(harness: Harness) -> None:
    """Mirrors: a → b → c. Canonical URLs on c: /x → /y → /z."""
    await claims(harness, a=B, b=C)
    canonical = {f"{C}/x": f"{C}/y", f"{C}/y": f"{C}/z"}
    await visit(harness, {"http://hub.test/": [f"{A}/x", f"{B}/x", f"{C}/x", f"{C}/y"]}, canonical, {A: B, B: C})
    assert await edges(harness) == {("http://hub.test/", f"{C}/z")}


@pytest.mark.parametrize("length", [2, 3, 7])
async def test_cycles_of_canonical_urls_are_ignored(harness: Harness, length: int) -> None:
    ring = [f"{A}/{n}" for n in range(length)]
    links = {"http://hub.test/": [*ring, f"{A}/astray"]}
    canonical = dict(zip(ring, [*ring[1:], ring[0]], strict=True)) | {f"{A}/astray": ring[0]}
    await visit(harness, links, canonical, {})
    expected = {("http://hub.test/", url) for url in [*ring, f"{A}/astray"]}
    assert await edges(harness) == expected


async def test_cycles_of_host_lines_are_ignored(harness: Harness) -> None:
    await claims(harness, a=B, b=A, c=A)
    await visit(harness, {"http://hub.test/": [f"{A}/x", f"{B}/x", f"{C}/x"]}, {}, {})
    assert await edges(harness) == {("http://hub.test/", f"{site}/x") for site in (A, B, C)}
    rows = await harness.store.query("SELECT site, leads_to FROM mirrors")
    assert {row["site"]: row["leads_to"] for row in rows} == {A: None, B: None, C: None}


async def test_an_unrequested_url_of_a_mirror_is_mapped_to_its_main_site(harness: Harness) -> None:
    """As where the depth ends. But only if the crawl has taken up the main site, of which some URL tells."""
    await claims(harness, a=B, b=C)
    await harness.seed("http://hub.test/")
    (claim,) = await harness.claim()
    too_deep = {f"{A}/deep": "depth: 1 links from a seed, limits.max_depth is 0"}
    await harness.finish(claim, fetched(claim.urls[0], [f"{A}/deep", f"{A}/x"], refusals=too_deep))
    assert await edges(harness) == {("http://hub.test/", f"{A}/deep"), ("http://hub.test/", f"{A}/x")}
    await visit(harness, {}, {}, {A: C})
    assert await edges(harness) == {("http://hub.test/", f"{C}/deep"), ("http://hub.test/", f"{C}/x")}


async def store_sites(harness: Harness, sites: dict[str, dict[str, bytes | None]]) -> list[tuple[object, ...]]:
    await harness.seed(*(f"{site}{path}" for site, pages in sites.items() for path in pages))
    while found := await harness.claim():
        for claim in found:
            outcomes = []
            for queued in claim.urls:
                site = queued.url[: queued.url.index("/", 8)]
                outcomes.append(fetched(queued, body=sites[site][queued.url.removeprefix(site)]))
            await harness.finish(claim, *outcomes)
    count = await harness.store.find_content_mirrors(NOW)
    rows = await harness.store.query("SELECT site, main_site, evidence, sample, confidence FROM mirrors ORDER BY site")
    assert count == len(rows)
    return [tuple(row.values()) for row in rows]


def pages(count: int, *, mark: str = "", first: int = 0) -> dict[str, bytes | None]:
    return {f"/{n}": f"{mark}{n}".encode() for n in range(first, first + count)}


async def test_sites_with_the_same_pages_are_found(harness: Harness) -> None:
    alike = pages(40)
    found = await store_sites(harness, {A: alike, B: {**alike, "/more": b"more"}, C: alike})
    assert [(site, *rest) for site, _, *rest in found] == [(A, "content", 40, 0.9366), (C, "content", 40, 0.9366)]
    assert found[0][1] == B, "the one with more pages"
    assert (await harness.store.heard()).mirrors == [], "nothing is done about it"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(pages(9), pages(9), id="too few to say"),
        pytest.param(pages(20), pages(20), id="too few to be sure of nine in ten"),
        pytest.param({**pages(40), **pages(9, mark="a", first=40)}, {**pages(40), **pages(9, first=40)}, id="8 in 10"),
        pytest.param(
            {**pages(40), **{f"/a{n}": b"%d" % n for n in range(90)}},
            {**pages(40), **{f"/b{n}": b"%d" % n for n in range(90)}},
            id="the same manual",
        ),
        pytest.param(
            dict.fromkeys(pages(60), b"enable scripts"), dict.fromkeys(pages(60), b"enable scripts"), id="one body"
        ),
        pytest.param(dict.fromkeys(pages(60)), dict.fromkeys(pages(60)), id="no bodies"),
        pytest.param(pages(60), pages(60, first=1000), id="other paths"),
    ],
)
async def test_sites_that_share_a_few_pages_are_no_mirrors(
    harness: Harness, one: dict[str, bytes | None], other: dict[str, bytes | None]
) -> None:
    assert await store_sites(harness, {A: one, B: other}) == []


async def test_a_declared_mirror_takes_precedence_over_a_found_one(harness: Harness) -> None:
    await claims(harness, a=C)
    found = await store_sites(harness, {A: pages(40), B: {**pages(40), "/more": b"more"}})
    assert found == [(A, C, "host", None, None)]


async def test_agent_servers_are_those_of_the_robots_txt_in_force(harness: Harness) -> None:
    site = await harness.site_number(A)
    lines = (AgentLine(2, "/", "atp://fict.org:831"), AgentLine(3, "/home/", None))

    async def take(news: RobotsNews) -> list[tuple[object, ...]]:
        await harness.commit(robots=[news])
        rows = await harness.store.query("SELECT site, path, agent_server, line FROM agent_servers ORDER BY line")
        return [tuple(row.values()) for row in rows]

    both = [(A, "/", "atp://fict.org:831", 2), (A, "/home/", None, 3)]
    assert await take(RobotsNews(site, A, robots(), None, None, agent_servers=lines)) == both
    assert await take(RobotsNews(site, A, deferred(NOW, NOW + 60), None, None)) == both, "until it can be had again"
    assert await take(RobotsNews(site, A, robots(b"2"), None, None, agent_servers=lines[:1])) == both[:1]
    assert await take(RobotsNews(site, A, robots(b"3"), None, None)) == []
