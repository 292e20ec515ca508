"""WARC while crawling: a folder of files that one crawl adds to, and that outlive a crash.

A file under way is called ``….warc.gz.open``. Each record in it is one gzip member, and what a call of
:meth:`WarcFolder.record` brought is on the disk when it returns, so a crawl that calls it before it commits never
claims a page that the archive lacks. After a crash the next run cuts the file behind its last whole record, and gives
it its name. ``payloads.sqlite`` beside the files knows which payloads they hold, for revisit records: it may be
deleted, and then what comes again is recorded again in full.
"""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import threading
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from filelock import FileLock, Timeout

from crawler.atomic_files import sync_folder
from crawler.clock import Clock
from crawler.errors import StoreError, UsageError
from crawler.export.warc import WARC_FORMAT
from crawler.export.warc_exchange import Payload, records_of, warcinfo
from crawler.gunzip import BROKEN, member
from crawler.model import Reading, Recorded
from crawler.version import VERSION

MAX_FILE_BYTES = 10**9
_ENDING = ".warc.gz"
_OPEN = ".open"  # behind it, while a file is under way
_OURS = re.compile(r"crawl-\d{14}-\d{5,}\.warc\.gz\.open", re.ASCII)  # other programs may have files in the folder
_LEVEL = 6
_PIECE = 1 << 14
_WHAT_IS_HERE = (
    "Every request of the crawl, robots.txt included, and its answer, octet by octet as they went over the connection "
    "(behind TLS), without informational (1xx) answers, without what is no HTTP answer, and without requests cut off "
    "because the crawl was stopped: these are in its request log alone. Headers alone, WARC-Truncated: pages that ask "
    "by NOINDEX or NOARCHIVE that no copy is kept; redirects, errors, unwanted types and what is not HTTP within "
    "limits, whose bodies are not read; metadata records say which. There Content-Length, Content-Encoding and "
    "Transfer-Encoding are called X-Crawler-Content-Length and so on, for what they tell of is not in the record. "
    "Payload digests are of payloads as they stand here."
)


class WarcFolder:
    """A folder of WARC files that one crawl adds to; an async context manager. See the module."""

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
            ("software", f"polite-crawler/{VERSION}"),
            ("format", "WARC File Format 1.1"),
            ("conformsTo", WARC_FORMAT),
            ("operator", contact),
            ("http-header-user-agent", user_agent),
            ("robots", f"obeyed, {reading} reading"),
            ("description", _WHAT_IS_HERE),
        ]
        self._busy = threading.Lock()  # a write goes on in its thread although whoever waited for it was cancelled
        self._file: _File | None = None
        self._failed = False
        self._serial = 0

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._open)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self._close)

    async def record(self, batch: Sequence[Recorded]) -> None:
        """Write requests with their answers; on the disk when it returns. Raises :class:`StoreError` where that fails,
        after which this is only good for closing."""
        await asyncio.to_thread(self._record, batch)

    def _open(self) -> None:
        self._lock = FileLock(
            self._folder / ".lock", timeout=0, thread_local=False
        )  # taken and given back in any thread
        try:
            self._folder.mkdir(exist_ok=True)
            self._lock.acquire()
            for path in sorted(self._folder.iterdir()):
                if _OURS.fullmatch(path.name) and path.is_file():
                    mend(path)
            self._payloads = _Payloads(self._folder / "payloads.sqlite")
        except Timeout:
            raise UsageError(
                "another crawl records into it; name another folder", key="output.warc", value=str(self._folder)
            ) from None
        except OSError as error:
            self._lock.release()
            raise UsageError(
                f"cannot be written: {error.strerror or error}", key="output.warc", value=str(self._folder)
            ) from None
        except sqlite3.Error as error:
            self._lock.release()
            raise UsageError(
                f"payloads.sqlite: {error}; you may delete it", key="output.warc", value=str(self._folder)
            ) from None
        self._began = self._clock.now()

    def _record(self, batch: Sequence[Recorded]) -> None:
        with self._busy:
            try:
                for recorded in batch:
                    self._add(recorded)
                if self._file is not None:
                    self._file.sync()
                self._payloads.keep()
            except (OSError, sqlite3.Error) as error:
                self._failed = True
                reason = error.strerror if isinstance(error, OSError) and error.strerror else error
                raise StoreError(
                    f"{reason}; what was committed is kept, make room and run the same command again",
                    key="output.warc",
                    value=str(self._folder),
                ) from error

    def _add(self, recorded: Recorded) -> None:
        if self._file is not None and self._file.size >= self._max_file_bytes:
            self._file.finish()
            self._file = None
        if self._file is None:
            self._file = self._next_file()
        made = records_of(recorded, self._file.info_id, self._payloads.find)
        self._file.write(made.records)
        if made.payload is not None:
            self._payloads.add(made.payload)

    def _next_file(self) -> _File:
        began = datetime.fromtimestamp(self._began, UTC)
        while True:
            name = f"crawl-{began:%Y%m%d%H%M%S}-{self._serial:05}{_ENDING}"
            self._serial += 1
            if not (self._folder / name).exists():
                break
        info_id, record = warcinfo(name, self._about, self._clock.now())
        file = _File(self._folder / name, info_id)
        file.write([record])
        return file

    def _close(self) -> None:
        with self._busy:
            try:
                if self._file is not None and self._failed:
                    self._file.abandon()
                elif self._file is not None:
                    self._file.finish()
            finally:
                self._payloads.close()
                self._lock.release()


