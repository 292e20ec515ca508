"""Tasks that run while a context is entered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager


@asynccontextmanager
async def background_task(
    work: Coroutine[None, None, None], failed: Callable[[BaseException], None] | None = None
) -> AsyncIterator[None]:
    """Run ``work`` in the background; cancel and await it on exit. Its error is passed to ``failed`` at once."""

    def ended(task: asyncio.Task[None]) -> None:
        if failed is not None and not task.cancelled() and (error := task.exception()) is not None:
            failed(error)

    task = asyncio.create_task(work)
    task.add_done_callback(ended)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def required_task(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Run ``work`` in the background. If it fails, cancel the context and raise the error of ``work``."""
    inside, failures = asyncio.current_task(), list[BaseException]()
    assert inside is not None

    def cut_off(error: BaseException) -> None:
        failures.append(error)
        inside.cancel()

    try:
        async with background_task(work, cut_off):
            yield
    except asyncio.CancelledError:
        if not failures:
            raise
        inside.uncancel()
        raise failures[0] from None
