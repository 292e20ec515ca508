"""Counts, times and sizes as texts for people, the same in the terminal, in reports and in logs.

What is written here as a duration or a size is also read here, in settings and options: :func:`read_duration` and
:func:`read_size`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from crawler.clock import iso

_UNITS_S = {
    "millisecond": 0.001,
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86400,
    "week": 604800,
}
_SHORT_UNITS = {"ms": "millisecond", "s": "second", "sec": "second", "min": "minute", "h": "hour", "d": "day"}
_UNIT = "|".join([*(f"{unit}s?" for unit in _UNITS_S), *_SHORT_UNITS])
_NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,300})(?:\.[0-9]{1,300})?"
_PART = re.compile(rf"({_NUMBER})\s*({_UNIT})(?![a-z])")
_DURATION = re.compile(rf"(?:{_PART.pattern}\s*)+")
_LONG_UNITS = ("day", "hour", "minute")  # a written duration has the first of these that it is a multiple of

_SIZE = re.compile(rf"({_NUMBER})\s*(?:(B|[kMGT]i?B))?", re.IGNORECASE)
_SIZE_UNITS = {"TB": 10**12, "GB": 10**9, "MB": 10**6, "KB": 10**3, "B": 1}
_BINARY_UNITS = {"TIB": 2**40, "GIB": 2**30, "MIB": 2**20, "KIB": 2**10}


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


def read_duration(text: str) -> float | None:
    """The seconds of a duration: of a number, of a number with a unit, or of several; ``None`` for any other text.

    It reads what :func:`duration`, :func:`seconds` and :func:`written_duration` write, and ``1h``, ``90 minutes`` or
    ``1.5 d``.
    """
    text = text.strip().lower()
    if re.fullmatch(_NUMBER, text):
        return float(text.replace(",", ""))
    if not _DURATION.fullmatch(text):
        return None
    parts = ((float(part[1].replace(",", "")), part[2]) for part in _PART.finditer(text))
    return sum(_span_s(number, _SHORT_UNITS.get(unit) or unit.removesuffix("s")) for number, unit in parts)


def _span_s(number: float, unit: str) -> float:
    return number / 1000 if unit == "millisecond" else number * _UNITS_S[unit]


def written_duration(span_s: float) -> float | str:
    """A duration as a settings file has it: ``2``, ``0.5``, ``"5 minutes"``, ``"90 days"``; without loss."""
    for unit in _LONG_UNITS:
        if span_s and span_s % _UNITS_S[unit] == 0:
            return many(int(span_s // _UNITS_S[unit]), unit).replace(",", "")
    return int(span_s) if span_s % 1 == 0 else float(span_s)


def read_size(text: str) -> int | None:
    """The octets of a size, in powers of 1000 (``5.7 MB``) or of 1024 (``2 GiB``); ``None`` for any other text."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    unit = (match[2] or "B").upper()
    return round(float(match[1].replace(",", "")) * (_SIZE_UNITS | _BINARY_UNITS)[unit])


def written_size(octets: int) -> int | str:
    """A size as a settings file has it: ``500``, ``"50 GB"``; without loss."""
    unit, factor = next(((unit, n) for unit, n in _SIZE_UNITS.items() if octets and octets % n == 0), ("B", 1))
    return octets if factor == 1 else f"{octets // factor} {unit}".replace("KB", "kB")


def nearest(word: str, known: Iterable[str], most: int = 1, *, alike: float = 0.6) -> list[str]:
    """Those of ``known`` that are spelled most like ``word``, at most ``most``, the nearest first.

    1 is ``alike`` for the same word, and 0 for words without a common letter.
    """
    from difflib import get_close_matches  # here, because few processes meet a word that is spelled wrong

    return get_close_matches(word, list(known), most, alike)


def ranges(numbers: Iterable[int]) -> list[str]:
    """``1 to 4`` and ``7`` for the ascending numbers 1, 2, 3, 4 and 7."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][-1] == number - 1:
            spans[-1][1:] = [number]
        else:
            spans.append([number])
    return [" to ".join(map(str, span)) for span in spans]
