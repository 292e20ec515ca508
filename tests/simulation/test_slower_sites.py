"""Sites whose answers become slower than they were, in whole crawls: by the server's log, the store and the audit."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from dataclasses import asdict
from pathlib import Path

import pytest

from crawler.audit.run_audit import run_audit
from crawler.demo.pages import Asked, Hit, Page, Site, plain
from crawler.reasons import WaitCode
from crawler.settings.loading import settings_from
from crawler.store.sqlite.store import SqliteStore
from tests.simulation.crawls import Options, crawl, crawl_for, rows
from tests.simulation.test_politeness import pauses
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

QUICK_S, SLOW_S = 0.05, 2.0
PAGES = 120
SEEDS = ["http://a.test/"]


class Slowing:
    """A site of 120 pages. It answers within 50 ms, but requests number 60 to 79 take 2 s."""

    def __init__(self) -> None:
        self.asked = 0

    def page(self, asked: Asked) -> Page:
        self.asked += 1
        delay_s = SLOW_S - QUICK_S if 60 <= self.asked < 80 else 0.0
        links = "".join(f"<a href='/{n}'>{n}</a>" for n in range(1, PAGES)) if asked.path == "/" else "leaf"
        return Page(links, delay_s=delay_s)

    @property
    def site(self) -> Site:
        return {"/robots.txt": plain(""), "/": self.page, "*": self.page}


async def violations(db_path: Path) -> list[str]:
    """The violations that the audit finds if every run had the default settings, and a pause of one second."""
    settings = settings_from({"identity.contact": "who@example.org", "politeness.delay": 1}, source="test")
    with sqlite3.connect(db_path) as db:
        db.execute("UPDATE run SET settings = ?", (json.dumps(asdict(settings)),))
    store = await SqliteStore.open(db_path, read_only=True)
    try:
        return [f"{found}" for found in (await run_audit(store, 0.0)).violations]
    finally:
        await store.close()


def slow_pauses(hits: list[Hit]) -> list[float]:
    """The pauses after the answers that took 2 s."""
    slow = [n for n, hit in enumerate(hits) if hit.finished_at - hit.started_at > 1]
    return [pauses(hits)[n] for n in slow]


@pytest.mark.parametrize("crash_after_s", [None, 30.0, 75.0, 150.0])
def test_pauses_grow_while_answers_are_slower_than_they_were(crash_after_s: float | None, db_path: Path) -> None:
    """``slow_factor`` alone asks for 10 s after an answer of 2 s. What is usual survives a crash."""

    async def main(clock: VirtualClock) -> list[Hit]:
        web = SimulatedWeb(clock, {"a.test": Slowing().site}, latency_s=QUICK_S)
        if crash_after_s is not None:
            await crawl_for(clock, db_path, web, SEEDS, Options(), crash_after_s, crash=True)
        await crawl(clock, db_path, web, SEEDS)
        return web.web.hits("a.test")

    hits = run_virtual(main)
    slow = slow_pauses(hits)
    assert slow[0] == 10.0, "one slow answer says nothing yet"
    assert slow[4:15] == [30.0] * 11, "up to slow_cap"
    assert pauses(hits)[10:25] == pauses(hits)[-20:-5] == [1.0] * 15, "at first, and after it has recovered"
    assert asyncio.run(violations(db_path)) == []


def test_a_crawl_that_ignores_the_slowness_is_found_by_the_audit(
    db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawler.frontier.politeness._SLOWER", 1000.0)

    async def main(clock: VirtualClock) -> None:
        web = SimulatedWeb(clock, {"a.test": Slowing().site}, latency_s=QUICK_S)
        await crawl(clock, db_path, web, SEEDS)
        assert set(slow_pauses(web.web.hits("a.test"))) == {10.0}

    run_virtual(main)
    assert asyncio.run(violations(db_path)) == []
    monkeypatch.undo()
    found = asyncio.run(violations(db_path))
    assert len(found) > 10
    assert "answers that take" in found[0]


def test_the_store_names_what_a_slower_site_waits_for(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> None:
        slowing = Slowing()
        web = SimulatedWeb(clock, {"a.test": slowing.site}, latency_s=QUICK_S)
        await crawl_for(clock, db_path, web, SEEDS, Options(), 61 * 1.05 + 60, crash=False)
        assert 60 < slowing.asked < 70
        ((code, sentence),) = await rows(db_path, "SELECT wait_code, waits_for FROM sites")
        assert code == WaitCode.SLOWER
        assert sentence.startswith("answers that take ")

    run_virtual(main)
