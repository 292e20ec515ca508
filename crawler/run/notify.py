"""Tells the end of a run by mail or to a webhook (``output.notify``), for runs that nobody watches."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate, make_msgid
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote, urlsplit

import aiohttp

from crawler.cli.secrets import smtp_login
from crawler.clock import SystemClock
from crawler.errors import CrawlerError, Setting
from crawler.formatting import many
from crawler.settings.keys import terminal_name
from crawler.terminal_text import shown

_TIMEOUT_S = 20.0
_MAIL = ("smtp:", "smtps:")


class _Refused(Exception):
    """The webhook or the mail server answered, and the summary was not sent."""


def require_login(target: str) -> None:
    """Raise :class:`crawler.errors.UsageError` if ``target`` is a mailbox and the environment has half a login."""
    if target.startswith(_MAIL):
        smtp_login()


async def notify(target: str, summary: dict[str, Any], sender: str, tell: Callable[[str], None]) -> None:
    """Send ``summary``, the JSON object of the end of a run, to ``target``; see the setting ``output.notify``.

    ``sender`` is the e-mail address that a mail comes from; "" stands for the recipient. The run has ended, so a
    failure changes nothing: ``tell`` gets one sentence about it.
    """
    if not target:
        return
    try:
        if target.startswith(_MAIL):
            await _mail(target, summary, sender)
        else:
            await _post(target, summary)
    except (_Refused, CrawlerError, aiohttp.ClientError, OSError, TimeoutError) as error:
        where = urlsplit(target).hostname or ""
        has_url = isinstance(error, aiohttp.InvalidURL)  # in its text, and the URL is a secret
        why = "" if has_url else shown(str(error))
        option = terminal_name(Setting("output.notify"))
        tell(f"{option}: {shown(where)} did not accept the summary: {why or type(error).__name__}")


async def _post(url: str, summary: dict[str, Any]) -> None:
    body = {"text": subject(summary), **summary}
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        session.post(url, json=body, allow_redirects=False) as answer,  # most redirects would drop the body
    ):
        if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
            raise _Refused(f"it answered {answer.status}")


async def _mail(target: str, summary: dict[str, Any], sender: str) -> None:
    from crawler.rup.mail.smtp import Sent, SmtpMailer  # few runs send a mail

    address = urlsplit(target)
    recipient = unquote(address.path.lstrip("/"))
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = sender or recipient, recipient, subject(summary)
    message["Date"], message["Message-ID"] = formatdate(SystemClock().now()), make_msgid()
    message.set_content(json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
    is_tls = address.scheme == "smtps"
    mailer = SmtpMailer(address.hostname or "", address.port, login=smtp_login(), begins_with_tls=is_tls)
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            outcome = await mailer.send(sender or recipient, recipient, message.as_bytes(policy=SMTP))
    finally:
        await mailer.close()
    if not isinstance(outcome, Sent):
        raise _Refused(outcome.why)


def subject(summary: dict[str, Any]) -> str:
    """The end of a run in one line: the store, an exit code other than 0, why it ended, and how much it did."""
    run = summary.get("run") or {}
    did = f", {many(run['pages'], 'page')} in {many(run['requests'], 'request')}" if run else ""
    code = f"exit code {summary['exit_code']}: " if summary.get("exit_code") else ""
    return shown(" ".join(f"crawl {summary['db']}: {code}{summary['ended_by']}{did}".split()))
