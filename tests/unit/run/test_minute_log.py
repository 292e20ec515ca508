"""The log record of each minute of a run, on virtual time."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from crawler.engine.progress import Progress
from crawler.engine.tasks import background_task
from crawler.run.minute_log import log_minutes
from crawler.store.rows import Waiting
from tests.virtual_time import EPOCH_S, VirtualClock, run_virtual


class _Store:
    async def waiting(self, now: float, limit: int) -> list[Waiting]:
        return [Waiting("slow.test", now + 90.0, "the back-off")]

    async def query(self, sql: object, parameters: object) -> list[dict[str, int]]:
        return [{"n": 3}]

    async def queued_count(self) -> int:
        return 1200


def test_a_record_each_minute_says_how_far_the_run_is(caplog: pytest.LogCaptureFixture) -> None:
    crawl: Any = SimpleNamespace(progress=Progress(EPOCH_S, sent_requests=8, pages=5, worst_lag_s=0.25))

    async def work(clock: VirtualClock) -> None:
        store: Any = _Store()
        async with background_task(log_minutes(crawl, store, clock)):
            await asyncio.sleep(150)

    with caplog.at_level(logging.INFO, "crawler.run"):
        run_virtual(work)
    first, _ = (vars(record) for record in caplog.records)
    assert {name: first[name] for name in ("pages", "requests", "queued", "waits", "worst_lag_s", "group")} == {
        "pages": 5, "requests": 8, "queued": 1200, "waits": 3, "worst_lag_s": 0.25, "group": "slow.test",
    }  # fmt: skip
    assert first["msg"] % first["args"] == (
        "5 pages, 8 requests, 1,200 queued; slow.test waits longest, for 1 min 30 s: the back-off"
    )
