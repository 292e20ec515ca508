"""Features read the views of the store, and never its tables."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest

from crawler.demo.pages import Page, plain
from crawler.export import FORMATS, VIEWS
from crawler.search.index_backend import SQL as SEARCH
from crawler.store.sql.schema import load_queries, schema
from crawler.store.sqlite.store import SqliteStore
from crawler.store.statements import load_statements
from tests.command import HASTY, LOOPBACK, here
from tests.web import LoopbackWeb

SOURCES = Path(__file__).parents[2] / "crawler"
#: The index is the own table of the search.
INDEX = re.compile(r"search_(page|state|anchors|word|(text|head)\w*)")
WRITES = (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE)


class Guard:
    """A database with the tables and views of a store that notes each access to a table other than through a view."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        names = dict(db.execute("SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view')").fetchall())
        tables = {name for name, kind in names.items() if kind == "table" and not name.startswith("sqlite_")}
        self.tables = {name for name in tables if not INDEX.fullmatch(name)}
        self.inside_views: set[str | None] = set()  # the names of views, and of common table expressions in them
        self.found: list[str] = []
        self._is_learning = True
        db.set_authorizer(self._authorize)
        for name, kind in names.items():
            if kind == "view":
                db.execute(f"EXPLAIN SELECT * FROM {name}")
        self._is_learning = False

    def _authorize(self, action: int, table: str | None, column: str | None, _: str | None, inside: str | None) -> int:
        if action == sqlite3.SQLITE_READ and table in self.tables and column:
            if self._is_learning:
                self.inside_views.add(inside)
            elif inside not in self.inside_views:
                self.found.append(f"reads {table}.{column}")
        elif action in WRITES and table in self.tables and not self._is_learning:
            self.found.append(f"writes {table}")
        return sqlite3.SQLITE_OK

    def violations(self, sql: str) -> list[str]:
        """The accesses to tables that a statement makes."""
        self.found.clear()
        names = dict.fromkeys(re.findall(r"(?<!:):([a-z_]\w*)", sql, re.IGNORECASE), 1)
        places: Any = names or (1,) * sql.count("?")
        self.db.execute(sql if sql.startswith("CREATE TEMP") else f"EXPLAIN {sql}", places)
        return list(self.found)


@pytest.fixture
def guard() -> Iterator[Guard]:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.executescript(schema("sqlite"))
    db.create_function("zstd", 1, bytes)
    yield Guard(db)
    db.close()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, None]:
    """The statements that features give to the store, in order."""
    statements: dict[str, None] = {}
    query, rows = SqliteStore.query, SqliteStore.rows

    async def noting_query(self: SqliteStore, sql: str, *rest: Any) -> list[dict[str, Any]]:
        statements[sql] = None
        return await query(self, sql, *rest)

    async def noting_rows(self: SqliteStore, sql: str, *rest: Any) -> AsyncGenerator[Any, None]:
        statements[sql] = None
        async for row in rows(self, sql, *rest):
            yield row

    monkeypatch.setattr(SqliteStore, "query", noting_query)
    monkeypatch.setattr(SqliteStore, "rows", noting_rows)
    return statements


@pytest.fixture
def db(loopback: LoopbackWeb, tmp_path: Path) -> Path:
    """A crawl of two sites, one of which names the other one as its main site."""
    loopback.sites["a.test"] = {
        "/robots.txt": plain("User-agent: *\nDisallow: /no\n"),
        "/": Page("<a href=/b>a word</a><a href=/no>no</a><a href=/gone>gone</a>"),
        "/b": Page("<a href=/>home</a>"),
    }
    loopback.sites["www.a.test"] = {
        "/robots.txt": plain(f"User-agent: *\nDisallow:\nHost: a.test:{loopback.port}\n"),
        "/": Page("<a href=/b>b</a>"),
    }
    (tmp_path / "c.toml").write_text(HASTY)
    db = tmp_path / "c.db"
    seeds = [loopback.url("a.test"), loopback.url("www.a.test")]
    ended = here("run", *seeds, "--config", tmp_path / "c.toml", *LOOPBACK, "--db", db, "--sample", "2")
    assert ended.code == 0, ended
    return db


def test_no_command_reads_a_table(
    db: Path, loopback: LoopbackWeb, asked: dict[str, None], guard: Guard, tmp_path: Path
) -> None:
    commands: list[tuple[str, ...]] = [
        ("status",),
        ("why", loopback.url("a.test")),
        ("why", loopback.url("a.test", "/no")),
        ("audit", "--report", str(tmp_path / "audit.md")),
        ("index",),
        ("search", "word"),
        ("search", "word", "--site", "a.test"),
        ("rank",),
        ("duplicates",),
        ("sample",),
        ("report", str(tmp_path / "report.html")),
        *(("export", name, str(tmp_path / f"out.{name}")) for name in FORMATS),
        *(("export", "jsonl", str(tmp_path / f"{view}.jsonl"), "--table", view) for view in VIEWS),
    ]
    for command in commands:
        ended = here(*command, "--db", db)
        assert ended.code == 0, (command, ended)
    of_store = set(load_queries().values())
    reads = [sql for sql in asked if sql not in of_store and not sql.startswith(("BEGIN", "ROLLBACK"))]
    assert len(reads) > 60
    assert {sql: found for sql in reads if (found := guard.violations(sql))} == {}


def test_the_search_index_is_built_from_views(guard: Guard) -> None:
    for statement in filter(None, (part.strip() for part in SEARCH["deduplicate"].split(";\n"))):
        assert not guard.violations(statement), statement
    dialect = load_statements("crawler.search", "sqlite.sql")
    for name in ("inbound_links", "next_pages", "count_chosen", "begin_state", "end_state", "remove_unchosen"):
        assert not guard.violations(SEARCH[name].format(version=1, site_weight=1, languages="en")), name
    for name in ("insert_text", "insert_page", "set_figures", "insert_inbound"):
        assert not guard.violations(dialect[name]), name


def test_no_source_names_a_table(guard: Guard) -> None:
    """The authorizer does not see a table of which no column is read, as in ``SELECT count(*) FROM link``."""
    tables = re.compile(rf"\b(?:FROM|JOIN|INTO|UPDATE) (?:{'|'.join(guard.tables)})\b(?!\()")
    packed = re.compile(r"(?:<<|>>) ?39\b|HASH_BITS|HASH_MASK")
    found: dict[str, list[str]] = {}
    for path in SOURCES.rglob("*"):
        if path.suffix in (".py", ".sql") and SOURCES / "store" not in path.parents:
            text = path.read_text()
            if names := [*tables.findall(text), *packed.findall(text)]:
                found[str(path.relative_to(SOURCES))] = names
    assert found == {}
