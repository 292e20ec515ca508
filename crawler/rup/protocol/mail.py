"""A report as a mail, in both directions: MIME, ``text/plain`` (draft of 1998, 3.2; RFC 5322; RFC 2045 and 2046).

Anybody can write to the robot's address, so reading is linear in the size of the mail and has bounds
(:mod:`crawler.rup.protocol.multipart`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate

from crawler.rup.protocol.forms import ONE_CLICK
from crawler.rup.protocol.multipart import content_of, field_of, short_header, split_head, split_parts
from crawler.rup.protocol.report import Report, Unreadable, read_report, write_report
from crawler.rup.protocol.wire import decode

#: A mail of more bytes is not read.
MAX_MAIL_BYTES = 12 * 2**20

_MAX_DEPTH = 4
_MAX_PARTS = 20
_MAX_7BIT_CHARS = 990

#: Header lines are not folded: a program that searches a mail for a URL does not find a folded one.
_LONG_LINES = SMTP.clone(max_line_length=_MAX_7BIT_CHARS)


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail to send. All addresses and ids are ASCII without white space."""

    sender: str
    recipient: str
    message_id: str  # with its angle brackets
    date: float  # seconds since the epoch
    subject: str
    report: Report
    unsubscribe_url: str = ""


@dataclass(frozen=True, slots=True)
class ReceivedReport:
    """The report in a received mail, and the fields that tell copies of it from other mails."""

    report: Report
    message_id: str
    date: str


def write_mail(mail: Mail) -> bytes:
    """The mail in bytes, with CRLF: ``7bit``, or ``quoted-printable`` if a path makes a line too long for that."""
    message = EmailMessage(SMTP)
    message["From"] = mail.sender
    message["To"] = mail.recipient
    message["Date"] = formatdate(mail.date, usegmt=True)
    message["Message-ID"] = mail.message_id
    message["Subject"] = mail.subject
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: suppresses automatic replies
    if mail.unsubscribe_url:
        message["List-Unsubscribe"] = f"<{mail.unsubscribe_url}>"  # RFC 2369: for a person who gets this by mistake
        if mail.unsubscribe_url.startswith("https:"):
            message["List-Unsubscribe-Post"] = "=".join(ONE_CLICK)  # RFC 8058, which requires https
    text = write_report(mail.report)
    longest = max(map(len, text.split("\n")))
    encoding = "7bit" if longest <= _MAX_7BIT_CHARS else "quoted-printable"
    message.set_content(text, subtype="plain", charset="us-ascii", cte=encoding)
    return message.as_bytes(policy=_LONG_LINES)


def read_mail(octets: bytes) -> ReceivedReport | Unreadable:
    """The first text in a mail that is a report. Never raises; linear in the size of the mail."""
    if len(octets) > MAX_MAIL_BYTES:
        return Unreadable(f"a mail of more than {MAX_MAIL_BYTES} octets")
    head, _ = split_head(octets)
    why = Unreadable("no text in the mail")
    for text in _texts(octets, 0):
        found = read_report(text)
        if isinstance(found, Report):
            return ReceivedReport(found, field_of(head, "Message-ID"), field_of(head, "Date"))
        why = found
    return why


def _texts(octets: bytes, depth: int) -> Iterator[str]:
    """The texts in a mail or in a part of one, in order."""
    head, body = split_head(octets)
    part = short_header(head, "Content-Type", "Content-Transfer-Encoding")
    if part.get_content_maintype() == "multipart":
        boundary = part.get_boundary()
        if boundary and depth < _MAX_DEPTH:
            for piece in split_parts(body, boundary, _MAX_PARTS):
                yield from _texts(piece, depth + 1)
    elif part.get_content_type() in ("text/plain", "text/html"):
        content = content_of(part, body)
        if content is not None:
            yield decode(content, part.get_content_charset("") or "")
