"""Of the near-duplicates that were found, a search shows the best one, and the others on request."""

from __future__ import annotations

import pytest

from crawler.duplicates.find import find_duplicates
from crawler.errors import UsageError
from crawler.search import results
from crawler.search.page_view import Asked, last_page_of, render
from crawler.search.results import Filters, SearchResult, search
from tests.contract.visits import NOW
from tests.unit.search.crawled import Crawled, Said

A = "http://a.test"
TEXT = " ".join(f"word{n}" for n in range(60))
COPIES = [f"{A}/{n}" for n in range(6)]


async def web(crawl: Crawled) -> None:
    """Six copies, of which one has the words of the query in its title, and a page of its own."""
    pages = {url: Said(f"{TEXT} gnu <!-- {url} -->", "Old gnu" if url == COPIES[4] else "Old") for url in COPIES}
    await crawl.indexed({**pages, f"{A}/other": Said("another gnu")})


async def look(crawl: Crawled, **more: object) -> SearchResult:
    return await search(crawl.harness.store, crawl.db, "gnu", now=NOW, **more)  # type: ignore[arg-type]


async def test_the_best_page_of_a_cluster_is_shown(crawl: Crawled, monkeypatch: pytest.MonkeyPatch) -> None:
    await web(crawl)
    assert {hit.similar for hit in (await look(crawl)).hits} == {0}, "before they are looked for"
    await find_duplicates(crawl.harness.store, crawl.texts)
    await crawl.index()
    monkeypatch.setattr(results, "CANDIDATES", 3)  # one cluster fills them
    found = await look(crawl, limit=2)
    assert {hit.url: hit.similar for hit in found.hits} == {COPIES[4]: 5, f"{A}/other": 0}
    assert (found.total, found.ranked) == (7, 7), "near-duplicates included"
    similar = await look(crawl, filters=Filters(similar_to=COPIES[0]))
    assert {hit.url for hit in similar.hits} == set(COPIES)
    for url in (f"{A}/other", f"{A}/unknown", "no url"):
        with pytest.raises(UsageError, match="near-duplicates"):
            await look(crawl, filters=Filters(similar_to=url))


async def test_pages_with_some_of_the_words_are_folded_too(crawl: Crawled) -> None:
    await web(crawl)
    await find_duplicates(crawl.harness.store, crawl.texts)
    await crawl.index()
    found = await search(crawl.harness.store, crawl.db, "gnu another", now=NOW)
    assert [(hit.url == f"{A}/other", hit.all_words) for hit in found.hits] == [(True, True), (False, False)]


async def test_a_page_of_results_that_is_not_full_is_the_last_one(crawl: Crawled) -> None:
    await crawl.indexed({f"{A}/{n}": Said(f"{TEXT} gnu <!-- {n} -->") for n in range(12)})
    assert last_page_of(Asked("gnu"), await look(crawl)) == 2
    await find_duplicates(crawl.harness.store, crawl.texts)
    await crawl.index()
    assert last_page_of(Asked("gnu"), await look(crawl)) == 1, "eleven pages are not shown"
    assert last_page_of(Asked("gnu", page=2), await look(crawl, offset=10)) == 2


async def test_the_search_page_leads_to_similar_pages(crawl: Crawled) -> None:
    await web(crawl)
    await find_duplicates(crawl.harness.store, crawl.texts)
    await crawl.index()
    page = render(Asked("gnu"), await look(crawl), name="x", pages=7, sites=1)
    assert "?q=gnu&amp;similar_to=http%3A%2F%2Fa.test%2F4" in page
    assert "5 similar pages" in page
    asked = Asked.of({"q": "gnu", "similar_to": COPIES[4]})
    assert asked.filters(NOW) == Filters(similar_to=COPIES[4])
    assert "similar pages" not in render(
        asked, await look(crawl, filters=asked.filters(NOW)), name="x", pages=7, sites=1
    )
