"""``crawler store forget`` and ``clean`` on a crawled web."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from crawler.demo.pages import Page
from crawler.store.location import db_argument
from crawler.store.sqlite import connection
from tests.command import HASTY, LOOPBACK, Ended, here
from tests.postgres import Cluster
from tests.web import LoopbackWeb


@pytest.fixture(params=["sqlite", "postgres"])
def db(request: pytest.FixtureRequest, loopback: LoopbackWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)  # where the index of a database is
    b = loopback.url("b.test")
    loopback.sites["a.test"] = {
        "/": Page(f"<title>Zebra</title><a href=/secret>about the quagga</a> <a href=/open>open</a> <a href={b}>b</a>"),
        "/secret": Page("<title>Quagga</title><p>The okapi word."),
        "/open": Page("<title>Open</title><p>Plain."),
    }
    loopback.sites["b.test"] = {"/": Page(f"<title>Gnu</title><a href={loopback.url('a.test')}>the zebra</a>")}
    db = str(tmp_path / "c.db")
    if request.param == "postgres":
        cluster: Cluster = request.getfixturevalue("postgres")
        db = cluster.make_store()
    assert run(loopback, db, tmp_path, loopback.url("a.test"), b).code == 0
    return db


@pytest.fixture
def searched(db: str) -> str:
    """The store with all that a search needs."""
    for command in ("duplicates", "index", "rank"):
        assert here(command, "--db", db).code == 0
    return db


def run(web: LoopbackWeb, db: str, folder: Path, *seeds: str) -> Ended:
    (folder / "c.toml").write_text(HASTY)
    return here("run", *seeds, "--config", folder / "c.toml", *LOOPBACK, "--db", db)


def exported(db: str, folder: Path, table: str) -> str:
    assert here("export", "csv", folder / "out.csv", "--table", table, "--db", db).code == 0
    return (folder / "out.csv").read_text()


def forget(db: str, *arguments: str) -> dict[str, Any]:
    ended = here("store", "forget", *arguments, "--db", db, "--json")
    assert (ended.code, ended.err) == (0, ""), ended
    result = json.loads(ended.out)
    assert isinstance(result, dict)
    return result


def test_a_site_that_opts_out_is_blocked_and_forgotten_by_one_command(
    searched: str, loopback: LoopbackWeb, tmp_path: Path
) -> None:
    db = searched
    dry = forget(db, "a.test", "--dry-run")
    assert (dry["pages"], dry["links"], len(dry["examples"])) == (3, 3, 3)
    assert "Quagga" in exported(db, tmp_path, "pages"), "a dry run changes nothing"
    done = forget(db, "a.test", "--because", "asked by mail")
    assert (done["pages"], done["blocked"], done["in_index"]) == (3, "a.test", True)
    assert set(done["behind"]) == {"near_duplicates", "ranks", "index"}
    computed = json.loads(here("status", "--db", db, "--json").out)["computed"]
    assert computed == {name: {"is_behind": True} for name in ("near_duplicates", "ranks", "index")}
    for word in ("quagga", "okapi", "plain"):
        assert json.loads(here("search", word, "--db", db, "--json").out)["hits"] == []
    assert len(json.loads(here("search", "gnu", "--db", db, "--json").out)["hits"]) == 1, "the search answers"
    behind = "near-duplicates, ranks, search index"
    told = f"not up to date with the crawl: {behind}; run `crawler refresh-search{db_argument(db)}`"
    assert "".join(told.split()) in "".join(here("status", "--db", db).out.split())
    table = here("export", "csv", tmp_path / "near.csv", "--table", "near_duplicates", "--db", db)
    assert "not up to date with the crawl: near-duplicates;" in table.err
    for table in ("pages", "page_versions", "ranks", "site_ranks"):
        assert "a.test" not in exported(db, tmp_path, table)
    assert "quagga" not in exported(db, tmp_path, "links")
    assert "the zebra" in exported(db, tmp_path, "links"), "the words of another site are its own"
    assert exported(db, tmp_path, "requests").count("a.test") >= 4
    assert here("duplicates", "--db", db).code == here("rank", "--db", db).code == 0
    assert json.loads(here("status", "--db", db, "--json").out)["computed"]["ranks"] == {"is_behind": False}
    assert here("index", "--db", db).code == 0
    for word in ("quagga", "okapi", "plain"):
        assert json.loads(here("search", word, "--db", db, "--json").out)["hits"] == []
    assert here("report", tmp_path / "r.html", "--db", db).code == 0
    report = (tmp_path / "r.html").read_text()
    assert "Quagga" not in report
    assert "forgotten by the operator: its content was taken out" in report
    why = here("why", loopback.url("a.test", "/secret"), "--db", db).out
    assert "asked by mail" in why
    undo = f"`crawler store forget a.test --undo{db_argument(db)}` lets it be fetched again"
    assert "".join(undo.split()) in "".join(why.split())
    assert here("audit", "--db", db).code == 0
    before = len(loopback.log)
    again = run(loopback, db, tmp_path)
    assert again.code == 0, again
    assert len(loopback.log) == before
    assert forget(db, "a.test", "--undo")["urls"] == 3
    assert run(loopback, db, tmp_path).code == 0
    assert "Quagga" in exported(db, tmp_path, "pages")


def test_one_url_stays_out_until_it_is_asked_for(db: str, loopback: LoopbackWeb, tmp_path: Path) -> None:
    secret = loopback.url("a.test", "/secret")
    assert forget(db, secret, "--redact")["pages"] == 1
    assert "secret" not in exported(db, tmp_path, "requests")
    audit = json.loads(here("audit", "--db", db, "--json").out)
    assert audit["violations"] == []
    assert any("were reduced to their sites" in limit for limit in audit["limits"])
    assert run(loopback, db, tmp_path, loopback.url("a.test")).code == 0
    assert "Quagga" not in exported(db, tmp_path, "pages")
    assert forget(db, "--regex", "/secret$", "--undo")["urls"] == 1
    assert run(loopback, db, tmp_path).code == 0
    assert "Quagga" in exported(db, tmp_path, "pages")


def test_what_is_forgotten_already_can_be_redacted_and_brought_back(
    db: str, loopback: LoopbackWeb, tmp_path: Path
) -> None:
    forget(db, loopback.url("a.test", "/secret"))
    assert "secret" in exported(db, tmp_path, "requests")
    assert forget(db, loopback.url("a.test", "/secret"), "--redact")["urls"] == 0
    assert "secret" not in exported(db, tmp_path, "requests")
    undone = here("store", "forget", loopback.url("a.test", "/secret"), "--undo", "--db", db)
    assert undone.out.startswith(f"1 URL of {loopback.url('a.test', '/secret')} queued again"), undone
    again = here("store", "forget", loopback.url("a.test", "/secret"), "--undo", "--db", db)
    assert again.code == 2
    assert f"{loopback.url('a.test', '/secret')}: nothing of it was forgotten" in again.err
    unknown = here("store", "forget", loopback.url("a.test", "/unknown"), "--db", db)
    assert (unknown.code, unknown.out) == (2, "")
    assert "the store does not know it" in unknown.err


def test_a_site_that_the_crawl_does_not_know_is_told(searched: str, loopback: LoopbackWeb) -> None:
    db = searched
    for more in (["--dry-run"], []):
        ended = here("store", "forget", "a.tset", *more, "--db", db)
        assert (ended.code, ended.out) == (2, "")
        assert "no URL of a.tset is in the store; is it spelled right? Near: a.test; nothing was changed" in ended.err
        assert "`crawler control block a.tset" in ended.err
    assert json.loads(here("search", "quagga", "--db", db, "--json").out)["hits"], "its index is as it was"
    assert here("store", "forget", "a.tset", "--undo", "--db", db).code == 2, "it is not blocked"
    assert "is in the store" not in here("store", "forget", "a.test", "--dry-run", "--db", db).out


def test_a_dry_run_lists_the_first_urls_by_name_and_counts_the_others(loopback: LoopbackWeb, tmp_path: Path) -> None:
    paths = [f"/{number:02}" for number in range(13)]
    links = "".join(f"<a href={path}>x</a>" for path in reversed(paths))
    loopback.sites["c.test"] = {"/": Page(links)} | {path: Page("x") for path in paths}
    assert run(loopback, str(tmp_path / "c.db"), tmp_path, loopback.url("c.test")).code == 0
    listed = here("store", "forget", "c.test", "--dry-run", "--db", tmp_path / "c.db").out.splitlines()[1:]
    assert listed == [*(loopback.url("c.test", path) for path in ["/", *paths[:9]]), "… and 4 more"]


# PostgreSQL keeps deleted rows until VACUUM FULL.
@pytest.mark.parametrize("db", ["sqlite"], indirect=True)
def test_a_deleted_title_is_overwritten_in_the_file(db: str) -> None:
    assert b"Quagga" in Path(db).read_bytes()
    forget(db, "--regex", "secret")
    assert b"Quagga" not in Path(db).read_bytes()


def test_a_reader_that_keeps_the_log_is_told_of(
    loopback: LoopbackWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loopback.sites["a.test"] = {"/": Page("<title>Zebra</title><a href=/x>x</a>"), "/x": Page("<title>Quagga</title>")}
    path = tmp_path / "c.db"
    assert run(loopback, str(path), tmp_path, loopback.url("a.test")).code == 0
    files = (path, tmp_path / "c.db-wal")

    def holds(word: bytes) -> bool:
        return any(word in file.read_bytes() for file in files if file.exists())

    with closing(sqlite3.connect(path, isolation_level=None)) as idle:  # as a dashboard between two looks
        idle.execute("SELECT count(*) FROM urls").fetchall()
        assert forget(str(path), loopback.url("a.test", "/x"))["pages"] == 1
        assert not holds(b"Quagga")
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM urls").fetchall()
        monkeypatch.setattr(connection, "PATIENCE_MS", 100)
        told = here("store", "forget", loopback.url("a.test"), "--db", path).err
        assert "so its log still holds what was deleted" in told
        assert holds(b"Zebra")
    assert here("store", "compact", "--db", path).code == 0
    assert not holds(b"Zebra")


def test_versions_are_pruned_and_the_store_compacted(db: str, loopback: LoopbackWeb) -> None:
    done = json.loads(here("store", "clean", "--keep-versions", "1", "--db", db, "--json").out)
    assert (done["versions"], done["bytes_after"] > 0, "deleted" in done) == (0, True, False)
    assert here("audit", "--db", db).code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["forget"], "name a SITE or a URL, or give --regex"),
        (["forget", "a.test", "--regex", "x"], "name a SITE or a URL, or give --regex"),
        (["forget", "--regex", "("], "--regex: "),
        (["forget", "*.test"], "patterns are not supported"),
        (["forget", "a.test", "--undo", "--redact"], "--undo takes neither"),
        (["prune", "--older-than", "soon"], "--older-than must be"),
        (["compact"], "no such store"),
    ],
)
def test_wrong_usage_changes_nothing(arguments: list[str], said: str, tmp_path: Path) -> None:
    ended = here("store", *arguments, "--db", tmp_path / "none.db")
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert not (tmp_path / "none.db").exists()
