"""How often the time that a crawl takes lies in the range that was foretold, over all simulated crawls.

``python -m tests.simulation.time_left [pytest arguments]`` runs the tests of this folder, looks at each of their crawls
at growing intervals, and prints how often lower ≤ truth ≤ upper held. The truth is known for crawls that came to their
end by themselves.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

from crawler.engine.crawl import Crawl
from crawler.errors import CrawlerError
from crawler.frontier.time_left import End, TimeLeft
from crawler.inspect.time_left import time_left_under
from crawler.reasons import EndCode
from crawler.settings.stored import recorded
from crawler.store.sqlite.store import SqliteStore
from tests.simulation import crawls
from tests.virtual_time import VirtualClock

_FIRST_S, _FACTOR = 1.0, 1.3


@dataclass(slots=True)
class Score:
    """How the ranges of some looks fared."""

    looks: Counter[str] = field(default_factory=Counter)
    misses: list[str] = field(default_factory=list)

    def add(self, name: str, looks: list[tuple[float, TimeLeft]], ended_at: float) -> None:
        """Judge the looks at a crawl that ended at ``ended_at``."""
        for at, left in looks:
            truth_s = ended_at - at
            self.looks["looks"] += 1
            self.looks[left.end.value] += 1
            low = left.least_s <= truth_s + 1e-3
            high = left.most_s is None or truth_s <= left.most_s + 1e-3
            self.looks["lower holds"] += low
            self.looks["upper holds"] += high and left.end is End.BOUNDED
            self.looks["both hold"] += low and high
            if not (low and high):
                self.misses.append(f"{name}: {left.least_s:.1f} <= {truth_s:.1f} <= {left.most_s}")


SCORE = Score()


@asynccontextmanager
async def sampler(
    run: Crawl, store: SqliteStore, path: Path, clock: VirtualClock, options: crawls.Options
) -> AsyncIterator[None]:
    """Look at a crawl at growing intervals, and judge the looks at its end."""
    looks: list[tuple[float, TimeLeft]] = []
    sent, over = run.progress.requests, asyncio.Event()

    async def look() -> None:
        wait_s = _FIRST_S
        reader = await SqliteStore.open(path, read_only=True)
        try:
            while not await _is_set(over, wait_s):
                wait_s *= _FACTOR
                settings = recorded(json.loads(json.dumps(asdict(options))))
                begun = await reader.last_run()
                if begun is not None and run.progress.paused_since is None and run.progress.low_disk is None:
                    left = await time_left_under(reader, settings, begun, clock.now())
                    if left is not None:
                        looks.append((clock.now(), left))
        except CrawlerError:
            pass  # the test took the store away
        finally:
            await reader.close()

    ended: list[float] = []
    driven = run.run

    async def timed() -> object:
        end = await driven()
        if end.code in (EndCode.DONE, EndCode.MAX_PAGES):
            ended.append(clock.now())
        return end

    run.run = timed  # type: ignore[method-assign, assignment]
    task = asyncio.create_task(look())
    try:
        yield
    finally:
        over.set()  # not cancelled: a call to the store would hold the clock
        await task
        if ended and run.progress.requests > sent and not options.revisit.enabled:
            name = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition("/")[2]
            SCORE.add(name, looks, ended[0])


async def _is_set(event: asyncio.Event, within_s: float) -> bool:
    """Whether ``event`` is set within a time."""
    try:
        async with asyncio.timeout(within_s):
            return await event.wait()
    except TimeoutError:
        return False


def main() -> int:
    """Run the tests, and print the score."""
    crawls.SAMPLER = sampler
    tests = sys.argv[1:] or [str(Path(__file__).parent)]
    pytest.main(["-q", "-p", "no:cacheprovider", "--import-mode=prepend", *tests])
    for miss in SCORE.misses:
        print(miss)
    print(dict(SCORE.looks))
    return 0


if __name__ == "__main__":
    sys.exit(main())
