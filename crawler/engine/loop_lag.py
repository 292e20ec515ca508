"""How late the event loop comes to what is due: whatever holds it up delays every site at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from crawler.engine.progress import Progress
from crawler.engine.tasks import background_task

_EVERY_S = 0.05


@asynccontextmanager
async def measured(progress: Progress) -> AsyncIterator[None]:
    """Keep the worst lag in ``progress.worst_lag_s`` while inside: the loop is looked at 20 times a second.

    What is seen is the loop's own work and whatever else the machine has to do.
    """
    async with background_task(_measure(progress)):
        yield


async def _measure(progress: Progress) -> None:
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _EVERY_S
        await asyncio.sleep(_EVERY_S)
        progress.late(loop.time() - due)
