"""The results of a search, their order, and their texts."""

from __future__ import annotations

import pytest

from crawler.errors import UsageError
from crawler.search import results
from crawler.search.excerpt import EXCERPT_WORDS, Marked, mark
from crawler.search.names import Named
from crawler.search.query import Phrase, parse_query
from tests.unit.search.crawled import Crawled, Said

A, B = "http://a.test", "http://b.test"


def marked(text: Marked) -> list[str]:
    return [text.text[start:end] for start, end in text.marks]


async def test_title_and_anchors_weigh_more_than_text(crawl: Crawled) -> None:
    filler = " ".join(f"filler{n}" for n in range(200))
    await crawl.indexed({
        f"{A}/mention": Said(f"lexer lexer {filler[:800]}", "Notes"),
        f"{A}/named": Said(filler, "The lexer"),
        f"{A}/linked": Said(filler[:900], "Notes", {}),
        f"{A}/": Said("contents", "Contents", {f"{A}/linked": "about the lexer"}),
    })  # fmt: skip
    assert await crawl.urls("lexer") == [f"{A}/named", f"{A}/linked", f"{A}/mention"]


async def test_a_page_is_shown_until_the_date_it_names(crawl: Crawled) -> None:
    await crawl.indexed({f"{A}/{n}": Said(f"word {n}", "Title") for n in range(3)})
    asks = '["META robots: unavailable_after: 2030-01-01T00:00:00Z"]'
    await crawl.change("UPDATE page SET directives = ? WHERE title = 'Title' AND body_bytes > 0", asks)
    await crawl.change("UPDATE page SET directives = NULL WHERE url_id = (SELECT min(url_id) FROM page)")
    until = 1_893_456_000.0
    assert (await crawl.search("word", now=until - 1)).total == 3
    found = await crawl.search("word", now=until)
    assert (found.total, len(found.hits)) == (1, 1)
    assert (await crawl.search('"no such phrase" word', now=until)).total == 0


async def test_nosnippet_and_max_snippet_bound_the_excerpt(crawl: Crawled) -> None:
    await crawl.indexed({f"{A}/": Said("a page about a word and much more", "A word", description="word of mouth")})
    assert "word" in (await crawl.search("word")).hits[0].excerpt.text
    for asks, most in [("nosnippet", 0), ("max-snippet: 6", 6)]:
        await crawl.change("UPDATE page SET directives = ?", f'["X-Robots-Tag: {asks}"]')
        (hit,) = (await crawl.search("word")).hits
        assert (len(hit.excerpt.text), hit.title.text) == (most, "A word")


async def test_a_page_that_is_none_any_more_is_not_found(crawl: Crawled) -> None:
    await crawl.indexed({f"{A}/{n}": Said(f"word {n}", "Title") for n in range(3)})
    await crawl.change("UPDATE url SET state = 'failed', reason = '403' WHERE path = '/1'")
    await crawl.change("UPDATE url SET state = 'queued' WHERE path = '/2'")
    assert set(await crawl.urls("word")) == {f"{A}/0", f"{A}/2"}
    await crawl.index()
    assert set(await crawl.urls("word")) == {f"{A}/0", f"{A}/2"}


async def test_a_title_that_says_little_else_comes_first(crawl: Crawled) -> None:
    await crawl.indexed({
        f"{A}/1": Said("a commit graph file", "The commit graph and all that it is good for"),
        f"{A}/2": Said("a commit of the graph, and very much more, " * 40, "Commit graph"),
    })  # fmt: skip
    assert await crawl.urls("commit graph") == [f"{A}/2", f"{A}/1"]


def test_the_share_of_the_words_that_names_have() -> None:
    words = ((Phrase("color"), Phrase("colors")), (Phrase("choos", is_prefix=True),), (Phrase("std::vector"),))
    named = Named(words, (2.0, 1.0, 1.0))
    assert named.share("Dialogs", "http://a.test/gtk/GtkColorChooserDialog.html") == 0.75
    assert named.share("Colors of std::vector", "http://a.test/") == 0.75
    assert named.share("Vectors of std", "http://choose.test/") == 0
    assert Named((), ()).share("Dialogs", "http://a.test/") == 0
    assert named.share_of_title("Choosing: std::vector!") == 14 / 17
    assert named.share_of_title("") == 0


