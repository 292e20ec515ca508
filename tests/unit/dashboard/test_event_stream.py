"""The live stream when something is wrong: what is told to the viewers, and what ends the dashboard."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from crawler.clock import SystemClock
from crawler.dashboard.event_stream import Feed
from crawler.dashboard.snapshot import SnapshotReader
from crawler.errors import StoreError
from crawler.store.sqlite.store import SqliteStore


class Failing(SnapshotReader):
    error: Exception

    async def snapshot(self, now: float, *, whole: bool = False) -> dict[str, object]:
        raise self.error


async def failing(path: Path, error: Exception) -> tuple[SqliteStore, Feed]:
    store = await SqliteStore.open(path)
    reader = Failing(store, str(path))
    reader.error = error
    return store, Feed(reader, SystemClock())


async def test_a_store_that_fails_is_told_to_who_watches(db_path: Path) -> None:
    store, feed = await failing(db_path, StoreError("the disk is full"))
    async with feed.running():
        frames = feed.frames()
        frame = await anext(frames)
        await frames.aclose()
    assert json.loads(frame.removeprefix(b"data: "))["error"] == "the disk is full"
    await store.close()


async def test_a_bug_ends_the_dashboard_and_is_seen(db_path: Path) -> None:
    store, feed = await failing(db_path, ZeroDivisionError("a bug"))
    with pytest.raises(ZeroDivisionError):
        async with feed.running():
            await asyncio.Event().wait()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await store.close()


async def test_who_is_cancelled_inside_stays_cancelled(db_path: Path) -> None:
    store, feed = await failing(db_path, StoreError("the disk is full"))

    async def watch() -> None:
        async with feed.running():
            await asyncio.Event().wait()

    task = asyncio.create_task(watch())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await store.close()
