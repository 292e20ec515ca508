"""Scans a document tree: finds changes since the last scan by time and content.

Hidden files, whose names begin with a dot, are not documents. A symbolic link counts if it leads to a file in the tree,
and not if it leads to a folder. A file that cannot be read counts as unchanged, so missing permissions never look like
a deletion.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote_from_bytes

from crawler.rup.protocol.report import Change, ChangeKind
from crawler.url import MAX_URL_CHARS

#: A file that was changed less than this many seconds before the scan may change again without a new time.
FRESH_S = 2.0

_SAFE = "/!$&'()*+,;=:@~"
_CHUNK = 1 << 20


class FileState(NamedTuple):
    """The facts that distinguish two versions of a file."""

    mtime_ns: int
    ctime_ns: int
    size: int
    sha256: bytes


@dataclass(frozen=True, slots=True)
class Tree:
    """A folder and the path that serves its files: ``/`` or ``/docs/``. ``skip``: files of the server itself."""

    root: Path
    prefix: str = "/"
    skip: frozenset[Path] = frozenset()


@dataclass(slots=True)
class Scanned:
    """The result of a scan: new states of files, deleted files, and the changes in the order of their times."""

    states: dict[str, FileState] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    files: int = 0


def scan(tree: Tree, known: Mapping[str, FileState], *, now: float, previous_at: float | None) -> Scanned:
    """Compare the tree with its ``known`` state. The first scan (``previous_at`` is ``None``) reports no changes.

    Raises :class:`OSError` if the root cannot be read.
    """
    found = Scanned()
    seen: set[str] = set()
    unread: list[str] = []
    for path, file in _files(tree, unread):
        old = known.get(path)
        try:
            state = _state(file, old, now)
        except FileNotFoundError:
            continue
        except OSError:
            state = old
        if state is None:
            continue
        seen.add(path)
        if state != old:
            found.states[path] = state
        if previous_at is not None and (old is None or state.sha256 != old.sha256):
            kind = ChangeKind.NEW if old is None else ChangeKind.CHANGE
            found.changes.append(Change(kind, _when(file, previous_at, now), path))
    found.files = len(seen)
    found.gone = [path for path in known if path not in seen and not path.startswith(tuple(unread))]
    found.changes += [Change(ChangeKind.DELETE, now, path) for path in found.gone]
    found.changes.sort(key=lambda change: (change.at, change.path))
    return found


def _files(tree: Tree, unread: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the URL path and the file of each document. Paths of folders that cannot be read go to ``unread``."""
    root, skip = str(tree.root), frozenset(map(str, tree.skip))
    folders = [(root, tree.prefix)]
    while folders:
        folder, prefix = folders.pop()
        try:
            with os.scandir(folder) as entries:
                listed = list(entries)
        except OSError as error:
            if folder == root:
                raise
            if not isinstance(error, FileNotFoundError):
                unread.append(prefix)
            continue
        for entry in listed:
            if entry.name.startswith("."):
                continue
            path = prefix + quote_from_bytes(os.fsencode(entry.name), safe=_SAFE)
            if entry.is_dir(follow_symlinks=False):
                folders.append((entry.path, path + "/"))
            elif len(path) < MAX_URL_CHARS // 2 and entry.path not in skip and _belongs(tree, entry):
                yield path, entry.path


def _belongs(tree: Tree, entry: os.DirEntry[str]) -> bool:
    if not entry.is_symlink():
        return entry.is_file(follow_symlinks=False)
    try:
        target = Path(entry.path).resolve(strict=True)
    except (OSError, RuntimeError):
        return False
    return target.is_file() and target.is_relative_to(tree.root)


def _state(file: str, old: FileState | None, now: float) -> FileState | None:
    """The state of a file; ``None`` if it is not a regular file. Reads the content only if times or size differ."""
    status = os.stat(file)
    if not stat.S_ISREG(status.st_mode):
        return None
    if old is not None and old[:3] == (status.st_mtime_ns, status.st_ctime_ns, status.st_size):
        return old
    with open(file, "rb") as opened:
        status = os.fstat(opened.fileno())
        digest = hashlib.sha256()
        while chunk := opened.read(_CHUNK):
            digest.update(chunk)
    is_old = abs(now - max(status.st_mtime, status.st_ctime)) > FRESH_S
    return FileState(status.st_mtime_ns if is_old else 0, status.st_ctime_ns, status.st_size, digest.digest())


def _when(file: str, previous_at: float, now: float) -> float:
    """The time of a change: the file's own time if that is plausible, else ``now``."""
    try:
        modified = os.stat(file).st_mtime
    except OSError:
        return now
    return modified if previous_at < modified <= now else now
