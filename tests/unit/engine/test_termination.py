"""Why a crawl is over whose frontier is empty."""

from __future__ import annotations

from typing import Any, cast

import pytest

from crawler.engine.crawl_policy import CrawlPolicy, RobotsPolicy
from crawler.engine.crawl_settings import LimitSettings
from crawler.engine.page_counter import PageCounter
from crawler.engine.progress import Progress
from crawler.engine.termination import conclude
from crawler.frontier.politeness import PolitenessSettings
from crawler.frontier.request_settings import RequestSettings
from crawler.model import State
from crawler.reasons import EndCode, RunEnd
from crawler.robots.response import RobotsSettings

ROBOTS = RobotsPolicy(RobotsSettings(), "figtree")
POLICY = CrawlPolicy(LimitSettings(), PolitenessSettings(), RequestSettings(), ROBOTS)
OUT = (State.EXCLUDED, "matches --exclude")


class Empty:
    """A store without queued URLs."""

    def __init__(self, seeds: list[tuple[State, str]]) -> None:
        self._seeds = seeds

    async def queued_count(self) -> int:
        return 0

    async def seed_states(self) -> list[tuple[State, str]]:
        return self._seeds


@pytest.mark.parametrize(
    ("seeds", "detail"),
    [
        ([OUT], "matches --exclude"),
        ([OUT, (State.EXCLUDED, "on a closed site")], "matches --exclude; and 1 other reason"),
        (
            [OUT, *((State.EXCLUDED, f"redirects to {n}") for n in range(1234))],
            "matches --exclude; and 1,234 other reasons",
        ),
    ],
)
async def test_the_end_has_the_reason_of_a_seed_that_was_left_out(seeds: list[tuple[State, str]], detail: str) -> None:
    end = await conclude(cast(Any, Empty(seeds)), POLICY, PageCounter(None), Progress(0.0))
    assert end == RunEnd(EndCode.SEEDS_LEFT_OUT, detail)


async def test_seeds_that_were_not_left_out_end_a_crawl_as_usual() -> None:
    progress = Progress(0.0, requests=1)
    end = await conclude(cast(Any, Empty([OUT, (State.FAILED, "404")])), POLICY, PageCounter(None), progress)
    assert end == RunEnd(EndCode.DONE)
