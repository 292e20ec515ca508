"""When sites with equal pages are mirrors: docs/protocols.md, section 2."""

from __future__ import annotations

import math

import pytest

from crawler.robots.mirrors import judge_alike


@pytest.mark.parametrize(("alike", "sample"), [(25, 25), (50, 50), (95, 98), (970, 1000), (5000, 5000)])
def test_the_confidence_is_the_lower_end_of_wilsons_interval(alike: int, sample: int) -> None:
    """Its definition: the observed share is 1.645 standard errors of the lowest share above that share."""
    found = judge_alike(alike=alike, sample=sample, pages=sample)
    assert found is not None
    least, share = found.confidence, alike / sample
    assert share - least == pytest.approx(1.645 * math.sqrt(least * (1 - least) / sample), abs=2e-4)
    assert 0.9 <= least < share
    assert found.sample == sample


@pytest.mark.parametrize(
    ("alike", "sample", "pages"),
    [
        (0, 0, 0),
        (24, 24, 24),  # too few, although all are equal
        (90, 100, 100),  # nine in ten, but not with confidence
        (940, 1000, 2001),  # less than half of the pages are common
    ],
)
def test_other_sites_are_no_mirrors(alike: int, sample: int, pages: int) -> None:
    assert judge_alike(alike=alike, sample=sample, pages=pages) is None


def test_half_of_the_pages_are_enough() -> None:
    assert judge_alike(alike=940, sample=1000, pages=2000) is not None
