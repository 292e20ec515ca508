"""Suggestions of spellings, from the words of the index."""

from __future__ import annotations

from tests.unit.search.crawled import Crawled, Said

A = "http://a.test"
PAGES: dict[str, Said | str] = {
    f"{A}/1": Said("A parser splits C++ and C# sources into tokens. Encyclopædia Café configurer.", "Parsers"),
    f"{A}/2": Said("The parser builds trees; a marker is no parser; a configurer.", "Trees"),
    f"{A}/3": Said("Python threads and asynchronous generators, configparser.", "Threads"),
    f"{A}/4": Said("Python pythons 名前ベース.", "Snakes"),
}


#: Words, and what is suggested in their place.
MEANT = {
    "parsre": "parser",
    "aprser": "parser",
    "PARSRE trees": "parser trees",
    "tree parsre": "tree parser",
    "asynchronus generator": "asynchronous generator",
    '"the parser" thredas': '"the parser" threads',
    "pyhton -snake": "python -snake",
    "encyclopedia": "encyclopædia",
    "caffé": "cafe",
    "parser python": None,  # both are known, though on no page together
    "zzzzzz": None,
    "zz parsre": "zz parser",
    "configparzer": "configparser",  # rarer than "configurer", and more alike
    "pars* zzzzzz": None,
    "std::vector": None,
    "名前ベースス": None,
    "tokens -parsre": None,
    "c++ parsre": "c++ parser",
}


async def test_words_that_no_page_has(crawl: Crawled) -> None:
    await crawl.indexed(PAGES)
    assert {words: (await crawl.search(words)).suggestion for words in MEANT} == MEANT


async def test_only_the_first_unknown_words_are_compared(crawl: Crawled) -> None:
    """A request to a public search page takes a bounded time."""
    await crawl.indexed(PAGES)
    meant = (await crawl.search(" ".join(["parsre"] * 9))).suggestion
    assert meant == " ".join(["parser"] * 8 + ["parsre"])


async def test_the_words_of_a_changed_index(crawl: Crawled) -> None:
    await crawl.indexed(PAGES)
    await crawl.indexed({f"{A}/5": Said("A lexicographer.", "Dictionaries")})
    assert (await crawl.search("lexicografer")).suggestion == "lexicographer"


async def test_the_words_of_a_page_that_is_no_more(crawl: Crawled) -> None:
    await crawl.indexed(PAGES)
    await crawl.change("UPDATE page SET noindex = 1, body_id = NULL WHERE title = 'Threads'")
    await crawl.index()
    assert (await crawl.search("asynchronus")).suggestion is None


async def test_a_misspelt_query_is_answered_with_its_correction(crawl: Crawled) -> None:
    await crawl.indexed(PAGES)
    found = await crawl.search("parsre trees")
    assert [hit.url for hit in found.hits if hit.all_words] == [f"{A}/2"]
    assert (found.suggestion, found.as_typed) == ("parser trees", '"parsre" trees')
    typed = await crawl.search('"parsre" trees')
    assert (typed.total, typed.suggestion) == (0, None), "quotes search for what was typed"
    found = await crawl.search("zz parsre")
    assert (found.total, found.suggestion, found.as_typed) == (0, "zz parser", None), "it would find nothing either"


async def test_a_misspelling_that_few_pages_have_is_corrected_too(crawl: Crawled) -> None:
    await crawl.indexed({f"{A}/{n}": Said(f"reduce {n}") for n in range(40)} | {f"{A}/x": Said("redcue")})
    found = await crawl.search("redcue")
    assert (found.total, found.suggestion, found.as_typed) == (40, "reduce", '"redcue"')
    assert (await crawl.search('"redcue"')).total == 1


async def test_words_with_signs_are_known_from_the_index(crawl: Crawled) -> None:
    await crawl.indexed(
        {f"{A}/git": Said("git merge --no-ff"), f"{A}/kill": Said("kill -9"), f"{A}/cat": Said("cat 9 ff")}
    )
    assert await crawl.urls("--no-ff") == [f"{A}/git"]
    assert await crawl.urls("kill -9") == [f"{A}/kill"]
    found = await crawl.search("9 -kill")
    assert ([hit.url for hit in found.hits], found.excluded) == ([f"{A}/cat"], ("kill",))
    assert (await crawl.search("kill -9")).excluded == ()
