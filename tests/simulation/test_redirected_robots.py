"""A robots.txt that is redirected to a site that another worker of the crawl has claimed."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import pytest

from crawler.audit.checks import Violation
from crawler.audit.run_audit import run_audit
from crawler.demo.pages import Page, Site, plain, redirect
from crawler.engine.lease import Lease
from crawler.engine.polite_client import Closed, PoliteClient
from crawler.engine.robots_cache import RobotsNeeds
from crawler.model import Purpose, Request, RobotsAction
from crawler.reasons import EndCode, RunEnd
from crawler.robots.response import RobotsSettings
from crawler.settings.loading import settings_from
from crawler.store.protocols import CrawlStore
from crawler.store.sqlite.store import SqliteStore
from tests.simulation.crawls import Options, rows, session, states
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

SITES: dict[str, Site] = {
    "a.test": {"/robots.txt": redirect("http://www.test/robots.txt"), "/": Page("x")},
    "www.test": {"/robots.txt": plain("User-agent: *\nDisallow: /x\n"), "/": Page("x")},
}


def at_work(store: CrawlStore, site: str, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Another worker holds a site until the event is set."""
    visit, over = store.reserve, asyncio.Event()

    async def held(name: str) -> int | None:
        return None if name == site and not over.is_set() else await visit(name)

    monkeypatch.setattr(store, "reserve", held)
    return over


def test_a_robots_txt_on_a_site_of_another_worker_is_requested_less_and_less(
    db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main(clock: VirtualClock) -> list[float]:
        web = SimulatedWeb(clock, SITES)
        async with session(clock, db_path, web, ["http://a.test/"], Options()) as (run, store):
            over = at_work(store, "http://www.test", monkeypatch)
            task = asyncio.create_task(run.run())
            await clock.sleep(3600)
            asked = [hit.started_at for hit in web.web.hits("a.test")]
            over.set()
            assert str(await task) == "nothing is left in the frontier"
            await store.end_run(RunEnd(EndCode.DONE), clock.now())
        return asked

    asked = run_virtual(main)
    pauses = [after - before for before, after in pairwise(asked)]
    assert [round(pause / 60) for pause in pauses] == [1, 2, 4, 8, 16]
    assert asyncio.run(states(db_path))["http://a.test/"] == ("fetched", "200")
    notes = asyncio.run(rows(db_path, "SELECT note FROM robots_answers WHERE action = ?", [RobotsAction.DEFER]))
    assert set(notes) == {("http://www.test is held by another worker",)}
    assert asyncio.run(violations(db_path, RobotsSettings())) == []


def test_an_earlier_robots_copy_stays_in_force_if_configured(db_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    robots = RobotsSettings(stale_if_error=True)
    rules = replace(plain("User-agent: *\nDisallow: /x\n"), headers=(("Cache-Control", "max-age=300"),))
    links = Page("".join(f"<a href='/{number}'>n</a>" for number in range(600)))
    sites: dict[str, Site] = {
        "a.test": {**SITES["a.test"], "/": links, "*": Page("x")},
        "www.test": {"/robots.txt": rules},
    }

    async def main(clock: VirtualClock) -> None:
        async with session(clock, db_path, SimulatedWeb(clock, sites), ["http://a.test/"], Options(robots=robots)) as (
            run,
            store,
        ):
            over = at_work(store, "http://www.test", monkeypatch)
            over.set()
            task = asyncio.create_task(run.run())
            await clock.sleep(60)
            over.clear()
            assert str(await task) == "nothing is left in the frontier"
            await store.end_run(RunEnd(EndCode.DONE), clock.now())

    run_virtual(main)
    copies = asyncio.run(rows(db_path, "SELECT action, failures FROM robots_answers ORDER BY robots_copy"))
    assert copies[:3] == [("parse", 0), ("parse", 1), ("parse", 2)]
    assert asyncio.run(violations(db_path, robots)) == []


async def violations(db_path: Path, robots: RobotsSettings) -> list[Violation]:
    """The violations that the audit finds."""
    settings = settings_from(
        {
            "identity.contact": "who@example.org",
            "politeness.delay": 1,
            "robots.stale_if_error": robots.stale_if_error,
        },
        source="test",
    )
    with sqlite3.connect(db_path) as db:
        db.execute("UPDATE run SET settings = ?", (json.dumps(asdict(settings)),))
    store = await SqliteStore.open(db_path, read_only=True)
    try:
        return (await run_audit(store, 0.0)).violations
    finally:
        await store.close()


def test_an_auxiliary_run_reports_that_nothing_can_be_requested_now(
    db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main(clock: VirtualClock) -> None:
        options = Options()
        needs = RobotsNeeds(options.robots, "SimulatedBot", options.politeness.group, lambda host: False)
        store = await SqliteStore.open(db_path)
        try:
            await store.start_run({"auxiliary_run": "rup"}, clock.now())
            at_work(store, "http://www.test", monkeypatch)
            lease = Lease(store, clock, 60.0)
            client = PoliteClient(store, SimulatedWeb(clock, SITES), clock, options.politeness, needs, lease)
            said = await client.send(Request("http://a.test/rupinfo.txt", Purpose.RUP, 1000))
        finally:
            await store.close()
        assert isinstance(said, Closed)
        assert "http://a.test/robots.txt could not be fetched" in said.why

    run_virtual(main)
