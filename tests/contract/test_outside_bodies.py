"""Bodies outside the database, in a folder and in S3, for both kinds of store."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from crawler.errors import ConnectionLost, StoreError, UsageError
from crawler.frontier.decide import Outcome
from crawler.reasons import EndCode, Reason, ReasonCode, RunEnd
from crawler.store.copy import copy_store
from crawler.store.sql.store import Store
from crawler.store.sqlite.store import SqliteStore
from tests.contract.conftest import Opener
from tests.contract.test_revisits import changed, crawled, only_claim, queue
from tests.contract.visits import NOW, Harness, fetched
from tests.s3 import S3Server, s3_server

A = "http://a.test/"
PATIENCE_S = 60.0


class Place:
    """Where bodies are kept in a test."""

    def __init__(self, url: str, server: S3Server | None = None) -> None:
        self.url, self.server = url, server

    def names(self) -> set[str]:
        """The SHA-256 of each body there."""
        if self.server is not None:
            found = self.server.names("crawl")
        else:
            found = [str(path) for path in Path(self.url).glob("??/*")]
        return {name.rpartition("/")[2] for name in found if "/stores/" not in name}

    def forget_stores(self) -> None:
        """Lose the objects by which the place knows its stores."""
        assert self.server is None
        for path in Path(self.url).glob("stores/*"):
            path.unlink()


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture(params=["folder", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "folder":
        return Place(str(tmp_path / "bodies"))
    server: S3Server = request.getfixturevalue("s3")
    server.clear()
    return Place("s3://crawl/crawl", server)


@pytest.fixture
def folder(tmp_path: Path) -> Place:
    return Place(str(tmp_path / "bodies"))


def keeping(opener: Opener, url: str) -> Opener:
    """Open the store as a run does that keeps its bodies at ``url``."""

    async def opened() -> Store:
        store = await opener()
        assert isinstance(store, Store)
        try:
            await store.bodies.open(PATIENCE_S)
            await store.bodies.keep_in(url)
        except BaseException:
            await store.close()
            raise
        return store

    return opened


@pytest.fixture
async def outside(opener: Opener, place: Place) -> AsyncIterator[Harness]:
    harness = Harness(keeping(opener, place.url))
    await harness.reopen()
    yield harness
    await harness.close()


@pytest.fixture
async def in_folder(opener: Opener, folder: Place) -> AsyncIterator[Harness]:
    harness = Harness(keeping(opener, folder.url))
    await harness.reopen()
    yield harness
    await harness.close()


def sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


async def visits(harness: Harness, *bodies: bytes) -> list[Outcome]:
    await harness.seed(*(f"{A}{n}" for n in range(len(bodies))))
    (claim,) = await harness.claim()
    return [fetched(queued, body=body) for queued, body in zip(claim.urls, bodies, strict=True)]


async def end(harness: Harness) -> None:
    await harness.store.end_run(RunEnd(EndCode.DONE), harness.now)


async def test_the_database_has_rows_and_the_place_has_each_content_once(outside: Harness, place: Place) -> None:
    outcomes = await visits(outside, b"same", b"same", b"other")
    await outside.commit(*outcomes)
    await outside.reopen()
    assert place.names() == {sha256(b"same"), sha256(b"other")}
    assert await outside.store.query("SELECT count(*) AS n, count(data) AS inside FROM bodies_by_id") == [
        {"n": 2, "inside": 0}
    ]
    assert [await outside.store.bodies.of_page(o.queued.url) for o in outcomes] == [b"same", b"same", b"other"]
    assert (await outside.store.query("SELECT DISTINCT body_sha256 AS s FROM pages ORDER BY 1"))[0][
        "s"
    ] in place.names()


async def test_a_body_is_durable_before_the_commit_that_names_it(
    outside: Harness, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = await visits(outside, b"first", b"second")
    await outside.commit(outcomes[0])
    with monkeypatch.context() as patch:  # as if the process was killed when the body was written

        def die(*_: object) -> None:
            assert place.names() == {sha256(b"first"), sha256(b"second")}
            raise SystemExit

        patch.setattr(outside.store, "_transact", die)
        with pytest.raises(SystemExit):
            await outside.commit(outcomes[1])
    await outside.reopen()
    await end(outside)
    swept = await outside.store.bodies.sweep()
    assert (swept.left, swept.deleted) == (1, 1)
    assert place.names() == {sha256(b"first")}
    assert await outside.store.bodies.of_page(outcomes[0].queued.url) == b"first"


async def test_a_body_survives_a_power_cut_after_the_commit_that_names_it(
    in_folder: Harness, folder: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = await visits(in_folder, b"first", b"second")
    steps: list[tuple[str, int]] = []  # what happened to which inode
    fsync, replace, transact = os.fsync, os.replace, in_folder.store._transact

    def flushed(handle: int) -> None:
        fsync(handle)
        steps.append(("flushed", os.fstat(handle).st_ino))

    def renamed(source: Path, target: Path) -> None:
        replace(source, target)
        steps.append(("renamed", target.stat().st_ino))

    async def committed(work: Callable[[], Coroutine[Any, Any, object]]) -> object:
        done = await transact(work)
        steps.append(("commit", 0))
        return done

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", renamed)
    monkeypatch.setattr(in_folder.store, "_transact", committed)
    await in_folder.commit(*outcomes)
    monkeypatch.undo()
    place = Path(folder.url)
    for digest in (sha256(b"first"), sha256(b"second")):
        file = place / digest[:2] / digest
        assert steps.index(("flushed", file.stat().st_ino)) < steps.index(("renamed", file.stat().st_ino))
        for above in (file.parent, place, place.parent):  # the names of the file and of the folders that are new
            last = len(steps) - 1 - steps[::-1].index(("flushed", above.stat().st_ino))
            assert steps.index(("renamed", file.stat().st_ino)) < last < steps.index(("commit", 0))


async def test_the_sweep_leaves_what_is_not_its_own(in_folder: Harness, folder: Place) -> None:
    await in_folder.commit(*await visits(in_folder, b"kept"))
    await end(in_folder)
    part = f"{sha256(b'kept')}.0123abcd.part"
    for name in ("README", "aa/notes.txt", f"{part[:2]}/{part}"):
        path = Path(folder.url) / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"")
    swept = await in_folder.store.bodies.sweep()
    assert (swept.left, swept.deleted, swept.unfinished) == (1, 0, 1)
    assert folder.names() == {sha256(b"kept"), "notes.txt"}


async def test_nothing_is_deleted_while_a_worker_is_at_work(in_folder: Harness, folder: Place) -> None:
    await in_folder.commit(*await visits(in_folder, b"kept"))
    await in_folder.store.bodies._outside.put({hashlib.sha256(b"about to be named").digest(): b""})
    async with in_folder.store._writing():
        await in_folder.store._sql.insert("object_to_delete", [{"sha256": hashlib.sha256(b"kept").digest()}])
    if in_folder.store.dialect == "postgres":  # the process that opens a file for writing is alone
        with pytest.raises(UsageError, match="a crawl is at work"):
            await in_folder.store.bodies.sweep()
    await in_folder.store.bodies.delete_dropped()
    assert len(folder.names()) == 2
    await end(in_folder)
    await in_folder.store.bodies.sweep()
    assert folder.names() == {sha256(b"kept")}, "a candidate that a row names again stays"


async def test_a_body_goes_with_its_page(outside: Harness, place: Place) -> None:
    await crawled(outside)
    await queue(outside)
    claim = await only_claim(outside)
    await outside.finish(claim, changed(claim.urls[0], outside.now, b"closed", index=False))
    assert place.names() == {sha256(b"<p>body")}
    await end(outside)
    assert place.names() == set()


async def test_a_forgotten_body_is_deleted_unless_another_store_may_name_it(in_folder: Harness, folder: Place) -> None:
    outcomes = await visits(in_folder, b"first", b"second")
    await in_folder.commit(*outcomes)
    await end(in_folder)
    why = Reason(ReasonCode.FORGOTTEN, "")
    await in_folder.store.maintenance.forget([outcomes[0].queued.id], why)
    await in_folder.store.maintenance.sweep_forgotten()
    assert folder.names() == {sha256(b"second")}
    (Path(folder.url) / "stores" / "another").write_bytes(b"")
    await in_folder.store.maintenance.forget([outcomes[1].queued.id], why)
    with pytest.raises(UsageError, match="the bodies are still here, because other stores"):
        await in_folder.store.maintenance.sweep_forgotten()
    assert folder.names() == {sha256(b"second")}
    (Path(folder.url) / "stores" / "another").unlink()
    assert (await in_folder.store.bodies.sweep()).deleted == 1


async def test_the_store_remembers_the_place(in_folder: Harness, opener: Opener, folder: Place, tmp_path: Path) -> None:
    outcomes = await visits(in_folder, b"kept", b"later")
    await in_folder.commit(outcomes[0])
    await in_folder.close()
    with pytest.raises(UsageError, match=f"are in {folder.url}; leave the setting out"):
        await keeping(opener, str(tmp_path / "elsewhere"))()
    without = Harness(keeping(opener, ""))
    await without.reopen()
    await without.claim()
    await without.commit(outcomes[1])
    assert folder.names() == {sha256(b"kept"), sha256(b"later")}
    await without.close()
    folder.forget_stores()
    with pytest.raises(StoreError, match=r"not the place .* mount the folder"):
        await keeping(opener, "")()


async def test_a_missing_body_is_told(in_folder: Harness, folder: Place) -> None:
    (outcome,) = await visits(in_folder, b"kept")
    await in_folder.commit(outcome)
    digest = sha256(b"kept")
    (Path(folder.url) / digest[:2] / digest).unlink()
    with pytest.raises(StoreError, match=f"the body {digest[:2]}/{digest} is missing"):
        await in_folder.store.bodies.of_page(outcome.queued.url)


async def test_bodies_in_the_database_stay_there(opener: Opener, folder: Place) -> None:
    harness = Harness(opener)
    await harness.reopen()
    outcomes = await visits(harness, b"inside", b"outside")
    await harness.commit(outcomes[0])
    await harness.close()
    harness = Harness(keeping(opener, folder.url))
    await harness.reopen()
    await harness.claim()
    await harness.commit(outcomes[1])
    assert folder.names() == {sha256(b"outside")}
    assert [await harness.store.bodies.of_page(o.queued.url) for o in outcomes] == [b"inside", b"outside"]
    await harness.close()


async def test_a_copy_names_the_same_bodies_and_neither_store_deletes_them(
    outside: Harness, place: Place, tmp_path: Path
) -> None:
    (outcome,) = await visits(outside, b"kept")
    await outside.commit(outcome)
    await end(outside)
    copy = await SqliteStore.open(tmp_path / "copy.db")
    try:
        await copy_store(outside.store, copy, NOW)
        assert copy.bodies.location == outside.store.bodies.location
        assert await copy.bodies.of_page(outcome.queued.url) == b"kept"
        for store in (copy, outside.store):
            with pytest.raises(UsageError, match="other stores keep their bodies here too"):
                await store.bodies.sweep()
        assert place.names() == {sha256(b"kept")}
    finally:
        await copy.close()


async def is_away(store: Store) -> None:
    """Wait until a commit has found that the object store does not answer."""
    while store.away_s is None:  # noqa: ASYNC110 -- it has no event
        await asyncio.sleep(0.01)


async def test_the_commit_waits_for_an_object_store_that_is_away(opener: Opener, s3: S3Server) -> None:
    s3.clear()
    harness = Harness(keeping(opener, "s3://crawl/crawl"))
    await harness.reopen()
    outcomes = await visits(harness, b"first", b"second")
    s3.stop()
    try:
        committing = asyncio.create_task(harness.commit(outcomes[0]))
        await is_away(harness.store)
        assert await harness.store.query("SELECT url FROM pages") == []
    finally:
        s3.start()
    await committing
    assert harness.store.away_s is None
    assert await harness.store.bodies.of_page(outcomes[0].queued.url) == b"first"
    s3.stop()
    try:
        committing = asyncio.create_task(harness.commit(outcomes[1]))
        await is_away(harness.store)
        harness.store.give_up()
        with pytest.raises(ConnectionLost, match="the object store does not answer, and the crawl waits"):
            await committing
    finally:
        s3.start()
        with suppress(ConnectionLost):
            await harness.close()
