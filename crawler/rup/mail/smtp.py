"""Sends mail by SMTP (RFC 5321): the reports of the RUP server, and the summary of a run.

The result of a delivery is an :data:`Outcome`; no error of the server is raised. The connection uses TLS if the server
offers it. With a user name, TLS and a valid certificate are required, so that only the mail server receives the
password. A connection that begins with TLS needs a valid certificate too (RFC 8314, 3.3).
"""

from __future__ import annotations

from dataclasses import dataclass

import aiosmtplib

from crawler.terminal_text import shown

_TIMEOUT_S = 60.0
_SMTP_PORT, _SMTPS_PORT = 25, 465
_FAILURES = (aiosmtplib.SMTPException, OSError, ValueError)


@dataclass(frozen=True, slots=True)
class Sent:
    """The mail server has accepted the mail and is responsible for it."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The mail server will never accept this mail to this address."""

    why: str


@dataclass(frozen=True, slots=True)
class Later:
    """The mail server may accept the mail later. ``reached``: it has answered, so it may accept other mails now."""

    why: str
    reached: bool


Outcome = Sent | Refused | Later


class SmtpMailer:
    """Sends mails one after the other over one connection, which it opens when needed. Close it when idle."""

    def __init__(
        self, host: str, port: int | None, *, login: tuple[str, str] | None = None, begins_with_tls: bool = False
    ) -> None:
        """``login``: user and password. A connection to port 465 begins with TLS in any case."""
        self._begins_with_tls = begins_with_tls or port == _SMTPS_PORT
        self._address = (host, port or (_SMTPS_PORT if begins_with_tls else _SMTP_PORT))
        self._login = login
        self._connection: aiosmtplib.SMTP | None = None

    async def send(self, sender: str, recipient: str, octets: bytes) -> Outcome:
        """Send one mail of ``octets``. Raises nothing but cancellation."""
        try:
            connection = await self._connected()
        except _FAILURES as error:
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
        except _FAILURES as error:
            await self.close()
            return Later(_said(error), reached=False)
        return Sent()

    async def close(self) -> None:
        """Close the connection, if there is one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    async def _connected(self) -> aiosmtplib.SMTP:
        if self._connection is None or not self._connection.is_connected:
            host, port = self._address
            self._connection = aiosmtplib.SMTP(
                hostname=host,
                port=port,
                local_hostname="localhost",
                timeout=_TIMEOUT_S,
                use_tls=self._begins_with_tls,
                start_tls=None if self._login is None or self._begins_with_tls else True,
                validate_certs=self._login is not None or self._begins_with_tls,
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
