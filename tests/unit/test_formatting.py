"""Counts, times and sizes are short and readable."""

from __future__ import annotations

import pytest

from crawler.formatting import counted, duration, many, read_duration, read_size, size


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"), (0.0853, "85 ms"), (1, "1 s"), (7.46, "7.5 s"), (60, "1 min"), (723, "12 min 3 s"),
        (3600, "1 h"), (12_000, "3 h 20 min"), (86_400, "1 d"), (190_800, "2 d 5 h"),
    ],
)  # fmt: skip
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1h", 3600), ("3 h", 10_800), ("5 min", 300), ("90", 90), ("0.5", 0.5), ("1.5 d", 129_600),
        ("2 weeks", 1_209_600),
        ("3 h 20 min", 12_000), ("1 hour 30 minutes", 5400), ("85 ms", 0.085), ("3,600 s", 3600), (" 7days ", 604_800),
        ("", None), ("h", None), ("5 ss", None), ("1.2.3 s", None), ("5 m", None), ("-1 s", None), ("1 h!", None),
    ],
)  # fmt: skip
def test_a_duration_is_read(text: str, seconds: float | None) -> None:
    assert read_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "octets"),
    [
        ("500", 500), ("500 B", 500), ("2 kB", 2000), ("5.7 MB", 5_700_000), ("1gb", 10**9), ("2 GiB", 2**31),
        ("1 KiB", 1024), ("2 TB", 2 * 10**12), ("", None), ("2 GBit", None), ("-1 MB", None), ("M", None),
    ],
)  # fmt: skip
def test_a_size_is_read(text: str, octets: int | None) -> None:
    assert read_size(text) == octets


def test_counts_and_sizes() -> None:
    assert counted([("robots", 1200), ("type", 2)]) == "1,200 robots, 2 type"
    assert [size(n) for n in (0, 999, 1000, 14_766, 53_200, 5_699_944, 2e9)] == [
        "0 B", "999 B", "1 kB", "14.8 kB", "53.2 kB", "5.7 MB", "2 GB",
    ]  # fmt: skip
    assert (many(1, "page"), many(2000, "page")) == ("1 page", "2,000 pages")
