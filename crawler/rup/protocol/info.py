"""``/rupinfo.txt``: the offer of a site to robots (Internet-Draft of 1998, 3.1.1), in both directions.

:func:`write_info` writes the format of the draft. :func:`read_info` also reads folded lines, any letter case, any line
ends and relative URLs, and ignores unknown fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from crawler.rup.protocol.units import Span, read_span, read_unit
from crawler.rup.protocol.wire import decode, unfold
from crawler.terminal_text import shown
from crawler.url import NotCrawlable, canonicalise, split

#: The paths of the file, in the order in which a robot asks for them: the draft prints both names.
PATHS = ("/rupinfo.txt", "/rupinfo.tex")

MAX_BYTES = 64 * 1024
MAX_PATTERNS = 100
MAX_PATTERN_CHARS = 1000

#: A server that accepts any pattern lists this one.
ANY_PATTERN = ".*"

_FIELD = re.compile(r"([A-Za-z][A-Za-z-]{0,40})[ \t]*:(.*)", re.DOTALL)
_KNOWN = re.compile(r"(?:RUP-CGI|Authentifier|Latency|Exclude|IncludeOnly|MaxQuerySpan)[ \t]*:", re.IGNORECASE)
_COMMA = re.compile(r",\s+")


@dataclass(frozen=True, slots=True)
class RupInfo:
    """The offer of a server. ``latencies`` has the known units only (:data:`crawler.rup.protocol.units.UNITS_S`)."""

    cgi: str  # canonical URL
    authentifier: str = "none"
    latencies: tuple[str, ...] = ()  # units; empty if the server does not say
    exclude: tuple[str, ...] = ()  # patterns that a robot may use; .* for any
    include_only: tuple[str, ...] = ()
    max_query_span: Span | None = None  # the longest span of GetIndex; None if the server does not say


@dataclass(frozen=True, slots=True)
class FoundInfo:
    """A ``/rupinfo.txt`` found at ``url``. Times in seconds since the epoch."""

    url: str
    found_at: float
    info: RupInfo

    @property
    def site(self) -> str:
        """The site of ``url``."""
        return split(self.url).site


@dataclass(frozen=True, slots=True)
class NoInfo:
    """Why a text is not a rupinfo file."""

    why: str


def write_info(info: RupInfo) -> str:
    """The text of the file, with LF; ASCII if the patterns are ASCII."""
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
    """Read a body found at the canonical URL ``url``. If a field occurs twice, the first one counts.

    Never raises. Ignores bytes after :data:`MAX_BYTES`, patterns after :data:`MAX_PATTERNS` and patterns longer than
    :data:`MAX_PATTERN_CHARS`.
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
    """A list separated by a comma and white space. A comma alone belongs to a pattern, as in ``a{1,2}``."""
    parts = (part.strip() for part in _COMMA.split(text)[:MAX_PATTERNS])
    return tuple(part for part in parts if 0 < len(part) <= MAX_PATTERN_CHARS)


def allows_patterns(offered: Iterable[str], wanted: Iterable[str]) -> bool:
    """Whether a server that lists the patterns ``offered`` allows a robot to use the patterns ``wanted``."""
    offers = set(offered)
    return ANY_PATTERN in offers or offers.issuperset(wanted)
