"""Texts are read once, within bounds, and go with their bodies."""

from __future__ import annotations

import pytest

from crawler.duplicates.find import find_duplicates
from crawler.page.texts import Content
from crawler.search.build_index import IndexSummary, build_index
from crawler.texts import kept
from crawler.texts.reader import TextReader, TextUnread
from tests.reading import TextsInProcess
from tests.unit.search.conftest import crawl
from tests.unit.search.crawled import Crawled, Said

__all__ = ["crawl"]

A, B = "http://a.test", "http://b.test"
KEPT = "SELECT body_id FROM main_texts_by_id"


async def test_a_text_is_read_once_for_all_commands(crawl: Crawled) -> None:
    await crawl.indexed({f"{A}/{n}": Said(f"word {n}") for n in range(3)})
    assert len(crawl.texts.sites) == 3
    await find_duplicates(crawl.harness.store, crawl.texts)
    await crawl.change("UPDATE page SET title = 'Changed'")
    assert (await crawl.index()).changed == 3
    assert len(crawl.texts.sites) == 3, "a title changes no text"


async def test_another_version_reads_again(crawl: Crawled, monkeypatch: pytest.MonkeyPatch) -> None:
    await crawl.indexed({f"{A}/": Said("word")})
    monkeypatch.setattr(kept, "VERSION", kept.VERSION + 1)
    await crawl.change("UPDATE page SET title = 'Changed'")
    await crawl.index()
    assert len(crawl.texts.sites) == 2


async def test_nothing_is_kept_without_its_body(crawl: Crawled) -> None:
    await crawl.indexed({f"{A}/": Said("word"), f"{A}/hidden": Said("word", noindex=True), f"{B}/": Said("other")})
    assert len(await crawl.rows(KEPT)) == 2
    await crawl.change("UPDATE page SET noindex = 1, body_id = NULL WHERE title IS NULL AND url_id = "
                       "(SELECT max(url_id) FROM page WHERE body_id IS NOT NULL)")  # fmt: skip
    await crawl.change("DELETE FROM body WHERE id NOT IN (SELECT body_id FROM page WHERE body_id IS NOT NULL)")
    assert len(await crawl.rows(KEPT)) == 1


async def test_the_text_of_an_earlier_version_goes_at_the_next_index(crawl: Crawled) -> None:
    await crawl.indexed({f"{A}/": Said("word")})
    await crawl.change("INSERT INTO body (sha256, data) SELECT ?, data FROM body", bytes(32))
    await crawl.change("UPDATE page SET body_id = (SELECT max(id) FROM body)")
    assert (await crawl.index()).changed == 1
    assert len(await crawl.rows(KEPT)) == 1


async def test_a_page_whose_content_is_beyond_the_bounds_is_found_by_its_text(
    crawl: Crawled, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def content(self: TextsInProcess, site: str, *document: object) -> Content | None:
        asked.append(site)
        raise TextUnread("too long")

    monkeypatch.setattr(TextsInProcess, "content", content)
    await crawl.visit({f"{A}/": Said("quarry")})
    assert await crawl.index() == IndexSummary(1, 1, 0)
    assert await crawl.urls("quarry") == [f"{A}/"]
    assert asked == [], "the index has no use for it"
    (row,) = await crawl.rows("SELECT body_id, charset, content_type, 'a' AS site FROM pages_by_id")
    document = kept.StoredDocument(*row)
    assert await kept.content_of(crawl.harness.store, crawl.texts, document) == Content("", "", note="too long")


HEADINGS = b"<title>Quarry</title>" + b"<h1>" * 500_000
NESTED = b"<div>" * 30_000 + b"text"


async def test_no_page_holds_up_the_index_or_a_search(crawl: Crawled, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two kB on the wire. The index reads it in a parser process, and the search reads no page at all."""
    await crawl.visit({f"{A}/": Said(HEADINGS.decode(), "Quarry"), f"{B}/": Said("innocent quarry")})
    async with TextReader(max_cpu_s=0.1) as reader:
        assert await build_index(crawl.db, crawl.harness.store, reader) == IndexSummary(2, 2, 0, unread=1)

    async def read_bodies(numbers: object) -> None:
        raise AssertionError("the search reads no page, so it parses none")

    monkeypatch.setattr(crawl.harness.store.bodies, "get", read_bodies)
    assert set(await crawl.urls("quarry")) == {f"{A}/", f"{B}/"}


async def test_a_document_beyond_the_bounds_is_named_and_the_next_one_is_read() -> None:
    async with TextReader(max_cpu_s=0.3) as reader:
        assert (await reader.main_text(A, b"<p>one", None, "text/html")).text == "one"
        with pytest.raises(TextUnread, match=r"more than 0\.3 s of processor time"):
            await reader.main_text(A, NESTED, None, "text/html")
        assert (await reader.main_text(A, b"<p>two", None, "text/html")).text == "two"
        assert (await reader.main_text(A, "<p>Größe".encode("latin-1"), "windows-1252", "text/html")).text == "Größe"
