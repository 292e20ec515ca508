"""The contents of the search index, and the effect of a second call."""

from __future__ import annotations

import asyncio

import pytest

from crawler.errors import UsageError
from crawler.model import Purpose
from crawler.search import build_index as index_module
from crawler.search import index_file
from crawler.search.build_index import IndexSummary, take_out
from crawler.search.index_file import INDEX, index_path, open_index
from crawler.store.location import db_argument
from tests.contract.visits import request, robots
from tests.unit.search.crawled import Crawled, Said

A, B, C = "http://a.test", "http://b.test", "http://c.test"


#: For tests of the file, which is the same beside either database.
BESIDE_SQLITE = pytest.mark.parametrize("crawl_in_either", ["sqlite"], indirect=True)


@pytest.fixture
def crawl(crawl_in_either: Crawled) -> Crawled:
    return crawl_in_either


async def inbound(crawl: Crawled) -> dict[str, tuple[int, int]]:
    urls = dict(await crawl.rows("SELECT url_id, url FROM urls"))
    found = await crawl.of_index("SELECT url_id, in_links, in_sites FROM search_page")
    return {urls[number]: (links, sites) for number, links, sites in found}


async def test_every_field_is_found(crawl: Crawled) -> None:
    page = Said("<h2>Heading</h2><p>Body", "Title", {}, "Description", "Keywords")
    await crawl.visit({f"{A}/": page, f"{B}/": Said("Other", links={f"{A}/": "Anchor"})})
    assert await crawl.index() == IndexSummary(pages=2, changed=2, removed=0)
    for word in ("heading", "body", "title", "description", "keywords", "anchor"):
        assert await crawl.urls(word) == [f"{A}/"], word


async def test_a_noindex_page_never_appears(crawl: Crawled) -> None:
    await crawl.visit({
        f"{A}/": Said("word", links={f"{A}/hidden": "secret", f"{A}/copy": "x"}),
        f"{A}/hidden": Said("word secret", "word", {f"{A}/": "whispered"}, noindex=True),
        f"{A}/copy": Said("word again", canonical=f"{A}/hidden"),
    })  # fmt: skip
    assert await crawl.index() == IndexSummary(1, 1, 0)
    assert await crawl.urls("word") == [f"{A}/"]
    assert await crawl.urls("whispered") == [], "nor what it says of others"


async def test_a_page_that_has_become_noindex_is_not_shown_before_the_next_index(crawl: Crawled) -> None:
    await crawl.indexed({f"{A}/": Said("word")})
    await crawl.change("UPDATE page SET noindex = 1, body_id = NULL")
    assert await crawl.urls("word") == []
    assert await crawl.index() == IndexSummary(0, 0, 1)


async def test_duplicates_are_one_page_under_their_main_address(crawl: Crawled) -> None:
    """Canonical URLs and redirects in a chain; whatever links to any of them links to their end."""
    await crawl.indexed({
        f"{A}/": Said("start", links={f"{A}/old": "first name", f"{A}/print": "second name", f"{A}/main": "third"}),
        f"{B}/": Said("elsewhere", links={f"{A}/print": "fourth"}),
        f"{A}/old": f"{A}/print",
        f"{A}/print": Said("word, printed", canonical=f"{A}/main"),
        f"{A}/main": Said("word", links={f"{A}/print": "itself"}),
    })  # fmt: skip
    for words in ("word", "first name", "second name", "third", "fourth"):
        assert await crawl.urls(words) == [f"{A}/main"], words
    assert await crawl.urls("itself") == []
    assert await inbound(crawl) == {f"{A}/": (0, 0), f"{B}/": (0, 0), f"{A}/main": (2, 1)}


async def test_pages_with_one_body_are_one_page_the_nearest_to_a_seed(crawl: Crawled) -> None:
    await crawl.visit({f"{A}/": Said("start", links={f"{A}/x/y": "near"})})
    same = Said("word", links={f"{A}/z": "far"})
    await crawl.indexed({f"{A}/x/y": same, f"{A}/z": same})
    assert await crawl.urls("word") == [f"{A}/z"], "a seed, as visit() seeds: of the shorter path"
    assert await crawl.urls("near") == [f"{A}/z"]


async def test_pages_of_a_mirror_are_those_of_its_main_site(crawl: Crawled) -> None:
    """Fetched before its Host line was known. What the main site does not have stays."""
    await crawl.visit({
        f"{A}/x": Said("word of a mirror"), f"{A}/only": Said("word of its own"), f"{B}/x": Said("word"),
        f"{C}/": Said("links", links={f"{A}/x": "pointing"}),
    })  # fmt: skip
    site = await crawl.harness.site_number(A)
    await crawl.harness.news(site, A, robots(), main_site=B)
    await crawl.index()
    assert set(await crawl.urls("word")) == {f"{B}/x", f"{A}/only"}
    assert await crawl.urls("pointing") == [f"{B}/x"]


