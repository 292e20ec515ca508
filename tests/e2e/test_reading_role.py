"""The reading role on PostgreSQL: every command that reads works with it, and the server refuses all else."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import asyncpg
import pytest

import crawler
from crawler.demo.pages import Page
from crawler.export import FORMATS
from crawler.store.postgres.reader import scram_verifier
from tests.command import HASTY, LOOPBACK, here
from tests.postgres import Cluster
from tests.web import LoopbackWeb


@pytest.fixture
def role() -> str:
    """A name that needs quoting; roles belong to the whole server."""
    return f'Reader "{uuid.uuid4().hex[:8]}'


class Crawled(NamedTuple):
    """A crawl in a database, and its seed."""

    db: str
    seed: str


@pytest.fixture(scope="module")
def crawled(shared_postgres: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """Two pages, with a search index and ranks. No test changes them; each has a role of its own."""
    folder = tmp_path_factory.mktemp("crawl")
    config = folder / "c.toml"
    config.write_text(HASTY)
    db = shared_postgres.make_store()
    site = {"/": Page("<a href=/b>a word</a>"), "/b": Page("<a href=/>home</a>")}
    with LoopbackWeb({"a.test": site}) as web:
        seed = web.url("a.test")
        for command in (("run", seed, "--config", config, *LOOPBACK, "--sample", "2"), ("index",), ("rank",)):
            ended = here(*command, "--db", db)
            assert ended.code == 0, ended
        yield Crawled(db, seed)


@pytest.fixture
def db(crawled: Crawled) -> str:
    return crawled.db


def as_role(db: str, role: str) -> str:
    return db.replace("//crawler@", f"//{role.replace(' ', '%20').replace(chr(34), '%22')}@")


def test_commands_that_read_need_no_more(crawled: Crawled, role: str, tmp_path: Path) -> None:
    db = crawled.db
    assert "made the role" in here("store", "grant-reader", role, "--db", db).out
    assert "made the role" not in here("store", "grant-reader", role, "--db", db).out
    reading = as_role(db, role)
    for command in (
        ("status",),
        ("why", crawled.seed),
        ("audit",),
        ("search", "word"),
        ("sample",),
        ("rup", "status"),
        ("report", tmp_path / "report.html"),
        *(("export", name, tmp_path / f"out.{name}") for name in FORMATS),
        ("store", "copy", reading, tmp_path / "copy.db"),
    ):
        ended = here(*command, *(() if command[0] == "store" else ("--db", reading)))
        # The keys of registrations are not for readers: a copy of the whole store needs the crawler's role.
        assert ended.code == (0 if command[0] != "store" else 2), (command, ended)


def test_a_role_that_can_do_more_is_refused(db: str) -> None:
    ended = here("store", "grant-reader", "crawler", "--db", db)
    assert ended.code == 2
    assert "choose another role" in ended.err


def test_a_file_has_no_roles(tmp_path: Path) -> None:
    ended = here("store", "grant-reader", "--db", tmp_path / "crawl.db")
    assert (ended.code, "permissions of the file" in ended.err) == (2, True)


@pytest.mark.parametrize(
    "statement",
    [
        "DO $$ BEGIN COMMIT; SET TRANSACTION READ WRITE; INSERT INTO change_under_way VALUES (1); END $$",
        "SET default_transaction_read_only = off; INSERT INTO change_under_way VALUES (1)",
        "SET default_transaction_read_only = off; CREATE TABLE mine (x integer)",
        "SET default_transaction_read_only = off; SELECT nextval('site_id_seq')",
        "COPY (SELECT 1) TO PROGRAM 'true'",
        "COPY change_under_way FROM PROGRAM 'echo 1'",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT lo_import('/etc/passwd')",
        "SELECT rolpassword FROM pg_authid",
        "SELECT key FROM rup_server",
        "SET ROLE crawler",
        "SET SESSION AUTHORIZATION crawler",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'crawler'",
    ],
)
async def test_the_server_refuses_everything_else(db: str, role: str, statement: str) -> None:
    """These statements are sent as they are, not by the crawler."""
    owner = await asyncpg.connect(db)
    await asyncio.to_thread(here, "store", "grant-reader", role, "--db", db)
    reader = await asyncpg.connect(as_role(db, role))
    try:
        with pytest.raises(asyncpg.PostgresError):
            await reader.execute(statement)
        assert await owner.fetchval("SELECT count(*) FROM change_under_way") == 0
    finally:
        await reader.close()
        await owner.close()


async def test_the_role_reads_the_views_from_python(db: str, role: str) -> None:
    await asyncio.to_thread(here, "store", "grant-reader", role, "--db", db)
    async with crawler.open(as_role(db, role)) as crawl:
        assert len(await crawl.query("SELECT url FROM pages")) == 2
        assert len([page async for page in crawl.pages("depth = 0")]) == 1


def test_a_password_reaches_the_server_as_a_verifier(
    db: str, role: str, postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRAWLER_READER_PASSWORD", "pencil")
    assert here("store", "grant-reader", role, "--db", db).code == 0
    quoted = role.replace("'", "''")
    stored = postgres.psql(f"SELECT rolpassword FROM pg_authid WHERE rolname = '{quoted}'")
    assert stored.startswith("SCRAM-SHA-256$4096:")
    assert stored.strip() == scram_verifier("pencil", _salt(stored))


def _salt(stored: str) -> bytes:
    import base64

    return base64.b64decode(stored.split("$")[1].partition(":")[2])
