"""A report as a mail, both ways: MIME, ``text/plain`` (Internet-Draft of 1998, 3.2; RFC 5322; RFC 2045 and 2046).

What arrives is anybody's. Only heads and transfer encodings are read, multiparts up to a depth; nothing is ever taken
from a part that is no text.
"""

from __future__ import annotations

import base64
import binascii
import quopri
import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import EmailMessage
from email.parser import BytesHeaderParser
from email.policy import SMTP, compat32
from email.utils import formatdate

from crawler.robots import http_date
from crawler.rup.protocol.forms import ONE_CLICK
from crawler.rup.protocol.report import Report, Unreadable, read_report, write_report
from crawler.rup.protocol.wire import decode
from crawler.sitemaps.dates import epoch_s
from crawler.terminal_text import shown

#: Octets of a mail that is read at all; a larger one is no report of ours to take.
MAX_MAIL_BYTES = 12 * 2**20

_MAX_HEAD_BYTES = 64 * 1024
_MAX_DEPTH = 4
_MAX_PARTS = 20
_MAX_7BIT_CHARS = 990

#: Header lines are not folded: a URL in pieces is no URL to those who read it by its letters.
_LONG_LINES = SMTP.clone(max_line_length=_MAX_7BIT_CHARS)

_HEAD_END = re.compile(rb"\r?\n\r?\n|\A\r?\n")
_PARAMETER = re.compile(r';\s*(charset|boundary)\s*=\s*(?:"([^"]{1,200})"|([^\s;"]{1,200}))', re.IGNORECASE)
_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/]")


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail to be sent. All addresses and ids are ASCII without white space."""

    sender: str
    recipient: str
    message_id: str  # with its angle brackets
    date: float  # seconds since the epoch
    subject: str
    report: Report
    unsubscribe_url: str = ""
    confirm_url: str = ""  # where a visit says that this mail arrived


@dataclass(frozen=True, slots=True)
class Arrived:
    """A mail that carries a report."""

    report: Report
    sender: str  # as From says, which proves nothing
    message_id: str
    date: float | None  # as Date says, seconds since the epoch


def write_mail(mail: Mail) -> bytes:
    """The mail in octets, with CRLF; ``7bit``, or ``quoted-printable`` where a path makes a line too long for that."""
    message = EmailMessage(SMTP)
    message["From"] = mail.sender
    message["To"] = mail.recipient
    message["Date"] = formatdate(mail.date, usegmt=True)
    message["Message-ID"] = mail.message_id
    message["Subject"] = mail.subject
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no holiday notes in answer
    if mail.unsubscribe_url:
        message["List-Unsubscribe"] = f"<{mail.unsubscribe_url}>"  # RFC 2369: for people who get this by mistake
        if mail.unsubscribe_url.startswith("https:"):
            message["List-Unsubscribe-Post"] = "=".join(ONE_CLICK)  # RFC 8058, which asks for https
    if mail.confirm_url:
        message["RUP-Confirm"] = f"<{mail.confirm_url}>"
    text = write_report(mail.report)
    longest = max(map(len, text.split("\n")))
    encoding = "7bit" if longest <= _MAX_7BIT_CHARS else "quoted-printable"
    message.set_content(text, subtype="plain", charset="us-ascii", cte=encoding)
    return message.as_bytes(policy=_LONG_LINES)


def read_mail(octets: bytes) -> Arrived | Unreadable:
    """The report that a mail carries: the first text in it that is one. Never raises; linear in the mail's size."""
    if len(octets) > MAX_MAIL_BYTES:
        return Unreadable(f"a mail of more than {MAX_MAIL_BYTES} octets")
    head = _head(octets)[0]
    why = Unreadable("no text in the mail")
    for text in _texts(octets, 0):
        found = read_report(text)
        if isinstance(found, Report):
            date = head.get("date", "")
            at = epoch_s(_without_comment(date))
            return Arrived(
                found,
                sender=shown(head.get("from", "")),
                message_id=shown(head.get("message-id", "")),
                date=http_date(date) if at is None else at,
            )
        why = found
    return why


def _without_comment(date: str) -> str:
    return date.partition("(")[0].strip()


def _head(octets: bytes) -> tuple[dict[str, str], bytes]:
    """The header fields, of which the first of a name counts, and the body."""
    start = octets[: _MAX_HEAD_BYTES + 4]
    end = _HEAD_END.search(start)
    if end is None:
        return {}, b""
    parsed = BytesHeaderParser(policy=compat32).parsebytes(start[: end.start()] + b"\n\n")
    fields: dict[str, str] = {}
    for name, value in parsed.items():
        fields.setdefault(name.lower(), " ".join(str(value).split()))
    return fields, octets[end.end() :]


def _texts(octets: bytes, depth: int) -> Iterator[str]:
    """The texts in a mail or a part of one, in order."""
    head, body = _head(octets)
    content_type = head.get("content-type", "")[:2000]
    kind = content_type.partition(";")[0].strip().lower() or "text/plain"
    parameters = {name.lower(): quoted or bare for name, quoted, bare in _PARAMETER.findall(content_type)}
    if kind in ("text/plain", "text/html"):
        yield decode(_decoded(body, head.get("content-transfer-encoding", "")), parameters.get("charset", ""))
    elif kind.startswith("multipart/") and depth < _MAX_DEPTH and "boundary" in parameters:
        for part in _parts(body, parameters["boundary"]):
            yield from _texts(part, depth + 1)


def _parts(body: bytes, boundary: str) -> list[bytes]:
    """The parts between the lines of a boundary (RFC 2046, 5.1.1), without what stands before and after them."""
    line = re.escape(b"--" + boundary.encode("utf-8", "surrogateescape"))
    pieces = re.split(rb"(?:\A|\r?\n)" + line + rb"(--)?[ \t]*(?=\r?\n|\Z)", body, maxsplit=_MAX_PARTS)
    parts = []
    for closing, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        if closing:
            break
        parts.append(re.sub(rb"\A\r?\n", b"", piece))
    return parts[:_MAX_PARTS]


def _decoded(body: bytes, encoding: str) -> bytes:
    match encoding.strip().lower():
        case "quoted-printable":
            return quopri.decodestring(body)
        case "base64":
            digits = _NOT_BASE64.sub(b"", body)
            try:
                return base64.b64decode(digits + b"=" * (-len(digits) % 4))
            except binascii.Error:  # one digit too many: the rest is whole
                return base64.b64decode(digits[: len(digits) // 4 * 4])
        case _:
            return body
