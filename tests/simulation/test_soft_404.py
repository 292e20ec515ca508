"""Crawls that compare pages with the answer of their site to a path that cannot exist."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from crawler.demo.pages import Fault, Page, Site, plain
from crawler.engine.crawl_settings import DiscoverySettings
from crawler.page.soft_404 import example_path
from tests.judge import Manners, violations
from tests.simulation.crawls import Options, crawl, rows
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

HOSTS = ("soft", "hard", "closed", "moved", "broken", "used")
MISSING = Page("<title>Shop</title><p>There is no such thing.")
LINKS = "<a href=/gone>a</a><a href=/real>b</a>"
CHECK = Options(discovery=DiscoverySettings(soft_404=True))


def site(example: Page, gone: Page, robots: str = "") -> Callable[[str], Site]:
    def on(host: str) -> Site:
        pages: Mapping[str, Page] = {
            "/robots.txt": plain(robots),
            "/": Page(LINKS),
            "/gone": gone,
            "/real": Page("<title>Shop</title><p>A thing."),
            "/lost": MISSING,
            example_path(f"http://{host}.test"): example,
        }
        return pages

    return on


MOVED = Page(status=302, headers=(("Location", "/lost"),))
WEB = {
    "soft": site(MISSING, MISSING),
    "hard": site(Page("gone", status=404), Page("gone", status=404)),
    "closed": site(MISSING, MISSING, "User-agent: *\nDisallow: /not-found-"),
    "moved": site(MOVED, MOVED),
    "broken": site(Page(fault=Fault.RESET), MISSING),
    "used": site(MISSING, MISSING, "User-agent: *\nContent-Signal: use=immediate"),
}


def test_pages_like_the_answer_to_a_path_that_cannot_exist_are_marked_and_kept(db_path: Path) -> None:
    seeds = [f"http://{host}.test/" for host in HOSTS]

    async def main(clock: VirtualClock) -> tuple[SimulatedWeb, list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        web = SimulatedWeb(clock, {f"{host}.test": WEB[host](host) for host in HOSTS})
        assert await crawl(clock, db_path, web, seeds, CHECK) == "nothing is left in the frontier"
        assert violations(web.log, Manners(delay_s=1.0, tolerance_s=1e-6)) == []
        await clock.sleep(90 * 86_400)
        asked = len(web.log)
        await crawl(clock, db_path, web, [f"{seed}real?again" for seed in seeds], CHECK)
        assert not [hit for hit in web.log[asked:] if "not-found" in hit.path], "it is requested once"
        marks = await rows(db_path, "SELECT host, url, soft_404 FROM pages WHERE title = 'Shop' AND url NOT LIKE '%?%'")
        return web, marks, await rows(db_path, "SELECT site, status, note FROM site_files ORDER BY site")

    web, marks, checks = run_virtual(main)
    for host in HOSTS:
        paths = [hit.path for hit in web.log if hit.host == f"{host}.test"]
        assert paths.count(example_path(f"http://{host}.test")) == (host != "closed")
    assert {(host.partition(".")[0], url.rpartition("/")[2]): mark for host, url, mark in marks} == {
        ("soft", "gone"): 1,
        ("soft", "real"): 0,
        ("hard", "real"): 0,
        ("closed", "gone"): None,
        ("closed", "real"): None,
        ("moved", "lost"): 1,
        ("moved", "real"): 0,
        ("broken", "gone"): None,
        ("broken", "real"): None,
    }
    assert [(name[7:-5], status) for name, status, _ in checks] == [
        ("broken", "no answer"),
        ("hard", "404"),
        ("moved", "302"),
        ("soft", "200"),
        ("used", "200"),
    ]
