"""The neutral parse of a robots.txt file: what is written, not what it means.

Sources: the 1996 draft, 3.2, 3.3 and 4.2; RFC 9309, 2.2 and 2.5; ``docs/protocols.md``, section 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

#: Octets of a body that are read (``docs/protocols.md``, section 1; RFC 9309, 2.5 asks for 500 KiB at least).
MAX_BYTES = 512 * 1024

#: Lines of a file that are kept: the bound on rules that the 1996 draft, section 5, asks for.
MAX_LINES = 100_000

USER_AGENT = "user-agent"
ALLOW = "allow"
DISALLOW = "disallow"
HOST = "host"
CRAWL_DELAY = "crawl-delay"
REQUEST_RATE = "request-rate"
SITEMAP = "sitemap"
MOBILE_AGENT_SERVER = "mobile-agent-server"

#: Fields that some reading gives a meaning; lines with any other are extensions.
KNOWN_FIELDS = frozenset({USER_AGENT, ALLOW, DISALLOW, HOST, CRAWL_DELAY, REQUEST_RATE, SITEMAP, MOBILE_AGENT_SERVER})

_WHITE = " \t\x0b\x0c"
_BOM = b"\xef\xbb\xbf"
_HTML_STARTS = (b"<!doctype html", b"<html", b"<head", b"<body")
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")


class Line(NamedTuple):
    """One line that says something, or a blank line (``text`` is empty), which ends a record in the draft reading.

    ``text`` is the line without its comment and outer white space. Octets that are not UTF-8 stand in the strings
    as surrogate escapes, so that ``value.encode("utf-8", "surrogateescape")`` gives the file's octets back.
    """

    number: int  # from 1, as an editor shows it
    field: str  # lower case
    value: str
    text: str


@dataclass(frozen=True, slots=True)
class RobotsFile:
    """A parsed file: its lines in order, comments and lines without a colon left out."""

    lines: tuple[Line, ...] = ()
    truncated: bool = False
    notes: tuple[str, ...] = ()


def parse(body: bytes, *, max_bytes: int = MAX_BYTES, max_lines: int = MAX_LINES) -> RobotsFile:
    """Parse any bytes as robots.txt. Never raises; time and memory are linear in ``max_bytes``.

    Lines end in CR, LF or CRLF, mixed (1996 draft, 4.2). What lies past ``max_bytes`` octets or ``max_lines`` kept
    lines is ignored, and the file marked ``truncated``.
    """
    whole = whole_lines(body, max_bytes)
    text = whole.removeprefix(_BOM).decode("utf-8", "surrogateescape")
    lines: list[Line] = []
    truncated = len(whole) < len(body)
    for number, raw in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        content = (raw.partition("#")[0] if "#" in raw else raw).strip(_WHITE)
        if content:
            field, colon, value = content.partition(":")
            if not colon:
                continue
            line = Line(number, field.rstrip(_WHITE).lower(), value.lstrip(_WHITE), content)
        elif "#" not in raw and lines and lines[-1].text:
            line = Line(number, "", "", "")  # of several blank lines, the first is enough
        else:
            continue
        if len(lines) == max_lines:
            truncated = True
            break
        lines.append(line)
    said = notes(whole)
    return RobotsFile(tuple(lines), truncated, (*said, "longer than the limits") if truncated else said)


def whole_lines(body: bytes, max_bytes: int, *, cut: bool = False) -> bytes:
    """``body`` up to its last whole line within ``max_bytes``; ``cut`` says that it was cut before it came here.

    Half a line is dropped, not read: an ``Allow: /a/b`` cut to ``Allow: /`` would open what the owner closed.
    """
    if len(body) <= max_bytes and not cut:
        return body
    kept = body[:max_bytes]
    return kept[: max(kept.rfind(b"\n"), kept.rfind(b"\r")) + 1]


def notes(body: bytes) -> tuple[str, ...]:
    """What strikes the eye in a body served as robots.txt. Its lines are read all the same."""
    start = body[:1024].removeprefix(_BOM).lstrip().lower()
    if start.startswith(_HTML_STARTS):
        return ("HTML served as robots.txt",)
    if start.startswith(_UTF16_BOMS):
        return ("UTF-16 served as robots.txt, where UTF-8 is read",)
    return ()
