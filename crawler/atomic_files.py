"""Write files and folders atomically: each is written beside its final place, and renamed at the end.

An unfinished one is private. A finished one has the mode of what it replaces, or the mode of a new file or folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NamedTuple, Self

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
            os.fchmod(self.file.fileno(), _mode_at(self.place, 0o666))
            os.fsync(self.file.fileno())
        if self.place is not None:  # else the file is the caller's
            self.file.close()


class _Folder(NamedTuple):
    place: Path
    beside: Path


class AtomicFiles:
    """A context for writing files and folders. A normal exit renames them to their places; an exception removes them.

    A failure to write leaves the context as a :class:`UsageError` that names the file.
    """

    def __init__(self) -> None:
        self._files: list[AtomicFile] = []
        self._folders: list[_Folder] = []

    def __enter__(self) -> Self:
        return self

    def open(self, out: Path | BinaryIO) -> AtomicFile:
        """Begin a file at the path ``out``, or write to the open file ``out``, which the caller closes.

        Raises :class:`UsageError` if no file can be created there, or if a crawl's store is there.
        """
        file = _open(out.resolve()) if isinstance(out, Path) else AtomicFile(out)
        self._files.append(file)
        return file

    def folder(self, out: Path, earlier: Iterable[str] | None) -> Path:
        """Begin a folder at the path ``out``; returns the path of the unfinished one, which is empty.

        ``earlier`` are the paths below ``out`` that an earlier command wrote there, ``None`` if none did. An empty
        folder, or one that holds only these files, is replaced at the end. Raises :class:`UsageError` for any other,
        because replacing it would delete what somebody else put there.
        """
        place = out.resolve()
        if place.exists():
            _require_replaceable(place, earlier)
        elif not place.parent.is_dir():
            raise UsageError(f"{place}: the folder {place.parent} does not exist; make it first")
        beside = _beside(place)
        try:
            beside.mkdir(0o700)
        except OSError as error:
            raise UsageError(f"{place}: cannot be written: {error.strerror or error}") from None
        self._folders.append(_Folder(place, beside))
        return beside

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._publish()
        except OSError as failure:
            error = failure
            if not self._writes_files():  # but to standard output, of which the command tells, or to the caller's
                raise
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
        if self._folders:
            os.sync()  # once: to sync each of a hundred thousand small files would take minutes
        for written in self._folders:
            _put_in_place(written)
            folders.add(written.place.parent)
        for folder in folders:
            sync_folder(folder)

    def _discard(self) -> None:
        for folder in self._folders:
            _remove(folder.beside)
        for file in self._files:
            if file.beside is not None:
                with suppress(OSError):  # its buffer may not fit on the disk
                    file.file.close()
                file.beside.unlink(missing_ok=True)

    def _writes_files(self) -> bool:
        return bool(self._folders) or any(file.place is not None for file in self._files)

    def _usage_error(self, error: OSError) -> UsageError:
        places = [folder.place for folder in self._folders]
        places += [file.place for file in self._files if file.place is not None]
        return UsageError(f"{places[-1]}: cannot be written: {error.strerror or error}")


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
        beside = _beside(place)
        return AtomicFile(open(beside, "xb", opener=private), place, beside)
    except OSError as error:
        raise UsageError(f"{place}: cannot be written: {error.strerror or error}") from None


def _require_replaceable(place: Path, earlier: Iterable[str] | None) -> None:
    if not place.is_dir():
        raise UsageError(f"{place}: not a folder; name one, or a path where nothing is")
    written = set(earlier or ())
    for found in place.rglob("*"):
        if not found.is_dir() and (name := found.relative_to(place).as_posix()) not in written:
            raise UsageError(f"{place}: contains {name}, which no earlier export wrote; name another folder")


def _put_in_place(folder: _Folder) -> None:
    """Rename a finished folder. A crash between the two renames leaves the earlier one beside, as ``….old``."""
    mode = _mode_at(folder.place, 0o777)
    old = folder.beside.with_suffix(".old")
    if replaces := folder.place.exists():
        folder.place.rename(old)
    folder.beside.chmod(mode)
    folder.beside.rename(folder.place)
    if replaces:
        _remove(old)


def _beside(place: Path) -> Path:
    """A new temporary path in the folder of ``place``."""
    return place.parent / f".crawler-{os.urandom(8).hex()}.part"


def _remove(folder: Path) -> None:
    from shutil import rmtree  # here, because most commands write no folder

    rmtree(folder, ignore_errors=True)


def _mode_at(place: Path, new: int) -> int:
    """The mode of what is at ``place``; if nothing is, the mode ``new`` without the bits of the umask."""
    try:
        return place.stat().st_mode & 0o777
    except OSError:
        umask = os.umask(0o077)  # it can only be read by setting it
        os.umask(umask)
        return new & ~umask


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
