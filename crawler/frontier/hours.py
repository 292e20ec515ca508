"""Hours of the day in which sites may be asked (``politeness.hours``; ``docs/protocols.md``, section 6).

A window is ``PATTERN=HH:MM-HH:MM ZONE`` or, for all hosts, ``HH-HH ZONE``. No time zone can be derived from a site: its
address is that of a data centre, and its domain that of a country at best. So the operator names the zone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, time, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from crawler.fields.kinds import Form, ValueKind, read_texts
from crawler.url import host_matches

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

_WINDOW = re.compile(r"(?:([^\s=]+)=)?(\d\d?)(?::(\d\d))?-(\d\d?)(?::(\d\d))? +([A-Za-z0-9_+/-]+)")
_PATTERN = re.compile(r"\*|(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")


class Window(NamedTuple):
    """From ``begins`` until before ``ends`` by the clock of ``zone``, over midnight if ``ends`` is earlier."""

    pattern: str  # a host, "*." and a name for every host below that name, or "*"
    begins: time
    ends: time
    zone: ZoneInfo

    def covers(self, host: str) -> bool:
        """Whether the window is for ``host``."""
        return host_matches(self.pattern, host.rstrip("."))

    def is_open(self, at: float) -> bool:
        """Whether ``at``, in seconds since the epoch, lies in the window."""
        clock = datetime.fromtimestamp(at, self.zone).time()
        if self.begins < self.ends:
            return self.begins <= clock < self.ends
        return clock >= self.begins or clock < self.ends

    def opens_at(self, now: float) -> float:
        """When the window opens next after ``now``, in seconds since the epoch."""
        today = datetime.fromtimestamp(now, self.zone).date()
        openings = (datetime.combine(today + timedelta(days), self.begins, self.zone).timestamp() for days in range(3))
        return next(at for at in openings if at > now)


@lru_cache(maxsize=4096)
def window(text: str) -> Window:
    """The window that ``text`` describes. Raises :class:`ValueError` with a sentence."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # here, because few crawls have hours

    match = _WINDOW.fullmatch(text.strip())
    if match is None or not _PATTERN.fullmatch(match[1] or "*"):
        raise ValueError(f"{text!r}: write HH-HH ZONE or HOST=HH:MM-HH:MM ZONE, such as '*.de=22-06 Europe/Berlin'")
    begins, ends = _time(text, match[2], match[3]), _time(text, match[4], match[5])
    if begins == ends:
        raise ValueError(f"{text!r}: these hours have no length")
    try:
        zone = ZoneInfo(match[6])
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            f"{text!r}: {match[6]!r} is no time zone that this machine knows;"
            " if the name is right, install the time zones: pip install tzdata"
        ) from None
    return Window(match[1] or "*", begins, ends, zone)


def _time(text: str, hour: str, minute: str | None) -> time:
    """The time of day in the window ``text``; 24:00 is midnight."""
    try:
        return time(0) if (int(hour), int(minute or 0)) == (24, 0) else time(int(hour), int(minute or 0))
    except ValueError:
        raise ValueError(f"{text!r}: {hour}:{minute or '00'} is no time of day") from None


def window_of(host: str, hours: Sequence[str]) -> Window | None:
    """The first of the windows ``hours`` that is for ``host``; ``None``: the host may be asked at all hours."""
    return next((found for text in hours if (found := window(text)).covers(host)), None)


def _hours(value: object) -> tuple[str, ...]:
    hours = tuple(text.strip() for text in read_texts(value))
    for text in hours:
        window(text)
    return hours


HOURS = ValueKind("a list of hours with time zones", Form.LIST, _hours)
