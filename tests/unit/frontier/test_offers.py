"""The effect of an offer of a known URL."""

from __future__ import annotations

import pytest

from crawler.frontier.offers import KnownUrl, Offer, UrlChange, passed_on, weigh
from crawler.model import State
from crawler.reasons import Reason, ReasonCode
from tests.reasons import reason as told

X = "http://a.test/x"


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("depth", [3, 4, 9])
def test_no_nearer_and_nothing_to_lift(state: State, depth: int) -> None:
    assert weigh(KnownUrl(state, told("robots: line 1"), 3, 0), Offer(X, depth)) is None


@pytest.mark.parametrize("state", State)
def test_a_shorter_way_lowers_the_depth_and_nothing_else(state: State) -> None:
    known = KnownUrl(state, told("robots: line 1"), 3, 2)
    assert weigh(known, Offer(X, 1, hops=1)) == UrlChange(1, 1, False, told("robots: line 1"))


@pytest.mark.parametrize("reason", ["nofollow: x", "depth: x", "redirects: x", "scope: x"])
def test_an_exclusion_by_circumstance_is_lifted_by_an_offer_without_it(reason: str) -> None:
    change = weigh(KnownUrl(State.EXCLUDED, told(reason), 3, 11), Offer(X, 2, hops=0))
    assert change == UrlChange(2, 0, True, Reason(ReasonCode.REQUEUED))


def test_the_depth_after_lifting_is_that_of_paths_that_count() -> None:
    for reason, depth in [("nofollow: x", 5), ("scope: x", 3)]:
        change = weigh(KnownUrl(State.EXCLUDED, told(reason), 3, 0), Offer(X, 5))
        assert change is not None
        assert change.depth == depth


@pytest.mark.parametrize("reason", ["robots: line 1", "type: application/pdf", "mirror of http://b.test", "address: x"])
def test_exclusions_by_the_site_or_its_answer_stay(reason: str) -> None:
    assert weigh(KnownUrl(State.EXCLUDED, told(reason), 3, 0), Offer(X, 3)) is None


@pytest.mark.parametrize("state", State)
def test_a_refused_offer_changes_nothing(state: State) -> None:
    assert weigh(KnownUrl(state, told("depth: 5"), 5, 0), Offer(X, 1, told("scope: no"))) is None


def test_where_a_seed_leads_is_a_seed() -> None:
    change = weigh(KnownUrl(State.EXCLUDED, told("pattern: matches no scope.include"), 1, 0), Offer(X, 0, seed=True))
    assert change == UrlChange(0, 0, True, Reason(ReasonCode.REQUEUED), True)


@pytest.mark.parametrize("reason", ["robots: line 1", "mirror of http://b.test", "type: image/png"])
def test_a_nearer_page_brings_excluded_targets_nearer_too(reason: str) -> None:
    known = KnownUrl(State.EXCLUDED, told(reason), 4, 0)
    assert weigh(known, passed_on(known, 3, None)) == UrlChange(3, 0, False, told(reason))


@pytest.mark.parametrize("reason", ["depth: 4", "nofollow: x"])
def test_a_nearer_page_admits_the_targets_of_its_links(reason: str) -> None:
    known = KnownUrl(State.EXCLUDED, told(reason), 4, 0)
    assert weigh(known, passed_on(known, 3, 3)) == UrlChange(3, 0, True, Reason(ReasonCode.REQUEUED))
    assert weigh(known, passed_on(known, 3, 2)) is None


@pytest.mark.parametrize("reason", ["scope: x", "redirects: x", "trap: x", "sample: x", "contact: x"])
def test_a_page_that_comes_nearer_lifts_nothing_that_its_links_do_not_answer(reason: str) -> None:
    known = KnownUrl(State.EXCLUDED, told(reason), 4, 0)
    assert weigh(known, passed_on(known, 3, None)) is None
