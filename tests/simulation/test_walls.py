"""Sites that answer by walls or refusals: they rest, are asked for one URL, and are opened or closed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from crawler.demo.pages import Page, Site, plain
from crawler.frontier.refusals import WALLS
from crawler.model import Purpose, Recorded
from crawler.robots.response import RobotsSettings
from crawler.store.sqlite.store import SqliteStore
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
