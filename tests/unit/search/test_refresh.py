"""What ``crawler refresh-search`` computes."""

from __future__ import annotations

import pytest

from crawler.errors import UsageError
from crawler.search.refresh import refresh
from crawler.store.computed import Computed
from tests.contract.visits import request
from tests.unit.search.crawled import Crawled, Said

A = "http://a.test"


async def refreshed(crawl: Crawled) -> list[Computed]:
    return list(await refresh(crawl.db, crawl.harness.store, crawl.texts))


async def test_only_what_is_older_than_the_crawl_is_computed(crawl: Crawled) -> None:
    await crawl.visit({f"{A}/1": Said("A parser splits sources into tokens.", "Parsers")})
    assert await refreshed(crawl) == list(Computed)
    assert await crawl.urls("parser") == [f"{A}/1"]
    assert await refreshed(crawl) == []
    await crawl.visit({f"{A}/2": Said("The parser builds trees.", "Trees")})
    await crawl.harness.commit(requests=[request(1, "/2")])
    assert await refreshed(crawl) == list(Computed)
    assert len(await crawl.urls("parser")) == 2


async def test_an_index_that_was_not_completed_is_built(crawl: Crawled) -> None:
    await crawl.visit({f"{A}/1": Said("A parser splits sources into tokens.", "Parsers")})
    await refreshed(crawl)
    await crawl.change_index("UPDATE search_state SET under_way = 1")
    assert await refreshed(crawl) == [Computed.INDEX]
    await crawl.change_index("PRAGMA user_version = 1")
    assert await refreshed(crawl) == [Computed.INDEX]


async def test_a_search_does_without_ranks_if_their_extra_is_missing(
    crawl: Crawled, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise UsageError("needs scipy")

    monkeypatch.setattr("crawler.search.refresh.load_ranking", missing)
    await crawl.visit({f"{A}/1": Said("A parser splits sources into tokens.", "Parsers")})
    assert await refreshed(crawl) == [Computed.NEAR_DUPLICATES, Computed.INDEX]
    assert await refreshed(crawl) == []
