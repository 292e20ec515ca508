"""The bucket of a domain, and URLs of other buckets."""

from __future__ import annotations

from crawler.frontier.buckets import Bucket, bucket_of
from crawler.frontier.offers import KnownUrl, Offer, weigh
from crawler.model import Kind, State
from crawler.reasons import Reason, ReasonCode


def test_the_bucket_of_a_domain_never_changes() -> None:
    """Datasets depend on these numbers: another hash would request sites twice, or never."""
    sites = [f"http://{host}" for host in ("example.org", "example.com", "example.net", "bbc.co.uk", "127.0.0.1")]
    assert [bucket_of(site, 3) for site in sites] == [0, 1, 0, 2, 2]


def test_the_sites_of_a_domain_are_in_one_bucket() -> None:
    sites = ("http://bbc.co.uk", "https://www.bbc.co.uk:8443", "http://news.bbc.co.uk")
    (number,) = {bucket_of(site, 4096) for site in sites}
    assert {Bucket(number, 4096).other_of(site) for site in sites} == {None}
    assert {Bucket(number + 1, 4096).other_of(site) for site in sites} == {number}


def test_a_url_of_another_bucket_is_offered_again_only_if_it_came_nearer() -> None:
    known = KnownUrl(State.EXCLUDED, Reason(ReasonCode.OTHER_BUCKET), 3, 0)
    assert weigh(known, Offer("", 3)) is None
    assert weigh(known, Offer("", 4, kind=Kind.SITEMAP)) is None
    assert weigh(known, Offer("", 2, Reason(ReasonCode.NOFOLLOW))) is None
    change = weigh(known, Offer("", 2, seed=True, by_domain=True))
    assert change is not None
    assert (change.depth, change.requeue, change.seed, change.by_domain) == (2, True, True, True)
