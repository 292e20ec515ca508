"""Parse times in HTTP headers (RFC 9110, 5.6.7 and 10.2.3), for robots.txt and for pages."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from crawler.model import Headers, header

#: The largest number of seconds read from a header. Larger numbers are cut to it (RFC 9111, 1.2.2).
MAX_SECONDS = 2**31

_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_NAMES, 1)}
_CLOCK = r"(?P<h>\d{1,2}):(?P<m>\d\d):(?P<s>\d\d)"
_DAY_FIRST = re.compile(
    rf"\b(?P<day>\d{{1,2}})[ -](?P<month>[A-Za-z]{{3}})[ -](?P<year>\d{{4}}|\d\d) +{_CLOCK}\b", re.ASCII
)
_ASCTIME = re.compile(rf"\b(?P<month>[A-Za-z]{{3}}) +(?P<day>\d{{1,2}}) {_CLOCK} (?P<year>\d{{4}})\b", re.ASCII)
_NUMBER = re.compile(r"(\d+)(\.\d{1,9})?", re.ASCII)


def http_date(text: str) -> float | None:
    """Parse an HTTP date in any of its three forms, always GMT, to seconds since the epoch; None for other text."""
    match = _DAY_FIRST.search(text[:64]) or _ASCTIME.search(text[:64])
    month = _MONTHS.get(match["month"].lower()) if match else None
    if match is None or month is None:
        return None
    year = int(match["year"])
    if len(match["year"]) == 2:  # the form of RFC 850
        year += 2000 if year < 70 else 1900
    hour, minute, second = int(match["h"]), int(match["m"]), min(int(match["s"]), 59)  # 60 is a leap second
    try:
        return datetime(year, month, int(match["day"]), hour, minute, second, tzinfo=UTC).timestamp()
    except ValueError:
        return None


def delta_seconds(text: str) -> float | None:
    """Parse a number of seconds in a header, at most :data:`MAX_SECONDS`; None for other text."""
    match = _NUMBER.fullmatch(text.strip(" \t\"'"))
    if match is None:
        return None
    return float(MAX_SECONDS) if len(match[1]) > 10 else min(float(match[0]), float(MAX_SECONDS))


def retry_after_s(headers: Headers, now: float) -> float | None:
    """The seconds from ``now`` that ``Retry-After`` asks to wait; None if the header is absent or unreadable.

    A date is cut to :data:`MAX_SECONDS` like a number: Python cannot convert every time in the year 9999.
    """
    value = header(headers, "retry-after")
    if value is None:
        return None
    seconds = delta_seconds(value)
    if seconds is not None:
        return seconds
    date = http_date(value)
    return None if date is None else min(max(0.0, date - now), float(MAX_SECONDS))
