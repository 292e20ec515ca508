"""How the report writes numbers, sizes, times and long texts."""

from __future__ import annotations

from datetime import UTC, datetime

from crawler.formatting import duration


def short(text: str, most: int = 160) -> str:
    """``text``, or the beginning and the end of it if it is longer than ``most`` characters."""
    return text if len(text) <= most else f"{text[: most * 2 // 3]} … {text[-most // 3 :]}"


def count(value: float) -> str:
    """``1,234``, without decimals."""
    return f"{value:,.0f}"


def percent(share: float) -> str:
    """``12 %``, ``0.3 %``, ``< 0.1 %``; ``share`` is in [0, 1]."""
    if 0 < share < 0.001:
        return "< 0.1 %"
    return f"{share * 100:.0f} %" if share >= 0.1 or not share else f"{share * 100:.1f} %"


def brief(value: float) -> str:
    """``950``, ``1.5k``, ``20k``, ``3M``: for the axis of a chart."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.2f}".rstrip("0").rstrip(".") + name
    return f"{value:g}"


def span(width_s: float) -> str:
    """``second``, ``5 s``, ``hour``: the span in "per …"."""
    return {1: "second", 60: "minute", 3600: "hour", 86400: "day"}.get(round(width_s), duration(width_s))


def moment(epoch_s: float) -> str:
    """``21 Nov 2026, 13:37:47``, in UTC."""
    then = datetime.fromtimestamp(epoch_s, UTC)
    return f"{then.day} {then:%b %Y, %H:%M:%S}"


def time_label(epoch_s: float, width_s: float) -> str:
    """A time in UTC, to the precision that slots of ``width_s`` seconds need."""
    then = datetime.fromtimestamp(epoch_s, UTC)
    if width_s >= 3600:
        return f"{then.day} {then:%b %Hh}" if width_s < 86400 else f"{then.day} {then:%b %Y}"
    return f"{then:%H:%M}" if width_s >= 60 else f"{then:%H:%M:%S}"
