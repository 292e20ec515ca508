"""Which words of a statement PostgreSQL would execute."""

from __future__ import annotations

import pytest

from crawler.store.postgres.user_sql import NotReading, words_of


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT a FROM b", {"select", "a", "from", "b"}),
        ('((WITH "A""b" AS (SELECT 1) TABLE x));', {"with", 'a"b', "as", "select", "table", "x"}),
        ("SELECT 'pg_sleep' /* pg_sleep */ -- pg_sleep", {"select"}),
        ("SELECT E'\\' pg_sleep' 'it''s pg_sleep'", {"select"}),
        ("SELECT U&'\\0070g_sleep', type'a', $1, $2", {"select", "type"}),
        ("SELECT a$b, c$d", {"select", "a$b", "c$d"}),
        ("SELECT 1 -- '\r, f(1) --'", {"select", "f"}),
    ],
)
def test_words_stand_outside_of_texts_and_comments(sql: str, words: set[str]) -> None:
    assert words_of(sql) == words


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("", "first word"),
        (";", "first word"),
        ("1", "first word"),
        ("-- SELECT", "first word"),
        ("UPDATE t SET a = 1", "first word"),
        ("DO 'x'", "first word"),
        ("SELECT 1; SELECT 2", "one statement"),
        ("SELECT 1;;", "one statement"),
        ("SELECT $$a$$", "quoting"),
        ("SELECT $é$a$é$", "quoting"),
        ('SELECT U&"a"', "quoting"),
        ("SELECT 'a", "quoting"),
        ('SELECT "a', "quoting"),
        ("SELECT /* /* */ */ 1", "quoting"),
        ("SELECT /* 1", "quoting"),
        ("SELECT pg_sleep(1)", "pg_sleep"),
        ('SELECT "PG_sleep"(1)', "pg_sleep"),
        ("SELECT 1 /* ' */, pg_sleep(1) /* ' */", "pg_sleep"),
        ("SELECT \xa0E'\\' , pg_sleep(1) -- '", "pg_sleep"),
        ("SELECT 'a'E'\\'' , pg_sleep(1) -- '", "pg_sleep|quoting"),
        ("SELECT xE'\\' , pg_sleep(1) -- '", "pg_sleep"),
        ("SELECT a.schema_to_xml('b')", "schema_to_xml"),
    ],
)
def test_what_is_no_plain_query_is_refused(sql: str, why: str) -> None:
    with pytest.raises(NotReading, match=why):
        words_of(sql)
