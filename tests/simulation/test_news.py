"""A crawl that waits looks at the store again when the store tells that another worker has stored something."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from crawler.demo.pages import Page, unavailable
from crawler.reasons import EndCode, RunEnd
from crawler.store.sqlite.store import SqliteStore
from tests.simulation.crawls import Options, session
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual


def test_news_end_a_wait(db_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Callable[[], None]] = []
    monkeypatch.setattr(SqliteStore, "on_news", lambda _, wake: told.append(wake))

    async def main(clock: VirtualClock) -> None:
        web = SimulatedWeb(clock, {"a.test": {"/": unavailable(3600)}, "b.test": {"/": Page("x")}})
        async with session(clock, db_path, web, ["http://a.test/"], Options()) as (run, store):
            task = asyncio.create_task(run.run())
            await clock.sleep(600)
            await store.add_seeds([("http://b.test/", None)])  # as another worker would
            await store.prepare(None)
            (wake,) = told
            wake()
            await clock.sleep(60)
            assert "/" in [hit.path for hit in web.log if hit.host == "b.test"]
            run.stop(RunEnd(EndCode.CALLER))
            await task

    run_virtual(main)
