"""The reserve of free space: a crawl sends nothing new while a disk that it writes to has less than the reserve."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from crawler.clock import Clock
from crawler.engine import operator_log
from crawler.engine.gate import Gate, Hold
from crawler.engine.progress import Progress
from crawler.engine.tasks import background_task
from crawler.formatting import size

#: The reserve in bytes if the user names none: this, or a share of the disk if that is less.
DEFAULT_BYTES = 1_000_000_000
DEFAULT_SHARE = 0.05
#: A crawl that pauses goes on with this much more than the reserve: it would pause again at once with less.
GOES_ON_AT = 1.1

_LOOK_EVERY_S = 1.0


class Space(Protocol):
    """The space of a disk in bytes. ``free`` is what a process without privileges may use."""

    @property
    def total(self) -> int: ...

    @property
    def free(self) -> int: ...


@dataclass(frozen=True, slots=True)
class DiskReserve:
    """The free space that a crawl leaves on the disks of the folders that it writes to.

    ``min_free`` is in bytes. ``None`` stands for :data:`DEFAULT_BYTES`, or :data:`DEFAULT_SHARE` of a smaller disk.
    """

    folders: tuple[Path, ...]
    min_free: int | None = None
    space_of: Callable[[Path], Space] = shutil.disk_usage

    def shortage(self, *, is_paused: bool) -> str | None:
        """Which disk has too little free space, as a part of a sentence; ``None`` if all have enough.

        A disk whose space cannot be read counts as having enough.
        """
        for folder in self.folders:
            try:
                space = self.space_of(folder)
            except OSError:
                continue
            reserve = min(DEFAULT_BYTES, DEFAULT_SHARE * space.total) if self.min_free is None else self.min_free
            if space.free < reserve * (GOES_ON_AT if is_paused else 1):
                return f"the disk of {folder} has {size(space.free)} free; {size(reserve)} are to stay free"
        return None


class DiskWatch:
    """Holds the gate while a disk has too little free space.

    Requests in flight, their commits and heartbeats use the reserve. A stop of the crawl does not wait for space.
    """

    def __init__(self, reserve: DiskReserve, clock: Clock, gate: Gate, progress: Progress) -> None:
        self._reserve = reserve
        self._clock = clock
        self._gate = gate
        self._progress = progress

    @asynccontextmanager
    async def watching(self, failed: Callable[[BaseException], None]) -> AsyncIterator[None]:
        """Watch the disks inside the context, first before it is entered. ``failed`` gets an error of the watch."""
        if not self._reserve.folders:
            yield
            return
        await self._look()
        async with background_task(self._keep_looking(), failed):
            yield

    async def _keep_looking(self) -> None:
        while True:
            await self._clock.sleep(_LOOK_EVERY_S)
            await self._look()

    async def _look(self) -> None:
        before = self._progress.low_disk
        # In a thread: the system call may hang, for example on a network disk whose server is gone.
        shortage = await asyncio.to_thread(self._reserve.shortage, is_paused=before is not None)
        self._progress.low_disk = shortage
        if (shortage is None) != (before is None):
            operator_log.disk_is_short(shortage)
            self._gate.hold(shortage is not None, Hold.DISK)
