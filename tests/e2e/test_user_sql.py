"""A query of the user, and a condition of the user, read the views of the store and do nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import crawler
from crawler.store.sqlite.store import SqliteStore
from tests.postgres import Cluster

OF_VIEWS = [
    "DELETE FROM pages",
    "/* ; */ update urls SET state = 'failed'",
    "-- SELECT\nREPLACE INTO seeds VALUES (1)",
    f"{'-' * 80}\nDELETE FROM pages",
]
#: {file} stands for the path of a file that must not be made, {read} for one that must not be read.
ON_BOTH = [
    "DELETE FROM url",
    *OF_VIEWS,
    "INSERT INTO seed VALUES (1)",
    "CREATE TABLE mine (x INTEGER)",
    "CREATE TEMP TABLE mine (x INTEGER)",
    "BEGIN",
    "COMMIT",
    "SAVEPOINT mine",
    "VACUUM",
    "ANALYZE",
    "SELECT 1; DELETE FROM url",
]
ON_SQLITE = [
    *ON_BOTH,
    "VACUUM INTO '{file}'",
    "ATTACH '{file}' AS other",
    "DETACH main",
    "PRAGMA journal_mode = delete",
    "PRAGMA writable_schema = 1",
    "PRAGMA user_version = 5",
    "PRAGMA query_only = 0",
    "PRAGMA wal_checkpoint",
    "PRAGMA wal_checkpoint(TRUNCATE)",
    "PRAGMA optimize",
    "SELECT load_extension('{read}')",
    "SELECT fts3_tokenizer('simple')",
    "SELECT readfile('{read}')",
    "SELECT writefile('{file}', 'x')",
    "SELECT * FROM page",
    "SELECT path FROM url",
    "SELECT key FROM rup_server",
    "SELECT sql FROM sqlite_master",
    "WITH pages AS (SELECT data FROM body) SELECT * FROM pages",
    "SELECT (SELECT path FROM url LIMIT 1) FROM pages",
]
ON_POSTGRES = [
    *ON_BOTH,
    "",
    "DO $$ BEGIN COMMIT; SET TRANSACTION READ WRITE; CREATE TABLE mine (x INTEGER); END $$",
    "CALL mine()",
    "COPY (SELECT 1) TO PROGRAM 'touch {file}'",
    "COPY (SELECT 1) TO '{file}'",
    "SET default_transaction_read_only = off",
    "LOCK TABLE url",
    "LISTEN mine",
    "EXPLAIN ANALYZE DELETE FROM url",
    "SELECT 1 INTO mine",
    "WITH gone AS (DELETE FROM url RETURNING 1) SELECT * FROM gone",
    "SELECT * FROM pages FOR UPDATE",
    "SELECT pg_read_file('{read}')",
    "SELECT \"pg_read_file\"('{read}')",
    "SELECT pg_catalog.pg_read_file('{read}')",
    "SELECT U&\"\\0070g_read_file\"('{read}')",
    "SELECT E'\\'' , pg_read_file('{read}') --'",
    "SELECT 1 /* ' */ , pg_read_file('{read}') /* ' */",
    "SELECT /* /* */ ' */ 1 , pg_read_file('{read}') -- '",
    "SELECT E'\\' group_concat(1) ' || pg_read_file('{read}')",
    "SELECT pg_ls_dir('/')",
    "SELECT lo_import('{read}')",
    "SELECT lo_export(1, '{file}')",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity",
    "SELECT pg_cancel_backend(1)",
    "SELECT pg_advisory_lock(7465401)",
    "SELECT pg_sleep(100)",
    "SELECT pg_notify('polite_crawler', '')",
    "SELECT set_config('role', 'crawler', false)",
    "SELECT set_config('default_transaction_read_only', 'off', false)",
    "SELECT setval('site_id_seq', 1)",
    "SELECT nextval('site_id_seq')",
    "SELECT query_to_xml('SELECT 1', true, true, '')",
    "SELECT table_to_xml('pg_authid', true, true, '')",
    "SELECT ts_stat('SELECT 1')",
    "SELECT rolpassword FROM pg_authid",
    "SELECT * FROM information_schema.user_mapping_options",
    "SELECT current_setting('data_directory')",
]
CONDITIONS = [
    "1 = 1); DELETE FROM url; --",
    "url IN (SELECT pg_read_file('{read}'))",
    "EXISTS (SELECT pg_advisory_lock(1))",
    "url IN (SELECT query_to_xml('SELECT 1', true, true, '')::text)",
]
READING = [
    "SELECT state, count(*) FROM urls GROUP BY state",
    "SELECT count(*) FROM links_glued, requests",
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT i, random() FROM n;",
    "SELECT url FROM pages UNION SELECT 'DROP TABLE; pg_sleep' -- pg_sleep",
    "SELECT count(*) FROM pages WHERE url LIKE '%pg_dump%' /* not pg_sleep */",
    "VALUES (1)",
]
#: SQLite has no brackets there.
READING_ON_POSTGRES = ["(SELECT url FROM pages) UNION SELECT 'DROP TABLE; pg_sleep' -- pg_sleep"]


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def files(tmp_path: Path) -> Iterator[dict[str, Path]]:
    read = tmp_path / "secret"
    read.write_text("a secret")
    tmp_path.chmod(0o777)
    yield {"file": tmp_path / "made", "read": read}
    assert not (tmp_path / "made").exists()


async def make(kind: str, request: pytest.FixtureRequest, db_path: Path) -> str:
    """The address of an empty store of this kind."""
    if kind == "sqlite":
        await (await SqliteStore.open(db_path)).close()
        return str(db_path)
    cluster: Cluster = request.getfixturevalue("postgres")
    return cluster.make_store()


async def test_an_attack_is_refused(
    kind: str, request: pytest.FixtureRequest, db_path: Path, files: dict[str, Path]
) -> None:
    async with crawler.open(await make(kind, request, db_path)) as crawl:
        for statement in ON_SQLITE if kind == "sqlite" else ON_POSTGRES:
            with pytest.raises((crawler.UsageError, crawler.StatementError)) as refused:
                print(statement, await crawl.query(statement.format(**files) if "{" in statement else statement))
            assert "a secret" not in str(refused.value)
            if statement in OF_VIEWS:
                assert "a query only reads the store; begin it with SELECT" in str(refused.value)
            assert await crawl.query("SELECT count(*) AS n FROM pages") == [{"n": 0}], statement
            assert not files["file"].exists(), statement


@pytest.mark.parametrize("condition", CONDITIONS)
async def test_a_condition_only_reads(
    kind: str, condition: str, request: pytest.FixtureRequest, db_path: Path, files: dict[str, Path]
) -> None:
    db, where = await make(kind, request, db_path), condition.format(**files)
    async with crawler.open(db) as crawl:
        with pytest.raises(crawler.UsageError):
            [page async for page in crawl.pages(where)]
        with pytest.raises(crawler.UsageError):
            await crawl.export("csv", db_path.with_name("out.csv"), where=where)


async def test_a_query_of_the_views_is_answered(kind: str, request: pytest.FixtureRequest, db_path: Path) -> None:
    async with crawler.open(await make(kind, request, db_path)) as crawl:
        for statement in READING if kind == "sqlite" else READING + READING_ON_POSTGRES:
            assert isinstance(await crawl.query(statement), list)


async def test_every_view_is_readable(kind: str, request: pytest.FixtureRequest, db_path: Path) -> None:
    from crawler.export import VIEWS

    async with crawler.open(await make(kind, request, db_path)) as crawl:
        for view, columns in VIEWS.items():
            await crawl.query(f"SELECT {', '.join(columns)} FROM {view} AS v")
            await crawl.query(f"SELECT count(*) FROM {view}")
