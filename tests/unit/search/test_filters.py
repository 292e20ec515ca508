"""Filters, facets, pages of results, sections, and queries that match very many pages."""

from __future__ import annotations

import pytest

from crawler.search import results, vocabulary
from crawler.search.results import Facet, Filters, search
from tests.contract.visits import NOW
from tests.unit.search.crawled import Crawled, Said

A, B = "http://a.test", "http://b.test"


async def test_filters_and_facets_agree(crawl: Crawled) -> None:
    pages = {f"{A}/{n}": Said(f'<html lang="{"de" if n else "en-GB"}"><p>word {n}') for n in range(3)}
    await crawl.indexed({**pages, f"{B}/": Said("word of b")})
    store = crawl.harness.store
    found = await search(store, crawl.db, "word", now=NOW + 100, facets=True)
    assert found.total == found.ranked == 4
    assert set(found.facets) == {
        Facet("site", A, 3), Facet("site", B, 1), Facet("language", "de", 2), Facet("language", "en", 1),
        Facet("depth", "0", 4), *(Facet("since", span, 4) for span in ("day", "week", "month", "year")),
    }  # fmt: skip
    for filters, total in [
        (Filters(language="de"), 2), (Filters(site=B), 1), (Filters(site=A, language="en"), 1),
        (Filters(depth=1), 0), (Filters(since=NOW - 1), 4), (Filters(since=NOW + 1e6), 0),
    ]:  # fmt: skip
        assert (await search(store, crawl.db, "word", now=NOW, filters=filters)).total == total


async def test_pages_of_results_have_every_hit_once(crawl: Crawled) -> None:
    await crawl.indexed({f"{A}/{n}": Said(f"{'red' if n < 5 else ''} green {n}") for n in range(12)})
    store = crawl.harness.store
    whole = await search(store, crawl.db, "red green", now=NOW, limit=12)
    parts = [await search(store, crawl.db, "red green", now=NOW, limit=4, offset=offset) for offset in (0, 4, 8, 12)]
    assert [hit.url for part in parts for hit in part.hits] == [hit.url for hit in whole.hits]
    assert (whole.total, whole.some, parts[1].some, len(whole.hits)) == (5, 7, 7, 12)


async def test_a_hit_leads_to_the_section_of_its_excerpt(crawl: Crawled) -> None:
    filler = "filler " * 80
    body = f"<h1>Page</h1><p>{filler}<h2 id='the part'>A part</h2><p>{filler} needle</p><h2 id=z>Last</h2><p>{filler}"
    await crawl.indexed({f"{A}/page": Said(body)})
    (hit,) = (await crawl.search("needle")).hits
    assert hit.section is not None
    assert (hit.section.heading, hit.section.url) == ("A part", f"{A}/page#the%20part")
    (hit,) = (await crawl.search("page")).hits
    assert hit.section is None, "this heading has no name"


async def test_of_very_many_pages_those_with_the_words_in_the_head_are_ranked(
    crawl: Crawled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "BROAD", 5)
    monkeypatch.setattr(results, "CANDIDATES", 2)
    pages = {f"{A}/{n}": Said(f"word {n}", "word" if n < 3 else "Other") for n in range(9)}
    await crawl.indexed(
        {**pages, f"{A}/not": Said("word but excluded", "word"), f"{A}/none": Said("nothing", "Nothing")}
    )
    store = crawl.harness.store
    for words in ("word", "word -excluded"):
        found = await search(store, crawl.db, words, now=NOW, limit=2, facets=True)
        assert (found.total, found.is_more, found.ranked) == (5, True, 4 if words == "word" else 3)
        assert {hit.title.text for hit in found.hits} == {"word"}
        assert Facet("site", A, found.ranked) in found.facets
    found = await search(store, crawl.db, "word 3", now=NOW)
    assert (found.total, found.is_more, found.ranked) == (1, False, 1)


async def test_if_few_pages_have_the_words_in_the_head_those_with_most_links_are_ranked_too(
    crawl: Crawled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "BROAD", 3)
    pages = {
        f"{A}/{n}": Said(f"word {n}", "word" if n == 9 else "Other", {f"{A}/{k}": "here" for k in range(n % 3)})
        for n in range(10)
    }
    await crawl.indexed(pages)
    store = crawl.harness.store
    found = await search(store, crawl.db, "word", now=NOW)
    assert (found.total, found.is_more, found.ranked) == (3, True, 4)
    assert found.hits[0].url == f"{A}/9"
    assert {f"{A}/0", f"{A}/1"} < {hit.url for hit in found.hits}


async def test_a_prefix_of_very_many_words_stands_for_the_most_frequent(
    crawl: Crawled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vocabulary, "WIDE", 8)
    monkeypatch.setattr(vocabulary, "MOST_WORDS", 2)
    pages = {f"{A}/{n}": Said(f"{'token' if n else 'toad'} {'tone' * (n > 3)} {n}") for n in range(9)}
    await crawl.indexed({**pages, f"{A}/name": Said("tools")})
    assert len(await crawl.urls("to*")) == 8, "token, tone"
    assert await crawl.urls("too*") == [f"{A}/name"]
    assert len(await crawl.urls("to* -token")) == 0
    monkeypatch.setattr(vocabulary, "WIDE", 100)
    assert len(await crawl.urls("to*")) == 10


async def test_prefixes_in_phrases_and_exclusions_are_bounded_too(
    crawl: Crawled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vocabulary, "WIDE", 8)
    await crawl.indexed({f"{A}/{n}": Said(f"the a{n} word") for n in range(10)})
    with pytest.raises(vocabulary.TooWide, match=r"-a\* leaves out the pages of very many words"):
        await crawl.search("word -a*")
    monkeypatch.setattr(vocabulary, "MOST_WORDS", 2)
    assert set(await crawl.urls('"the a"*')) == {f"{A}/0", f"{A}/1"}, "the first of equally frequent words"
    assert await crawl.urls('"the a9"*') == [f"{A}/9"]
