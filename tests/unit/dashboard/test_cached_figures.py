"""Figures are asked for no more often than their price allows, and one look serves all."""

from __future__ import annotations

import asyncio
from pathlib import Path
from unittest import mock

from crawler.clock import SystemClock
from crawler.dashboard import cached_figures
from crawler.dashboard.cached_figures import CachedFigure
from crawler.dashboard.event_stream import Feed
from crawler.dashboard.snapshot import SnapshotReader
from crawler.store.sqlite.store import SqliteStore


async def test_a_dear_figure_is_asked_for_seldom() -> None:
    asked: list[float] = []

    async def ask(now: float) -> int:
        asked.append(now)
        return len(asked)

    ticks = [0.0, 2.0, 10.0, 10.0]  # the first answer takes two seconds, the second none
    with mock.patch.object(cached_figures.time, "perf_counter", side_effect=ticks):
        figure = CachedFigure(ask)
        seen = [await figure.at(now) for now in (100.0, 101.0, 139.9, 140.0, 140.5)]
    assert seen == [1, 1, 1, 2, 2]
    assert asked == [100.0, 140.0]


async def test_one_look_serves_all_viewers_and_nobody_looks_for_none(db_path: Path) -> None:
    store = await SqliteStore.open(db_path)
    try:
        feed = Feed(SnapshotReader(store, str(db_path)), SystemClock())
        with mock.patch.object(
            SnapshotReader, "snapshot", mock.AsyncMock(return_value={"run": None, "log_read": True})
        ) as look:
            async with feed.running():
                while not look.await_count:  # noqa: ASYNC110  a mock has no event
                    await asyncio.sleep(0.01)
                assert look.await_count == 1  # to have the log read
                viewers = [feed.frames() for _ in range(20)]
                frames = await asyncio.gather(*(anext(viewer) for viewer in viewers))
                assert look.await_count == 2
                assert len(set(frames)) == 1
                assert frames[0].startswith(b'data: {"run": null')
                await feed.close()
                assert [frame for viewer in viewers async for frame in viewer] == []
                assert feed.viewers == 0
    finally:
        await store.close()
