"""Pages with an instant refresh are kept, and what they lead to stands for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.demo.pages import Page, Site, plain
from tests.simulation.crawls import Options, crawl, rows, states
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import run_virtual


def refresh(target: str, delay: str = "0") -> Page:
    return Page(f"<meta http-equiv=refresh content='{delay}; url={target}'><title>Moved</title><p>Moved")


def crawled(db_path: Path, site: Site, options: Options | None = None) -> dict[str, tuple[str, str]]:
    sites: dict[str, Site] = {"a.test": {"/robots.txt": plain(""), **site}}
    run_virtual(lambda clock: crawl(clock, db_path, SimulatedWeb(clock, sites), ["http://a.test/"], options))
    ended = run_virtual(lambda clock: states(db_path))
    return {url.removeprefix("http://a.test"): end for url, end in ended.items()}


def test_a_stub_is_kept_and_its_target_stands_for_it(db_path: Path) -> None:
    site: Site = {"/": Page("<a href=/old>old</a>"), "/old": refresh("/new"), "/new": Page("new")}
    assert crawled(db_path, site)["/old"] == ("fetched", "200, refresh to http://a.test/new")
    pages = run_virtual(lambda clock: rows(db_path, "SELECT url, depth, title FROM pages ORDER BY url"))
    assert [tuple(page) for page in pages] == [
        ("http://a.test/", 0, None),
        ("http://a.test/new", 1, None),  # as deep as the page that it stands for
        ("http://a.test/old", 1, "Moved"),
    ]
    said = run_virtual(lambda clock: rows(db_path, "SELECT reason_code FROM urls WHERE url LIKE '%/old'"))
    assert [tuple(row) for row in said] == [("refresh",)]


def test_a_refresh_after_a_while_is_a_link(db_path: Path) -> None:
    site: Site = {"/": refresh("/next", "5"), "/next": Page("next")}
    assert crawled(db_path, site) == {"/": ("fetched", "200"), "/next": ("fetched", "200")}
    links = run_virtual(lambda clock: rows(db_path, "SELECT target, rel FROM links"))
    assert links == [("http://a.test/next", "refresh")]


@pytest.mark.parametrize("length", [2, 3])
def test_refreshes_in_a_circle_are_pages(db_path: Path, length: int) -> None:
    site: Site = {f"/{n or ''}": refresh(f"/{(n + 1) % length or ''}") for n in range(length)}
    assert {state for state, _ in crawled(db_path, site).values()} == {"fetched"}
    assert run_virtual(lambda clock: rows(db_path, "SELECT count(*) FROM requests")) == [(length + 1,)]
