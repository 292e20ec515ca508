"""A folder on an IMAP server as a mailbox of reports: what is not seen is given once, and flagged when it is done with.

Over TLS; without it only to this machine. The password comes from the environment (``CRAWLER_IMAP_PASSWORD``), or from
the file that ``CRAWLER_IMAP_PASSWORD_FILE`` names; it is never taken from the URL, where others could read it.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from aioimaplib import IMAP4, IMAP4_SSL, AioImapException

from crawler.errors import CrawlerError, UsageError
from crawler.rup.protocol.mail import MAX_MAIL_BYTES
from crawler.rup.protocol.subscription import RawMail
from crawler.url import is_loopback

PASSWORD, PASSWORD_FILE = "CRAWLER_IMAP_PASSWORD", "CRAWLER_IMAP_PASSWORD_FILE"

_AT_ONCE, _BYTES_AT_ONCE = 200, 32 * 2**20
_TIMEOUT_S = 60.0
_SIZE = re.compile(rb"\bUID (\d+)\b.*\bRFC822\.SIZE (\d+)|\bRFC822\.SIZE (\d+)\b.*\bUID (\d+)")
_PLAIN = re.compile(r"[^\s\x00-\x1f\x7f\"\\(){%*]+")


class MailError(CrawlerError):
    """The mail server cannot be reached, or does not do what it is asked."""


@dataclass(frozen=True, slots=True)
class ImapPlace:
    """Which folder on which server, as whom."""

    host: str
    port: int
    tls: bool
    user: str
    folder: str

    def __str__(self) -> str:
        return f"imap{'s' * self.tls}://{self.user}@{self.host}:{self.port}/{self.folder}"


def read_place(url: str) -> ImapPlace:
    """``imaps://user@host/folder``; the folder is INBOX where none is named. Raises :class:`UsageError`."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise UsageError(f"--imap: no URL: {error}") from None
    user, folder = unquote(parts.username or ""), unquote(parts.path.strip("/")) or "INBOX"
    if parts.scheme not in ("imap", "imaps") or not host or not user:
        raise UsageError("--imap: give it as imaps://user@host/folder")
    if parts.password is not None:
        raise UsageError(f"--imap: no password in the URL, where others can read it; set {PASSWORD} or {PASSWORD_FILE}")
    if not _PLAIN.fullmatch(user) or not all(" " <= c <= "~" for c in folder):
        raise UsageError("--imap: user and folder may have ASCII letters and signs only, the user no blanks or quotes")
    if parts.scheme == "imap" and not is_loopback(host):
        raise UsageError(f"--imap: imap:// sends the password in the clear; give imaps://{host} instead")
    return ImapPlace(host, port or (993 if parts.scheme == "imaps" else 143), parts.scheme == "imaps", user, folder)


def read_password(environment: Mapping[str, str] = os.environ) -> str:
    """The password. Raises :class:`UsageError` where there is none."""
    password = environment.get(PASSWORD, "")
    if not password and (path := environment.get(PASSWORD_FILE)):
        try:
            password = Path(path).read_text("utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{PASSWORD_FILE}: {path} cannot be read: {error}") from None
    if not password or not password.isprintable():
        raise UsageError(f"--imap needs a password: set {PASSWORD}, or {PASSWORD_FILE} to the path of a file with it")
    return password


@asynccontextmanager
async def open_imap(place: ImapPlace, password: str) -> AsyncIterator[ImapBox]:
    """The folder, open. Raises :class:`MailError`; the server's certificate is checked as the system does."""
    kind = IMAP4_SSL if place.tls else IMAP4
    client = kind(host=place.host, port=place.port, timeout=_TIMEOUT_S)
    box = ImapBox(place, client)
    try:
        await box.open(password)
        yield box
    finally:
        await box.close()


class ImapBox:
    """Made by :func:`open_imap`."""

    def __init__(self, place: ImapPlace, client: Any) -> None:
        self._place = place
        self._client = client

    async def open(self, password: str) -> None:
        """Log in and open the folder."""
        await self._do("connect", self._client.wait_hello_from_server())
        await self._do("log in", self._client.login(self._place.user, password))
        folder = self._place.folder.replace("\\", "\\\\").replace('"', '\\"')
        await self._do(f"open the folder {self._place.folder}", self._client.select(f'"{folder}"'))

    async def close(self) -> None:
        """Say goodbye, if anybody is listening."""
        transport = self._client.protocol.transport
        if transport is not None and not transport.is_closing():
            with suppress(AioImapException, OSError, TimeoutError):
                await self._client.logout()
            transport.close()

    async def waiting(self) -> Sequence[RawMail]:
        """Mails that are not seen, oldest first."""
        found = await self._do("look for mail", self._client.uid_search("UNSEEN", charset=None))
        uids = sorted({int(word) for line in found[:1] for word in line.split() if word.isdigit()})[:_AT_ONCE]
        if not uids:
            return []
        sizes = await self._sizes(uids)
        letters: list[RawMail] = []
        left = _BYTES_AT_ONCE
        for uid in uids:
            size = sizes.get(uid, 0)
            if size > MAX_MAIL_BYTES:
                letters.append(RawMail(str(uid), None))
            elif size <= left or not letters:
                letters.append(RawMail(str(uid), await self._read(uid)))
                left -= size
        return letters

    async def _sizes(self, uids: list[int]) -> dict[int, int]:
        lines = await self._do("look for mail", self._client.uid("fetch", _set(uids), "(UID RFC822.SIZE)"))
        found = (_SIZE.search(line) for line in lines)
        return {int(match[1] or match[4]): int(match[2] or match[3]) for match in found if match}

    async def _read(self, uid: int) -> bytes:
        """A mail, left unseen."""
        lines = await self._do("read mail", self._client.uid("fetch", str(uid), "(BODY.PEEK[])"))
        return next((bytes(line) for line in lines if isinstance(line, bytearray)), b"")

    async def done(self, letters: Sequence[RawMail]) -> None:
        """Flag them as seen."""
        uids = [int(letter.name) for letter in letters]
        await self._do("flag mail as seen", self._client.uid("store", _set(uids), "+FLAGS.SILENT", r"(\Seen)"))

    async def _do(self, what: str, answer: Any) -> list[bytes]:
        """The lines of an answer. Raises :class:`MailError` where it is not OK."""
        try:
            response = await answer
        except ssl.SSLCertVerificationError as error:
            raise MailError(f"{self._place}: its certificate is not trusted: {error.verify_message}") from None
        except (AioImapException, OSError, TimeoutError) as error:
            raise MailError(f"{self._place}: cannot {what}: {str(error) or 'no answer in time'}") from None
        if response is None:
            return []
        lines: list[bytes] = list(response.lines)
        if response.result != "OK":
            why = b" ".join(lines[-1:]).decode("ascii", "replace")
            raise MailError(f"{self._place}: cannot {what}: {why[:200]}")
        return lines


def _set(uids: Sequence[int]) -> str:
    return ",".join(map(str, uids))
