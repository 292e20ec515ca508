"""The files of the crawler are private: they hold what sites sent, and the keys of robots."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.atomic_files import AtomicFiles
from crawler.demo.pages import Page
from crawler.rup.server.web import RupServer, _responder
from crawler.store.sqlite.store import SqliteStore
from tests.command import HASTY, LOOPBACK, here
from tests.web import LoopbackWeb


@pytest.fixture(params=[0o022, 0o000, 0o137], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()}


async def test_a_store_is_private_while_it_is_written(umask: int, tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "crawl.db")
    try:
        await store.start_run({}, 1000.0)
        seen = modes(tmp_path)
    finally:
        await store.close()
    assert seen == dict.fromkeys(("crawl.db", "crawl.db-wal", "crawl.db-shm", "crawl.db.lock"), 0o600 & ~umask)


async def test_the_store_of_the_rup_server_is_private(umask: int, tmp_path: Path) -> None:
    for name in ("root", "db"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o700)
    server = RupServer(tmp_path / "root", "http://127.0.0.1:1/", ("127.0.0.1", 1), tmp_path / "db" / "rup.db")
    async with _responder(server, print):
        seen = modes(tmp_path / "db")
    assert set(seen.values()) == {0o600 & ~umask}
    assert {"rup.db", "rup.db.lock"} <= set(seen)


def test_archives_and_copies_are_private(loopback: LoopbackWeb, tmp_path: Path) -> None:
    loopback.sites["a.test"] = {"/": Page("a")}
    (tmp_path / "c.toml").write_text(HASTY)
    made = tmp_path / "made"
    made.mkdir()
    options = ("--config", tmp_path / "c.toml", *LOOPBACK, "--db", made / "c.db", "--warc", made / "warc")
    assert here("run", loopback.url("a.test"), *options).code == 0
    assert here("store", "copy", made / "c.db", made / "copy.db").code == 0
    assert here("index", "--db", made / "c.db").code == 0
    seen = modes(made)
    assert set(seen.values()) == {0o600}
    assert any(name.endswith(".warc.gz") for name in seen)


async def test_an_existing_file_keeps_its_mode(tmp_path: Path) -> None:
    db = tmp_path / "crawl.db"
    db.touch()
    db.chmod(0o640)
    await (await SqliteStore.open(db)).close()
    assert modes(tmp_path)["crawl.db"] == 0o640


@pytest.mark.parametrize(("before", "after"), [(None, 0o644), (0o600, 0o600), (0o640, 0o640), (0o666, 0o666)])
def test_an_export_has_the_mode_of_the_file_that_it_replaces(before: int | None, after: int, tmp_path: Path) -> None:
    place, umask = tmp_path / "out", os.umask(0o022)
    try:
        if before is not None:
            place.touch()
            place.chmod(before)
        with AtomicFiles() as files:
            files.open(place).file.write(b"x")
            (draft,) = tmp_path.glob(".crawler-*")
            assert stat.S_IMODE(draft.stat().st_mode) == 0o600
        assert stat.S_IMODE(place.stat().st_mode) == after
    finally:
        assert os.umask(umask) == 0o022
