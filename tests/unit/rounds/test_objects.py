"""Objects of a dataset, in a folder and in S3."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.dataset.clock import StorageClock
from crawler.dataset.objects import Objects
from crawler.errors import NoStore, StoreError, UsageError
from tests.s3 import s3_server


@pytest.fixture(params=["folder", "s3"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Objects]:
    if request.param == "folder":
        yield Objects(str(tmp_path / "data"), may_make=True)
        return
    with s3_server() as server:
        yield Objects(f"s3://{server.bucket}/data")


def test_one_of_two_creates_an_object(objects: Objects) -> None:
    assert objects.create("claims/1", b"one")
    assert not objects.create("claims/1", b"two")
    assert objects.create("claims/1", b"one"), "a storage may answer a repeated request that the object exists"
    assert objects.get("claims/1") == b"one"


def test_objects_are_listed_by_folder_and_read_whole(objects: Objects, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 70_000)
    objects.put("a/1", tmp_path / "file")
    objects.put("a/b/2", b"2")
    objects.put("ab/3", b"3")
    assert sorted(objects.keys("a")) == ["a/1", "a/b/2"]
    assert list(objects.keys("none")) == []
    objects.fetch("a/1", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"x" * 70_000
    assert [Path(path).read_bytes() for path in objects.local(["a/b/2"], tmp_path / "cache")] == [b"2"]
    assert objects.get("a/9") is None
    with pytest.raises(StoreError, match="a/9"):
        objects.fetch("a/9", tmp_path / "copy")
    if objects.location.startswith("s3:"):
        with pytest.raises(UsageError, match="this bucket does not exist"):
            Objects("s3://none/data").create("a/1", b"1")
    objects.delete(["a/1", "a/b/2"])
    assert list(objects.keys("a")) == []


def test_a_wrong_clock_follows_that_of_the_storage(objects: Objects, monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time
    for hours in (-1, 0, 1):
        monkeypatch.setattr(time, "time", lambda hours=hours: real() + 3600 * hours)
        assert abs(StorageClock(objects).now() - real()) < 300
    assert list(objects.keys("clocks")) == []


def test_a_location_that_is_no_dataset_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoStore):
        Objects(str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()
    with pytest.raises(UsageError, match="a folder, or s3"):
        Objects("postgresql://db/crawl")