@BESIDE_SQLITE
async def test_where_the_main_address_was_not_had_one_stands_in(crawl: Crawled) -> None:
    """And under its own address: nobody has seen that the other says the same."""
    main = "http://elsewhere.test/"
    await crawl.indexed({
        f"{A}/?1": Said("word one", canonical=main), f"{A}/?2": Said("word two", canonical=main),
        f"{A}/": Said("start", links={f"{A}/?1": "to one", f"{A}/?2": "to two"}),
    })  # fmt: skip
    (shown,) = await crawl.urls("word")
    assert shown in (f"{A}/?1", f"{A}/?2")
    assert await crawl.urls("to one") == await crawl.urls("to two") == [shown]


@BESIDE_SQLITE
async def test_cycles_of_canonical_urls_are_ignored(crawl: Crawled) -> None:
    await crawl.indexed({f"{A}/1": Said("word 1", canonical=f"{A}/2"), f"{A}/2": Said("word 2", canonical=f"{A}/1")})
    assert set(await crawl.urls("word")) == {f"{A}/1", f"{A}/2"}


async def test_links_not_to_be_followed_say_nothing(crawl: Crawled) -> None:
    await crawl.indexed({
        f"{A}/": Said("x", links={f"{A}/p": "advertised"}, nofollow=[f"{A}/p"]), f"{A}/p": Said("word"),
    })  # fmt: skip
    assert await crawl.urls("advertised") == []
    assert (await inbound(crawl))[f"{A}/p"] == (0, 0)


async def test_only_changed_pages_are_read_again(crawl: Crawled) -> None:
    await crawl.visit({f"{A}/{n}": Said(f"word {n}") for n in range(5)})
    assert await crawl.index() == IndexSummary(5, 5, 0)
    assert await crawl.index() == IndexSummary(5, 0, 0)
    await crawl.change("UPDATE page SET title = 'Changed' WHERE url_id = (SELECT min(url_id) FROM page)")
    assert await crawl.index() == IndexSummary(5, 1, 0)
    assert len(await crawl.urls("changed")) == 1
    assert len(await crawl.urls("word")) == 5, "its old row is gone"
    assert await crawl.of_index("SELECT count(*) FROM search_text_docsize") == [(5,)]
    await crawl.visit({f"{B}/": Said("new", links={f"{A}/3": ""})})
    assert await crawl.index() == IndexSummary(6, 1, 0), "a link without text changes a number alone"
    assert (await inbound(crawl))[f"{A}/3"] == (1, 1)


@BESIDE_SQLITE
async def test_another_version_begins_anew(crawl: Crawled, monkeypatch: pytest.MonkeyPatch) -> None:
    await crawl.indexed({f"{A}/": Said("word")})
    monkeypatch.setattr(index_file, "VERSION", index_file.VERSION + 1)
    with pytest.raises(UsageError, match="no search index of this version"):
        await crawl.search("word")
    assert await crawl.index() == IndexSummary(1, 1, 0)
    assert await crawl.urls("word") == [f"{A}/"]


@BESIDE_SQLITE
async def test_the_index_of_another_crawl_begins_anew(crawl: Crawled) -> None:
    """A store was deleted, and the file of its index was left."""
    await crawl.indexed({f"{A}/": Said("word")})
    await crawl.change_index("UPDATE search_state SET crawl = 'other'")
    with pytest.raises(UsageError, match="index of another crawl"):
        await crawl.search("word")
    assert await crawl.index() == IndexSummary(1, 1, 0)


async def words_of(crawl: Crawled) -> set[str]:
    return {word for (word,) in await crawl.of_index("SELECT term FROM search_word")}


