"""What the display of a crawl concludes from its progress."""

from __future__ import annotations

from collections import Counter

import pytest

from crawler.engine.progress import Progress
from crawler.robots.response import RobotsSettings
from crawler.run.live_display import finds_no_name


@pytest.mark.parametrize(
    ("names", "sent", "after_s", "found"),
    [
        (9, 0, 5, True),
        (2, 0, 5, True),
        (1, 0, 5, False),
        (2, 0, 70, False),  # perhaps one name, looked up again after a minute
        (3, 0, 70, True),
        (9, 1, 5, False),
    ],
)
def test_several_names_without_an_address_are_a_fault_of_the_resolver(
    names: int, sent: int, after_s: float, found: bool
) -> None:
    progress = Progress(1000.0, requests=names + sent, sent_requests=sent, troubles=Counter(dns_no_name=names))
    assert finds_no_name(progress, RobotsSettings(), 1000.0 + after_s) is found
