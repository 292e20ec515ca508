"""A crawl gives the memory for large bodies back."""

from __future__ import annotations

from pathlib import Path

from crawler.demo.pages import Page
from crawler.engine.body_memory import BodyMemory
from tests.simulation.crawls import Options, session
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock, run_virtual


class Memory(BodyMemory):
    """Notes the groups whose memory is given back."""

    def __init__(self) -> None:
        super().__init__()
        self.released: set[str] = set()

    def release(self, group: str) -> None:
        self.released.add(group)


def test_the_engine_releases_the_memory_of_each_group(db_path: Path) -> None:
    memory = Memory()

    async def main(clock: VirtualClock) -> None:
        web = SimulatedWeb(clock, {"a.test": {"/": Page("text")}})
        async with session(clock, db_path, web, ["http://a.test/"], Options(), memory=memory) as (run, _):
            await run.run()

    run_virtual(main)
    assert memory.released == {"a.test"}