@BESIDE_SQLITE
async def test_pages_are_taken_out_one_at_a_time(crawl: Crawled, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the anchors of their links. Pages that are new since the last build are not added."""
    monkeypatch.setitem(INDEX, "settings", INDEX["settings"].replace("10000", "0"))  # nothing is waited for
    await crawl.indexed({
        f"{A}/": Said("word start", links={f"{B}/": "harbour master"}),
        f"{B}/": Said("word there", "Title", {f"{A}/": "secret anchor"}, "Description", "Keywords"),
    })  # fmt: skip
    await crawl.visit({f"{C}/": Said("word of a new page")})
    async with open_index(await index_path(crawl.harness.store, crawl.db), 60) as reader:  # begun before
        assert len(await reader.query("SELECT 1 FROM search_text WHERE search_text MATCH 'word'")) == 2
        await crawl.change("DELETE FROM link WHERE anchor = 'secret anchor'")
        await crawl.change("UPDATE page SET noindex = 1, body_id = NULL WHERE title = 'Title'")
        assert (await take_out(crawl.db, crawl.harness.store, crawl.texts))[1] is False, "a search holds the log"
        assert await crawl.urls("word") == [f"{A}/"], "another search meanwhile"
        assert len(await reader.query("SELECT 1 FROM search_text WHERE search_text MATCH 'word'")) == 2
    assert await words_of(crawl) == {"word", "start"}
    assert (await take_out(crawl.db, crawl.harness.store, crawl.texts))[1] is True
    data = (await index_path(crawl.harness.store, crawl.db)).read_bytes()
    assert b"secret" not in data
    assert b"start" in data
    assert await crawl.index() == IndexSummary(2, 1, 0), "the new page"


@BESIDE_SQLITE
async def test_without_an_index_nothing_is_taken_out(crawl: Crawled) -> None:
    assert (await take_out(crawl.db, crawl.harness.store, crawl.texts))[1] is None
    assert not (await index_path(crawl.harness.store, crawl.db)).exists()


@BESIDE_SQLITE
async def test_it_answers_while_it_is_built(crawl: Crawled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "_BATCH", 2)
    await crawl.indexed({f"{A}/{n}": Said(f"word {n}", "Old") for n in range(6)})
    await crawl.change("UPDATE page SET title = 'New'")
    found: list[tuple[int, int]] = []
    searches = asyncio.Queue[None]()

    async def look() -> None:
        while len(found) < 3:
            await searches.get()
            found.append((len(await crawl.urls("word")), len(await crawl.urls("new"))))

    looking = asyncio.create_task(look())
    await crawl.index(lambda done, total: searches.put_nowait(None))
    await looking
    assert [every for every, _ in found] == [6, 6, 6], "each page is in the index at any time"
    assert found[-1] == (6, 6)


class Killed(Exception):
    """Stands for the end of the process between two batches."""


@BESIDE_SQLITE
async def test_a_crash_loses_no_batch_that_was_done(crawl: Crawled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "_BATCH", 3)
    await crawl.visit({f"{A}/{n}": Said(f"word {n}") for n in range(10)})

    def die(done: int, total: int) -> None:
        if done >= 6:
            raise Killed

    with pytest.raises(Killed):
        await crawl.index(die)
    found = await crawl.search("word")
    assert found.total == 6
    assert found.note.startswith("the index is not complete; `crawler refresh-search --db ")
    seen: list[tuple[int, int]] = []
    assert await crawl.index(lambda done, total: seen.append((done, total))) == IndexSummary(10, 4, 0)
    assert seen == [(3, 10), (6, 10), (9, 10), (10, 10)]
    assert (await crawl.search("word")).note == ""


async def test_the_same_store_gives_the_same_index(crawl: Crawled, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = ("search_page ORDER BY url_id", "search_state", "search_text_docsize", "search_word", "search_document")
    await crawl.indexed({f"{A}/{n}": Said(f"word {n}", f"T{n}", {f"{A}/{n * 7 % 10}": f"to {n}"}) for n in range(10)})
    whole = await crawl.search("word")
    rows = [await crawl.of_index(f"SELECT * FROM {table}") for table in tables]
    monkeypatch.setattr(index_file, "VERSION", 0)
    await crawl.index()
    monkeypatch.undo()
    await crawl.index()
    assert rows == [await crawl.of_index(f"SELECT * FROM {table}") for table in tables]
    assert await crawl.search("word") == whole


@BESIDE_SQLITE
async def test_it_stops_when_cancelled(crawl: Crawled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "_BATCH", 1)
    monkeypatch.setattr(index_file, "_STEPS_BETWEEN_CHECKS", 1)
    await crawl.visit({f"{A}/{n}": Said(f"word {n}") for n in range(60)})
    begun = asyncio.Event()
    work = asyncio.create_task(crawl.index(lambda done, total: begun.set()))
    await begun.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    ((done,),) = await crawl.of_index("SELECT count(*) FROM search_page")
    assert 1 <= done < 60
    assert await crawl.index() == IndexSummary(60, 60 - done, 0)


@BESIDE_SQLITE
async def test_without_an_index_the_error_names_the_remedy(crawl: Crawled) -> None:
    with pytest.raises(UsageError, match=r"crawl\.index\(\) builds it"):
        await crawl.search("word")


async def test_an_index_behind_the_crawl_says_so(crawl: Crawled) -> None:
    await crawl.indexed({f"{A}/": Said("word")})
    await crawl.harness.commit(requests=[request(1, "/new")])
    assert (await crawl.search("word")).note == (
        "not up to date with the crawl: search index; run `crawler refresh-search"
        + db_argument(crawl.harness.store.name)
        + "`"
    )


async def test_an_answer_that_nothing_has_changed_leaves_the_index_up_to_date(crawl: Crawled) -> None:
    await crawl.indexed({f"{A}/": Said("word")})
    await crawl.harness.commit(
        requests=[request(1, "/", status=304), request(1, "/robots.txt", purpose=Purpose.ROBOTS)]
    )
    assert (await crawl.search("word")).note == ""
