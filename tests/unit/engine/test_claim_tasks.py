"""The tasks of the claimed groups."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from crawler.engine.claim_task import ClaimTasks


async def test_cancelled_tasks_have_ended_when_cancel_returns() -> None:
    ended = []

    async def work(number: int) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            for _ in range(3):  # what a task does until its request is logged
                await asyncio.sleep(0)
            ended.append(number)

    tasks = ClaimTasks(cast(Any, None))
    tasks._tasks.update({number: asyncio.create_task(work(number)) for number in range(2)})
    await asyncio.sleep(0)
    await tasks.cancel()
    assert ended == [0, 1]
