"""Files that are there whole or not at all: written beside their places, and renamed at the end."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from crawler.errors import UsageError

_SQLITE_MAGIC = b"SQLite format 3\0"
_BESIDE_A_STORE = ("-wal", "-shm", "-journal", ".lock")


class Draft:
    """A file under way. ``place`` is where it goes in the end, and may still be changed."""

    def __init__(self, file: BinaryIO, place: Path | None = None, beside: Path | None = None) -> None:
        self.file = file
        self.place = place
        self.beside = beside  # where it is meanwhile; None for what is written in place, as a pipe is

    def finish(self) -> None:
        """Everything is written: see to it that it is on the disk. May be called again."""
        if self.file.closed:
            return
        self.file.flush()
        if self.beside is not None:
            os.fsync(self.file.fileno())
        if self.place is not None:  # else the file is the caller's
            self.file.close()


class Drafts:
    """A context in which drafts are written: left in order they take their places, else they are removed.

    A failure to write leaves the context as :class:`UsageError`, which names the file.
    """

    def __init__(self) -> None:
        self._drafts: list[Draft] = []

    def __enter__(self) -> Self:
        return self

    def open(self, out: Path | BinaryIO) -> Draft:
        """A new draft for a place, or for a file that the caller opened and will close.

        Raises :class:`UsageError` where no file can be, and where a crawl's store is.
        """
        draft = _open(out.resolve()) if isinstance(out, Path) else Draft(out)
        self._drafts.append(draft)
        return draft

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._publish()
        except OSError as failure:
            error = failure
            raise self._told(failure) from None
        finally:
            if error is not None:
                self._discard()
        if isinstance(error, OSError) and self._writes_files():
            raise self._told(error) from None

    def _publish(self) -> None:
        for draft in self._drafts:
            draft.finish()
        folders = set()
        for draft in self._drafts:
            if draft.place is not None and draft.beside is not None:
                os.replace(draft.beside, draft.place)
                folders.add(draft.place.parent)
        for folder in folders:
            sync_folder(folder)

    def _discard(self) -> None:
        for draft in self._drafts:
            if draft.beside is not None:
                _close(draft.file)
                draft.beside.unlink(missing_ok=True)

    def _writes_files(self) -> bool:
        return any(draft.place is not None for draft in self._drafts)

    def _told(self, error: OSError) -> UsageError:
        places = [draft.place for draft in self._drafts if draft.place is not None]
        where = places[-1] if places else "standard output"
        return UsageError(f"{where}: cannot be written: {error.strerror or error}")


def _open(place: Path) -> Draft:
    if place.is_dir():
        raise UsageError(f"{place}: a folder; name a file in it")
    if not place.parent.is_dir():
        raise UsageError(f"{place}: the folder {place.parent} does not exist; make it first")
    try:
        if place.exists() and not place.is_file():  # a pipe or a device: nothing may take its place
            return Draft(place.open("wb"), place)
        if _is_store(place):
            raise UsageError(f"{place}: a crawl's store, or a part of one, is not written over; choose another name")
        beside = place.parent / f".crawler-{secrets.token_hex(8)}.part"
        return Draft(beside.open("xb"), place, beside)
    except OSError as error:
        raise UsageError(f"{place}: cannot be written: {error.strerror or error}") from None


def _is_store(place: Path) -> bool:
    """Whether it is a SQLite file, or has the name of what SQLite and the crawler keep beside one, there or not:
    SQLite would take any file of that name for its own."""
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
    """Of a file that is given up: what it still holds may not fit on the disk."""
    try:
        file.close()
    except OSError:
        return


def sync_folder(folder: Path) -> None:
    """A rename is safe from a power cut once its folder is on the disk; some systems cannot open a folder."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
