"""Reads the dates of HTTP, mail, sitemaps and feeds as seconds since the epoch. Pure.

Sources: RFC 9110, 5.6.7 (HTTP); RFC 5322, 3.3, and RFC 822 (mail, RSS); W3C NOTE-datetime (sitemaps, Atom, ``date``).
They leave two cases open: a time without a zone is read as UTC, a month or year as its first day.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_MAX_CHARS = 64
_DAY_S = 86_400
_FRACTION = re.compile(r"(?<=:\d\d)\.\d+", re.ASCII)  # of a second, which no form of HTTP has
_W3C = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d{1,12})?)? ?([Zz]|[+-]\d\d:?\d\d)?)?)?)?",
    re.ASCII,
)


@lru_cache(maxsize=64)  # servers that are asked at the same time send the same ``Date``
def http_date(text: str) -> float | None:
    """Parse an HTTP date in any of its three forms, or the date of a mail; None for other text."""
    from email.utils import parsedate_tz  # a large module, which a command without dates does not need

    # The name of the day may be of any language.
    text = _FRACTION.sub("", text[:_MAX_CHARS].encode("ascii", "replace").decode())
    found = parsedate_tz(text) or parsedate_tz(f"{text} GMT")
    return None if found is None else _time(*found[:6], found[9] or 0)


def any_date(text: str) -> float | None:
    """Parse a date of any source, to whole seconds; None for other text."""
    text = text[:_MAX_CHARS].strip()
    if match := _W3C.fullmatch(text):
        year, month, day, hour, minute, second, zone = match.groups()
        clock = int(hour or 0), int(minute or 0), int(second or 0)
        return _time(int(year), int(month or 1), int(day or 1), *clock, _ahead_s(zone or ""))
    return http_date(text if ":" in text else f"{text} 00:00")


def _time(year: int, month: int, day: int, hour: int, minute: int, second: int, ahead_s: int) -> float | None:
    """The time that a clock shows which is ahead of UTC. A zone of a day, or out of the years 1 to 9999, is ignored."""
    try:
        at = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)  # 60 is a leap second
    except (ValueError, OverflowError):
        return None
    with suppress(OverflowError):
        at -= timedelta(seconds=ahead_s if abs(ahead_s) < _DAY_S else 0)
    return at.timestamp()


def _ahead_s(zone: str) -> int:
    """The seconds by which a numeric zone is ahead of UTC."""
    if zone[:1] not in ("+", "-"):
        return 0
    ahead_s = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
    return -ahead_s if zone[0] == "-" else ahead_s
