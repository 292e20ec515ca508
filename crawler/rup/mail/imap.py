"""A folder on an IMAP server as a mailbox. Unseen mails are read, and flagged as seen after their effect is stored.

The connection uses TLS; without TLS only a server on this machine is allowed. The password comes from the environment
variable ``CRAWLER_IMAP_PASSWORD``, or from the file that ``CRAWLER_IMAP_PASSWORD_FILE`` names. A URL must not contain
it, because other users can read the command line.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from aioimaplib import IMAP4, IMAP4_SSL, AioImapException

from crawler.cli.secrets import secret
from crawler.errors import Argument, CrawlerError, UsageError
from crawler.rup.protocol.mail import MAX_MAIL_BYTES
from crawler.rup.protocol.subscription import RawMail
from crawler.url import is_loopback

PASSWORD = "CRAWLER_IMAP_PASSWORD"

_TIMEOUT_S = 60.0
_PLAIN = re.compile(r"[^\s\x00-\x1f\x7f\"\\(){%*]+")


class MailError(CrawlerError):
    """The mail server cannot be reached, or refuses a command."""


@dataclass(frozen=True, slots=True)
class ImapFolder:
    """A folder on a server, and the user."""

    host: str
    port: int
    tls: bool
    user: str
    folder: str

    def __str__(self) -> str:
        return f"imap{'s' * self.tls}://{self.user}@{self.host}:{self.port}/{self.folder}"


def read_folder(url: str) -> ImapFolder:
    """Read ``imaps://user@host/folder``; the default folder is INBOX. Raises :class:`UsageError`."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise UsageError(Argument("imap"), f": not a URL: {error}") from None
    user, folder = unquote(parts.username or ""), unquote(parts.path.strip("/")) or "INBOX"
    if parts.scheme not in ("imap", "imaps") or not host or not user:
        raise UsageError(Argument("imap"), ": give a URL like imaps://user@host/folder")
    if parts.password is not None:
        raise UsageError(Argument("imap"), f": the URL must not contain a password; set {PASSWORD} or {PASSWORD}_FILE")
    if not _PLAIN.fullmatch(user) or not all(" " <= c <= "~" for c in folder):
        rule = ": user and folder must be printable ASCII, the user without blanks or quotes"
        raise UsageError(Argument("imap"), rule)
    if parts.scheme == "imap" and not is_loopback(host):
        raise UsageError(Argument("imap"), f": imap:// sends the password unencrypted; use imaps://{host}")
    return ImapFolder(host, port or (993 if parts.scheme == "imaps" else 143), parts.scheme == "imaps", user, folder)


def read_password(environment: Mapping[str, str] = os.environ) -> str:
    """The password from the environment. Raises :class:`UsageError` if there is none."""
    password = secret(PASSWORD, environment)
    if not password or not password.isprintable():
        remedy = f"set {PASSWORD}, or {PASSWORD}_FILE to the path of a file with it"
        raise UsageError(Argument("imap"), f" needs a password: {remedy}")
    return password


@asynccontextmanager
async def open_imap(folder: ImapFolder, password: str) -> AsyncIterator[ImapBox]:
    """Open the folder. The system's certificates verify the server's certificate. Raises :class:`MailError`."""
    kind = IMAP4_SSL if folder.tls else IMAP4
    client = kind(host=folder.host, port=folder.port, timeout=_TIMEOUT_S)
    box = ImapBox(folder, client)
    try:
        await box.open(password)
        yield box
    finally:
        await box.close()


class ImapBox:
    """An open folder, made by :func:`open_imap`."""

    def __init__(self, folder: ImapFolder, client: Any) -> None:
        self._folder = folder
        self._client = client

    async def open(self, password: str) -> None:
        """Log in and open the folder."""
        await self._do("connect", self._client.wait_hello_from_server())
        await self._do("log in", self._client.login(self._folder.user, password))
        folder = self._folder.folder.replace("\\", "\\\\").replace('"', '\\"')
        await self._do(f"open the folder {self._folder.folder}", self._client.select(f'"{folder}"'))

    async def close(self) -> None:
        """Log out if the connection is still open, and close it."""
        transport = self._client.protocol.transport
        if transport is not None and not transport.is_closing():
            with suppress(AioImapException, OSError, TimeoutError):
                await self._client.logout()
            transport.close()

    async def waiting(self) -> AsyncGenerator[RawMail, None]:
        """Yield unseen mails, oldest first. Reading one leaves it unseen."""
        found = await self._do("look for mail", self._client.uid_search("UNSEEN", charset=None))
        for uid in sorted({int(word) for line in found[:1] for word in line.split() if word.isdigit()}):
            part = f"(BODY.PEEK[]<0.{MAX_MAIL_BYTES + 1}>)"
            lines = await self._do("read mail", self._client.uid("fetch", str(uid), part))
            octets = next((bytes(line) for line in lines if isinstance(line, bytearray)), b"")
            yield RawMail(str(uid), octets if len(octets) <= MAX_MAIL_BYTES else None)

    async def done(self, letters: Sequence[RawMail]) -> None:
        """Flag mails as seen."""
        uids = ",".join(letter.name for letter in letters)
        await self._do("flag mail as seen", self._client.uid("store", uids, "+FLAGS.SILENT", r"(\Seen)"))

    async def _do(self, what: str, answer: Any) -> list[bytes]:
        """The lines of an answer. Raises :class:`MailError` if the answer is not OK."""
        try:
            response = await answer
        except ssl.SSLCertVerificationError as error:
            raise MailError(f"{self._folder}: the certificate is not trusted: {error.verify_message}") from None
        except (AioImapException, OSError, TimeoutError) as error:
            raise MailError(f"{self._folder}: cannot {what}: {str(error) or 'no answer in time'}") from None
        if response is None:
            return []
        lines: list[bytes] = list(response.lines)
        if response.result != "OK":
            why = b" ".join(lines[-1:]).decode("ascii", "replace")
            raise MailError(f"{self._folder}: cannot {what}: {why[:200]}")
        return lines
