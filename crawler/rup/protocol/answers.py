"""Answers of a server, in both directions (Internet-Draft of 1998, 3.1.2 and 3.3.3).

An answer is an HTML document that contains a line. A reader finds the line anywhere in the document, with ``:`` or
``=`` and in any letter case. :func:`page` writes a document with the line on a line of its own.
"""

from __future__ import annotations

import html
import re

from crawler.rup.protocol.forms import ONE_CLICK
from crawler.rup.protocol.wire import decode, unwrap

#: The readers search this many bytes of an answer.
MAX_BYTES = 64 * 1024

_KEY = re.compile(r"\bRegistrationKey[ \t]*+[:=][ \t]*+(\S{1,200})(?!\S)", re.IGNORECASE)
_NUMBER = re.compile(r"\bSequenceNumber[ \t]*+[:=][ \t]*+(\d{1,15})(?!\d)", re.IGNORECASE | re.ASCII)


def page(title: str, content: str) -> str:
    """Write an HTML document that shows ``content``, a plain text with its lines."""
    text = html.escape(content.rstrip("\n"), quote=False)
    return _document(title, f"<pre>\n{text}\n</pre>")


def leave_page() -> str:
    """Write an HTML document with a button that ends the reports: the button sends a POST to the same URL."""
    name, value = ONE_CLICK
    form = f'<form method="post"><button name="{name}" value="{value}">Stop the reports</button></form>'
    return _document("Stop the reports?", f"<p>This site mails reports of its changes to your address.</p>\n{form}")


def _document(title: str, body: str) -> str:
    head = f"<head><title>{html.escape(title)}</title></head>"
    return f"<!DOCTYPE html>\n<html>\n{head}\n<body>\n{body}\n</body>\n</html>\n"


def read_key(body: bytes) -> str | None:
    """The registration key in an answer to Register; ``None`` if it has none."""
    return _read(_KEY, body)


def read_sequence_number(body: bytes) -> int | None:
    """The sequence number in an answer to GetSequenceNumber; ``None`` if it has none."""
    number = _read(_NUMBER, body)
    return None if number is None else int(number)


def _read(line: re.Pattern[str], body: bytes) -> str | None:
    match = line.search(unwrap(decode(body[:MAX_BYTES])))
    return match[1] if match else None
