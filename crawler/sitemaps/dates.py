"""Parse times in sitemaps and feeds.

Sources: W3C NOTE-datetime (sitemaps, Atom, ``dc:date``); RFC 822, 5, as amended by RFC 1123, 5.2.14 (RSS). They leave
two cases open: a time without a zone is read as UTC, a month or year as its first day.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

_W3C = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d{1,12})?)? ?([Zz]|[+-]\d\d:?\d\d)?)?)?)?",
    re.ASCII,
)
_RFC822 = re.compile(
    r"(?:[a-z]{3,9},? +)?(\d{1,2}) +([a-z]{3})[a-z]{0,6} +(\d{4}|\d\d)"
    r"(?: +(\d\d):(\d\d)(?::(\d\d))?(?: +([a-z]{1,4}|[+-]\d{4}))?)?",
    re.ASCII | re.IGNORECASE,
)
_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_NAMES, 1)}
_ZONES = {"est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7}  # hours; else UTC


def epoch_s(text: str) -> float | None:
    """Parse either form of date to whole seconds since the epoch; None for other text."""
    text = text[:64].strip()
    if match := _W3C.fullmatch(text):
        year, month, day, hour, minute, second, zone = match.groups()
        return _time(int(year), int(month or 1), int(day or 1), hour, minute, second, zone)
    if match := _RFC822.fullmatch(text):
        day, name, year, hour, minute, second, zone = match.groups()
        century = 0 if len(year) == 4 else 2000 if int(year) < 70 else 1900
        return _time(century + int(year), _MONTHS.get(name.lower(), 0), int(day), hour, minute, second, zone)
    return None


def _time(
    year: int, month: int, day: int, hour: str | None, minute: str | None, second: str | None, zone: str | None
) -> float | None:
    try:
        leap_free = min(int(second or 0), 59)  # 60 is a leap second
        local = datetime(year, month, day, int(hour or 0), int(minute or 0), leap_free, tzinfo=UTC)
    except ValueError:
        return None
    return local.timestamp() - _offset_s(zone or "")


def _offset_s(zone: str) -> int:
    """The seconds by which a zone is ahead of UTC."""
    if zone[:1] in ("+", "-"):
        ahead = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
        return -ahead if zone[0] == "-" else ahead
    return _ZONES.get(zone.lower(), 0) * 3600
