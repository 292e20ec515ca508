"""The statements of a crawl and their plans: none walks over a table that grows with the crawl."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import aiosqlite.core
import pytest

import crawler
from crawler.demo.pages import Page
from crawler.store.sql.schema import load_queries
from crawler.store.sqlite.on_thread import OnThread
from crawler.store.sqlite.store import SqliteStore
from crawler.store.statements import load_statements
from tests.web import LoopbackWeb

REPORT_SQL = load_statements("crawler.report")
QUICK = {"politeness.delay": 0.02, "fetch.resolve": ["*.test=127.0.0.1"], "fetch.allow_private": True}
READS_OR_WRITES = re.compile(r"\s*(?:SELECT|WITH|INSERT|REPLACE|UPDATE|DELETE)\b").match
#: Asked once, when the crawl has ended.
AT_THE_END = {load_queries()["alike_sites"], load_queries()["queued_count"]}
#: Tables with a row for each URL, page or request, and what statements call them.
GROWING = {"url", "u", "frontier", "f", "page", "p", "body", "b", "link", "l", "request", "r", "page_version", "v"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Every statement that the database was given."""
    statements: set[str] = set()

    def note(owner: type, method: str) -> None:
        noted_method = getattr(owner, method)

        async def noting(self: object, function: Any, *arguments: Any, **options: Any) -> Any:
            statements.update(filter(READS_OR_WRITES, (text for text in arguments[:1] if isinstance(text, str))))
            return await noted_method(self, function, *arguments, **options)

        monkeypatch.setattr(owner, method, noting)

    note(aiosqlite.core.Connection, "_execute")
    note(OnThread, "_call")
    return statements


def _walks(db: sqlite3.Connection, statement: str) -> list[str]:
    """The steps in which a statement walks over all of a table that grows. The seeds are few: their index may be."""
    named = re.sub(r"\?(\d*)", r":p\1", statement)  # by names, more parameters may be given than there are
    rows = db.execute(
        f"EXPLAIN QUERY PLAN {named}",
        dict.fromkeys(("p", *(f"p{n}" for n in range(1, 40)), *re.findall(r":(\w+)", named))),
    )
    steps = [step.split() for *_, step in rows]
    return [" ".join(step) for step in steps if step[0] == "SCAN" and step[1] in GROWING and step[-1] != "url_seed"]


async def test_no_statement_walks_over_what_grows_with_the_crawl(
    loopback: LoopbackWeb, db_path: Path, asked: set[str]
) -> None:
    pages = {f"/{n}": Page(f"<a href=/{n + 1}>next</a>") for n in range(20)}
    loopback.sites["a.test"] = pages | {"/": Page("<a href=/0>first</a>")}
    for more in ({"limits.max_pages": 5}, {}):
        asked.clear()  # of the first run, that is what makes the store
        async with crawler.open(db_path, QUICK | more) as crawl:
            assert [page async for page in crawl.run(seeds=[loopback.url("a.test")])]
    assert len(asked) > 50
    with sqlite3.connect(db_path) as db:
        walks = {statement: _walks(db, statement) for statement in asked - AT_THE_END}
    assert {statement: steps for statement, steps in walks.items() if steps} == {}


async def test_broken_links_are_found_in_one_look_through_all_links(db_path: Path) -> None:
    """There is no index by target, which would cost every page; nor is one made for the occasion."""
    statement = REPORT_SQL["broken_links"]
    await (await SqliteStore.open(db_path)).close()
    with sqlite3.connect(db_path) as db:
        named = re.sub(r"\?", ":p", statement)
        steps = [
            step
            for *_, step in db.execute(
                f"EXPLAIN QUERY PLAN {named}", dict.fromkeys(("a", "b", "limit", "pages_of_each"), 1)
            )
        ]
    assert [step for step in steps if re.match(r"(SCAN|SEARCH) (l|link)\b", step)] in (["SCAN l"], ["SCAN link"])


async def test_a_claim_walks_over_no_groups_that_it_does_not_take(db_path: Path) -> None:
    await (await SqliteStore.open(db_path)).close()
    statement = load_queries("sqlite")["claim_groups"]
    with sqlite3.connect(db_path) as db:
        parameters = dict.fromkeys(re.findall(r":(\w+)", statement), 1)
        steps = [step for *_, step in db.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)]
    assert [step for step in steps if re.match(r"SEARCH g\b|SCAN (g|politeness_group)\b", step)] == [
        "SEARCH g USING INDEX group_ready (ready_at<?)"
    ]
