"""Files that only their owner can read and write."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

#: The mode of such a file; a stricter umask makes it stricter.
PRIVATE = 0o600


def make_private(path: Path) -> None:
    """Make an empty private file at ``path``, unless something is there or no file can be made.

    SQLite takes an empty file as a new database, and gives the files beside a database its mode.
    """
    with suppress(OSError):  # who opens the file reports why it cannot be made
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE))


def private(path: str, flags: int) -> int:
    """An opener for :func:`open` that makes private files."""
    return os.open(path, flags, PRIVATE)
