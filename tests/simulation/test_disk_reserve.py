"""A crawl pauses before a disk is full, and goes on when there is room."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import aiosqlite
import pytest

from crawler.clock import Clock, SystemClock
from crawler.demo.pages import Page, plain
from crawler.engine.alarm import Alarm
from crawler.engine.crawl import Crawl
from crawler.engine.disk_reserve import DiskReserve, DiskWatch
from crawler.engine.gate import Gate
from crawler.engine.progress import Progress
from crawler.engine.recording import record_all
from crawler.engine.shutdown import Shutdown
from crawler.errors import StoreError, StoreFull, SystemFull
from crawler.inspect.last_run import low_disk
from crawler.model import Recorded
from crawler.reasons import EndCode, RunEnd
from crawler.store.rows import CommitBatch, CommitResult
from crawler.store.sqlite import store as sqlite_store
from crawler.store.sqlite.store import SqliteStore
from crawler.store.statements import Database
from tests.simulation.crawls import Options, session
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

GB = 10**9
URLS = 30


@dataclass
class Disk:
    """A disk whose space the test sets."""

    free: int = 100 * GB
    total: int = 200 * GB

    def space(self) -> tuple[int, int, int]:
        return self.total, self.total - self.free, self.free


def web_of(clock: Clock) -> SimulatedWeb:
    links = "".join(f"<a href=/{number}>" for number in range(URLS))
    return SimulatedWeb(clock, {"a.test": {"/robots.txt": plain(""), "/": Page(links), "*": Page("leaf")}})


@asynccontextmanager
async def crawl_on(
    clock: VirtualClock, path: Path, web: SimulatedWeb, reserve: DiskReserve
) -> AsyncIterator[tuple[Crawl, asyncio.Task[RunEnd], SqliteStore]]:
    async with session(clock, path, web, ["http://a.test/"], Options(), reserve=reserve) as (run, store):
        async with run.obeying_operator():
            task = asyncio.create_task(run.run())
            try:
                yield run, task, store
            except BaseException:
                task.cancel()
                raise
            finally:
                await asyncio.wait([task])
        await store.end_run(RunEnd(EndCode.DONE), clock.now())


@pytest.mark.parametrize("full", ["store", "archive"])
def test_a_crawl_pauses_before_the_disk_is_full_and_goes_on(
    full: str, db_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disks = {Path("store"): Disk(), Path("archive"): Disk()}
    disk = disks[Path(full)]

    async def main(clock: VirtualClock) -> str:
        web = web_of(clock)
        reserve = DiskReserve(tuple(disks), space_of=lambda folder: disks[folder].space())
        async with crawl_on(clock, db_path, web, reserve) as (run, task, store):
            await clock.sleep(5)
            disk.free = 9 * GB // 10
            await clock.sleep(10)
            sent = len(web.log)
            assert 0 < sent < URLS
            assert run.progress.low_disk is not None
            assert full in run.progress.low_disk
            await clock.sleep(5)
            last, beats = await store.last_run(), await store.control.beats()
            assert low_disk(last, beats, clock.now()) == run.progress.low_disk
            disk.free = GB + 1  # not enough more for the crawl to go on
            await clock.sleep(100)
            assert len(web.log) == sent
            disk.free = 2 * GB
            return str(await task)

    with caplog.at_level(logging.WARNING, "crawler.store"):
        assert run_virtual(main) == "nothing is left in the frontier"
    assert [record.getMessage() for record in caplog.records] == [
        f"pauses: the disk of {full} has 900 MB free; 1 GB are to stay free",
        "goes on: the disk has room again",
    ]


def test_a_crawl_on_a_full_disk_begins_paused_and_is_stopped_at_once(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> tuple[str, int, float]:
        web = web_of(clock)
        reserve = DiskReserve((db_path.parent,), 5 * GB, lambda folder: Disk(free=GB).space())
        async with crawl_on(clock, db_path, web, reserve) as (run, task, _):
            await clock.sleep(1000)
            stopped_at = clock.now()
            run.stop(RunEnd(EndCode.STOPPED))
            return str(await task), len(web.log), clock.now() - stopped_at

    ended_by, sent, took_s = run_virtual(main)
    assert sent == 0
    assert "stopped" in ended_by
    assert took_s < 10


def test_the_operator_and_the_disk_hold_the_crawl_apart(db_path: Path) -> None:
    """Neither lets go of what the other one holds."""
    disk = Disk(free=0)

    async def main(clock: VirtualClock) -> None:
        web = web_of(clock)
        reserve = DiskReserve((db_path.parent,), space_of=lambda folder: disk.space())
        async with crawl_on(clock, db_path, web, reserve) as (run, task, _):
            run.gate.hold(True)
            await clock.sleep(5)
            disk.free = 100 * GB
            await clock.sleep(5)
            assert web.log == []
            disk.free = 0
            await clock.sleep(5)
            run.gate.hold(False)
            await clock.sleep(5)
            assert web.log == []
            disk.free = 100 * GB
            await task
        assert len(web.log) == URLS + 2

    run_virtual(main)


@pytest.mark.parametrize(
    ("disk", "min_free", "is_short"),
    [
        (Disk(free=GB), None, False),
        (Disk(free=GB - 1), None, True),
        (Disk(free=60_000_000, total=GB), None, False),
        (Disk(free=40_000_000, total=GB), None, True),
        (Disk(free=60_000_000, total=GB), GB, True),
        (Disk(free=0), 0, False),
    ],
)
def test_the_reserve_of_a_disk(disk: Disk, min_free: int | None, is_short: bool) -> None:
    reserve = DiskReserve((Path(),), min_free, lambda folder: disk.space())
    assert (reserve.shortage(is_paused=False) is not None) is is_short


def test_a_disk_that_cannot_be_read_has_enough() -> None:
    def unreadable(folder: Path) -> tuple[int, int, int]:
        raise FileNotFoundError(folder)

    assert DiskReserve((Path(),), GB, unreadable).shortage(is_paused=True) is None


async def test_the_event_loop_does_not_wait_for_a_disk() -> None:
    asked, answers = threading.Event(), threading.Event()

    def hanging(folder: Path) -> tuple[int, int, int]:
        asked.set()
        assert answers.wait(30)
        return Disk().space()

    async def crawling() -> None:
        async with watch.watching():
            pass

    shutdown = Shutdown(cast("Gate", None), Alarm())
    inputs = SimpleNamespace(reserve=DiskReserve((Path(),), GB, hanging))
    crawl: Any = SimpleNamespace(inputs=inputs, clock=SystemClock(), progress=Progress(0.0), shutdown=shutdown)
    watch = DiskWatch(crawl)
    beginning = asyncio.create_task(crawling())
    assert await asyncio.to_thread(asked.wait, 300)
    answers.set()
    await beginning
    shutdown.raise_failure()


@pytest.mark.parametrize("pauses", [True, False])
def test_a_write_that_fails_while_the_crawl_pauses_is_made_when_there_is_room(
    pauses: bool, db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program takes the rest of the disk: SQLite says so, and the crawl waits if it pauses for the disk."""
    disk = Disk()
    make_transaction = sqlite_store.transaction

    @asynccontextmanager
    async def limited(db: Database) -> AsyncIterator[None]:
        full = StoreFull("database or disk is full")
        async with make_transaction(db):
            yield
            if not disk.free:
                raise full

    monkeypatch.setattr(sqlite_store, "transaction", limited)

    async def main(clock: VirtualClock) -> None:
        links = "".join(f"<a href=/{number}>" for number in range(URLS))
        pages = {"/robots.txt": plain(""), "/": Page(links, delay_s=20), "*": Page("leaf")}
        web = SimulatedWeb(clock, {"a.test": pages})
        reserve = DiskReserve((db_path.parent,), GB if pauses else 0, lambda folder: disk.space())
        async with crawl_on(clock, db_path, web, reserve) as (_, task, _):
            await clock.sleep(10)
            disk.free = 0  # while a request is in flight
            await clock.sleep(1000)
            assert task.done() is not pauses
            disk.free = 100 * GB
            if pauses:
                assert str(await task) == "nothing is left in the frontier"
                assert len(web.log) == URLS + 2, "nothing was asked for twice"
            else:
                with pytest.raises(StoreError, match="full"):
                    await task

    run_virtual(main)


