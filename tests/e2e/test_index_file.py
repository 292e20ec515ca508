"""The place of the search index."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.demo.pages import Page
from crawler.errors import UsageError
from crawler.search.index_file import default_path, writing_index
from tests.command import HASTY, LOOPBACK, here
from tests.postgres import Cluster
from tests.web import LoopbackWeb


@pytest.mark.parametrize(
    ("db", "file"),
    [
        ("postgresql://me@db.example:5433/crawl?sslmode=require", "db.example_5433-crawl.search"),
        ("postgresql://other:secret@db.example:5433/crawl", "db.example_5433-crawl.search"),
        ("postgresql://me@/a%2Fb?host=/run/pg", "_run_pg-a_b.search"),
        ("postgresql:///?dbname=pages", "pages.search"),
        ("postgresql://", "crawl.search"),
    ],
)
def test_the_index_of_a_database_is_in_the_users_state(db: str, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert default_path(db) == Path("/state/crawler", file)
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert default_path(db) == Path.home() / ".local/state/crawler" / file


def test_the_index_of_a_file_is_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert default_path("c.db") == tmp_path / "c.db.search"


async def test_an_index_that_cannot_be_made_names_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=f"{tmp_path}/file/c.search: .* set `search.file` to another place"):
        async with writing_index(tmp_path / "file" / "c.search"):
            pass


def test_commands_in_any_folder_find_the_file_of_the_setting(
    postgres: Cluster, tmp_path: Path, loopback: LoopbackWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    loopback.sites["a.test"] = {"/": Page("<title>Lexer</title>")}
    db, file = postgres.make_store(), tmp_path / "indexes" / "c.search"
    (tmp_path / "c.toml").write_text(f"{HASTY}\n[search]\nfile = '{file}'\n")
    assert here("run", loopback.url("a.test"), "--config", tmp_path / "c.toml", *LOOPBACK, "--db", db).code == 0
    unbuilt = here("search", "lexer", "--db", db)
    assert (unbuilt.code, str(file) in unbuilt.err) == (2, True), unbuilt
    assert here("index", "--db", db).code == 0
    assert file.exists()
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    assert "Lexer" in here("search", "lexer", "--db", db).out
    assert list(Path().iterdir()) == []
