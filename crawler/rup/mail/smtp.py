"""Sending mail by SMTP (RFC 5321), over aiosmtplib. Needs the extra ``updates``.

What a mail server does is in the outcome; nothing is raised but cancellation. TLS is used where the server offers it;
with a user name it is demanded, with a certificate that holds, so that no password is shown to anybody else.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass

import aiosmtplib

from crawler.terminal_text import shown

_TIMEOUT_S = 60.0
_SMTPS_PORT = 465


@dataclass(frozen=True, slots=True)
class Sent:
    """The mail server has taken the mail, and answers for it from now on."""


@dataclass(frozen=True, slots=True)
class Refused:
    """It will never take this mail to this address."""

    why: str


@dataclass(frozen=True, slots=True)
class Later:
    """It may take the mail another time. ``reached``: it answered, so that other mails may fare better now."""

    why: str
    reached: bool


Outcome = Sent | Refused | Later


class SmtpMailer:
    """Sends one mail after the other over one connection, which is opened when needed. Close it when idle."""

    def __init__(self, host: str, port: int, *, user: str | None = None, password: str | None = None) -> None:
        self._place = (host, port)
        self._login = (user, password) if user is not None and password is not None else None
        self._connection: aiosmtplib.SMTP | None = None

    async def send(self, sender: str, recipient: str, octets: bytes) -> Outcome:
        try:
            connection = await self._connected()
        except (aiosmtplib.SMTPException, OSError, ssl.SSLError, ValueError) as error:
            await self.close()
            return Later(_said(error), reached=False)
        try:
            await connection.sendmail(sender, [recipient], octets)
        except aiosmtplib.SMTPRecipientsRefused as error:
            return _refusal(error.recipients[0])
        except aiosmtplib.SMTPDataError as error:
            return _refusal(error)
        except aiosmtplib.SMTPResponseException as error:
            return Later(_said(error), reached=True)
        except (aiosmtplib.SMTPException, OSError, ssl.SSLError, ValueError) as error:
            await self.close()
            return Later(_said(error), reached=False)
        return Sent()

    async def close(self) -> None:
        """End the connection, if there is one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    async def _connected(self) -> aiosmtplib.SMTP:
        if self._connection is None or not self._connection.is_connected:
            host, port = self._place
            self._connection = aiosmtplib.SMTP(
                hostname=host,
                port=port,
                local_hostname="localhost",
                timeout=_TIMEOUT_S,
                use_tls=port == _SMTPS_PORT,
                start_tls=None if self._login is None or port == _SMTPS_PORT else True,
                validate_certs=self._login is not None,
            )
            await self._connection.connect()
            if self._login is not None:
                await self._connection.login(*self._login)
        return self._connection


def _refusal(error: aiosmtplib.SMTPResponseException) -> Refused | Later:
    said = _said(error)
    return Refused(said) if 500 <= error.code < 600 else Later(said, reached=True)


def _said(error: Exception) -> str:
    text = (
        f"{error.code} {error.message}"
        if isinstance(error, aiosmtplib.SMTPResponseException)
        else str(error) or type(error).__name__
    )
    return shown(" ".join(text.split()), 300)
