"""Spans of time as the Remote Update Protocol writes them: ``30-day``, ``week`` (Internet-Draft of 1998, 3.1.1).

The draft names day, week and month as common units and leaves the list open; a month is 30 days here, a year 365.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

#: The units known, finest first, in seconds.
UNITS_S = {
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86_400,
    "week": 7 * 86_400,
    "month": 30 * 86_400,
    "year": 365 * 86_400,
}

_SPAN = re.compile(r"(?:0*([1-9]\d{0,5})[ \t]*-?[ \t]*)?([A-Za-z]{1,12})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Span:
    """``count`` (1 to 999,999) times a unit of :data:`UNITS_S`. ``str()`` is its form on the wire."""

    count: int
    unit: str

    @property
    def seconds(self) -> int:
        return self.count * UNITS_S[self.unit]

    def __str__(self) -> str:
        return f"{self.count}-{self.unit}"


def read_span(text: str) -> Span | None:
    """``30-day``; a bare unit is one of it, and ``30 Days`` is read too. ``None`` for anything else, also for none."""
    match = _SPAN.fullmatch(text[:64].strip())
    unit = read_unit(match[2]) if match else None
    return Span(int(match[1] or 1), unit) if match and unit else None


def read_unit(text: str) -> str | None:
    """A unit of :data:`UNITS_S`, however its letters are written and also in the plural."""
    name = text.strip().lower()
    return next((unit for unit in (name, name.removesuffix("s")) if unit in UNITS_S), None)


def span_over(seconds: float, units: Iterable[str]) -> Span:
    """The shortest span of at least ``seconds`` that can be written in one of ``units``, or in any where none is known.

    Of equal ones the coarser. Counts end at 999,999, as :func:`read_span` has it.
    """
    known = [unit for unit in UNITS_S if unit in set(units)] or list(UNITS_S)
    spans = [Span(max(1, int(-(-seconds // UNITS_S[unit]))), unit) for unit in known]
    possible = [span for span in spans if span.count <= 999_999] or [Span(999_999, known[-1])]
    return min(reversed(possible), key=lambda span: span.seconds)
