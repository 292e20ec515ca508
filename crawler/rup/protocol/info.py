"""``/rupinfo.txt``: what a site offers to robots that want to be told of changes (Internet-Draft of 1998, 3.1.1).

Both ways: :func:`write_info` writes what the draft prints, :func:`read_info` also takes folded lines, other letter
case, any line ends and relative URLs, and ignores unknown fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from crawler.rup.protocol.units import Span, read_span, read_unit
from crawler.rup.protocol.wire import decode, unfold
from crawler.terminal_text import shown
from crawler.url import NotCrawlable, canonicalise, split

#: Where a site keeps it, in the order of asking: the draft prints both names.
PATHS = ("/rupinfo.txt", "/rupinfo.tex")

MAX_BYTES = 64 * 1024
MAX_PATTERNS = 100
MAX_PATTERN_CHARS = 1000

#: A pattern listed by a server that takes any pattern.
ANY_PATTERN = ".*"

_FIELD = re.compile(r"([A-Za-z][A-Za-z-]{0,40})[ \t]*:(.*)", re.DOTALL)
_KNOWN = re.compile(r"(?:RUP-CGI|Authentifier|Latency|Exclude|IncludeOnly|MaxQuerySpan)[ \t]*:", re.IGNORECASE)
_COMMA = re.compile(r",\s+")


@dataclass(frozen=True, slots=True)
class RupInfo:
    """What a server offers.

    Units that are not in :data:`crawler.rup.protocol.units.UNITS_S` are left out of ``latencies``.
    """

    cgi: str  # canonical URL
    authentifier: str = "none"
    latencies: tuple[str, ...] = ()  # units; empty where the server does not say
    exclude: tuple[str, ...] = ()  # patterns that a robot may name; .* for any
    include_only: tuple[str, ...] = ()
    max_query_span: Span | None = None  # how far back GetIndex reaches; None where the server does not say


@dataclass(frozen=True, slots=True)
class NoInfo:
    """Why a text is no rupinfo."""

    why: str


def write_info(info: RupInfo) -> str:
    """The file's text, in ASCII with LF where the patterns are ASCII."""
    lines = [
        ("RUP-CGI", info.cgi),
        ("Authentifier", info.authentifier),
        ("Latency", ", ".join(info.latencies)),
        ("Exclude", ", ".join(info.exclude)),
        ("IncludeOnly", ", ".join(info.include_only)),
        ("MaxQuerySpan", str(info.max_query_span or "")),
    ]
    return "".join(f"{field}: {value}\n" for field, value in lines if value)


def read_info(body: bytes, url: str) -> RupInfo | NoInfo:
    """Read a body found at the canonical URL ``url``. Of a field that stands twice, the first counts.

    Never raises. Octets past :data:`MAX_BYTES`, patterns past :data:`MAX_PATTERNS` and patterns longer than
    :data:`MAX_PATTERN_CHARS` are ignored.
    """
    fields: dict[str, str] = {}
    for line in unfold(decode(body[:MAX_BYTES]), _KNOWN.match):
        if match := _FIELD.match(line):
            fields.setdefault(match[1].lower(), match[2].strip())
    written = fields.get("rup-cgi")
    if not written:
        return NoInfo("no RUP-CGI line")
    try:
        cgi = canonicalise(written, url)
    except NotCrawlable as error:
        return NoInfo(f"RUP-CGI: {error}")
    units = (read_unit(text) for text in fields.get("latency", "").split(","))
    return RupInfo(
        cgi=cgi,
        authentifier=shown(fields.get("authentifier", "").lower()) or "none",
        latencies=tuple(dict.fromkeys(unit for unit in units if unit)),
        exclude=_patterns(fields.get("exclude", "")),
        include_only=_patterns(fields.get("includeonly", "")),
        max_query_span=read_span(fields.get("maxqueryspan", "")),
    )


def _patterns(text: str) -> tuple[str, ...]:
    """A list with commas and blanks between; a comma alone belongs to a pattern, as in ``a{1,2}``."""
    parts = (part.strip() for part in _COMMA.split(text)[:MAX_PATTERNS])
    return tuple(part for part in parts if 0 < len(part) <= MAX_PATTERN_CHARS)


def takes(offered: Iterable[str], wanted: Iterable[str]) -> bool:
    """Whether a server that lists the patterns ``offered`` lets a robot name those ``wanted``."""
    offers = set(offered)
    return ANY_PATTERN in offers or offers.issuperset(wanted)


def on_same_site(info: RupInfo, url: str) -> bool:
    """Whether the CGI is on the site of ``url``: elsewhere it might be anybody's."""
    return split(info.cgi).site == split(url).site
