"""The only module that reads the system's clock. Pure rules take ``now`` instead; a ruff rule enforces it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

_BOOT: int | None = getattr(time, "CLOCK_BOOTTIME", None)
_GAIN = 0.01


class Clock(Protocol):
    """Wall-clock seconds since the epoch (UTC), and waiting. Tests replace the clock with virtual time."""

    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """Real time without steps: one reading of the wall clock, continued by a clock that nobody sets.

    A site's pause must not shrink because NTP sets the wall clock forward.
    """

    def __init__(self, ahead_s: float | None = None) -> None:
        """``ahead_s``: by how much the clock is ahead of :func:`boot_s`, in place of a reading of the wall clock."""
        self._offset = time.time() - boot_s() if ahead_s is None else ahead_s
        self._since = -math.inf  # the boot time at which ``follow`` was last called
        self._behind = 0.0  # the seconds by which this clock was behind the other at that time

    def now(self) -> float:
        moment = boot_s()
        return self._at(moment) if self._behind else moment + self._offset

    def _at(self, moment: float) -> float:
        return moment + self._offset + min(self._behind, _GAIN * (moment - self._since))

    def follow(self, earliest: float, latest: float, read_at: float) -> None:
        """Follow another clock that showed a time between ``earliest`` and ``latest`` at ``read_at`` (:func:`boot_s`).

        Nothing changes if this clock lies between them too: a pause must not shrink by the network's delay. A pause
        must not shrink either if somebody sets the other clock forward: after the first call, this clock catches up by
        running 1 % faster.
        """
        ours = self._at(read_at)
        ahead = min(max(ours, earliest), latest) - ours
        self._behind = max(0.0, ahead) if self._since > -math.inf else 0.0
        self._offset = ours - read_at + ahead - self._behind
        self._since = read_at

    async def sleep(self, seconds: float) -> None:
        import asyncio  # here, because a parser process, which never waits, starts faster without it

        # uvloop rounds to whole milliseconds. Rounding up avoids a wake-up that is too early.
        await asyncio.sleep(math.ceil(seconds * 1000) / 1000)


def monotonic_s() -> float:
    """Seconds of a monotonic clock."""
    return time.monotonic()


#: Returns the seconds of a monotonic clock that runs on while the machine is suspended, if the system has one.
boot_s: Callable[[], float] = time.monotonic if _BOOT is None else partial(time.clock_gettime, _BOOT)


def iso(epoch_s: float) -> str:
    """A time in epoch seconds as ``2026-11-21T10:42:00Z``."""
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def exact_time(epoch_s: float) -> str | None:
    """``2026-11-21T10:42:00.125000Z``, for seconds since the epoch; ``None`` if no date of four digits is that time."""
    try:
        return datetime.fromtimestamp(epoch_s, UTC).isoformat(timespec="microseconds")[:-6] + "Z"
    except (OverflowError, ValueError, OSError):
        return None


def brief_time(epoch_s: float, now: float) -> str:
    """A time for display in UTC: ``10:42:00Z`` if it is on the day of ``now``, else ``2026-11-21T10:42Z``."""
    try:
        then, today = (datetime.fromtimestamp(t, UTC) for t in (epoch_s, now))
    except (OverflowError, ValueError, OSError):
        return "the end of time"  # a Retry-After may name any date
    return then.strftime("%H:%M:%SZ" if then.date() == today.date() else "%Y-%m-%dT%H:%MZ")
