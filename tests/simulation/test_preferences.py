"""Preferences about use in whole crawls: what is recorded, and what is obeyed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crawler.demo.pages import Asked, Page, Site, plain
from crawler.frontier.revisit import RevisitSettings
from crawler.preferences.purposes import UsePurpose
from crawler.settings.settings import Identity
from tests.simulation.crawls import Options, crawl, rows
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

DAY_S = 86_400.0
SEED = "http://a.test/"
AGAIN = Options(revisit=RevisitSettings(enabled=True, first_s=DAY_S, min_interval_s=3_600.0))
ROBOTS = "User-agent: *\nContent-Usage: train-ai=n\nContent-Usage: /ok/ train-ai=y\nAllow: /\n"
_STATED = "SELECT url, category, value, source, line FROM preferences ORDER BY url, source, category"


class Owner:
    """A site with a robots.txt and pages that may be changed between two crawls."""

    def __init__(self, robots: str, **pages: Page) -> None:
        self.robots = robots
        self.pages = pages

    def site(self) -> Site:
        return {"/robots.txt": lambda _: plain(self.robots), "*": self._page}

    def _page(self, asked: Asked) -> Page:
        if asked.path == "/":
            return Page("".join(f"<a href='/{name}'>x</a>" for name in self.pages))
        return self.pages.get(asked.path.removeprefix("/"), Page("none", status=404))


def test_the_preferences_of_each_page_are_recorded_without_a_declared_purpose(tmp_path: Path) -> None:
    pages = {
        "ok/a": Page("<p>a"),
        "b": Page("<meta name=tdm-reservation content=1>", headers=(("Content-Usage", "search=y"),)),
    }
    owner, db = Owner(ROBOTS, **pages), tmp_path / "c.db"

    async def once(clock: VirtualClock) -> list[tuple[Any, ...]]:
        await crawl(clock, db, SimulatedWeb(clock, {"a.test": owner.site()}), [SEED])
        return await rows(db, _STATED)

    assert run_virtual(once) == [
        (SEED, "train-ai", "n", "robots.txt", 2),
        (f"{SEED}b", "tdm", "n", "META", None),
        (f"{SEED}b", "search", "y", "header", None),
        (f"{SEED}b", "train-ai", "n", "robots.txt", 2),
        (f"{SEED}ok/a", "train-ai", "y", "robots.txt", 3),
    ]


def test_a_revisit_records_the_preferences_of_then(tmp_path: Path) -> None:
    """draft-ietf-aipref-attach, 3.3: a changed robots.txt applies once the page has been retrieved again."""
    same = (("ETag", '"1"'),)
    pages = {"b": Page("<p>b", headers=(*same, ("Content-Usage", "search=y"))), "c": Page("<p>c", headers=same)}
    owner, db = Owner(ROBOTS, **pages), tmp_path / "c.db"

    async def twice(clock: VirtualClock) -> list[tuple[Any, ...]]:
        web = SimulatedWeb(clock, {"a.test": owner.site()})
        await crawl(clock, db, web, [SEED], AGAIN)
        owner.robots = "User-agent: *\nContent-Signal: search=no\n"
        owner.pages["c"] = Page("<p>c, changed", headers=(("Content-Usage", "train-ai=n"),))
        await clock.sleep(40 * DAY_S)
        await crawl(clock, db, web, [], AGAIN)
        return await rows(db, _STATED)

    assert run_virtual(twice) == [
        (SEED, "search", "n", "robots.txt", 2),
        (f"{SEED}b", "search", "y", "header", None),  # a 304, which repeats no headers
        (f"{SEED}b", "search", "n", "robots.txt", 2),
        (f"{SEED}c", "train-ai", "n", "header", None),
        (f"{SEED}c", "search", "n", "robots.txt", 2),
    ]


def declaring(*purposes: UsePurpose) -> Options:
    return Options(identity=Identity("SimulatedBot", purpose=purposes))


TRAIN, SEARCH = declaring(UsePurpose.TRAIN_AI), declaring(UsePurpose.SEARCH)
_ENDS = "SELECT url, state, reason_code FROM urls ORDER BY url"


def test_what_robots_txt_refuses_for_a_declared_purpose_is_not_fetched(tmp_path: Path) -> None:
    owner, db = Owner(ROBOTS, **{"ok/a": Page("<p>a"), "b": Page("<p>b")}), tmp_path / "c.db"
    seeds = [f"{SEED}ok/a", f"{SEED}b"]

    async def crawls(clock: VirtualClock) -> tuple[list[str], list[tuple[Any, ...]], list[str]]:
        web = SimulatedWeb(clock, {"a.test": owner.site()})
        await crawl(clock, db, web, seeds, TRAIN)
        asked = [hit.path for hit in web.log]
        ends = await rows(db, _ENDS)
        await crawl(clock, db, web, [], SEARCH)  # the refused URL is decided on again
        return asked, ends, [hit.path for hit in web.log[len(asked) :]]

    asked, ends, later = run_virtual(crawls)
    assert asked == ["/robots.txt", "/ok/a"]
    assert ends == [(f"{SEED}b", "excluded", "preference"), (f"{SEED}ok/a", "fetched", "fetched")]
    assert later == ["/b"]


def test_a_page_that_refuses_a_declared_purpose_is_not_kept_but_its_links_are_followed(tmp_path: Path) -> None:
    refusing = Page("<title>No</title><meta name=robots content=noai><a href=/c>c</a>")
    owner, db = Owner("", b=refusing, c=Page("<title>Yes</title>")), tmp_path / "c.db"
    kept = "SELECT url, title, noindex, body_sha256 IS NULL FROM pages ORDER BY url"

    async def once(clock: VirtualClock) -> tuple[list[tuple[Any, ...]], ...]:
        web = SimulatedWeb(clock, {"a.test": owner.site()})
        await crawl(clock, db, web, [f"{SEED}b"], TRAIN)
        return await rows(db, _ENDS), await rows(db, kept), await rows(db, _STATED)

    ends, pages, stated = run_virtual(once)
    assert ends == [(f"{SEED}b", "fetched", "withheld"), (f"{SEED}c", "fetched", "fetched")]
    assert pages == [(f"{SEED}b", None, 1, 1), (f"{SEED}c", "Yes", 0, 0)]
    assert stated == [(f"{SEED}b", "ai-input", "n", "META", None), (f"{SEED}b", "train-ai", "n", "META", None)]


def test_a_page_is_kept_for_a_purpose_that_it_does_not_refuse(tmp_path: Path) -> None:
    owner, db = Owner("", b=Page("<title>No</title><meta name=robots content=noai>")), tmp_path / "c.db"

    async def once(clock: VirtualClock) -> list[tuple[Any, ...]]:
        await crawl(clock, db, SimulatedWeb(clock, {"a.test": owner.site()}), [f"{SEED}b"], SEARCH)
        return await rows(db, "SELECT title, noindex FROM pages")

    assert run_virtual(once) == [("No", 0)]


def test_a_page_that_begins_to_refuse_loses_its_body_at_the_revisit(tmp_path: Path) -> None:
    """A 304 that brings the refusal in its headers leads to a request for the whole page."""
    owner = Owner("", b=Page("<title>b</title>", headers=(("ETag", '"1"'),)))
    options, db = Options(revisit=AGAIN.revisit, identity=TRAIN.identity), tmp_path / "c.db"

    async def twice(clock: VirtualClock) -> list[tuple[Any, ...]]:
        web = SimulatedWeb(clock, {"a.test": owner.site()})
        await crawl(clock, db, web, [f"{SEED}b"], options)
        owner.pages["b"] = Page("<title>b</title>", headers=(("ETag", '"1"'), ("Content-Usage", "train-ai=n")))
        await clock.sleep(40 * DAY_S)
        await crawl(clock, db, web, [], options)
        return await rows(db, "SELECT title, body_sha256, noindex FROM page_versions ORDER BY version")

    assert set(run_virtual(twice)) == {(None, None, 1)}
