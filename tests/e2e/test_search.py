"""``crawler index`` and ``crawler search`` after a crawl."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from crawler.demo.pages import Page, Site
from tests.command import HASTY, LOOPBACK, Ended, here
from tests.postgres import Cluster
from tests.web import LoopbackWeb


@pytest.fixture(scope="module")
def web() -> Iterator[LoopbackWeb]:
    with LoopbackWeb() as web:
        web.sites.update(sites(web))
        yield web


def sites(web: LoopbackWeb) -> dict[str, Site]:
    a_test: Site = {
        "/": Page(
            "<title>Start</title><nav>menu</nav><a href=/lexer>the scanner</a> "
            "<a href=/hidden>x</a> <a href=/copy>x</a> <a href=/stub>x</a>"
            f"<a href={web.url('b.test')}>b</a>"
        ),
        "/lexer": Page("<title>Lexer \x1b[31m</title><h1>Lexers</h1><p>A lexer makes tokens."),
        "/copy": Page(f"<link rel=canonical href={web.url('a.test', '/lexer')}><p>A lexer makes tokens, printed."),
        "/stub": Page("<meta http-equiv=refresh content='0; url=/lexer'><title>Redirecting</title>"),
        "/hidden": Page("<meta name=robots content=noindex><title>Lexer</title><p>A lexer nobody shall find."),
    }
    return {"a.test": a_test, "b.test": {"/": Page("<title>Parser</title><p>Parsers take tokens from a lexer.")}}


@pytest.fixture(scope="module")
def unindexed(web: LoopbackWeb, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A crawl of both sites. No test writes to it."""
    return crawled(web, tmp_path_factory.mktemp("crawl"))


