"""Sites that answer by walls or refusals: they rest, are asked for one URL, and are opened or closed."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import pytest

from crawler.audit.checks import Check, CheckCount
from crawler.audit.run_audit import run_audit
from crawler.demo.pages import Page, Site, plain
from crawler.frontier.refusals import REFUSED, WALLS
from crawler.model import Failed, FetchResult, Purpose, Recorded, Request
from crawler.reasons import EndCode, ErrorKind, RunEnd
from crawler.robots.response import RobotsSettings
from crawler.settings.loading import settings_from
from crawler.store.sqlite.store import SqliteStore
from tests.refusing_web import LINKED, seen_in, seen_without_rule
from tests.simulation.crawls import Options, crawl, crawl_for, session, states
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

HOUR, DAY = 3600.0, 86_400.0
WALL = Page("<p>Checking your browser", status=403, headers=(("cf-mitigated", "challenge"),))
FORBIDDEN = Page("<p>Forbidden", status=403)
ANUBIS = Page(
    '<script id="anubis_challenge" type="application/json">{}</script>'
    '<img src="/.within.website/x/cmd/anubis/static/img/pensive.webp">'
)
SEEDS = [f"http://a.test/{n}" for n in range(20)]
RESTS = Options(robots=RobotsSettings(rests_s=(HOUR, DAY, 7 * DAY), min_fresh_s=60 * DAY))


class Keeper:
    """A recorder that keeps everything."""

    def __init__(self) -> None:
        self.records: list[Recorded] = []

    async def record(self, batch: Sequence[Recorded]) -> None:
        self.records += batch


def site(page: Page, **more: Page) -> Site:
    return {"/robots.txt": plain(""), "/": page, **{f"/{n}": page for n in range(20)}, **more}


def starts(web: SimulatedWeb, path: str | None = None) -> list[float]:
    return [hit.started_at for hit in web.log if (hit.path != "/robots.txt" if path is None else hit.path == path)]


def test_a_walled_site_is_asked_for_three_urls_and_three_more_and_is_closed(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> SimulatedWeb:
        web = SimulatedWeb(clock, {"a.test": site(WALL)})
        assert await crawl(clock, db_path, web, SEEDS, RESTS)
        return web

    web = run_virtual(main)
    times = starts(web)
    assert len(times) == 6
    pauses = [later - before for before, later in pairwise(times[2:])]
    assert pauses == pytest.approx([HOUR, DAY, 7 * DAY], abs=5.0)
    assert len({hit.path for hit in web.log if hit.path != "/robots.txt"}) == 3  # one of the walled URLs, each time
    found = Counter(run_virtual(lambda clock: states(db_path)).values())
    assert {state for state, _ in found} == {"failed", "excluded"}
    assert sum(n for (state, _), n in found.items() if state == "failed") == 3


def test_a_wall_with_200_in_the_mark_up_is_no_page_and_a_kill_does_not_end_the_rest(db_path: Path) -> None:
    recorder = Keeper()

    async def main(clock: VirtualClock) -> SimulatedWeb:
        web = SimulatedWeb(clock, {"a.test": site(ANUBIS)})
        assert not await crawl_for(clock, db_path, web, SEEDS, RESTS, 600.0, crash=True)
        assert not await crawl_for(clock, db_path, web, SEEDS, RESTS, 600.0, crash=True)
        assert len(starts(web)) == WALLS
        async with session(clock, db_path, web, SEEDS, RESTS, recorder=recorder) as (run, store):
            await run.run()
            assert await store.query("SELECT url FROM pages") == []
        return web

    assert len(starts(run_virtual(main))) == 2 * WALLS
    left_out = [one.left_out for one in recorder.records if one.purpose is Purpose.PAGE]
    assert left_out == ["no page, but a wall: Anubis (#anubis_challenge and /.within.website/ in the mark-up)"] * WALLS


class Robbed:
    """A fetcher whose worker loses its lease when the wall with the number ``at`` arrives."""

    def __init__(self, web: SimulatedWeb, clock: VirtualClock, at: int) -> None:
        self._web, self._clock, self._left = web, clock, at
        self.store: SqliteStore | None = None

    async def fetch(self, request: Request) -> FetchResult:
        answer = await self._web.fetch(request)
        if isinstance(answer, Failed) and answer.kind is ErrorKind.WALL:
            self._left -= 1
            if self._left == 0:
                assert self.store is not None
                await self.store.end_worker(self.store.worker_id, RunEnd(EndCode.LEASE_RAN_OUT), self._clock.now())
        return answer


@pytest.mark.parametrize("at", range(1, 7))
@pytest.mark.parametrize("place", ["pages", "robots.txt"])
def test_a_lost_lease_loses_no_rest_and_no_wall(at: int, place: str, db_path: Path) -> None:
    """The site rests as without the loss, whichever wall the lease is lost at, and the audit finds nothing.

    A URL whose outcome is lost is requested again, so two URLs may bring the three walls.
    """

    async def main(clock: VirtualClock) -> SimulatedWeb:
        web = SimulatedWeb(
            clock,
            {"a.test": site(WALL) if place == "pages" else {**site(WALL), "/robots.txt": replace(WALL, status=200)}},
        )
        robbed = Robbed(web, clock, at)
        async with session(clock, db_path, robbed, SEEDS, RESTS) as (run, store):
            robbed.store = store
            await store.end_run(await run.run(), clock.now())
        return web

    web = run_virtual(main)
    times = starts(web)[2:] if place == "pages" else starts(web, "/robots.txt")
    pauses = [later - before for before, later in pairwise(times)]
    assert pauses == pytest.approx([HOUR, DAY, 7 * DAY], abs=5.0)
    judged = run_virtual(lambda _: audited(db_path))
    assert judged.violations == 0
    assert judged.judged == (0 if place == "pages" and at < WALLS else 3)


async def audited(db_path: Path) -> CheckCount:
    """What the audit finds on rests, if the run had the default settings."""
    settings = settings_from({"identity.contact": "who@example.org"}, source="test")
    with sqlite3.connect(db_path) as db:
        db.execute("UPDATE run SET settings = ?", (json.dumps(asdict(settings)),))
    store = await SqliteStore.open(db_path, read_only=True)
    try:
        return (await run_audit(store, 0.0)).counts[Check.RESTS]
    finally:
        await store.close()


def test_a_closed_site_is_not_asked_for_the_robots_txt_of_another(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> SimulatedWeb:
        web = SimulatedWeb(clock, {"a.test": site(WALL)})
        assert await crawl(clock, db_path, web, SEEDS, RESTS)
        asked = len(web.log)
        await clock.sleep(90 * DAY)  # its robots.txt has expired
        moved = Page("", status=301, headers=(("Location", "http://a.test/robots.txt"),))
        web.web.sites["b.test"] = {"/robots.txt": moved, "/": Page("text")}  # type: ignore[attr-defined]
        assert not await crawl_for(clock, db_path, web, ["http://b.test/"], RESTS, HOUR, crash=False)
        assert {hit.host for hit in web.log[asked:]} == {"b.test"}
        return web

    run_virtual(main)


def test_refresh_opens_a_closed_site(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> SimulatedWeb:
        web = SimulatedWeb(clock, {"a.test": site(WALL)})
        assert await crawl(clock, db_path, web, SEEDS, RESTS)
        assert await crawl(clock, db_path, web, SEEDS, RESTS), "nothing is left"
        assert len(starts(web)) == 2 * WALLS
        web.web.sites["a.test"].update(site(Page("text")))  # type: ignore[attr-defined]
        store = await SqliteStore.open(db_path)
        await store.forget_refusals(["http://a.test"], clock.now())
        await store.close()
        assert await crawl(clock, db_path, web, SEEDS, RESTS)
        return web

    run_virtual(main)
    assert {state for state, _ in run_virtual(lambda clock: states(db_path)).values()} == {"fetched"}


def test_a_site_that_opens_is_asked_for_what_it_refused(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> SimulatedWeb:
        web = SimulatedWeb(clock, {"a.test": site(WALL)})
        assert not await crawl_for(clock, db_path, web, SEEDS, RESTS, 600.0, crash=False)
        assert len(starts(web)) == 3
        web.web.sites["a.test"].update(site(Page("text")))  # type: ignore[attr-defined]
        assert await crawl(clock, db_path, web, SEEDS, RESTS)
        return web

    web = run_virtual(main)
    assert {state for state, _ in run_virtual(lambda clock: states(db_path)).values()} == {"fetched"}
    assert starts(web)[3] - starts(web)[2] >= HOUR


def test_a_site_that_refuses_all_its_urls_rests_after_ten(db_path: Path) -> None:
    async def main(clock: VirtualClock) -> SimulatedWeb:
        web = SimulatedWeb(clock, {"a.test": site(FORBIDDEN)})
        assert not await crawl_for(clock, db_path, web, ["http://a.test/", *SEEDS], RESTS, 600.0, crash=False)
        return web

    assert len(starts(run_virtual(main))) <= 20


def test_a_wall_in_place_of_robots_txt_is_no_robots_txt(db_path: Path) -> None:
    wall = Page("", status=200, headers=(("cf-mitigated", "challenge"),))

    async def main(clock: VirtualClock) -> SimulatedWeb:
        web = SimulatedWeb(clock, {"a.test": {**site(Page("text")), "/robots.txt": wall}})
        assert await crawl(clock, db_path, web, SEEDS, RESTS)
        return web

    web = run_virtual(main)
    assert starts(web) == []
    times = starts(web, "/robots.txt")
    pauses = [later - before for before, later in pairwise(times)]
    assert pauses == pytest.approx([HOUR, DAY, 7 * DAY], abs=5.0)
    assert {state for state, _ in run_virtual(lambda clock: states(db_path)).values()} == {"excluded"}


def test_refusing_sites_see_a_few_requests_and_the_others_all(tmp_path: Path) -> None:
    """The table in docs/development/reliability.md, of a smaller web."""
    seen = {rule: crawled(25, tmp_path / rule) for rule, crawled in (("with", seen_in), ("without", seen_without_rule))}
    assert seen["with"]["open"] == seen["without"]["open"]
    assert [seen["without"][kind].most_pages for kind in ("walled", "refused")] == [LINKED, LINKED]
    assert seen["with"]["walled"].most_pages == 2 * WALLS
    assert seen["with"]["refused"].most_pages <= REFUSED + WALLS + 1