@pytest.mark.parametrize("pauses", [True, False])
def test_an_archive_that_is_full_waits_if_the_crawl_pauses(pauses: bool) -> None:
    left = iter([2, 1])

    class Archive:
        async def record(self, batch: Sequence[Recorded]) -> None:
            if next(left, None):
                raise StoreFull("the disk is full")

    async def main(clock: VirtualClock) -> None:
        batch = [cast(Recorded, None)]
        if pauses:
            await record_all(Archive(), batch, lambda _: True)
            assert next(left, None) is None
        else:
            with pytest.raises(StoreFull):
                await record_all(Archive(), batch, lambda _: False)

    run_virtual(main)


@pytest.mark.parametrize("error", [SystemFull, StoreFull])
def test_a_shortage_of_files_of_the_whole_system_ends_no_crawl(
    error: type[StoreFull], db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The crawl does not pause for a disk. The store has bodies in a folder, whose files the system does not open."""
    ends_at, commit = 0.0, SqliteStore.commit

    async def failing(self: SqliteStore, batch: CommitBatch) -> CommitResult:
        async def attempt() -> CommitResult:
            if asyncio.get_running_loop().time() < ends_at:
                raise error("Too many open files in system")
            return await commit(self, batch)

        return await self._retry(attempt)

    monkeypatch.setattr(SqliteStore, "commit", failing)

    async def main(clock: VirtualClock) -> None:
        nonlocal ends_at
        ends_at = asyncio.get_running_loop().time() + 10
        async with crawl_on(clock, db_path, web_of(clock), DiskReserve(())) as (_, task, _):
            if error is SystemFull:
                assert str(await task) == "nothing is left in the frontier"
            else:
                with pytest.raises(StoreFull):
                    await task

    run_virtual(main)


def test_a_stop_does_not_wait_for_room(db_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing(self: SqliteStore, batch: CommitBatch) -> CommitResult:
        async def attempt() -> CommitResult:
            raise StoreFull("database or disk is full")

        return await self._retry(attempt)

    monkeypatch.setattr(SqliteStore, "commit", failing)

    async def main(clock: VirtualClock) -> None:
        reserve = DiskReserve((db_path.parent,), GB, lambda folder: Disk(free=0).space())
        async with crawl_on(clock, db_path, web_of(clock), reserve) as (run, task, _):
            await clock.sleep(100)
            assert not task.done()
            run.stop(RunEnd(EndCode.STOPPED))
            with pytest.raises(StoreFull):
                await task

    run_virtual(main)


async def test_a_full_disk_is_told_from_other_failures(tmp_path: Path) -> None:
    """``PRAGMA max_page_count`` stands for the disk."""
    async with aiosqlite.connect(tmp_path / "a.db", isolation_level=None) as db:
        await db.execute("CREATE TABLE t (x)")
        await db.execute("PRAGMA max_page_count = 3")
        with pytest.raises(StoreFull, match="make room"), sqlite_store.write_errors(tmp_path / "a.db"):
            await db.execute("INSERT INTO t VALUES (zeroblob(100000))")
