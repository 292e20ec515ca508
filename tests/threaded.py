"""Servers for tests without an event loop, or with another one."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Threaded(ABC):
    """A context manager that serves in a separate thread and event loop."""

    def __init__(self) -> None:
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name=type(self).__name__)

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(300):
            raise RuntimeError(f"{type(self).__name__} did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        await self._serve()

    @abstractmethod
    async def _serve(self) -> None:
        """Serve until ``_stop`` is set. Sets ``_ready`` when the server accepts connections."""
