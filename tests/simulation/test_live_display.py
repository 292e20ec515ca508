"""The live display while the store does not answer."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from crawler.demo.pages import Page, Site, plain
from crawler.errors import ConnectionLost
from crawler.run import live_display
from crawler.run.live_display import Watch
from crawler.store.sqlite.store import SqliteStore
from tests.simulation.crawls import Options, session
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

if TYPE_CHECKING:
    from crawler.store.sections import Store

SITES: dict[str, Site] = {"a.test": {"/robots.txt": plain(""), "/": Page("x")}}


@pytest.mark.parametrize("how", ["slow", "lost"])
def test_the_display_reports_a_store_that_does_not_answer(
    db_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    async def main(clock: VirtualClock) -> None:
        count, away_until = SqliteStore.queued_count, clock.now() + 60

        async def counted(self: SqliteStore) -> int:
            if 5 < away_until - clock.now() < 55:
                if how == "lost":
                    raise ConnectionLost("gone")
                await clock.sleep(away_until - clock.now())
            return await count(self)

        monkeypatch.setattr(SqliteStore, "queued_count", counted)
        screen = io.StringIO()
        console = Console(file=screen, force_terminal=True, width=100)

        async def seen(after_s: float) -> str:
            screen.seek(0)
            screen.truncate()
            await clock.sleep(after_s)
            return screen.getvalue()

        async with (
            session(clock, db_path, SimulatedWeb(clock, SITES), ["http://a.test/"], Options()) as (run, store),
            Watch(run, store, clock, console, lambda: None, "crawl.db").shown(),
        ):
            assert "no answer" not in await seen(4)
            assert "0 pages" in await seen(2)
            assert "no answer from the store for 10 s" in await seen(11)
            await clock.sleep(75)
            run.progress.sent_requests = 77
            after = await seen(1)
            assert "77 requests" in after
            assert "no answer" not in after

    run_virtual(main)


def test_the_time_left_is_read_rarely_if_that_takes_long(db_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine waits meanwhile if it shares the connection."""

    async def main(clock: VirtualClock) -> None:
        begun: list[float] = []

        async def read(store: Store, now: float) -> None:
            begun.append(now)
            await clock.sleep(6)

        monkeypatch.setattr(live_display, "read_time_left", read)
        console = Console(file=io.StringIO(), force_terminal=True, width=100)
        async with (
            session(clock, db_path, SimulatedWeb(clock, SITES), ["http://a.test/"], Options()) as (run, store),
            Watch(run, store, clock, console, lambda: None, "crawl.db").shown(),
        ):
            await clock.sleep(400)
        pauses = [later - earlier for earlier, later in pairwise(begun)]
        assert len(pauses) >= 2
        assert min(pauses) >= 6 + 20 * 6

    run_virtual(main)
