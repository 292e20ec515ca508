"""A Maildir as a mailbox of reports: what is new is given once, and moved to ``cur`` when it is done with.

The layout is that of https://cr.yp.to/proto/maildir.html: a mail in ``new`` is a file that was written elsewhere and
renamed, so it is whole; moved to ``cur`` it gets ``:2,`` and the flag S, seen.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from crawler.errors import UsageError
from crawler.rup.protocol.mail import MAX_MAIL_BYTES
from crawler.rup.protocol.subscription import RawMail

_AT_ONCE, _BYTES_AT_ONCE = 200, 32 * 2**20


class Maildir:
    """The mail in ``folder``. Raises :class:`UsageError` where that is no Maildir, or may not be used."""

    def __init__(self, folder: Path) -> None:
        self._new, self._cur = folder / "new", folder / "cur"
        for place in (self._new, self._cur):
            if not place.is_dir():
                raise UsageError(f"--maildir {folder}: no Maildir, for there is no folder {place}")
            if not os.access(place, os.W_OK | os.X_OK):
                raise UsageError(f"--maildir {folder}: {place} cannot be written to, and mail that was read is moved")

    async def waiting(self) -> Sequence[RawMail]:
        """Mails not read yet, oldest first by the names that their delivery gave them."""
        return await asyncio.to_thread(self._waiting)

    def _waiting(self) -> list[RawMail]:
        try:
            names = sorted(name for name in os.listdir(self._new) if not name.startswith("."))
            letters: list[RawMail] = []
            size = 0
            for name in names:
                if len(letters) >= _AT_ONCE or size >= _BYTES_AT_ONCE:
                    break
                if (letter := self._read(name)) is not None:
                    letters.append(letter)
                    size += len(letter.octets or b"")
        except OSError as error:
            raise UsageError(f"{error.filename or self._new}: cannot be read: {error.strerror}") from None
        return letters

    def _read(self, name: str) -> RawMail | None:
        """``None`` for what is no mail: folders, links, pipes, and what somebody else has moved meanwhile."""
        try:
            descriptor = os.open(self._new / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            if isinstance(error, PermissionError):
                raise
            return None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            return None
        with open(descriptor, "rb") as file:
            octets = file.read(MAX_MAIL_BYTES + 1)
        return RawMail(name, octets if len(octets) <= MAX_MAIL_BYTES else None)

    async def done(self, letters: Sequence[RawMail]) -> None:
        """Move them to ``cur``."""
        await asyncio.to_thread(self._done, letters)

    def _done(self, letters: Sequence[RawMail]) -> None:
        try:
            for letter in letters:
                bare = letter.name.partition(":2,")[0]
                os.replace(self._new / letter.name, self._cur / f"{bare}:2,S")
        except FileNotFoundError:
            pass  # another reader was faster
        except OSError as error:
            raise UsageError(f"{error.filename}: cannot be moved to {self._cur}: {error.strerror}") from None
