"""The lag of the event loop: the delay of its timers. Code that blocks the loop delays every site."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from crawler.engine.progress import Progress
from crawler.engine.tasks import background_task

_EVERY_S = 0.05


@asynccontextmanager
async def loop_lag_measured(progress: Progress) -> AsyncIterator[None]:
    """Measure the lag 20 times a second inside the context, and keep the worst in ``progress.worst_lag_s``.

    The lag comes from the loop's own work and from other processes of the machine.
    """
    async with background_task(_measure(progress)):
        yield


async def _measure(progress: Progress) -> None:
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _EVERY_S
        await asyncio.sleep(_EVERY_S)
        progress.late(loop.time() - due)
