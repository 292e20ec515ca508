"""The numbers of URLs have room for the sites of 10^9 pages."""

from __future__ import annotations

import pytest

from crawler.store.keys import first_url_of, number_after, site_of, url_number
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
    assert url_number(LAST_SITE, "/") < 2**63, "a bigint"
    assert [site_of(url_number(site, "/x")) for site in (1, LAST_SITE)] == [1, LAST_SITE]


@pytest.mark.parametrize("site", [1, LAST_SITE])
def test_the_number_after_the_last_one_of_a_site_is_its_first(site: int) -> None:
    assert number_after(first_url_of(site) + 7) == first_url_of(site) + 8
    assert number_after(first_url_of(site + 1) - 1) == first_url_of(site)
