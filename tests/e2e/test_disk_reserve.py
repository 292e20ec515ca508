"""``--min-free`` on the command line: a reserve that no disk has."""

from __future__ import annotations

import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from crawler.demo.pages import Page
from tests.command import HASTY, LOOPBACK, finish, here, start, until
from tests.web import LoopbackWeb


def names_disk(db: Path) -> bool:
    """Whether a heartbeat in the store names a disk."""
    try:
        with closing(sqlite3.connect(db)) as store:
            return bool(store.execute("SELECT 1 FROM heartbeat WHERE low_disk NOTNULL").fetchall())
    except sqlite3.OperationalError:  # the run is making the store
        return False


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_run_without_room_says_so_and_stops_on_a_signal(
    workers: str, loopback: LoopbackWeb, db_path: Path, tmp_path: Path
) -> None:
    loopback.sites["a.test"] = {"/": Page("<a href=/b>b</a>"), "/b": Page("b")}
    (tmp_path / "c.toml").write_text(HASTY)
    options = ("--config", tmp_path / "c.toml", *LOOPBACK, "--db", db_path)
    process = start(
        "run", loopback.url("a.test"), *options, "--min-free", "999 TB", "--workers", workers, "--log-level", "warning"
    )

    assert process.stderr is not None
    assert "pauses: the disk of" in process.stderr.readline()
    until(lambda: names_disk(db_path), "a heartbeat that names the disk")
    assert "999 TB are to stay free" in json.loads(here("status", "--db", db_path, "--json").out)["low_disk"]
    assert f"the disk of {tmp_path} has" in here("status", "--db", db_path).out.replace("\n", " ")
    why = here("why", loopback.url("a.test"), "--db", db_path)
    assert "999 TB are to stay free" in why.out
    process.send_signal(signal.SIGTERM)
    ended = finish(process)
    assert ended.code == 3, ended
    assert loopback.log == []
    assert json.loads(here("status", "--db", db_path, "--json").out)["low_disk"] is None

    assert here("run", *options, "--min-free", "0").code == 0
    assert len(loopback.log) == 3


@pytest.mark.parametrize("wrong", ["much", "-1", "1 PB", "1.5.2 GB"])
def test_a_wrong_size_is_refused(wrong: str, db_path: Path) -> None:
    ended = here("run", "http://a.test/", *LOOPBACK, "--db", db_path, "--min-free", wrong)
    assert ended.code == 2
    assert "500 MB" in ended.err
