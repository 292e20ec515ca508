"""A large robots.txt is requested once, however long others are being read before it."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

from crawler.demo.pages import Page, Site, plain
from crawler.engine.messages import Question, T
from crawler.engine.parser_pool import ReadingOptions
from crawler.model import Reading
from crawler.robots.text import SMALL_BYTES
from tests.reading import ReaderInProcess
from tests.simulation.crawls import Options, crawl_for
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual

LARGE = "User-agent: *\nDisallow: /x\n" + "#" * SMALL_BYTES


class Slow(ReaderInProcess):
    """Takes half a minute for each large robots.txt."""

    async def ask(self, question: Question[T], *, is_alone: bool = False) -> T:
        await asyncio.sleep(30)
        return await super().ask(question)


def test_a_large_robots_txt_is_requested_once_although_others_are_being_read(db_path: Path) -> None:
    hosts = [f"a{n}.test" for n in range(6)]

    async def main(clock: VirtualClock) -> SimulatedWeb:
        site: Site = {"/robots.txt": plain(LARGE), "/": Page("x")}
        web = SimulatedWeb(clock, dict.fromkeys(hosts, site))
        seeds = [f"http://{host}/" for host in hosts]
        reader = Slow(ReadingOptions("simulatedbot", Reading.STRICT))
        assert await crawl_for(clock, db_path, web, seeds, Options(), 3600, crash=False, reader=reader)
        return web

    web = run_virtual(main)
    assert Counter((hit.host, hit.path) for hit in web.log) == {
        (host, path): 1 for host in hosts for path in ("/robots.txt", "/")
    }
