"""The part of a domain, and the end of a crawl in parts."""

from __future__ import annotations

import pytest

from crawler.frontier.offers import KnownUrl, Offer, weigh
from crawler.frontier.parts import Parts, PartState, is_quiet, part_of
from crawler.model import Kind, State
from crawler.reasons import Reason, ReasonCode

IDLE = PartState(
    has_begun=True, has_ended=False, has_work=False, received=3, seen_at=1.0, offers_to=frozenset()
)  # of three parts


def test_the_part_of_a_domain_never_changes() -> None:
    """Stores depend on these numbers: another hash would request sites twice, or never."""
    domains = ("example.org", "example.com", "example.net", "bbc.co.uk", "127.0.0.1")
    assert [part_of(domain, 3) for domain in domains] == [0, 1, 0, 2, 2]


def test_the_sites_of_a_domain_are_of_one_part() -> None:
    parts = Parts(("a", "b"), 0)
    hosts = ("http://bbc.co.uk", "https://www.bbc.co.uk:8443", "http://news.bbc.co.uk")
    assert len({parts.other_of(site) for site in hosts}) == 1
    other = Parts(("a", "b"), 1)
    assert {parts.other_of(hosts[0]), other.other_of(hosts[0])} in ({None, 0}, {None, 1})
    assert Parts(("a", "b", "c"), 1).others == [0, 2]


@pytest.mark.parametrize(
    ("second", "quiet"),
    [
        (IDLE, True),
        (IDLE._replace(has_begun=False), False),
        (IDLE._replace(has_work=True), False),
        (IDLE._replace(has_work=True, has_ended=True), True),  # told to stop: nobody waits for it
        (IDLE._replace(offers_to=frozenset({0})), False),
        (IDLE._replace(offers_to=frozenset({2})), True),  # that part has ended
        (IDLE._replace(offers_to=frozenset({0}), has_ended=True), False),  # the first part takes them in nevertheless
    ],
)
def test_a_look_is_quiet_if_no_part_at_work_has_work_or_gets_some(second: PartState, quiet: bool) -> None:
    assert is_quiet({0: IDLE, 1: second, 2: IDLE._replace(has_ended=True)}) is quiet


def test_a_url_of_another_part_is_offered_again_only_if_it_came_nearer() -> None:
    known = KnownUrl(State.EXCLUDED, Reason(ReasonCode.OTHER_PART), 3, 0)
    assert weigh(known, Offer("", 3)) is None
    assert weigh(known, Offer("", 4, kind=Kind.SITEMAP)) is None
    assert weigh(known, Offer("", 2, Reason(ReasonCode.NOFOLLOW))) is None
    change = weigh(known, Offer("", 2, seed=True, by_domain=True))
    assert change is not None
    assert (change.depth, change.requeue, change.seed, change.by_domain) == (2, True, True, True)
