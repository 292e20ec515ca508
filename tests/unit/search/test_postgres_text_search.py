"""PostgreSQL's text search beside FTS5: the same words, the same pages, the same scores; whatever is thrown at them."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from typing import Any

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.errors import UsageError
from crawler.page.main_text import clean
from crawler.search import postgres_text_search
from crawler.search.postgres_text_search import vectors
from crawler.search.query import Phrase, Query, parse_query
from crawler.search.results import WEIGHTS
from crawler.search.tokenizer import TOKENIZER, for_tokenizer, tokenize
from crawler.store.postgres.connection import INDEXING, Postgres
from crawler.store.statements import load_statements
from tests.postgres import Cluster
from tests.unit.search.crawled import Crawled, Said, crawled

A = "http://a.test"
COLUMNS = "title, anchors, description, keywords, headings, body"
TABLES = """
CREATE TABLE search_page (url_id bigint PRIMARY KEY, size bigint NOT NULL);
CREATE TABLE search_text (url_id bigint, part bigint, words tsvector, PRIMARY KEY (url_id, part));
CREATE INDEX ON search_text USING gin(words);
"""
# A few words, often: phrases, repetitions, and pages that have all of what is asked for.
VOCABULARY = ["red", "green", "greens", "blue", "Größe", "grosse", "数", "数据库", "x86", "write-ahead", "Ελλάς", "и"]


_SQL = load_statements("crawler.search", "postgres.sql")
MATCHING = _SQL["matching"].format(filters="TRUE", heaviest=postgres_text_search.HEAVIEST)


class Both:
    """Pages in an FTS5 table and in PostgreSQL."""

    def __init__(self, sqlite: sqlite3.Connection, postgres: Postgres) -> None:
        self.sqlite, self.postgres = sqlite, postgres

    async def fill(self, pages: Sequence[Sequence[str]]) -> None:
        await self.postgres.execute("TRUNCATE search_page, search_text")
        self.sqlite.execute("DELETE FROM search_text")
        for number, page in enumerate(pages):
            texts = [clean(text) for text in page]
            self.sqlite.execute(
                f"INSERT INTO search_text (rowid, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (number, *map(for_tokenizer, texts)),
            )
            size, parts = vectors(texts)
            await self.postgres.execute("INSERT INTO search_page VALUES (?, ?)", (number, size))
            for part, vector in enumerate(parts):
                await self.postgres.execute(
                    "INSERT INTO search_text VALUES (?, ?, (?::text)::tsvector)", (number, part, vector)
                )

    def by_fts5(self, expression: str) -> dict[int, float]:
        weights = ", ".join(map(str, WEIGHTS))
        sql = f"SELECT rowid, -bm25(search_text, {weights}) FROM search_text WHERE search_text MATCH ?"
        return dict(self.sqlite.execute(sql, (expression,)).fetchall())

    async def by_postgres(self, expression: str) -> dict[int, float]:
        rows = await self.postgres.execute_fetchall(
            f"WITH {MATCHING} SELECT url_id, text_score FROM matching", {"match": expression}
        )
        return dict(map(tuple, rows))

    async def handled(self, expression: str) -> float:
        """The number of rows that all steps of the plan handle for an expression."""
        ((plans,),) = await self.postgres.execute_fetchall(
            f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) WITH {MATCHING} SELECT url_id, text_score FROM matching",
            {"match": expression},
        )

        def rows(plan: dict[str, Any]) -> float:
            each = plan["Actual Rows"] + plan.get("Rows Removed by Join Filter", 0)
            return float(each * plan["Actual Loops"] + sum(map(rows, plan.get("Plans", ()))))

        return sum(rows(plan["Plan"]) for plan in json.loads(plans))

    async def compare(self, query: Query) -> list[dict[int, float]]:
        """The results with all and with some of the words; both find the same, with the same scores."""
        found = [await self.by_postgres(postgres_text_search.with_all(query))]
        assert found[0] == pytest.approx(self.by_fts5(query.with_all()), rel=1e-5)
        some, other = postgres_text_search.with_some(query), query.with_some()
        assert (some is None) == (other is None)
        if some is not None and other is not None:
            found.append(await self.by_postgres(some))
            assert found[1] == pytest.approx(self.by_fts5(other), rel=1e-5)
        return found


@pytest.fixture
async def both(postgres: Cluster) -> AsyncIterator[Both]:
    async with on(postgres.make_database()) as made:
        yield made


@asynccontextmanager
async def on(url: str) -> AsyncIterator[Both]:
    db = Postgres(url)
    await db.execute(TABLES)
    with closing(sqlite3.connect(":memory:")) as sqlite:
        sqlite.execute(f"CREATE VIRTUAL TABLE search_text USING fts5({COLUMNS}, tokenize = '{TOKENIZER}')")
        yield Both(sqlite, db)
    await db.close()


def random_texts(chance: random.Random, longest: int) -> list[str]:
    def text() -> str:
        return " ".join(chance.choices(VOCABULARY, k=chance.randrange(longest)))

    return [text() if chance.random() < 0.7 else "" for _ in range(6)]


@pytest.mark.parametrize("seed", range(4))
async def test_the_same_pages_with_the_same_scores(both: Both, seed: int) -> None:
    chance = random.Random(seed)
    await both.fill([random_texts(chance, 30) for _ in range(40)])
    found = 0
    for _ in range(60):
        typed = []
        for _ in range(chance.randrange(1, 4)):
            word = chance.choice(VOCABULARY)
            phrase = " ".join(chance.choices(VOCABULARY, k=chance.randrange(1, 4)))
            typed.append(chance.choice([word, word, word[:2] + "*", f'"{phrase}"', f'"{phrase}"*', f"-{word}"]))
        try:
            query = parse_query(" ".join(typed))
        except UsageError:
            continue
        found += sum(map(len, await both.compare(query)))
    assert found > 500


async def test_the_work_grows_with_the_pages_that_match(both: Both) -> None:
    """PostgreSQL expects one page to match: a join of the scores computed all of them for each of the pages."""
    asked = [postgres_text_search.with_all(parse_query(typed)) for typed in ("red", "red green", '"red green" -blue')]
    work = []
    for pages in (100, 300):
        await both.fill([texts_of("red green")] * pages)
        work.append([await both.handled(expression) for expression in asked])
    assert all(many < 4 * few for few, many in zip(*work, strict=True)), work


async def test_no_phrase_goes_from_one_field_to_the_next(both: Both) -> None:
    await both.fill([["red", "green", "blue", "x86", "и", "a"]])
    for phrase in ('"red green"', '"blue x86"', '"x86 x86"', '"x86 и"', '"и a"'):
        assert await both.compare(parse_query(phrase)) == [{}]


@given(st.lists(st.text(), max_size=3))
def test_words_are_told_apart_as_fts5_does(texts: list[str]) -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute(f"CREATE VIRTUAL TABLE t USING fts5(x, tokenize = '{TOKENIZER}')")
        db.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, 'instance')")
        for text in texts:
            readable = clean(text)
            db.execute("DELETE FROM t")
            db.execute("INSERT INTO t VALUES (?)", (for_tokenizer(readable),))
            rows = db.execute("SELECT term FROM v ORDER BY offset").fetchall()
            assert tokenize(readable) == [row[0] for row in rows]


def texts_of(body: str) -> list[str]:
    return ["", "", "", "", "", body]


@pytest.mark.parametrize(
    ("body", "last"),
    [
        ("a " * 3_000, "a"),  # more places than a word can have
        (" ".join(f"w{n}" for n in range(40_000)), "w39999"),  # more places than there are
        (" ".join(f"{n:x}" * 400 for n in range(4_096, 5_000)), "1387" * 400),  # over a megabyte
        ("数" * 3_000 + "据" * 20 + "库", "据库"),
    ],
)
async def test_a_page_beyond_the_limits_is_found_to_its_end(both: Both, body: str, last: str) -> None:
    await both.fill([texts_of(f"{body} the very end"), texts_of("elsewhere")])
    ((parts,),) = await both.postgres.execute_fetchall("SELECT count(*) FROM search_text WHERE url_id = 0")
    assert parts > 1
    for asked in ('"very end"', 'the -elsewhere "very end"', f'"{last} the"'):
        assert (await both.by_postgres(postgres_text_search.with_all(parse_query(asked)))).keys() == {0}, asked
    halves = f'"{body[:5].strip()}"* "very end"'  # in different rows of the one page
    assert (await both.by_postgres(postgres_text_search.with_all(parse_query(halves)))).keys() == {0}
    unwanted = f'elsewhere end -"{body[:5].strip()}"*'
    assert (await both.by_postgres(postgres_text_search.with_some(parse_query(unwanted)) or "")).keys() == {1}


async def test_a_phrase_across_two_rows_is_found(both: Both) -> None:
    await both.fill([texts_of(" ".join(f"w{n}" for n in range(40_000)))])
    for n in range(16_300, 16_400):
        asked = postgres_text_search.with_all(parse_query(f'"w{n} w{n + 1} w{n + 2}"'))
        assert await both.by_postgres(asked), n


async def test_words_too_long_for_postgresql_are_cut(both: Both) -> None:
    long = "\U0001d400" * 5_000
    await both.fill([texts_of(f"before {long} after")])
    assert (
        await both.by_postgres(postgres_text_search.with_all(Query((Phrase(f"before {long} after"),), (), ())))
    ).keys() == {0}


@given(st.text(), st.text())
def test_nothing_is_a_syntax_error(texts: str, typed: str) -> None:
    """The vectors and queries of hostile texts are such that hold nothing but words, numbers and labels."""
    for vector in vectors([clean(texts)] * 6)[1]:
        assert vector.count("'") == 2 * vector.count(":")
    try:
        query = parse_query(typed)
    except UsageError:
        return
    for expression in (postgres_text_search.with_all(query), postgres_text_search.with_some(query)):
        assert expression is None or "\\\\" not in expression


async def test_hostile_texts_and_queries(crawl: Crawled) -> None:
    """Both kinds of store take them, and what else a page says is found."""
    hostile = "'); DROP TABLE url;-- \\' :* & | ! <-> \x00 \ud800 \U0010ffff \u202e %s $1 ?1 {0}"
    html = f"<title>{hostile}</title><p>word {hostile} {'y' * 70_000} {'z ' * 1_000}"
    body = html.encode(errors="surrogatepass").decode(errors="replace")
    await crawl.visit({
        f"{A}/": Said(body, "\x00 title ' \\", {f"{A}/p": "\x00anchor\x00 ' \\"}, "' \\ \x00", ": 1A,2B \x00"),
        f"{A}/p": Said("<p>other"),
    })  # fmt: skip
    assert (await crawl.index()).changed == 2
    for asked in ("word", "title", "drop table", "yyy*", "z", f'"{"z " * 30}"'):
        assert await crawl.urls(asked) == [f"{A}/"], asked
    assert await crawl.urls("anchor") == [f"{A}/p"]
    for asked in ("' word", "word :* & | !", "word -\\", "\ud800 word", "\x00word", hostile, "word*' | 'x"):
        await crawl.search(asked)
    with pytest.raises(UsageError, match="knows no such site"):
        await crawl.search("word", site="\udcff\x00")


async def test_a_second_builder_is_refused(postgres: Cluster) -> None:
    async with crawled(postgres.make_store()) as crawl:
        await crawl.visit({f"{A}/": Said("word")})
        other = await asyncpg.connect(crawl.db)
        await other.execute(f"SELECT pg_advisory_lock({INDEXING})")
        with pytest.raises(UsageError, match="another `crawler index`"):
            await crawl.index()
        await other.close()
        assert (await crawl.index()).changed == 1
