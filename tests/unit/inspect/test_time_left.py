"""The sentence about the time that is left."""

from __future__ import annotations

import pytest

from crawler.frontier.time_left import End, TimeLeft
from crawler.inspect.time_left import as_json, describe_time_left

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("least_s", "most_s", "end", "sentence"),
    [
        (90.0, 3600.0, End.BOUNDED, "about 1 min 30 s to 1 h to go; a.test takes longest (7 URLs)"),
        (9.0, 9.0, End.BOUNDED, "about 9 s to go; a.test takes longest (7 URLs)"),
        (90.0, None, End.TOO_EARLY, "at least 1 min 30 s to go: too early for an upper end; a.test takes longest"),
        (0.0, None, End.TOO_EARLY, "too early for an upper end; a.test takes longest (7 URLs)"),
        (
            2.0,
            None,
            End.NO_END_IN_SIGHT,
            "at least 2 s to go: each page still brings at least one new URL",
        ),
    ],
)
def test_the_range_is_one_sentence(least_s: float, most_s: float | None, end: End, sentence: str) -> None:
    left = TimeLeft(least_s, most_s, end, 1.5, "a.test", 7, least_s)
    assert describe_time_left(left, NOW).startswith(sentence)
    assert as_json(left) == {
        "least_s": least_s,
        "most_s": most_s,
        "end": end.value,
        "new_per_page": 1.5,
        "slowest": "a.test",
        "slowest_queued": 7,
        "slowest_s": least_s,
    }


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        (1, "no answer from a.test (7 URLs): tried until 09:00:00Z"),
        (3, "no answer from a.test (7 URLs), nor from 2 other hosts: tried until 09:00:00Z"),
    ],
)
def test_hosts_that_do_not_answer_are_tried_until_a_time(groups: int, sentence: str) -> None:
    left = TimeLeft(60.0, 3600.0, End.AWAITED, 1.5, "a.test", 7, 60.0, groups)
    assert describe_time_left(left, NOW) == sentence


def test_nothing_left_is_null() -> None:
    assert as_json(None) is None
