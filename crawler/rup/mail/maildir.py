"""A Maildir as a mailbox. Mails in ``new`` are read, and moved to ``cur`` after their effect is stored.

The layout is that of https://cr.yp.to/proto/maildir.html. A mail in ``new`` is complete, because its writer renamed it
into the folder. A mail in ``cur`` has the suffix ``:2,`` and the flag S (seen).
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from crawler.errors import Argument, UsageError
from crawler.rup.protocol.mail import MAX_MAIL_BYTES
from crawler.rup.protocol.subscription import RawMail


class Maildir:
    """The Maildir ``folder``. Raises :class:`UsageError` if the folder is not a Maildir or not writable."""

    def __init__(self, folder: Path) -> None:
        self._new, self._cur = folder / "new", folder / "cur"
        option = Argument("maildir", str(folder))
        for each in (self._new, self._cur):
            if not each.is_dir():
                raise UsageError(option, f": not a Maildir: the folder {each} does not exist")
            if not os.access(each, os.W_OK | os.X_OK):
                raise UsageError(option, f": {each} is not writable, and read mails move there")

    async def waiting(self) -> AsyncGenerator[RawMail, None]:
        """Yield unread mails, oldest first by the names from their delivery."""
        try:
            for name in sorted(await asyncio.to_thread(os.listdir, self._new)):
                if not name.startswith(".") and (letter := await asyncio.to_thread(self._read, name)) is not None:
                    yield letter
        except OSError as error:
            raise UsageError(f"{error.filename or self._new}: cannot be read: {error.strerror}") from None

    def _read(self, name: str) -> RawMail | None:
        """``None`` for anything but a mail: folders, links, pipes, and files that another program has moved."""
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
        """Move mails to ``cur``."""
        await asyncio.to_thread(self._done, letters)

    def _done(self, letters: Sequence[RawMail]) -> None:
        try:
            for letter in letters:
                bare = letter.name.partition(":2,")[0]
                os.replace(self._new / letter.name, self._cur / f"{bare}:2,S")
        except FileNotFoundError:
            pass  # another reader has moved it
        except OSError as error:
            raise UsageError(f"{error.filename}: cannot be moved to {self._cur}: {error.strerror}") from None
