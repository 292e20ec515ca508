"""Counts, times and sizes as texts for people, the same in the terminal, in reports and in logs."""

from __future__ import annotations

from collections.abc import Iterable

from crawler.clock import iso


def many(n: int, noun: str) -> str:
    """``1 page``, ``2,000 pages``."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def counted(counts: Iterable[tuple[object, int]]) -> str:
    """``3 this, 2 that``."""
    return ", ".join(f"{n:,} {what}" for what, n in counts)


def size(octets: float) -> str:
    """``500 B``, ``2 kB``, ``53.2 kB``, ``5.7 MB``, in powers of 1000."""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if octets >= unit:
            return f"{octets / unit:.1f}".removesuffix(".0") + f" {name}"
    return f"{octets:.0f} B"


def instant(epoch_s: float) -> str:
    """``2026-11-21T10:42:00.125Z``, for seconds since the epoch. Pauses can be shorter than a second."""
    whole, thousandths = divmod(round(epoch_s * 1000), 1000)
    return f"{iso(whole)[:-1]}.{thousandths:03d}Z"


def seconds(span_s: float) -> str:
    """``2 s``, ``0.125 s``, ``3,600 s``: a span in seconds, to the millisecond, without trailing zeros."""
    return f"{span_s:,.3f}".rstrip("0").rstrip(".") + " s"


def duration(span_s: float) -> str:
    """``85 ms``, ``7.5 s``, ``12 min 3 s``, ``3 h 20 min``, ``2 d 5 h``: a span in two units at most."""
    if span_s < 1:
        return f"{span_s * 1000:.0f} ms"
    if span_s < 60:
        return f"{span_s:.1f}".removesuffix(".0") + " s"
    whole = int(span_s)
    for unit_s, unit, part_s, part in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= unit_s:
            rest = whole % unit_s // part_s
            return f"{whole // unit_s} {unit}" + (f" {rest} {part}" if rest else "")
    raise AssertionError("60 s are a minute")
