"""An export is there whole, or what was there before is; and it is of one moment."""

from __future__ import annotations

import asyncio
import io
import os
import sqlite3
import threading
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from crawler.atomic_files import AtomicFiles
from crawler.errors import UsageError
from crawler.export import FORMATS
from tests.unit.export.conftest import Exporter


def test_nothing_is_there_before_the_end(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with AtomicFiles() as files:
        files.open(out).file.write(b"new")
        assert not out.exists()
    assert out.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [out]


class _Closed(io.BytesIO):
    """A pipe that nobody reads any more."""

    def flush(self) -> None:
        raise BrokenPipeError


def test_a_pipe_that_nobody_reads_any_more_is_no_mistake_of_the_user() -> None:
    with pytest.raises(BrokenPipeError), AtomicFiles() as files:
        files.open(_Closed()).file.write(b"new")


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, asyncio.CancelledError])
def test_a_failure_leaves_the_previous_file(tmp_path: Path, failure: type[BaseException]) -> None:
    out = tmp_path / "out"
    out.write_bytes(b"old")

    def fail() -> None:
        with AtomicFiles() as files:
            files.open(out).file.write(b"new")
            files.open(tmp_path / "second").file.write(b"new")
            raise failure

    with pytest.raises(failure):
        fail()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"out": b"old"}


def test_a_full_disk_is_told_with_the_files_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="out: cannot be written: No space left on device"), AtomicFiles() as files:
        files.open(out).file.write(b"new")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("format", [name for name, each in FORMATS.items() if not each.is_folder])
async def test_a_full_disk_in_every_format(save: Exporter, format: str) -> None:
    with pytest.raises(UsageError, match="/dev/full: cannot be written: No space left on device"):
        await save(format, Path("/dev/full"))
    assert Path("/dev/full").is_char_device()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in folders here")
def test_a_pipe_is_written_into_and_stays(tmp_path: Path) -> None:
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    with AtomicFiles() as files:
        files.open(pipe).file.write(b"new")
    reader.join(300)
    assert got == [b"new"]
    assert pipe.is_fifo()


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    out, link = tmp_path / "out", tmp_path / "link"
    out.write_bytes(b"old")
    link.symlink_to(out)
    with AtomicFiles() as files:
        files.open(link).file.write(b"new")
    assert link.is_symlink()
    assert out.read_bytes() == b"new"


async def test_a_store_is_not_written_over(save: Exporter, filled: Path) -> None:
    before = filled.read_bytes()
    with pytest.raises(UsageError, match="not overwritten"):
        await save("csv", filled)
    assert filled.read_bytes() == before


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal", ".lock"])
@pytest.mark.parametrize("there", [True, False])
def test_files_of_a_store_are_not_overwritten(suffix: str, there: bool, filled: Path) -> None:
    part = filled.with_name(filled.name + suffix)
    part.unlink(missing_ok=True)
    if there:
        part.touch()
    with AtomicFiles() as files, pytest.raises(UsageError, match="not overwritten"):
        files.open(part)
    assert part.exists() == there
    elsewhere = filled.with_name(f"other{suffix}")
    elsewhere.touch()
    with AtomicFiles() as files:
        files.open(elsewhere).file.write(b"x")
    assert elsewhere.read_bytes() == b"x"


def test_places_where_no_file_can_be(tmp_path: Path) -> None:
    with AtomicFiles() as files:
        with pytest.raises(UsageError, match="name a file in it"):
            files.open(tmp_path)
        with pytest.raises(UsageError, match="does not exist; make it first"):
            files.open(tmp_path / "nosuch" / "out")


class Meddler(io.BytesIO):
    """A file at whose first write the crawl goes on: another page, linked from every page."""

    def __init__(self, db: Path) -> None:
        super().__init__()
        self._db: Path | None = db

    def write(self, data: Any, /) -> int:
        if self._db is not None:
            with sqlite3.connect(self._db) as db:
                db.execute("INSERT INTO url (id, path, state, depth) SELECT 77 + min(id), '/late', state, 9 FROM url")
                db.execute("INSERT INTO link SELECT id, (SELECT id FROM url WHERE path = '/late'), '', '', 1 FROM url")
            db.close()
            self._db = None
        return super().write(data)


async def test_an_export_is_of_one_moment_of_a_crawl(save: Exporter, filled: Path) -> None:
    file, later = Meddler(filled), io.BytesIO()
    await save("graphml", file)
    nodes, edges = parts(file)
    assert edges <= {(source, target) for source in nodes for target in nodes}
    await save("graphml", later)
    assert len(parts(later)[0]) == len(nodes) + 1


def parts(file: io.BytesIO) -> tuple[set[str], set[tuple[str, str]]]:
    root = ElementTree.fromstring(file.getvalue())
    name = "{http://graphml.graphdrawing.org/xmlns}"
    return (
        {node.attrib["id"] for node in root.iter(f"{name}node")},
        {(edge.attrib["source"], edge.attrib["target"]) for edge in root.iter(f"{name}edge")},
    )
