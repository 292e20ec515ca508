"""Objects outside the database, each the stored form of one body; in a folder, or in a bucket of S3.

An object is named by the SHA-256 of its body, so writing it again is harmless, and any number of workers may do so at
once. This module knows names and octets; :mod:`crawler.store.outside_bodies` says when they are written and deleted.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from crawler.atomic_files import sync_folder
from crawler.errors import StoreError, StoreFull, SystemFull, requiring
from crawler.private_files import private
from crawler.shortages import NO_SPACE, SYSTEM_IS_FULL
from crawler.store.location import is_url

_PRIVATE_FOLDER = 0o700
_FLUSHES_AT_ONCE = 16


class BodyStore(Protocol):
    """Named objects. Names have the form ``folder/name``.

    All methods raise :class:`crawler.errors.ConnectionLost` for an error that may pass, and
    :class:`crawler.errors.StoreError` for one that remains.
    """

    async def put(self, objects: Mapping[str, bytes]) -> None:
        """Write objects, and replace those of the same name. They survive a power cut when this returns."""
        ...

    async def get(self, name: str) -> bytes | None:
        """The object, or ``None`` if there is none."""
        ...

    def names(self, folder: str | None = None) -> AsyncIterator[list[str]]:
        """The names of all objects, or of those in one folder, in order and some at a time.

        What an interrupted write left has a name that ends in ``.part``.
        """
        ...

    async def delete(self, names: Sequence[str]) -> None:
        """Delete objects; those that do not exist are ignored."""
        ...


def open_body_store(location: str) -> BodyStore:
    """The objects at ``location``: ``s3://bucket/prefix``, or the path of a folder.

    Raises :class:`UsageError` if the library for S3 is missing, or refuses its configuration.
    """
    if not is_url(location):
        return FolderBodies(Path(location))
    with requiring("s3", "a folder of bodies in S3"):
        from crawler.store.s3_bodies import S3Bodies
    return S3Bodies(location)


class FolderBodies:
    """Objects as files. Each is written beside its target, flushed to the disk, and renamed.

    Several threads write at once: a disk does the flushes of all of them together.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._threads = ThreadPoolExecutor(_FLUSHES_AT_ONCE, "bodies")

    async def put(self, objects: Mapping[str, bytes]) -> None:
        with self._translated():
            await asyncio.to_thread(self._write_all, objects)

    def _write_all(self, objects: Mapping[str, bytes]) -> None:
        folders = {(self._folder / name).parent for name in objects}
        self._folder.mkdir(_PRIVATE_FOLDER, exist_ok=True)
        for folder in folders:
            folder.mkdir(_PRIVATE_FOLDER, exist_ok=True)
        for _ in self._threads.map(self._write, objects.keys(), objects.values()):
            pass  # raises the error of a thread
        for _ in self._threads.map(sync_folder, [*folders, self._folder, self._folder.parent]):
            pass

    def _write(self, name: str, data: bytes) -> None:
        target = self._folder / name
        beside = target.with_name(f"{target.name}.{os.urandom(4).hex()}.part")
        try:
            with open(beside, "xb", opener=private) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, target)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise

    async def get(self, name: str) -> bytes | None:
        with self._translated():
            try:
                return await asyncio.to_thread((self._folder / name).read_bytes)
            except FileNotFoundError:
                return None

    async def names(self, folder: str | None = None) -> AsyncIterator[list[str]]:
        with self._translated():
            folders = await asyncio.to_thread(os.listdir, self._folder) if folder is None else [folder]
            for each in sorted(folders):
                with suppress(NotADirectoryError):
                    files = await asyncio.to_thread(os.listdir, self._folder / each)
                    yield [f"{each}/{name}" for name in sorted(files)]

    async def delete(self, names: Sequence[str]) -> None:
        with self._translated():
            await asyncio.to_thread(self._unlink, names)

    def _unlink(self, names: Sequence[str]) -> None:
        for name in names:
            (self._folder / name).unlink(missing_ok=True)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            full = SystemFull if error.errno in SYSTEM_IS_FULL else StoreFull
            kind = full if error.errno in NO_SPACE | SYSTEM_IS_FULL else StoreError
            raise kind(
                f"{self._folder}: the folder of the bodies cannot be used: {error.strerror}; "
                "what was committed is kept, mend it and run the same command again"
            ) from error
