"""Both kinds of store have the very same views and tables, and docs/store.md has their columns."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import crawler
from crawler.store.copy import NOT_COPIED, TABLES
from crawler.store.postgres.dialect import translate
from crawler.store.postgres.store import PostgresStore
from crawler.store.sql.schema import load_queries
from crawler.store.sql.tables import tables
from crawler.store.sqlite.store import SqliteStore
from crawler.store.views import VIEWS
from tests.postgres import Cluster


async def test_both_have_the_same_columns(postgres: Cluster, db_path: Path) -> None:
    sqlite = await SqliteStore.open(db_path)
    other = await PostgresStore.open(postgres.make_store())
    try:
        views = {row["name"] for row in await sqlite.query("SELECT name FROM sqlite_master WHERE type = 'view'")}
        by_number = {name for name in views if name.endswith("_by_id")}
        assert views - by_number == set(VIEWS)
        rows = await other.query("SELECT viewname AS name FROM pg_views WHERE schemaname = current_schema()")
        assert {row["name"] for row in rows} == views
        columns = "SELECT name FROM pragma_table_info(:table) ORDER BY cid"
        of_other = (
            "SELECT column_name FROM information_schema.columns "
            "WHERE table_schema = current_schema() AND table_name = :table ORDER BY ordinal_position"
        )
        for name in (*views, *TABLES):
            found = await sqlite.query(columns, {"table": name}), await other.query(of_other, {"table": name})
            both = [[next(iter(row.values())) for row in rows] for rows in found]
            assert both[0], name
            if name in views:
                assert both[0] == both[1] == list(VIEWS.get(name, both[0])), name
            else:
                assert sorted(both[0]) == sorted(both[1]) == sorted(tables("sqlite")[name].types), name
        made = {row["name"] for row in await sqlite.query("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert {name for name in made if not name.startswith("sqlite_")} - NOT_COPIED == set(TABLES)
        rows = await other.query("SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()")
        of_postgres = {"store_version", "request_number"}
        assert {row["name"] for row in rows} - NOT_COPIED - of_postgres == set(TABLES)
    finally:
        await sqlite.close()
        await other.close()


async def test_every_statement_is_valid_and_names_its_columns(postgres: Cluster, db_path: Path) -> None:
    """Rows are named tuples: a column without a name could not be read."""
    store = await PostgresStore.open(postgres.make_store())
    try:
        connection = await store._db.connect()
        for name, sql in load_queries("postgres").items():
            statement = await connection.prepare(translate(sql).sql)
            assert all(column.name.isidentifier() for column in statement.get_attributes()), name
    finally:
        await store.close()
    await (await SqliteStore.open(db_path)).close()
    with sqlite3.connect(db_path) as db:
        for name, query in load_queries("sqlite").items():
            sql = query.replace("?", ":by_position")
            parameters = dict.fromkeys(re.findall(r":(\w+)", sql))
            db.execute(f"EXPLAIN {sql}", parameters)
            if sql.startswith(("SELECT", "WITH")) and "UPDATE" not in sql:
                limited = parameters | dict.fromkeys(("limit", "first", "longest"), 1)
                columns = db.execute(sql, limited).description
                assert all(column[0].isidentifier() for column in columns), name


def test_no_other_module_knows_how_a_number_is_packed() -> None:
    packed = re.compile(r">> ?39|<< ?39")
    root = Path(crawler.__file__).parent
    files = [file for file in root.rglob("*") if file.suffix in (".py", ".sql") and root / "store" not in file.parents]
    assert [str(file.relative_to(root)) for file in files if packed.search(file.read_text())] == []
