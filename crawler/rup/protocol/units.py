"""Spans of time in the notation of the Remote Update Protocol: ``30-day``, ``week`` (Internet-Draft of 1998, 3.1.1).

The draft names day, week and month as common units and leaves the list open. Here a month is 30 days and a year 365.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

#: The known units in seconds, finest first.
UNITS_S = {
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86_400,
    "week": 7 * 86_400,
    "month": 30 * 86_400,
    "year": 365 * 86_400,
}

#: Bounds of the grace for a late report, in seconds; within them a quarter of the latency.
MIN_GRACE_S, MAX_GRACE_S = 300.0, 86_400.0

_SPAN = re.compile(r"(?:0*([1-9]\d{0,5})[ \t]*-?[ \t]*)?([A-Za-z]{1,12})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Span:
    """``count`` (1 to 999,999) times a unit of :data:`UNITS_S`. ``str()`` writes the notation of the protocol."""

    count: int
    unit: str

    @property
    def seconds(self) -> int:
        return self.count * UNITS_S[self.unit]

    def __str__(self) -> str:
        return f"{self.count}-{self.unit}"


def read_span(text: str) -> Span | None:
    """Read ``30-day``; a unit alone counts once, and ``30 Days`` is accepted. ``None`` for anything else, and for 0."""
    match = _SPAN.fullmatch(text[:64].strip())
    unit = read_unit(match[2]) if match else None
    return Span(int(match[1] or 1), unit) if match and unit else None


def read_unit(text: str) -> str | None:
    """A unit of :data:`UNITS_S`, in any letter case, singular or plural; ``None`` for anything else."""
    name = text.strip().lower()
    return next((unit for unit in (name, name.removesuffix("s")) if unit in UNITS_S), None)


def span_over(seconds: float, units: Iterable[str]) -> Span:
    """The shortest span of at least ``seconds`` in one of ``units``, or in any unit if none of them is known.

    Of equal spans it has the coarser unit. A count is at most 999,999, as in :func:`read_span`.
    """
    known = [unit for unit in UNITS_S if unit in set(units)] or list(UNITS_S)
    spans = [Span(max(1, int(-(-seconds // UNITS_S[unit]))), unit) for unit in known]
    possible = [span for span in spans if span.count <= 999_999] or [Span(999_999, known[-1])]
    return min(reversed(possible), key=lambda span: span.seconds)


def grace_s(latency: Span) -> float:
    """How late a report may arrive before the robot asks for it, in seconds."""
    return min(max(latency.seconds / 4, MIN_GRACE_S), MAX_GRACE_S)
