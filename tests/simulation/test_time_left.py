"""The range of the time that a crawl takes holds on webs that grow and shrink (virtual time)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from crawler.demo.pages import Page, Site, plain
from crawler.engine.crawl_settings import LimitSettings
from crawler.frontier.time_left import End
from tests.simulation import crawls, time_left
from tests.simulation.crawls import Options, crawl
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual


def tree(host: str, pages: int, links: int, seed: int) -> Site:
    """A site of ``pages`` pages in a random tree with links to and fro: each page brings fewer new ones over time."""
    chance = random.Random(seed)
    site: Site = {"/robots.txt": plain("")}
    for number in range(pages):
        below = [f"/{number * links + each}" for each in range(1, links + 1) if number * links + each < pages]
        aside = [f"/{chance.randrange(pages)}" for _ in range(3)]
        page = Page("".join(f"<a href='http://{host}{path}'>x</a>" for path in below + aside), delay_s=chance.random())
        site["/" if number == 0 else f"/{number}"] = page
    return site


@pytest.mark.parametrize("max_pages", [None, 120])
def test_the_time_of_a_crawl_is_within_its_range(
    db_path: Path, monkeypatch: pytest.MonkeyPatch, max_pages: int | None
) -> None:
    score = time_left.Score()
    monkeypatch.setattr(crawls, "SAMPLER", time_left.sampler)
    monkeypatch.setattr(time_left, "SCORE", score)
    sites = {"a.test": tree("a.test", 150, 4, 1), "b.test": tree("b.test", 40, 3, 2), "c.test": tree("c.test", 9, 2, 3)}

    async def main(clock: VirtualClock) -> str:
        seeds = [f"http://{host}/" for host in sites]
        web = SimulatedWeb(clock, sites, latency_s={"a.test": 0.2, "b.test": 1.0})
        return await crawl(clock, db_path, web, seeds, Options(limits=LimitSettings(max_pages=max_pages)))

    run_virtual(main)
    assert score.looks["looks"] >= 15
    assert score.looks["lower holds"] >= score.looks["looks"] - 1, score.misses
    assert score.looks["upper holds"] == score.looks[End.BOUNDED.value], score.misses
    assert score.looks[End.BOUNDED.value] >= 3
