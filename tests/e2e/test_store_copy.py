"""``crawler store copy`` as a user sees it: until a copy is finished, no command takes it for a store."""

from __future__ import annotations

import json
import shlex
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from unittest import mock

import pytest

from crawler.demo.pages import Page
from crawler.errors import StoreError
from tests.command import HASTY, LOOPBACK, here
from tests.postgres import Cluster
from tests.web import LoopbackWeb, random_web


@pytest.fixture
def crawled(tmp_path: Path, loopback: LoopbackWeb) -> Path:
    """A store of two sites."""
    web = random_web(5, hosts=2, pages_per_host=3, port=loopback.port)
    loopback.sites.update(web.sites)
    (tmp_path / "hasty.toml").write_text(HASTY)
    done = here("run", *web.seeds, "--db", tmp_path / "c.db", "--config", tmp_path / "hasty.toml", *LOOPBACK)
    assert done.code == 0, done.err
    return tmp_path / "c.db"


@pytest.fixture(params=["sqlite", "postgres"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "copy of c.db")
    cluster: Cluster = request.getfixturevalue("postgres")
    return cluster.make_database()


def test_a_half_finished_copy_is_refused_by_every_command(crawled: Path, target: str, tmp_path: Path) -> None:
    with mock.patch("crawler.store.copy._copy", side_effect=StoreError("cut off")):
        assert here("store", "copy", crawled, target).code == 4
    for command in (
        ["run", "--no-progress"], ["status"], ["status", "--json"], ["why", "http://a.test/"], ["audit"], ["rank"],
        ["export", "csv", "-"], ["report", str(tmp_path / "r.html")], ["control", "block", "a.test"],
        ["control", "pause"], ["hint", "http://a.test/"], ["sample"], ["rup", "status"],
    ):  # fmt: skip
        refused = here(*command, "--db", target)
        assert (refused.code, refused.out) == (2, ""), command
        continues = f"`crawler store copy {shlex.quote(str(crawled))} {shlex.quote(target)}` continues it"
        assert refused.err == f"crawler: {target}: a copy that is not finished; {continues}\n"
    from_it = here("store", "copy", target, tmp_path / "third.db")
    assert (from_it.code, "not finished" in from_it.err) == (2, True)
    copied = here("store", "copy", crawled, target)
    assert copied.code == 0
    *table, last = copied.out.splitlines()
    continues = f"`crawler run --db {shlex.quote(target)}` with the options of the crawl continues it"
    assert last == f"{target} is a complete copy; {continues}"
    tables = {line.split()[0] for line in table}
    assert {"url", "page"} <= tables
    assert "rup_mail" not in tables
    assert here("audit", "--db", target).code == 0
    assert here("run", "--db", target, *LOOPBACK).code == 0


def test_a_complete_copy_is_brought_up_to_date(
    crawled: Path, target: str, tmp_path: Path, loopback: LoopbackWeb
) -> None:
    assert here("store", "copy", crawled, target).code == 0
    loopback.sites["late.test"] = {"/": Page("<title>Late</title>")}
    assert here("run", loopback.url("late.test"), "--db", crawled, *LOOPBACK).code == 0
    again = here("store", "copy", crawled, target, "--json")
    assert again.code == 0, again.err
    copied = {each["table"]: each for each in json.loads(again.out)}
    assert (copied["request"]["new"], copied["body"]["new"]) == (2, 1)
    assert (
        json.loads(here("status", "--db", target, "--json").out)["urls"]
        == (json.loads(here("status", "--db", crawled, "--json").out)["urls"])
    )
    assert here("audit", "--db", target).code == 0
    assert here("run", loopback.url("late.test", "/2"), "--db", target, *LOOPBACK).code == 5  # 404
    refused = here("store", "copy", crawled, target)
    assert (refused.code, "runs of its own" in refused.err) == (2, True)


def test_the_file_alone_has_all_pages_though_others_read_it(tmp_path: Path, loopback: LoopbackWeb) -> None:
    loopback.sites["a.test"] = {"/": Page("<a href=/2>2</a>"), "/2": Page("2")}
    db = tmp_path / "c.db"
    assert here("run", loopback.url("a.test"), "--db", db, *LOOPBACK, "--delay", "0.02", "--max-pages", "1").code == 0
    with closing(sqlite3.connect(db)) as reader:
        assert reader.execute("SELECT count(*) FROM pages").fetchone() == (1,)
        assert here("run", "--db", db, *LOOPBACK, "--max-pages", "0").code == 0
        shutil.copy(db, tmp_path / "alone.db")
    with closing(sqlite3.connect(tmp_path / "alone.db")) as alone:
        assert alone.execute("SELECT count(*) FROM pages").fetchone() == (2,)
    assert here("audit", "--db", tmp_path / "alone.db").code == 0
