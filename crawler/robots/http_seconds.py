"""Parse the seconds in HTTP headers (RFC 9110, 10.2.3), for robots.txt and for pages."""

from __future__ import annotations

import re

from crawler.dates import http_date
from crawler.model import Headers, header, header_values

#: The largest number of seconds read from a header. Larger numbers are cut to it (RFC 9111, 1.2.2).
MAX_SECONDS = 2**31

_DAY_S = 86_400.0
_NUMBER = re.compile(r"(\d+)(\.\d{1,9})?", re.ASCII)


def delta_seconds(text: str) -> float | None:
    """Parse a number of seconds in a header, at most :data:`MAX_SECONDS`; None for other text."""
    match = _NUMBER.fullmatch(text.strip(" \t\"'"))
    if match is None:
        return None
    return float(MAX_SECONDS) if len(match[1]) > 10 else min(float(match[0]), float(MAX_SECONDS))


def retry_after_s(headers: Headers, now: float) -> float | None:
    """The seconds from ``now`` that ``Retry-After`` asks to wait; None if the header is absent or unreadable.

    The longest of several counts. A date is one of the server's clock: if ``Date``, and ``Age`` of a cached answer, say
    that this clock is slow, the time is counted from there. A wait of more than a day by a clock that is slow by more
    than a day is not believed. Waits are cut to :data:`MAX_SECONDS`: Python cannot convert every time in the year 9999.
    """
    waits = (_wait_s(value, headers, now) for value in header_values(headers, "retry-after"))
    return max((seconds for seconds in waits if seconds is not None), default=None)


def _wait_s(value: str, headers: Headers, now: float) -> float | None:
    seconds = delta_seconds(value)
    if seconds is not None:
        return seconds
    date, sent = http_date(value), http_date(header(headers, "date") or "")
    if date is None:
        return None
    age_s = delta_seconds(header(headers, "age") or "") or 0.0
    since = now if sent is None else min(now, sent + age_s)
    if min(now, date) - since > _DAY_S:
        since = now
    return min(max(0.0, date - since), float(MAX_SECONDS))
