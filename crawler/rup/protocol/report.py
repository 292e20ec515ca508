"""Reports of changes, in both directions (Internet-Draft of 1998, 3.2).

A report is the content of a mail or of an answer to GetIndex::

    SequenceNumber: 12
    URLBase: http://www.example.org/

    New[Sat, 03 Jan 1998 10:00:00 GMT]: /a.html, /b/c.html
    Delete[Sat, 03 Jan 1998 11:00:00 GMT]: /old.html

:func:`write_report` writes exactly this format, with RFC 1123 dates and percent-encoded commas in paths.
:func:`read_report` also reads ISO dates, missing dates, any line ends, folded lines, any letter case, paths relative to
the base, absolute URLs, and an HTML document around the report.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from enum import Enum
from itertools import groupby

from crawler.dates import any_date
from crawler.rup.protocol.wire import decode, is_cut, unfold, unwrap
from crawler.terminal_text import shown
from crawler.url import MAX_URL_CHARS, NotCrawlable, canonicalise

#: The reader reads this many bytes and changes of a report.
MAX_BYTES = 8 * 2**20
MAX_CHANGES = 100_000

#: The longest line that the writer writes, in characters, unless one path is longer. Mail allows 998 (RFC 5322).
MAX_LINE_CHARS = 900

_MAX_TIME_S = 2.0**35  # about 1,000 years: such a time exists in every time zone
_BEGINS = re.compile(r"(?:SequenceNumber|URLBase)[ \t]*+[:=]|(?:New|Change|Delete)d?[ \t]*+[\[:]", re.IGNORECASE)
_FIELD = re.compile(r"(SequenceNumber|URLBase)[ \t]*+[:=](.*)", re.IGNORECASE | re.DOTALL)
_CHANGE = re.compile(r"(New|Change|Delete)d?[ \t]*+(?:\[([^\]]{0,100})\])?[ \t]*+:(.*)", re.IGNORECASE | re.DOTALL)
_NUMBER = re.compile(r"\d{1,15}", re.ASCII)
_BETWEEN_PATHS = re.compile(r",\s+|,(?=/|https?://)", re.IGNORECASE)
_UNSAFE = re.compile(r"[^!-+\--~]")
_COMMA = re.compile("%2c", re.IGNORECASE)


class ChangeKind(Enum):
    """The kind of change of a file; the value is the word in a report."""

    NEW = "New"
    CHANGE = "Change"
    DELETE = "Delete"


_KINDS = {kind.value.lower(): kind for kind in ChangeKind}


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one file."""

    kind: ChangeKind
    at: float | None  # seconds since the epoch, whole in a report; None if the report does not say
    path: str  # percent-encoded as in a URL, except commas; in a report that was read: as the server wrote it


@dataclass(frozen=True, slots=True)
class Report:
    """Changes in the order in which they happened."""

    sequence_number: int | None  # of this robot's reports, from 1; 0 in an answer to GetIndex; None if missing
    url_base: str  # canonical URL
    changes: tuple[Change, ...] = ()
    skipped: int = 0  # paths beyond the limits; one more if the text itself was beyond its limit


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why a text is not a report."""

    why: str


def write_report(report: Report) -> str:
    """The text of a report: ASCII, LF."""
    head = f"SequenceNumber: {report.sequence_number or 0}\nURLBase: {report.url_base}\n\n"
    return head + "".join(f"{line}\n" for line in _change_lines(report.changes))


def _escape(match: re.Match[str]) -> str:
    return "".join(f"%{octet:02X}" for octet in match[0].encode("utf-8", "surrogatepass"))


def _change_lines(changes: Iterable[Change]) -> Iterator[str]:
    """Yield a line for consecutive changes of one kind and second, or several lines if one would be too long."""
    for (kind, second), group in groupby(changes, lambda c: (c.kind, None if c.at is None else int(c.at // 1))):
        stamp = "" if second is None else f"[{format_datetime(datetime.fromtimestamp(second, UTC), usegmt=True)}]"
        start = f"{kind.value}{stamp}: "
        line = ""
        for change in group:
            path = _UNSAFE.sub(_escape, change.path)
            if line and len(line) + len(path) + 2 > MAX_LINE_CHARS:
                yield line
                line = ""
            line = f"{line}, {path}" if line else start + path
        yield line


def read_report(text: str | bytes, *, base: str | None = None) -> Report | Unreadable:
    """Read a report. ``base`` is the URL base of a report that does not name its own. Never raises.

    Ignores unknown lines. A report must name its URL base or a sequence number.
    """
    cut = len(text) > MAX_BYTES
    if isinstance(text, bytes):
        text = decode(text[:MAX_BYTES])
    text = unwrap(text[:MAX_BYTES])
    fields: dict[str, str] = {}
    changes: list[Change] = []
    skipped = int(cut or is_cut(text))
    for line in unfold(text, _BEGINS.match):
        if match := _FIELD.fullmatch(line):
            fields.setdefault(match[1].lower(), match[2].strip())
        elif match := _CHANGE.fullmatch(line):
            kind, at = _KINDS[match[1].lower()], _date(match[2] or "")
            for path in _paths(match[3]):
                if len(path) > MAX_URL_CHARS or len(changes) >= MAX_CHANGES:
                    skipped += 1
                else:
                    changes.append(Change(kind, at, path))
    if not fields:
        return Unreadable("neither a SequenceNumber nor a URLBase")
    return _report(fields, base, tuple(changes), skipped)


def _report(fields: dict[str, str], base: str | None, changes: tuple[Change, ...], skipped: int) -> Report | Unreadable:
    written = fields.get("urlbase") or base
    if not written:
        return Unreadable("no URLBase")
    try:
        url_base = canonicalise(written)
    except NotCrawlable as error:
        return Unreadable(f"URLBase: {error}")
    number = fields.get("sequencenumber")
    if number is not None and not _NUMBER.fullmatch(number):
        return Unreadable(f"not a sequence number: {shown(number, 40)}")
    return Report(None if number is None else int(number), url_base, changes, skipped)


def _paths(text: str) -> Iterator[str]:
    for part in _BETWEEN_PATHS.split(text):
        if path := part.strip().removesuffix(","):
            yield _COMMA.sub(",", path)


def _date(text: str) -> float | None:
    at = any_date(text)
    return at if at is not None and abs(at) < _MAX_TIME_S else None
