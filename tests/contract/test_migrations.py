"""A store opens in later versions: the stores of released versions, and the way of a migration."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from crawler.errors import StoreInUse, StoreVersionError
from crawler.store.postgres import connection as postgres_connection
from crawler.store.postgres.reader import grant_reader
from crawler.store.postgres.store import PostgresStore
from crawler.store.sections import Store
from crawler.store.sql import schema
from crawler.store.sqlite import connection as sqlite_connection
from crawler.store.sqlite.connection import lock_store
from crawler.store.sqlite.store import SqliteStore
from tests.contract.conftest import Opener
from tests.contract.visits import Harness
from tests.postgres import Cluster
from tests.released_stores import FOLDER, LINKS, SEEDS, read

#: A step with a part for each database.
STEP = """
ALTER TABLE site ADD COLUMN mood TEXT;
-- sqlite only
CREATE TABLE only_sqlite (id INTEGER PRIMARY KEY) WITHOUT ROWID;
-- both
-- postgres only
CREATE TABLE only_postgres (id bigint);
-- both
"""
_COLUMNS_OF_SQLITE = """
SELECT t.type, t.name, c.name, c.type, c."notnull", c.dflt_value, c.pk
FROM sqlite_master t JOIN pragma_table_xinfo(t.name) c WHERE t.type IN ('table', 'view') ORDER BY 1, 2, 3
"""
_OTHERS_OF_SQLITE = "SELECT type, name, sql FROM sqlite_master WHERE type NOT IN ('table') ORDER BY 1, 2"
_OF_POSTGRES = """
SELECT 'column', table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns
WHERE table_schema = 'public'
UNION ALL SELECT 'index', tablename, indexname, indexdef, '', '' FROM pg_indexes WHERE schemaname = 'public'
UNION ALL SELECT 'view', viewname, definition, '', '', '' FROM pg_views WHERE schemaname = 'public'
UNION ALL SELECT 'function', proname, prosrc, '', '', '' FROM pg_proc WHERE pronamespace = 'public'::regnamespace
ORDER BY 1, 2, 3
"""


def load(dump: str, path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.executescript(dump)
    db.close()


def opener_of(dump: Path, folder: Path, postgres: Cluster) -> Opener:
    """Opens the store that a released version has dumped."""
    if ".sqlite." in dump.name:
        load(read(dump), folder / "crawl.db")
        return lambda: SqliteStore.open(folder / "crawl.db")
    url, script = postgres.make_database(), postgres.folder / f"{postgres.name_in(postgres.url('x'))}.{dump.stem}"
    script.write_text(read(dump))
    script.chmod(0o644)
    socket = str(postgres.folder)
    postgres.run(
        "psql",
        "-X",
        "-q",
        "-v",
        "ON_ERROR_STOP=1",
        "-h",
        socket,
        "-U",
        "crawler",
        "-f",
        str(script),
        postgres.name_in(url),
    )
    return lambda: PostgresStore.open(url)


async def tables_of(store: Store) -> list[tuple[Any, ...]]:
    """Everything that the schema of a store has."""
    if isinstance(store, SqliteStore):
        found = [*await store._db.execute_fetchall(_COLUMNS_OF_SQLITE)]
        return [tuple(row) for row in [*found, *await store._db.execute_fetchall(_OTHERS_OF_SQLITE)]]
    assert isinstance(store, PostgresStore)
    return [tuple(row) for row in await store._db.fetch_records(_OF_POSTGRES)]


@pytest.mark.parametrize("dump", sorted(FOLDER.iterdir()), ids=lambda path: path.name)
async def test_a_store_of_a_released_version_opens_has_the_schema_of_a_new_one_and_goes_on(
    dump: Path, tmp_path: Path, postgres: Cluster, request: pytest.FixtureRequest
) -> None:
    harness = Harness(opener_of(dump, tmp_path, postgres))
    await harness.reopen()
    (pages,) = await harness.store.query("SELECT count(*) AS n FROM pages")
    assert pages["n"] == len(SEEDS)
    (links,) = await harness.store.query("SELECT count(*) AS n FROM links")
    assert links["n"] == len(SEEDS) * LINKS
    claims = await harness.claim()
    assert {claim.group for claim in claims} == {"a.test", "b.test"}
    migrated = await tables_of(harness.store)
    await harness.close()
    new = (
        await SqliteStore.open(tmp_path / "new.db")
        if ".sqlite." in dump.name
        else await PostgresStore.open(postgres.make_store())
    )
    assert migrated == await tables_of(new), "write crawler/store/sql/migrations/NNNN.sql for the change of the schema"
    await new.close()


@pytest.fixture
def next_version(monkeypatch: pytest.MonkeyPatch) -> int:
    """A version of the crawler whose schema is one step further than today's."""
    step = schema.SCHEMA_VERSION + 1
    read_sql = schema.read_sql

    def with_step(package: str, file: str) -> str:
        return STEP if file == f"migrations/{step:04}.sql" else read_sql(package, file)

    monkeypatch.setattr(schema, "read_sql", with_step)
    for module in (schema, sqlite_connection, postgres_connection):
        monkeypatch.setattr(module, "SCHEMA_VERSION", step)
    return step


