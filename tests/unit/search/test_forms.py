"""The forms of words in a search, and the languages of its pages."""

from __future__ import annotations

import pytest

from crawler.search.stems import stemmed_languages
from tests.unit.search.crawled import Crawled, Said

A = "http://a.test"
ENGLISH = {
    f"{A}/stories": Said("Stories about boxes.", "One"),
    f"{A}/story": Said("A story about a box.", "Two"),
    f"{A}/news": Said("The news of today.", "Three"),
    f"{A}/new": Said("A new day.", "Four"),
    f"{A}/store": Said("The store is open.", "Five"),
}
GERMAN = {
    f"{A}/haus": Said("<html lang=de>Das Haus steht.", "Eins"),
    f"{A}/hauses": Said("<html lang=de>Die Tür des Hauses.", "Zwei"),
}


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("story", ["/story", "/stories"]),  # the page with the word as typed is the first
        ("stories", ["/stories", "/story"]),
        ("boxes", ["/stories", "/story"]),
        ("news", ["/news"]),
        ('"story"', ["/story"]),
        ("stor*", ["/stories", "/store", "/story"]),
    ],
)
async def test_forms_of_a_word(crawl: Crawled, words: str, found: list[str]) -> None:
    await crawl.indexed(ENGLISH)
    urls = [url.removeprefix(A) for url in await crawl.urls(words)]
    assert urls == found or (words.endswith("*") and sorted(urls) == found)


async def test_forms_in_the_language_of_the_pages(crawl: Crawled) -> None:
    await crawl.indexed(GERMAN)
    assert await crawl.urls("haus") == [f"{A}/haus", f"{A}/hauses"]


async def test_a_form_is_no_spelling_mistake(crawl: Crawled) -> None:
    await crawl.indexed(ENGLISH)
    assert (await crawl.search("storied")).suggestion is None


async def test_words_in_a_row_rank_higher(crawl: Crawled) -> None:
    await crawl.indexed(
        {
            f"{A}/1": Said("Red apples and the green of trees.", "One"),
            f"{A}/2": Said("Trees with green apples, and the red of the sun.", "Two"),
        }
    )
    assert await crawl.urls("trees green apples") == [f"{A}/2", f"{A}/1"]


async def test_pages_in_another_language_than_most_rank_lower(crawl: Crawled) -> None:
    text = "mod_cache caches documents."
    await crawl.indexed(
        {
            f"{A}/fr": Said(f"<html lang=fr>{text}", "mod_cache"),
            f"{A}/en": Said(f"<html lang=en>{text} And more words.", "mod_cache module"),
            f"{A}/en/2": Said(f"<html lang=en>{text} With many other words in it.", "Other module mod_cache"),
        }
    )
    assert await crawl.urls("mod_cache") == [f"{A}/en", f"{A}/en/2", f"{A}/fr"]


def test_languages_that_few_pages_have_are_not_stemmed() -> None:
    assert stemmed_languages({"": 50, "de": 45, "fr": 3, "ja": 30}) == ["de", "en"]
    assert stemmed_languages({"de": 10}) == ["de"]
    assert stemmed_languages({}) == []
