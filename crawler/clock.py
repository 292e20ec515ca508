"""The only place that reads the system's clock. Rules take ``now`` instead (a ruff rule keeps it)."""

from __future__ import annotations

import asyncio
import math
import time
from datetime import UTC, datetime
from typing import Protocol

_BOOT: int | None = getattr(time, "CLOCK_BOOTTIME", None)
_GAIN = 0.01


class Clock(Protocol):
    """Wall-clock seconds since the epoch (UTC), and waiting. Tests replace it by virtual time."""

    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """Real time, guarded against steps: it follows a clock that nobody sets from its first reading.

    A pause promised to a site must not shrink because NTP set the wall clock forward.
    """

    def __init__(self) -> None:
        self._offset = time.time() - boot_s()
        self._since = -math.inf  # when it was last looked at what it follows
        self._behind = 0.0  # by how much it was behind that then

    def now(self) -> float:
        return self._at(boot_s())

    def _at(self, moment: float) -> float:
        return moment + self._offset + min(self._behind, _GAIN * (moment - self._since))

    def follow(self, earliest: float, latest: float, read_at: float) -> None:
        """Go by another clock, which at ``read_at`` (:func:`boot_s`) showed a time between these two.

        Nothing changes while ours lies between them too: a pause must not shrink by what a network takes. Nor by the
        other clock's being set forward: after the first time, ours runs a hundredth faster until it has caught up.
        """
        ours = self._at(read_at)
        ahead = min(max(ours, earliest), latest) - ours
        self._behind = max(0.0, ahead) if self._since > -math.inf else 0.0
        self._offset = ours - read_at + ahead - self._behind
        self._since = read_at

    async def sleep(self, seconds: float) -> None:
        # uvloop rounds to whole milliseconds: what wakes up a little early would only have to sleep again.
        await asyncio.sleep(math.ceil(seconds * 1000) / 1000)


def monotonic_s() -> float:
    """Seconds of a clock that nobody sets."""
    return time.monotonic()


def boot_s() -> float:
    """The same, where the system has it also through suspension."""
    return time.clock_gettime(_BOOT) if _BOOT is not None else time.monotonic()


def iso(epoch_s: float) -> str:
    """``2026-11-21T10:42:00Z`` for a time in seconds since the epoch."""
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def brief_time(epoch_s: float, now: float) -> str:
    """``10:42:00Z``, a time for people in UTC, as :func:`iso` has it; ``2026-11-21T10:42Z`` where it is not today."""
    try:
        then, today = (datetime.fromtimestamp(t, UTC) for t in (epoch_s, now))
    except (OverflowError, ValueError, OSError):
        return "the end of time"  # a Retry-After may name any date
    return then.strftime("%H:%M:%SZ" if then.date() == today.date() else "%Y-%m-%dT%H:%MZ")
