"""The numbers of URLs: room for the sites of 10^9 pages, and paths that have the same hash."""

from __future__ import annotations

import logging
from collections import defaultdict

import pytest

from crawler.store import keys
from crawler.store.keys import PROBES, first_url_of, new_key, numbers_from, site_of, url_number
from crawler.store.statements import Queries
from tests.contract.visits import Harness, fetched

A, B = "http://a.test/", "http://b.test/"
LAST_SITE = 2**31 - 1
#: The fewest pages that a crawl had for each site, with the sites that it only met in links (docs/decisions/0012).
PAGES_A_SITE = 2.7


async def number_sites_from(harness: Harness, number: int) -> None:
    """The store has so many sites less one already."""
    if harness.store.dialect == "postgres":
        await harness.store.query(f"ALTER TABLE site ALTER COLUMN id RESTART WITH {number}")
    else:
        await harness.seed("http://before.test/")
        for change in (
            f"UPDATE site SET id = {number - 1}",
            "DELETE FROM frontier",
            "DELETE FROM url",
            "UPDATE politeness_group SET ready_at = NULL",
        ):
            await harness.store.query(change)


async def test_a_crawl_with_the_last_site_numbers_keeps_its_urls_apart(harness: Harness) -> None:
    await number_sites_from(harness, LAST_SITE - 1)
    await harness.seed(A, B)
    for claim in await harness.claim():
        await harness.finish(claim, *(fetched(queued, [f"{A}1", f"{B}1"]) for queued in claim.urls))
    assert await harness.urls("state, site") == {
        A: ("fetched", A[:-1]),
        B: ("fetched", B[:-1]),
        f"{A}1": ("queued", A[:-1]),
        f"{B}1": ("queued", B[:-1]),
    }
    assert len(await harness.store.query("SELECT * FROM links")) == 4
    rows = await harness.store.query("SELECT site, url_id FROM urls")
    assert {row["site"]: site_of(row["url_id"]) for row in rows} == {A[:-1]: LAST_SITE - 1, B[:-1]: LAST_SITE}
    assert {queued.url for claim in await harness.claim() for queued in claim.urls} == {f"{A}1", f"{B}1"}
    assert await harness.store.find(f"{B}1") is not None


def test_there_are_sites_for_a_thousand_million_pages() -> None:
    assert LAST_SITE * PAGES_A_SITE > 5e9
    assert url_number(LAST_SITE, "/x", 0) < 2**63, "a bigint"
    assert [site_of(url_number(site, "/x", -1)) for site in (1, LAST_SITE)] == [1, LAST_SITE]


async def test_the_front_page_is_requested_first_of_its_depth(harness: Harness) -> None:
    await harness.seed(*(f"{A}{n}" for n in range(20)), A)
    (claim,) = await harness.claim(per_group=1)
    assert [queued.url for queued in claim.urls] == [A]


@pytest.mark.parametrize("site", [1, LAST_SITE])
def test_the_number_after_the_last_one_of_a_site_is_its_first(site: int) -> None:
    assert numbers_from(first_url_of(site) + 7) == [first_url_of(site) + 7 + step for step in range(PROBES)]
    assert numbers_from(first_url_of(site + 1) - 1)[:2] == [first_url_of(site + 1) - 1, first_url_of(site)]


def test_paths_that_collide_under_one_key_do_not_under_another() -> None:
    paths = defaultdict[int, list[str]](list)
    for n in range(200_000):
        paths[url_number(1, f"/{n}", 0)].append(f"/{n}")
    colliding = [same for same in paths.values() if len(same) > 1]
    assert colliding, "there are enough paths"
    for key in (1, -(2**63), 2**63 - 1):
        assert all(len({url_number(1, path, key) for path in same}) == len(same) for same in colliding)
    assert -(2**63) <= new_key() < 2**63, "a bigint"


async def test_a_store_has_a_key_of_its_own_and_keeps_it(harness: Harness) -> None:
    assert await harness.store.query("SELECT * FROM hash_key") == []
    await harness.seed(A)
    (made,) = await harness.store.query("SELECT * FROM hash_key")
    await harness.reopen()
    await harness.seed(A, B)
    assert await harness.store.query("SELECT * FROM hash_key") == [made]
    (site,) = await harness.store.query("SELECT id FROM site WHERE name = 'http://a.test'")
    assert await harness.store.find(A) == url_number(site["id"], "/", made["key"])


@pytest.fixture
def all_collide(monkeypatch: pytest.MonkeyPatch) -> None:
    """All paths have the same hash, as if a site knew the key of the store."""
    monkeypatch.setattr(keys, "xxh3_64_intdigest", lambda path, key: 7 << 32)


@pytest.mark.usefixtures("all_collide")
async def test_a_path_is_left_out_if_others_have_all_its_numbers(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    start = f"{A}start"
    await harness.seed(start)
    (claim,) = await harness.claim()
    found = [f"{A}{n}" for n in range(PROBES + 9)]
    with caplog.at_level(logging.WARNING, "crawler.store"):
        await harness.finish(claim, fetched(claim.urls[0], [*found, B]))
    assert "10 URLs were left out: 64 other paths" in caplog.text
    urls = await harness.urls()
    assert urls == {start: "fetched", B: "queued"} | dict.fromkeys(found[: PROBES - 1], "queued")
    links = {row["target"] for row in await harness.store.query("SELECT target FROM links")}
    assert links == set(urls) - {start}
    assert [await harness.store.find(url) is None for url in found] == [False] * (PROBES - 1) + [True] * 10
    await harness.seed(*found)  # found again
    assert await harness.urls() == urls


@pytest.mark.usefixtures("all_collide")
async def test_colliding_paths_add_no_statements_to_a_commit(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    statements: list[str] = []
    fetch = Queries.fetch

    async def counting(self: Queries, statement: str, /, **parameters: object) -> list[object]:
        statements.append(statement)
        return await fetch(self, statement, **parameters)

    await harness.seed(A, f"{A}few", f"{A}many")
    (claim,) = await harness.claim()
    monkeypatch.setattr(Queries, "fetch", counting)
    counts = []
    for queued, links in zip(claim.urls, (3, 8, 8000), strict=True):
        statements.clear()
        await harness.commit(fetched(queued, [f"{A}{links}/{n}" for n in range(links)], body=b"%d" % links))
        counts.append(statements.count("known_urls"))
    assert counts == [2, 2, 2]
