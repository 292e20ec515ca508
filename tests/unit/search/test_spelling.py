"""Suggestions of spellings, from the words of the index; on both databases."""

from __future__ import annotations

import pytest

from crawler.search.build_index import empty_index
from tests.unit.search.crawled import Crawled, Said

A = "http://a.test"
PAGES: dict[str, Said | str] = {
    f"{A}/1": Said("A parser splits C++ and C# sources into tokens. Encyclopædia Café.", "Parsers"),
    f"{A}/2": Said("The parser builds trees; a marker is no parser.", "Trees"),
    f"{A}/3": Said("Python threads and asynchronous generators.", "Threads"),
    f"{A}/4": Said("Python pythons 名前ベース.", "Snakes"),
}


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("parsre", "parser"),
        ("aprser", "parser"),
        ("PARSRE trees", "parser trees"),
        ("tree parsre", "tree parser"),
        ("asynchronus generator", "asynchronous generator"),
        ('"the parser" thredas', '"the parser" threads'),
        ("pyhton -snake", "python -snake"),
        ("encyclopedia", "encyclopædia"),
        ("cafee", "cafe"),
        ("parser python", None),  # both are known, though on no page together
        ("zzzzzz", None),
        ("zz parsre", "zz parser"),
        ("pars* zzzzzz", None),
        ("std::vector", None),
        ("名前ベースス", None),
        ("-parsre tokens", None),
        ("c++ parsre", "c++ parser"),
    ],
)
async def test_words_that_no_page_has(crawl: Crawled, words: str, meant: str | None) -> None:
    await crawl.visit(PAGES)
    await crawl.index()
    assert (await crawl.search(words)).suggestion == meant


async def test_only_the_first_unknown_words_are_compared(crawl: Crawled) -> None:
    """A request to a public search page takes a bounded time."""
    await crawl.visit(PAGES)
    await crawl.index()
    meant = (await crawl.search(" ".join(["parsre"] * 9))).suggestion
    assert meant == " ".join(["parser"] * 8 + ["parsre"])


async def test_the_words_of_a_changed_index(crawl: Crawled) -> None:
    await crawl.visit(PAGES)
    await crawl.index()
    await crawl.visit({f"{A}/5": Said("A lexicographer.", "Dictionaries")})
    await crawl.index()
    assert (await crawl.search("lexicografer")).suggestion == "lexicographer"


async def test_an_emptied_index_has_no_words(crawl: Crawled) -> None:
    await crawl.visit(PAGES)
    await crawl.index()
    assert await empty_index(crawl.db)
    assert await crawl.rows("SELECT count(*) FROM search_word") == [(0,)]