@pytest.fixture(scope="module")
def db(unindexed: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same crawl with an index. No test writes to it."""
    db = str(shutil.copy(unindexed, tmp_path_factory.mktemp("indexed")))
    made = {"pages": 3, "changed": 3, "removed": 0, "unread": 0}
    assert json.loads(here("index", "--db", db, "--json").out) == made
    return db


def crawled(web: LoopbackWeb, folder: Path, db: str = "") -> str:
    (folder / "c.toml").write_text(HASTY)
    db = db or str(folder / "c.db")
    seeds = web.url("a.test"), web.url("b.test")
    ended = here("run", *seeds, "--config", folder / "c.toml", *LOOPBACK, "--db", db)
    assert ended.code == 0, ended
    return db


def find(db: str, *words: str) -> dict[str, Any]:
    ended = here("search", "--db", db, "--json", *words)
    assert (ended.code, ended.err) == (0, ""), ended
    found = json.loads(ended.out)
    assert isinstance(found, dict)
    return found


def test_an_index_is_up_to_date_until_pages_change(db: str) -> None:
    assert here("index", "--db", db) == Ended(0, "3 pages in the index: 0 read, 0 removed\n", "")


def test_index_then_search(db: str, web: LoopbackWeb) -> None:
    found = find(db, "lexer")
    lexer, parser = web.url("a.test", "/lexer"), web.url("b.test")
    assert (found["query"], found["total"]) == ("lexer", 2)
    assert [hit["url"] for hit in found["hits"]] == [lexer, parser]
    assert found["hits"][0]["title"] == {"text": "Lexer [31m", "marks": [[0, 5]]}
    assert found["hits"][0]["excerpt"] == {"text": "Lexers A lexer makes tokens.", "marks": [[0, 6], [9, 14]]}
    assert [hit["url"] for hit in find(db, "lexer", "--", "-parsers")["hits"]] == [lexer]
    assert [hit["url"] for hit in find(db, '"take tokens"')["hits"]] == [parser]
    assert [hit["url"] for hit in find(db, "pars*")["hits"]] == [parser]
    called, calling = find(db, "scanner")["hits"]
    assert (called["url"], called["anchor"]) == (lexer, {"text": "the scanner", "marks": [[4, 11]]})
    assert (calling["url"], calling["anchor"]) == (web.url("a.test"), None)
    assert [hit["url"] for hit in find(db, "tokens", "--limit", "1", "--site", "b.test")["hits"]] == [parser]
    assert find(db, "menu")["hits"] == find(db, "nobody")["hits"] == find(db, "redirecting")["hits"] == []


@pytest.mark.parametrize(
    ("options", "hits"),
    [(("--depth", "1"), 1), (("--depth", "5"), 0), (("--since", "7 days"), 2), (("--language", "de"), 0)],
)
def test_filters(options: tuple[str, ...], hits: int, db: str) -> None:
    assert len(json.loads(here("search", "tokens", *options, "--db", db, "--json").out)["hits"]) == hits


def test_for_people(db: str) -> None:
    lines = here("search", "lexer", "tokens", "--db", db).out.splitlines()
    assert lines[0] == "2 pages with all the words"
    assert lines[2] == "1. Lexer [31m"
    assert lines[3].endswith("/lexer")
    assert lines[4] == "   Lexers A lexer makes tokens."
    lines = here("search", "scanner", "--db", db, "--limit", "1").out.splitlines()
    assert lines[3].endswith("/lexer")
    assert lines[4:] == ["   a link to it says “the scanner”", "   Lexers A lexer makes tokens."]
    few = here("search", "scanner", "parsers", "--db", db).out
    assert "0 pages with all the words\n\n1. " in few
    assert "   has some of the words\n" in few


def test_words_that_begin_with_a_hyphen_come_after_two_hyphens_or_are_quoted(db: str) -> None:
    """``-hash`` holds the letter of a help option."""
    for words in (["tokens", "--", "-hash"], ["--", "-hash", "tokens"], ["-hash tokens"], ["tokens -take"]):
        found = find(db, *words)
        assert found["total"] == (1 if "-take" in words[0] else 2)
    assert find(db, "-hash tokens")["query"] == "-hash tokens"


@pytest.mark.parametrize("option", ["--limt", "-hash", "-j"])
def test_an_unknown_option_is_no_word_to_leave_out(db: str, option: str) -> None:
    ended = here("search", "tokens", option, "2", "--db", db)
    assert (ended.code, ended.out) == (2, "")
    assert "No such option" in ended.err
    assert "come after `--`" in ended.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["search"], "Missing argument"),
        (["search", "--db", "none.db", "--", "-word"], "no such store"),
        (["search", "-word"], "come after `--`"),
        (["search", "word", "--limit", "0"], "--limit"),
        (["search", "word"], ": no such search index; `crawler refresh-search --db "),
        (["search", "word", "--db", "none.db"], "no such store"),
        (["index", "--db", "none.db"], "no such store"),
    ],
)
def test_wrong_usage_is_one_clear_line(
    unindexed: str, arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = here(*arguments, *([] if "--db" in arguments else ["--db", unindexed]))
    assert ended.code == 2
    assert said in ended.err
    assert ended.err.count("\n") == 1
    assert not (tmp_path / "none.db").exists()


def test_refresh_computes_what_is_not_up_to_date(
    web: LoopbackWeb, postgres: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside PostgreSQL; tests/unit/search/test_refresh.py has it beside SQLite."""
    monkeypatch.chdir(tmp_path)  # where the index of a database is
    db = crawled(web, tmp_path, postgres.make_store())
    assert here("index", "--db", db).code == 0
    done = json.loads(here("refresh-search", "--db", db, "--json").out)
    assert done["index"] == {"pages": 3, "changed": 0, "removed": 0, "unread": 0}, "it has the ranks"
    assert (done["near_duplicates"]["pages"], done["ranks"]["sites"]) == (5, 2)
    ended = here("refresh-search", "--db", db)
    assert ended.out == "near-duplicates: up to date\nranks: up to date\nsearch index: up to date\n"
    assert find(db, "lexer")["hits"][0]["pagerank"] > 0


def test_a_store_in_use_is_not_indexed(unindexed: str) -> None:
    with FileLock(f"{unindexed}.lock"):
        ended = here("index", "--db", unindexed)
    assert (ended.code, "another command writes" in ended.err) == (2, True)
