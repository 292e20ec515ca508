"""Write files atomically: each is written beside its final place, and renamed at the end.

An unfinished file is private. A finished one has the mode of the file that it replaces, or the mode of a new file.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from crawler.errors import UsageError
from crawler.private_files import private

_SQLITE_MAGIC = b"SQLite format 3\0"
_BESIDE_A_STORE = ("-wal", "-shm", "-journal", ".lock")


class AtomicFile:
    """An unfinished file. ``place`` is its final path, which the caller may change before the end."""

    def __init__(self, file: BinaryIO, place: Path | None = None, beside: Path | None = None) -> None:
        self.file = file
        self.place = place
        self.beside = beside  # the temporary path; None for a file that is written in place, such as a pipe

    def finish(self) -> None:
        """Flush the file to the disk and close it. Further calls do nothing."""
        if self.file.closed:
            return
        self.file.flush()
        if self.beside is not None and self.place is not None:
            os.fchmod(self.file.fileno(), _mode_at(self.place))
            os.fsync(self.file.fileno())
        if self.place is not None:  # else the file is the caller's
            self.file.close()


class AtomicFiles:
    """A context for writing files. A normal exit renames them to their places; an exception removes them.

    A failure to write leaves the context as a :class:`UsageError` that names the file.
    """

    def __init__(self) -> None:
        self._files: list[AtomicFile] = []

    def __enter__(self) -> Self:
        return self

    def open(self, out: Path | BinaryIO) -> AtomicFile:
        """Begin a file at the path ``out``, or write to the open file ``out``, which the caller closes.

        Raises :class:`UsageError` if no file can be created there, or if a crawl's store is there.
        """
        file = _open(out.resolve()) if isinstance(out, Path) else AtomicFile(out)
        self._files.append(file)
        return file

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._publish()
        except OSError as failure:
            error = failure
            raise self._usage_error(failure) from None
        finally:
            if error is not None:
                self._discard()
        if isinstance(error, OSError) and self._writes_files():
            raise self._usage_error(error) from None

    def _publish(self) -> None:
        for file in self._files:
            file.finish()
        folders = set()
        for file in self._files:
            if file.place is not None and file.beside is not None:
                os.replace(file.beside, file.place)
                folders.add(file.place.parent)
        for folder in folders:
            sync_folder(folder)

    def _discard(self) -> None:
        for file in self._files:
            if file.beside is not None:
                _close(file.file)
                file.beside.unlink(missing_ok=True)

    def _writes_files(self) -> bool:
        return any(file.place is not None for file in self._files)

    def _usage_error(self, error: OSError) -> UsageError:
        places = [file.place for file in self._files if file.place is not None]
        where = places[-1] if places else "standard output"
        return UsageError(f"{where}: cannot be written: {error.strerror or error}")


def _open(place: Path) -> AtomicFile:
    if place.is_dir():
        raise UsageError(f"{place}: a folder; name a file in it")
    if not place.parent.is_dir():
        raise UsageError(f"{place}: the folder {place.parent} does not exist; make it first")
    try:
        if place.exists() and not place.is_file():  # a pipe or a device: nothing may take its place
            return AtomicFile(place.open("wb"), place)
        if _is_store(place):
            raise UsageError(f"{place}: part of the store of a crawl, which is not overwritten; choose another name")
        beside = place.parent / f".crawler-{secrets.token_hex(8)}.part"
        return AtomicFile(open(beside, "xb", opener=private), place, beside)
    except OSError as error:
        raise UsageError(f"{place}: cannot be written: {error.strerror or error}") from None


def _mode_at(place: Path) -> int:
    """The mode of the file at ``place``, or of a new file there."""
    try:
        return place.stat().st_mode & 0o777
    except OSError:
        umask = os.umask(0o077)  # it can only be read by setting it
        os.umask(umask)
        return 0o666 & ~umask


def _is_store(place: Path) -> bool:
    """Whether ``place`` is a SQLite file or a name that SQLite or the crawler uses beside one.

    The file beside the store need not exist: SQLite would use any file of that name as its own.
    """
    for suffix in _BESIDE_A_STORE:
        if place.name.endswith(suffix):
            main = place.with_name(place.name.removesuffix(suffix))
            if main.is_file() and _is_store(main):
                return True
    if not place.exists():
        return False
    with place.open("rb") as file:
        return file.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC


def _close(file: BinaryIO) -> None:
    """Close an abandoned file. Errors are ignored: its buffer may not fit on the disk."""
    try:
        file.close()
    except OSError:
        return


def sync_folder(folder: Path) -> None:
    """Flush a folder to the disk: only then a rename survives a power cut. Some systems cannot open a folder."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