async def test_of_equal_texts_the_page_that_more_link_to_comes_first(crawl: Crawled) -> None:
    pages = {f"{A}/{n}": Said(f"word {n}", "Title") for n in range(3)}
    pages |= {f"{A}/from{n}": Said(f"x{n}", links={f"{A}/1": ""}) for n in range(2)}
    pages[f"{B}/"] = Said("x", links={f"{A}/2": ""})
    await crawl.indexed(pages)
    assert await crawl.urls("word") == [f"{A}/2", f"{A}/1", f"{A}/0"], "another site counts like ten pages"
    (first, *_) = (await crawl.search("word")).hits
    assert (first.in_links, first.in_sites, first.pagerank) == (1, 1, None)


async def test_ranks_stand_above_the_numbers_of_links(crawl: Crawled) -> None:
    pages = {f"{A}/{n}": Said(f"word {n}", "Title") for n in range(3)}
    await crawl.indexed({**pages, f"{A}/": Said("x", links={f"{A}/1": ""})})
    assert (await crawl.urls("word"))[0] == f"{A}/1"
    for path, pagerank in (("/0", 0.1), ("/1", 0.2), ("/2", 0.7)):
        await crawl.change(f"INSERT INTO rank SELECT id, site_of(id), {pagerank}, 0, 0 FROM url WHERE path = ?", path)
    await crawl.index()
    assert await crawl.urls("word") == [f"{A}/2", f"{A}/1", f"{A}/0"]
    assert (await crawl.search("word")).hits[0].pagerank == 0.7


async def test_pages_with_all_words_precede_pages_with_some(crawl: Crawled) -> None:
    await crawl.indexed({
        f"{A}/1": Said("red green"), f"{A}/2": Said("red", "Red red red"), f"{A}/3": Said("green blue"),
    })  # fmt: skip
    found = await crawl.search("red green")
    assert found.total == 1
    assert [(hit.url, hit.all_words) for hit in found.hits] == [
        (f"{A}/1", True), (f"{A}/2", False), (f"{A}/3", False),
    ]  # fmt: skip
    assert len((await crawl.search("red green", limit=2)).hits) == 2
    assert [hit.url for hit in (await crawl.search("red green", limit=1)).hits] == [f"{A}/1"]
    assert (await crawl.search("purple")).hits == ()


async def test_a_page_that_lacks_a_rare_word_ranks_below_one_that_lacks_a_frequent_one(crawl: Crawled) -> None:
    pages = {f"{A}/{n}": Said(f"common {n}") for n in range(8)}
    await crawl.indexed({**pages, f"{A}/rare": Said("rare one")})
    assert next(hit.url for hit in (await crawl.search("common rare")).hits) == f"{A}/rare"


async def test_links_raise_no_page_that_lacks_a_word(crawl: Crawled) -> None:
    linking = {f"{A}/{n}": Said(f"{n}", links={f"{A}/some": "x"}) for n in range(20)}
    await crawl.indexed({**linking, f"{A}/all": Said("red green blue"), f"{A}/some": Said("red green white")})
    assert [hit.url for hit in (await crawl.search("red green blue")).hits] == [f"{A}/all", f"{A}/some"]
    scores = [hit.score for hit in (await crawl.search("red green blue")).hits]
    await crawl.change_index("UPDATE search_page SET in_links = 0")
    assert [hit.score for hit in (await crawl.search("red green blue")).hits] == scores


async def test_words_on_very_many_pages_select_none(crawl: Crawled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "BROAD", 3)
    pages = {f"{A}/{n}": Said(f"common {n}") for n in range(8)}
    await crawl.indexed({**pages, f"{A}/one": Said("rare one"), f"{A}/both": Said("rare common")})
    found = await crawl.search("common rare")
    assert [(hit.url, hit.all_words) for hit in found.hits] == [(f"{A}/both", True), (f"{A}/one", False)]
    assert (found.total, found.some) == (1, 1)


@pytest.mark.parametrize(
    ("site", "urls"),
    [
        ("a.test", {f"{A}/", "http://www.a.test:8080/"}),
        ("A.TEST", {f"{A}/", "http://www.a.test:8080/"}),
        ("http://a.test/page", {f"{A}/", "http://www.a.test:8080/"}),
        ("www.a.test:8080", {"http://www.a.test:8080/"}),
        ("www.a.test", {"http://www.a.test:8080/"}),
        ("ba.test", {"http://ba.test/"}),
    ],
)
async def test_one_site_and_those_below_it(crawl: Crawled, site: str, urls: set[str]) -> None:
    every = [f"{A}/", "http://www.a.test:8080/", "http://ba.test/", f"{B}/"]
    await crawl.indexed({url: Said(f"word {url}") for url in every})
    assert set(await crawl.urls("word", site=site)) == urls
    assert set(await crawl.urls("word")) == set(every)


