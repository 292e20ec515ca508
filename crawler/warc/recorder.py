"""Records WARC files during a crawl, into a folder that one crawl writes to at a time.

An unfinished file is named ``….warc.gz.open``. Each record is one gzip member. :meth:`WarcFolder.record` returns when
its records are on the disk; the crawl calls it before the commit, so the store never has a page that the archive lacks.
After a crash, the next run truncates the file after its last complete record and renames it.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import BinaryIO, Self

from filelock import FileLock, Timeout

from crawler.atomic_files import sync_folder
from crawler.clock import Clock
from crawler.errors import StoreError, StoreFull, SystemFull, UsageError
from crawler.gunzip import BROKEN, member
from crawler.model import Reading, Recorded
from crawler.private_files import PRIVATE, private
from crawler.shortages import NO_SPACE, SYSTEM_IS_FULL
from crawler.warc.exchange import records_of
from crawler.warc.records import gzip_member, warcinfo

MAX_FILE_BYTES = 10**9
_ENDING = ".warc.gz"
_OPEN = ".open"  # appended while the file is unfinished
_OURS = re.compile(r"crawl-\d{14}-\d{5,}\.warc\.gz\.open", re.ASCII)  # other programs may have files in the folder
_PIECE = 1 << 14
_DESCRIPTION = (
    "Every request of the crawl, robots.txt included, and its answer, octet by octet as they were transferred "
    "(within TLS). Not included: informational (1xx) answers, answers that are not HTTP, and requests that were cut "
    "off because the crawl was stopped; these are in its request log. Headers without a body (WARC-Truncated): pages "
    "whose NOINDEX or NOARCHIVE forbids a copy, and redirects, errors, unwanted types and oversized answers, whose "
    "bodies the crawler does not read; metadata records give the reason. In these records Content-Length, "
    "Content-Encoding and Transfer-Encoding are named X-Crawler-Content-Length and so on, because they describe a body "
    "that the record lacks. Payload digests cover the payloads as recorded."
)


class WarcFolder:
    """A folder of WARC files, written by one crawl at a time; an async context manager."""

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        *,
        user_agent: str,
        contact: str,
        reading: Reading,
        max_file_bytes: int = MAX_FILE_BYTES,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._max_file_bytes = max_file_bytes
        self._about = [
            ("operator", contact),
            ("http-header-user-agent", user_agent),
            ("robots", f"obeyed, {reading} reading"),
            ("description", _DESCRIPTION),
        ]
        self._busy = threading.Lock()  # a write continues in its thread after its task was cancelled
        self._file: _File | None = None
        self._failed = False
        self._serial = 0

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._open)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.to_thread(self._close)

    async def record(self, batch: Sequence[Recorded]) -> None:
        """Write requests with their answers to the disk.

        Raises :class:`StoreFull` if the disk is full: nothing of the batch is recorded, and it may be tried again.
        Raises :class:`StoreError` if it fails otherwise; the folder can then only be closed.
        """
        await asyncio.to_thread(self._record, batch)

    def _open(self) -> None:
        self._lock = FileLock(
            self._folder / ".lock", timeout=0, mode=PRIVATE, thread_local=False
        )  # taken and given back in any thread
        try:
            self._folder.mkdir(exist_ok=True)
            self._lock.acquire()
            for path in sorted(self._folder.iterdir()):
                if _OURS.fullmatch(path.name) and path.is_file():
                    repair(path)
        except Timeout:
            raise UsageError(
                "another crawl is recording into it; choose another folder",
                key="output.warc",
                value=str(self._folder),
            ) from None
        except OSError as error:
            self._lock.release()
            raise UsageError(
                f"cannot be written: {error.strerror or error}", key="output.warc", value=str(self._folder)
            ) from None
        self._began = self._clock.now()

    def _record(self, batch: Sequence[Recorded]) -> None:
        with self._busy:
            kept = 0 if self._file is None else self._file.size
            try:
                if kept >= self._max_file_bytes:
                    self._end_file()
                    kept = 0
                for recorded in batch:
                    self._add(recorded)
                if self._file is not None:
                    self._file.sync()
            except OSError as error:
                is_full = error.errno in NO_SPACE | SYSTEM_IS_FULL and self._undo(kept)
                self._failed = not is_full
                is_system = is_full and error.errno in SYSTEM_IS_FULL
                raise (SystemFull if is_system else StoreFull if is_full else StoreError)(
                    f"{error.strerror or error}; what was committed is kept, make room and run the same command again",
                    key="output.warc",
                    value=str(self._folder),
                ) from error

    def _end_file(self) -> None:
        if self._file is not None:
            self._file.finish()
        self._file = None

    def _undo(self, kept: int) -> bool:
        """Take back a batch: the file has its first ``kept`` octets, or goes. Whether that was possible."""
        try:
            if self._file is not None and kept:
                self._file.cut(kept)
            elif self._file is not None:
                self._file.remove()
                self._file = None
        except OSError:
            return False
        return True

    def _add(self, recorded: Recorded) -> None:
        if self._file is None:
            self._file = self._next_file()
            self._file.write([self._file.info])
        self._file.write(records_of(recorded, self._file.info_id))

    def _next_file(self) -> _File:
        began = datetime.fromtimestamp(self._began, UTC)
        while True:
            name = f"crawl-{began:%Y%m%d%H%M%S}-{self._serial:05}{_ENDING}"
            self._serial += 1
            if not (self._folder / name).exists():
                break
        return _File(self._folder / name, *warcinfo(name, self._about, self._clock.now()))

    def _close(self) -> None:
        with self._busy:
            try:
                if self._file is not None and self._failed:
                    self._file.abandon()
                elif self._file is not None:
                    self._file.finish()
            finally:
                self._lock.release()


class _File:
    """An unfinished file, which gets the name ``path`` when it is finished."""

    def __init__(self, path: Path, info_id: str, info: bytes) -> None:
        """``info`` is the first record of the file, which the caller writes, and ``info_id`` its identifier."""
        self._path = path
        self._unfinished = path.with_name(path.name + _OPEN)
        # Unbuffered: no write is delayed until a flush that may fail.
        self._file = FileIO(self._unfinished, "xb", opener=private)
        self.info_id, self.info = info_id, info
        self.size = 0
        try:
            sync_folder(path.parent)
        except OSError:
            self.remove()
            raise

    def write(self, records: Sequence[bytes]) -> None:
        data = b"".join(map(gzip_member, records))
        left = memoryview(data)
        while left:
            left = left[self._file.write(left) :]
        self.size += len(data)

    def sync(self) -> None:
        os.fsync(self._file.fileno())

    def finish(self) -> None:
        self.sync()
        self._file.close()
        _rename(self._unfinished, self._path)

    def cut(self, size: int) -> None:
        """Keep the first ``size`` octets."""
        self._file.truncate(size)
        self._file.seek(size)
        self.size = size

    def remove(self) -> None:
        """Remove the file, in which nothing was kept."""
        self._file.close()
        self._unfinished.unlink(missing_ok=True)

    def abandon(self) -> None:
        """Close the file as it is; the next run repairs it."""
        self._file.close()


def repair(path: Path) -> None:
    """Truncate a file that a crash left unfinished after its last complete record, and rename it."""
    with path.open("r+b") as file:
        whole = _whole_bytes(file)
        file.truncate(whole)
        os.fsync(file.fileno())
    if whole:
        _rename(path, path.with_name(path.name.removesuffix(_OPEN)))
    else:
        path.unlink()


def _whole_bytes(file: BinaryIO) -> int:
    """The end of the last complete gzip member, in octets."""
    whole = at = 0
    stream = member()
    while piece := file.read(_PIECE):
        while piece:
            try:
                stream.decompress(piece)
            except BROKEN:
                return whole
            if not stream.eof:
                at += len(piece)
                break
            at += len(piece) - len(stream.unused_data)
            whole, piece, stream = at, stream.unused_data, member()
    return whole


def _rename(old: Path, new: Path) -> None:
    os.replace(old, new)
    sync_folder(new.parent)
