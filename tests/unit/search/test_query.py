"""Queries of users as expressions of FTS5: no query is a syntax error."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.errors import UsageError
from crawler.page.main_text import clean
from crawler.search.query import MAX_ITEMS, MAX_QUERY_CHARS, parse_query, words_with_signs
from crawler.search.tokenizer import for_tokenizer

TEXTS = {
    "lexer": "A lexer splits source text into tokens. A good lexer is fast.",
    "parser": "The parser takes tokens from the lexer; parsers build trees.",
    "trees": "Trees of migrated birds: migration in autumn. Café society.",
    "wal": "Write-ahead logging, set by PRAGMA journal_mode, for std::vector of C++ logs.",
    "japanese": "名前ベースのバーチャルホストをどうやって使うか",
    "chinese": "如何使用数据库",
    "thai": "ภาษาไทยเขียนติดกัน",
    "korean": "데이터베이스는 빠르다",
    "c": "Plain C, c-ares, example.net and a+b#c.",
    "sharp": "C#7 on .NET Core, after F#.",
    "c17": "What C++17 brought (C++, not C+++).",
}


def _index_of(texts: dict[str, str]) -> sqlite3.Connection:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5(name UNINDEXED, x, tokenize = 'unicode61 remove_diacritics 2')")
    db.executemany("INSERT INTO t VALUES (?, ?)", [(name, for_tokenizer(clean(text))) for name, text in texts.items()])
    return db


_INDEX = _index_of(TEXTS)


def matching(expression: str, db: sqlite3.Connection = _INDEX) -> set[str]:
    return {name for (name,) in db.execute("SELECT name FROM t WHERE t MATCH ?", (expression,))}


def with_all(query: str) -> set[str]:
    return matching(parse_query(query).with_all())


@pytest.mark.parametrize(
    ("query", "pages"),
    [
        ("lexer", {"lexer", "parser"}),
        ("LEXER tokens", {"lexer", "parser"}),
        ("lexer birds", set()),
        ('"tokens from the lexer"', {"parser"}),
        ('"lexer the from"', set()),
        ("“source text”", {"lexer"}),
        ('"source text', {"lexer"}),
        ('"source te"*', {"lexer"}),
        ("migr*", {"trees"}),
        ("lexer -trees", {"lexer"}),
        ('tokens -"splits source"', {"parser"}),
        ("tree", set()),  # the forms of a word are those of the index (test_forms.py)
        ("parsers", {"parser"}),
        ("tokens -parser", {"lexer"}),
        ("tokens -tree", {"lexer", "parser"}),
        ("cafe", {"trees"}),
        ("CAFÉ", {"trees"}),
        ("write-ahead", {"wal"}),
        ("write-logging", set()),  # one word with punctuation is a phrase
        ("std::vector", {"wal"}),
        ("journal_mode", {"wal"}),
        ("c++", {"wal", "c17"}),
        ("C++17", {"c17"}),
        ("C#", {"sharp"}),
        ("f#", {"sharp"}),
        ("c", {"c", "c17"}),  # C+++ is no name
        (".NET", {"sharp"}),
        ("net core", {"sharp"}),
        ("net", {"c", "sharp"}),
        ("example.net", {"c"}),
        ("c++ -17", {"wal"}),
        ("lexer & + ** -", {"lexer", "parser"}),  # what has no letter asks for nothing
        ("lexer OR birds", set()),  # "or" is a word
        ("x:lexer", set()),
        ("バーチャルホスト", {"japanese"}),
        ("バーチャルパーク", set()),
        ("数据库", {"chinese"}),
        ("使用*", {"chinese"}),  # the same word in Japanese stands otherwise there: 使う
        ("ไทย", {"thai"}),
        ("데이터베이스", {"korean"}),
    ],
)
def test_pages_with_all_of_it(query: str, pages: set[str]) -> None:
    assert with_all(query) == pages


SIGNED = {
    "git": "Use git merge --no-ff, or kill -9; see /etc/hosts.",
    "python": "def __init__(self): fs.readFile(@media)",
    "plain": "No ff here, 9 lives, init of media.",
}


@pytest.mark.parametrize(
    ("query", "known", "pages"),
    [
        ("--no-ff", {"--no-ff"}, {"git"}),
        ("--no-ff", set(), {"git", "plain"}),
        ("merge --no-ff", {"--no-ff"}, {"git"}),
        ("kill -9", {"-9"}, {"git"}),
        ("kill -9", set(), set()),  # then -9 leaves pages out
        ("-9", set(), {"git", "plain"}),  # alone it does not
        ("lives -kill", set(), {"plain"}),
        ("__init__", {"__init__"}, {"python"}),
        ("__init__", set(), {"python", "plain"}),
        ("@media", {"@media"}, {"python"}),
        ("/etc/hosts", set(), {"git"}),
        ("fs.readFile", set(), {"python"}),
        ('"no ff"', set(), {"git", "plain"}),
    ],
)
def test_words_with_signs(query: str, known: set[str], pages: set[str]) -> None:
    assert matching(parse_query(query, known).with_all(), _index_of(SIGNED)) == pages


def test_which_words_have_signs() -> None:
    assert words_with_signs('git -9 --no-ff -"a -b" -x* @media __init__ a-b f_x') == [
        "-9", "--no-ff", "@media", "__init__",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "pages"),
    [
        ("splits migration", {"lexer", "trees"}),
        ("splits migration -birds", {"lexer"}),
        ('"the lexer" splits migration', set()),  # phrases are not left away
        ('lexer" is fast" migration splits', {"lexer"}),
    ],
)
def test_pages_with_some_of_it(query: str, pages: set[str]) -> None:
    assert matching(parse_query(query).with_some([0, 1])) == pages


def test_pages_with_some_of_it_have_one_of_the_words_that_select() -> None:
    query = parse_query("splits migration")
    assert [matching(query.with_some([number])) for number in (0, 1)] == [{"lexer"}, {"trees"}]
    assert [matching(query.with_word(1, selecting)) for selecting in ([0], [0, 1])] == [set(), {"trees"}]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("", "no word to search for in ''"),
        ('  -- ** ""', "no word to search for"),
        ('-"a phrase"', "it only excludes"),
        ("site:a.test word", "site: is no operator"),
        ("a " * (MAX_ITEMS + 1), f"more than {MAX_ITEMS} words"),
        ("a" * (MAX_QUERY_CHARS + 1), "at most 2,000 are allowed"),
    ],
)
def test_invalid_queries_are_refused(query: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_query(query)
    assert said in str(error.value)


@given(
    st.one_of(
        st.text(),
        st.lists(
            st.sampled_from(
                [*"\"-*+^:(){}[],.;\\'\0\x02\n ", "lexer", "AND", "OR", "NOT", "NEAR(", "x:", "數", "é", "\ud800", "ไ"]
            )
        ).map("".join),
    )
)
def test_nothing_typed_is_a_syntax_error(typed: str) -> None:
    try:
        query = parse_query(typed)
    except UsageError:
        return
    some = [query.with_some([0]), query.with_word(0, [0])] if query.words else []
    for expression in (query.with_all(), query.with_any(), *some):
        matching(expression)
