"""A crawl that keeps its bodies in a folder or in S3, and the commands that read them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.demo.pages import Page
from tests.command import HASTY, LOOPBACK, here
from tests.s3 import s3_server
from tests.web import LoopbackWeb


@pytest.fixture(params=["folder", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "folder":
        yield str(tmp_path / "bodies")
        return
    with s3_server():
        yield "s3://crawl/pages"


def test_all_commands_find_the_bodies(loopback: LoopbackWeb, place: str, tmp_path: Path) -> None:
    loopback.sites["a.test"] = {
        "/": Page("<title>Start</title><a href=/lexer>x</a>"),
        "/lexer": Page("<title>Lexer</title><p>A lexer makes tokens."),
    }
    db, archive = tmp_path / "c.db", tmp_path / "c.warc.gz"
    (tmp_path / "c.toml").write_text(HASTY)
    seed = loopback.url("a.test")
    run = ["run", seed, "--config", tmp_path / "c.toml", *LOOPBACK, "--db", db]
    assert here(*run, "--bodies", place).code == 0
    assert b"makes tokens" not in db.read_bytes()
    assert here("export", "warc", archive, "--db", db).code == 0
    assert b"A lexer makes tokens." in gzip.decompress(archive.read_bytes())
    assert json.loads(here("index", "--db", db, "--json").out)["changed"] == 2
    assert json.loads(here("search", "tokens", "--db", db, "--json").out)["hits"][0]["title"]["text"] == "Lexer"
    swept = json.loads(here("store", "clean", "--db", db, "--json").out)
    assert {"left": 2, "deleted": 0, "unfinished": 0}.items() <= swept.items()
    elsewhere = here(*run, "--bodies", tmp_path / "elsewhere")
    assert elsewhere.code == 2
    assert f"the bodies of {db} are in {place}; leave the setting out" in elsewhere.err
    assert here("store", "forget", f"{seed}lexer", "--db", db).code == 0
    cleaned = json.loads(here("store", "clean", "--db", db, "--json").out)
    assert {"versions": 0, "left": 1, "deleted": 0, "unfinished": 0}.items() <= cleaned.items()
    assert "secret-of-the-test" not in db.read_bytes().decode("latin-1")


def test_forgetting_is_complete_but_for_bodies_that_another_store_may_need(
    loopback: LoopbackWeb, tmp_path: Path
) -> None:
    loopback.sites["a.test"] = {"/": Page("<title>Start</title><p>A lexer makes tokens.")}
    db, seed = tmp_path / "c.db", loopback.url("a.test")
    (tmp_path / "c.toml").write_text(HASTY)
    run = ["run", seed, "--config", tmp_path / "c.toml", *LOOPBACK, "--db", db, "--bodies", tmp_path / "bodies"]
    assert here(*run).code == here("index", "--db", db).code == 0
    assert here("store", "copy", db, tmp_path / "copy.db").code == 0
    assert json.loads(here("search", "tokens", "--db", db, "--json").out)["hits"]
    forgotten = here("store", "forget", seed, "--redact", "--db", db)
    assert (forgotten.code, "the bodies are still here" in forgotten.err) == (2, True), forgotten
    assert "this store has no search index yet" in here("search", "tokens", "--db", db).err
    assert here("export", "csv", tmp_path / "log.csv", "--table", "requests", "--db", db).code == 0
    assert f"{seed}," not in (tmp_path / "log.csv").read_text(), "its address is reduced to its site"


def test_a_bucket_that_does_not_exist_ends_the_run(loopback: LoopbackWeb, tmp_path: Path) -> None:
    run = ["run", loopback.url("a.test"), *LOOPBACK, "--db", tmp_path / "c.db"]
    with s3_server():
        ended = here(*run, "--bodies", "s3://none/pages")
    assert (ended.code, "s3://none/pages: there is no such bucket; make it first" in ended.err) == (4, True), ended
