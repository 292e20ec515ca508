"""Counts, times and sizes are short and readable."""

from __future__ import annotations

import pytest

from crawler.formatting import counted, duration, many, size


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"), (0.0853, "85 ms"), (1, "1 s"), (7.46, "7.5 s"), (60, "1 min"), (723, "12 min 3 s"),
        (3600, "1 h"), (12_000, "3 h 20 min"), (86_400, "1 d"), (190_800, "2 d 5 h"),
    ],
)  # fmt: skip
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_counts_and_sizes() -> None:
    assert counted([("robots", 1200), ("type", 2)]) == "1,200 robots, 2 type"
    assert [size(n) for n in (0, 999, 1000, 14_766, 53_200, 5_699_944, 2e9)] == [
        "0 B", "999 B", "1 kB", "14.8 kB", "53.2 kB", "5.7 MB", "2 GB",
    ]  # fmt: skip
    assert (many(1, "page"), many(2000, "page")) == ("1 page", "2,000 pages")
