"""Both kinds of store have the very same views and tables, and docs/store.md has their columns."""

from __future__ import annotations

from pathlib import Path

from crawler.export.view_columns import VIEWS
from crawler.store.copy import NOT_COPIED, TABLES
from crawler.store.postgres.store import PostgresStore
from crawler.store.sql.store import SqliteStore
from tests.postgres import Cluster


async def test_both_have_the_same_columns(postgres: Cluster, db_path: Path) -> None:
    sqlite = await SqliteStore.open(db_path)
    other = await PostgresStore.open(postgres.make_database())
    try:
        views = {row["name"] for row in await sqlite.query("SELECT name FROM sqlite_master WHERE type = 'view'")}
        by_number = {name for name in views if name.endswith("_by_id")}
        assert views - by_number == set(VIEWS)
        rows = await other.query("SELECT viewname AS name FROM pg_views WHERE schemaname = current_schema()")
        assert {row["name"] for row in rows} == views
        for name in (*views, *TABLES):
            assert await sqlite.columns_of(name), name
            both = [await sqlite.columns_of(name), await other.columns_of(name)]
            if name in views:
                assert both[0] == both[1] == list(VIEWS.get(name, both[0])), name
            else:
                assert sorted(both[0]) == sorted(both[1]), name
        tables = {row["name"] for row in await sqlite.query("SELECT name FROM sqlite_master WHERE type = 'table'")}
        own = {name for name in tables if name.startswith(("sqlite_", "search_text_"))}
        assert tables - own - NOT_COPIED == set(TABLES)
        rows = await other.query("SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()")
        assert {row["name"] for row in rows} - NOT_COPIED == set(TABLES)
    finally:
        await sqlite.close()
        await other.close()
