"""What a server answers, both ways (Internet-Draft of 1998, 3.1.2 and 3.3.3): HTML documents that contain a line.

A robot reads the line wherever it stands, with ``:`` or ``=`` and any letter case; :func:`page` writes a document in
which it stands on a line of its own.
"""

from __future__ import annotations

import html
import re

from crawler.rup.protocol.forms import ONE_CLICK
from crawler.rup.protocol.units import Span
from crawler.rup.protocol.wire import decode, unwrap

#: Octets of an answer that are searched for a line.
MAX_BYTES = 64 * 1024

_KEY = re.compile(r"\bRegistrationKey[ \t]*+[:=][ \t]*+(\S{1,200})(?!\S)", re.IGNORECASE)
_NUMBER = re.compile(r"\bSequenceNumber[ \t]*+[:=][ \t]*+(\d{1,15})(?!\d)", re.IGNORECASE | re.ASCII)


def page(title: str, content: str) -> str:
    """An HTML document whose lines are those of ``content``, a plain text."""
    text = html.escape(content.rstrip("\n"), quote=False)
    return (
        f"<!DOCTYPE html>\n<html>\n<head><title>{html.escape(title)}</title></head>\n<body>\n<pre>\n"
        f"{text}\n</pre>\n</body>\n</html>\n"
    )


def leave_page() -> str:
    """A document with a button that asks by POST, at the same URL, for no more mail."""
    name, value = ONE_CLICK
    return (
        "<!DOCTYPE html>\n<html>\n<head><title>No more reports?</title></head>\n<body>\n"
        "<p>Reports of what changes at this site are mailed to your address.</p>\n"
        f'<form method="post"><button name="{name}" value="{value}">Send no more</button></form>\n</body>\n</html>\n'
    )


def key_line(key: str) -> str:
    return f"RegistrationKey: {key}"


def expected_line(*, mailed: bool) -> str:
    """What a robot that has registered is to do, or no more is mailed; ``mailed``: its address had a report before."""
    when = "now: this address had a report before" if mailed else "once the first report has come"
    return f"Send GetSequenceNumber with this key and your address {when}, or no more will come."


def sequence_number_line(number: int) -> str:
    return f"SequenceNumber={number}"


def read_key(body: bytes) -> str | None:
    """The registration key in an answer to Register; ``None`` where there is none."""
    match = _KEY.search(unwrap(decode(body[:MAX_BYTES])))
    return match[1] if match else None


def read_sequence_number(body: bytes) -> int | None:
    """The number in an answer to GetSequenceNumber; ``None`` where there is none."""
    match = _NUMBER.search(unwrap(decode(body[:MAX_BYTES])))
    return int(match[1]) if match else None


def too_far_back(asked: Span, most: Span) -> str:
    """Why GetIndex is refused."""
    return f"Span={asked} reaches further back than MaxQuerySpan: {most}"


def too_much(asked: Span) -> str:
    """Why GetIndex is refused where the answer would be too long."""
    return f"more changed in {asked} than is told at once; ask for less, or read the site anew"
