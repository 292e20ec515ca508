"""The reserve of free space: a crawl sends nothing new while a disk that it writes to has less than the reserve."""

from __future__ import annotations

import asyncio
import math
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from crawler.engine import operator_log
from crawler.engine.tasks import background_task
from crawler.engine.workbench import Hold
from crawler.formatting import size
from crawler.reasons import EndCode, RunEnd

if TYPE_CHECKING:
    from crawler.engine.crawl import Crawl

#: The reserve in bytes if the user names none: this, or a share of the disk if that is less.
DEFAULT_BYTES = 1_000_000_000
DEFAULT_SHARE = 0.05
#: A crawl that pauses goes on with this much more than the reserve: it would pause again at once with less.
GOES_ON_AT = 1.1

_CHECK_EVERY_S = 1.0
_MEASURE_EVERY_S = 10.0
_REST_FACTOR = 20  # times as long as a measurement has taken, until the next: a folder of many files takes a while


class DiskReserve(msgspec.Struct, frozen=True):
    """The free space that a crawl leaves on the disks of the folders that it writes to.

    ``min_free`` is in bytes. ``None`` stands for :data:`DEFAULT_BYTES`, or :data:`DEFAULT_SHARE` of a smaller disk.
    ``used`` are the files and folders of the crawl, which may take ``max_used`` bytes; ``None`` is no limit.
    """

    folders: tuple[Path, ...]
    min_free: int | None = None
    space_of: Callable[[Path], tuple[int, int, int]] = shutil.disk_usage  # bytes in all, used, and free
    max_used: int | None = None
    used: tuple[Path, ...] = ()

    def shortage(self, *, is_paused: bool) -> str | None:
        """Which disk has too little free space, as a part of a sentence; ``None`` if all have enough.

        A disk whose space cannot be read counts as having enough.
        """
        for folder in self.folders:
            try:
                total, _, free = self.space_of(folder)
            except OSError:
                continue
            reserve = min(DEFAULT_BYTES, DEFAULT_SHARE * total) if self.min_free is None else self.min_free
            if free < reserve * (GOES_ON_AT if is_paused else 1):
                return f"the disk of {folder} has {size(free)} free; {size(reserve)} are to stay free"
        return None

    def excess(self) -> str | None:
        """How much the files of the crawl take, as a part of a sentence, if that is more than allowed."""
        if self.max_used is None:
            return None
        taken = sum(map(_size_of, self.used))
        return f"{size(taken)} of {size(self.max_used)}" if taken > self.max_used else None


def _size_of(path: Path) -> int:
    """The bytes in a file, or in the files below a folder; what goes away meanwhile, or cannot be read, is 0."""
    if path.is_dir():
        return sum(_file_size(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names)
    return _file_size(path)


def _file_size(path: str | Path) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


class DiskWatch:
    """Holds the gate while a disk has too little free space.

    Requests in flight, their commits and heartbeats use the reserve. A stop of the crawl does not wait for space. Once
    the files of the crawl take more than they may, the crawl ends.
    """

    def __init__(self, context: Crawl) -> None:
        self._context = context
        self._reserve = context.inputs.reserve
        self._measure_at = -math.inf

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Watch the disks inside the context, first before it is entered. An error of the watch ends the crawl."""
        if not self._reserve.folders and self._reserve.max_used is None:
            yield
            return
        await self._check()
        async with background_task(self._keep_checking(), self._context.shutdown.fail):
            yield

    async def _keep_checking(self) -> None:
        while True:
            await self._context.clock.sleep(_CHECK_EVERY_S * self._context.inputs.rarer)
            await self._check()

    async def _check(self) -> None:
        before = self._context.progress.low_disk
        # In a thread: the system call may hang, for example on a network disk whose server is gone.
        shortage = await asyncio.to_thread(self._reserve.shortage, is_paused=before is not None)
        self._context.progress.low_disk = shortage
        if (shortage is None) != (before is None):
            operator_log.disk_is_short(shortage)
            self._context.gate.hold(shortage is not None, Hold.DISK)
        if (began := self._context.clock.now()) >= self._measure_at:
            excess = await asyncio.to_thread(self._reserve.excess)
            ended = self._context.clock.now()
            self._measure_at = ended + max(_MEASURE_EVERY_S, _REST_FACTOR * (ended - began))
            if excess is not None:
                self._context.shutdown.request(RunEnd(EndCode.MAX_DISK, excess))