class _File:
    """A file under way, which is called ``path`` in the end."""

    def __init__(self, path: Path, info_id: str) -> None:
        self._path = path
        self._meanwhile = path.with_name(path.name + _OPEN)
        self._file = self._meanwhile.open("xb", buffering=0)  # nothing waits here for a flush that may fail
        self.info_id = info_id
        self.size = 0
        sync_folder(path.parent)

    def write(self, records: Sequence[bytes]) -> None:
        data = b"".join(map(_member, records))
        left = memoryview(data)
        while left:
            left = left[self._file.write(left) :]
        self.size += len(data)

    def sync(self) -> None:
        os.fsync(self._file.fileno())

    def finish(self) -> None:
        self.sync()
        self._file.close()
        _rename(self._meanwhile, self._path)

    def abandon(self) -> None:
        """Leave it as it is, for the next run to mend."""
        self._file.close()


def _member(record: bytes) -> bytes:
    """A gzip member. A short record needs no more than a short window, which is made in a fraction of the time."""
    window_bits, memory = (12, 5) if len(record) < 4096 else (15, 8)
    made = zlib.compressobj(_LEVEL, zlib.DEFLATED, 16 + window_bits, memory)
    return made.compress(record) + made.flush()


class _Payloads:
    """Which payloads the files hold. Kept without waiting for the disk: what a power cut takes is recorded again."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS payload (digest TEXT PRIMARY KEY, url TEXT, date TEXT) WITHOUT ROWID"
            )
            self._db.execute("BEGIN")
        except BaseException:
            self._db.close()
            raise

    def find(self, digest: str) -> Payload | None:
        row = self._db.execute("SELECT digest, url, date FROM payload WHERE digest = ?", (digest,)).fetchone()
        return None if row is None else Payload(*row)

    def add(self, payload: Payload) -> None:
        row = (payload.digest, payload.url, payload.date)
        self._db.execute("INSERT OR IGNORE INTO payload VALUES (?, ?, ?)", row)

    def keep(self) -> None:
        """The records of what was added are on the disk: from now on it may be referred to."""
        self._db.execute("COMMIT")
        self._db.execute("BEGIN")

    def close(self) -> None:
        self._db.close()


def mend(path: Path) -> None:
    """Cut a file that a crash left under way behind its last whole record, and give it its name."""
    with path.open("r+b") as file:
        whole = _whole_bytes(file)
        file.truncate(whole)
        os.fsync(file.fileno())
    if whole:
        _rename(path, path.with_name(path.name.removesuffix(_OPEN)))
    else:
        path.unlink()


def _whole_bytes(file: BinaryIO) -> int:
    """Where the last whole gzip member ends."""
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