@pytest.fixture
async def earlier(opener: Opener) -> Opener:
    """Opens a store that this version has made."""
    store = await opener()
    await store.close()
    return opener


async def test_a_step_runs_once_and_the_views_are_there_after_it(
    earlier: Opener, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("next_version")
    for _ in range(2):
        store = await earlier()
        (mood,) = {row[2:3] for row in await tables_of(store) if "mood" in row}
        assert mood == ("mood",)
        assert {row[1] for row in await tables_of(store) if str(row[1]).startswith("only_")} == {
            f"only_{store.dialect}"
        }
        assert await store.query("SELECT * FROM urls") == []
        await store.close()


async def test_a_view_of_the_user_stays(db_path: Path, request: pytest.FixtureRequest) -> None:
    await (await SqliteStore.open(db_path)).close()
    load("CREATE VIEW my_study AS SELECT url FROM pages", db_path)
    request.getfixturevalue("next_version")
    store = await SqliteStore.open(db_path)
    assert await store.query("SELECT * FROM my_study") == []
    await store.close()


async def test_a_step_that_fails_leaves_the_store_as_it_was(
    earlier: Opener, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await earlier()
    before = await tables_of(store)
    await store.close()
    with monkeypatch.context() as patched:
        request.getfixturevalue("next_version")
        patched.setattr(f"{__name__}.STEP", STEP + "ALTER TABLE nowhere ADD COLUMN mood TEXT;\n")
        with pytest.raises(Exception, match="nowhere"):
            await earlier()
    monkeypatch.undo()
    store = await earlier()
    assert await tables_of(store) == before
    await store.close()


async def test_a_file_that_is_only_read_is_migrated_unless_another_process_writes_to_it(
    db_path: Path, request: pytest.FixtureRequest
) -> None:
    await (await SqliteStore.open(db_path)).close()
    request.getfixturevalue("next_version")
    lock = lock_store(db_path)
    with pytest.raises(StoreInUse, match="another command writes"):
        await SqliteStore.open(db_path, read_only=True)
    lock.release()
    store = await SqliteStore.open(db_path, read_only=True)
    assert await store.query("SELECT * FROM urls") == []
    await store.close()


async def test_a_database_is_not_migrated_under_a_worker_and_readers_may_read_it_afterwards(
    postgres: Cluster, request: pytest.FixtureRequest
) -> None:
    url = postgres.make_store()
    harness = Harness(lambda: PostgresStore.open(url))
    await harness.reopen()
    name = postgres.name_in(url)
    await grant_reader(url, role := f"reader_of_{name}", None)
    request.getfixturevalue("next_version")
    with pytest.raises(StoreInUse, match="stop all workers"):
        await PostgresStore.open(url, read_only=True)
    await harness.close()
    postgres.psql("UPDATE worker SET ended_at = 1", database=name)
    await (await PostgresStore.open(url, read_only=True)).close()
    assert postgres.psql(f"SET ROLE {role}; SELECT count(*) FROM pages", database=name).strip() == "0"


async def test_a_store_from_before_0_2_0_says_how_its_urls_are_carried_over(db_path: Path, postgres: Cluster) -> None:
    await (await SqliteStore.open(db_path)).close()
    with sqlite3.connect(db_path) as db:
        db.execute("PRAGMA user_version = 1")
    db.close()
    url = postgres.make_store()
    postgres.psql("UPDATE store_version SET version = 1", database=postgres.name_in(url))
    for opening in (SqliteStore.open(db_path), PostgresStore.open(url)):
        with pytest.raises(StoreVersionError, match=r"before 0\.2\.0.*export the view urls"):
            await opening