@pytest.mark.parametrize("site", ["est", "nowhere.test", "a.test:81", "", "%", "'"])
async def test_an_unknown_site_is_an_error(crawl: Crawled, site: str) -> None:
    await crawl.indexed({f"{A}/": Said("word")})
    with pytest.raises(UsageError, match="knows no such site"):
        await crawl.search("word", site=site)


async def test_words_are_marked(crawl: Crawled) -> None:
    text = f"<p>{'before ' * 100}the café’s <b>Lex</b>ers {'after ' * 100}<p>lexer"
    await crawl.indexed({f"{A}/": Said(text, "A lexer & <b>", description="described")})
    (hit,) = (await crawl.search("lexer cafe -nothing")).hits
    assert (hit.title.text, marked(hit.title)) == ("A lexer & <b>", ["lexer"])
    assert marked(hit.excerpt) == ["café", "Lexers"]
    assert hit.excerpt.text.startswith("…")
    assert hit.excerpt.text.endswith("…")
    assert len(hit.excerpt.text.split()) <= EXCERPT_WORDS + 2
    (hit,) = (await crawl.search("described")).hits
    assert (hit.excerpt.text, marked(hit.excerpt)) == ("described", ["described"])


async def test_where_only_others_name_it_the_page_begins(crawl: Crawled) -> None:
    await crawl.indexed({f"{A}/": Said("contents", links={f"{A}/p": "nick"}), f"{A}/p": Said("How it begins. " * 50)})
    (hit,) = (await crawl.search("nick")).hits
    assert hit.excerpt.text.startswith("How it begins. How")
    assert len(hit.excerpt.text.split()) == EXCERPT_WORDS
    assert hit.excerpt.marks == ()
    assert hit.anchor is not None
    assert (hit.anchor.text, marked(hit.anchor)) == ("nick", ["nick"])


async def test_the_anchor_with_most_of_it_is_shown_and_only_where_it_is_needed(crawl: Crawled) -> None:
    await crawl.indexed({
        f"{A}/1": Said("x", links={f"{A}/p": "the harbour"}),
        f"{A}/2": Said("y", links={f"{A}/p": "the harbour", f"{A}/q": "harbour master"}),
        f"{A}/3": Said("z", links={f"{A}/old": "The <b>Harbour</b> Master\x1b[1m"}),
        f"{A}/4": Said("hidden", links={f"{A}/p": "harbour master hidden"}, noindex=True),
        f"{A}/old": f"{A}/p",
        f"{A}/p": Said("Timetables"),
        f"{A}/q": Said("The harbour is here"),
    })  # fmt: skip
    hits = {hit.url: hit for hit in (await crawl.search("harbour master")).hits}
    anchor = hits[f"{A}/p"].anchor
    assert anchor is not None
    assert (anchor.text, marked(anchor)) == ("The <b>Harbour</b> Master [1m", ["Harbour", "Master"])
    assert hits[f"{A}/q"].anchor is None, "its own text says why"
    hits = {hit.url: hit for hit in (await crawl.search("harbour -master")).hits}
    assert f"{A}/p" not in hits


async def test_hostile_text_is_escaped(crawl: Crawled) -> None:
    await crawl.indexed({f"{A}/": Said("<p>word \x02x\x03\x1b]0;pwned\x07 \u202egnp.exe", "\x1b[2Jtitle\x00\u2066")})
    (hit,) = (await crawl.search("word")).hits
    for text in (hit.title.text, hit.excerpt.text):
        assert text.isprintable()
    assert marked(hit.excerpt) == ["word"]


@pytest.mark.parametrize(
    ("query", "text", "marks"),
    [
        ("ホスト", "バーチャルホストの例", ["ホスト"]),
        ("migr*", "Migration of migrants", ["Migration", "migrants"]),
        ('"a b"', "b a b a b b", ["a b", "a b"]),
        ("absent", "nothing here", []),
    ],
)
def test_marks(query: str, text: str, marks: list[str]) -> None:
    ((short, long),) = mark(parse_query(query).with_any(), [(text, text)])
    assert short.text == long.text == text
    assert marked(short) == marked(long) == marks


@pytest.mark.parametrize("word", ["word ", "数"])
def test_a_long_text_of_one_word_is_marked_in_its_first_piece(word: str) -> None:
    """FTS5 alone would take minutes for it. Here it takes a second."""
    ((_, long),) = mark(parse_query(word).with_any(), [("", word * 100_000 + " end")])
    assert set(marked(long)) <= {word.strip(), word * len(marked(long)[0])}
    ((_, long),) = mark(parse_query(f"{word} end").with_any(), [("", word * 100_000 + " end")])
    assert marked(long)[-1] == "end", "the piece that has the rare word"
