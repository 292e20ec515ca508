"""Each rule of the audit: a log that breaks it is caught, one that keeps it to the letter is not."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import pytest

from crawler.audit.checks import Check, Violation
from crawler.audit.records import LoggedRequest, RunRecord
from crawler.fetch.address_guard import refusal
from crawler.frontier.politeness import GroupBy
from crawler.model import Reading
from crawler.preferences.purposes import UsePurpose
from tests.unit.audit.audit_cases import (
    CLOSED,
    DAY_S,
    SITE,
    TERMS,
    breaches,
    called,
    judged,
    paced,
    robots,
    sent,
    under,
    version,
)


def test_an_obedient_log_is_without_violation() -> None:
    found, replay = judged(robots(0), sent(3), sent(6, "/open/x"), sent(9, "/robots.txt"))
    assert found == []
    counts = {check: count.judged for check, count in replay.counts.items()}
    assert counts == {
        Check.LOG: 4,
        Check.IDENTITY: 4,
        Check.ROBOTS_FIRST: 3,
        Check.FRESH: 3,
        Check.PERMISSION: 3,
        Check.PREFERENCE: 0,
        Check.USE: 0,
        Check.OVERLAP: 3,
        Check.PAUSE: 3,
        Check.RETRY_AFTER: 0,
        Check.RESTS: 0,
        Check.HOURS: 0,
        Check.PAGES: 0,
        Check.OPERATOR: 0,
        Check.SAMPLE: 0,
    }


# --- permission -------------------------------------------------------------------------------


def test_a_forbidden_page_is_told_with_its_line() -> None:
    (found,), _ = judged(robots(0), sent(3, "/closed/x"))
    assert (found.check, found.line, found.rule) == (Check.PERMISSION, 2, "Disallow: /closed/")
    assert found.version == sha256(CLOSED).hexdigest()
    assert (found.url, found.started_at) == (f"{SITE}/closed/x", 3)


def test_a_request_is_judged_by_the_version_of_its_time() -> None:
    opened = b"User-agent: *\nDisallow:\n"
    versions = [version(0.1, until=10.1), version(10.1, opened)]
    log = (robots(0), sent(3), robots(10), sent(13, "/closed/x"))
    assert breaches(*log, versions=versions, texts=[CLOSED, opened]) == []
    turned = [version(0.1, opened, until=10.1), version(10.1)]
    assert breaches(*log, versions=turned, texts=[CLOSED, opened]) == [Check.PERMISSION]


def test_the_reading_and_the_token_are_those_of_the_run() -> None:
    wildcard = b"User-agent: figtree\nDisallow: /*.pdf\n\nUser-agent: *\nDisallow: /\n"
    log = (robots(0), sent(3, "/a.pdf"))
    versions = [version(0.1, wildcard, until=DAY_S)]

    def found(terms: RunRecord) -> list[Check]:
        return breaches(*log, versions=versions, texts=[wildcard], terms=[terms])

    assert found(TERMS) == [Check.PERMISSION]
    assert found(under(reading=Reading.DRAFT1996)) == []
    assert found(under(reading=Reading.RFC9309)) == [Check.PERMISSION]
    assert found(called(under(reading=Reading.DRAFT1996), agent="other")) == [Check.PERMISSION]


def test_a_mirrors_implied_disallow() -> None:
    body = b"User-agent: *\nDisallow: /closed/\nHost: www.main.test\n"
    log = (robots(0), sent(3))
    versions = [version(0.1, body, until=DAY_S)]
    (found,), _ = judged(*log, versions=versions, texts=[body])
    assert (found.check, found.line) == (Check.PERMISSION, 3)
    rfc = [under(reading=Reading.RFC9309)]
    assert breaches(*log, versions=versions, texts=[body], terms=rfc) == []


def test_a_page_refused_for_a_declared_purpose_is_told_with_its_line() -> None:
    body = b"User-agent: *\nContent-Signal: search=yes, ai-train=no\n"
    log = (robots(0), sent(3), sent(9, "/s.xml", purpose="sitemap"))
    versions = [version(0.1, body, until=DAY_S)]

    def found(*purposes: UsePurpose) -> tuple[list[Violation], int]:
        violations, replay = judged(*log, versions=versions, texts=[body], terms=[called(purpose=purposes)])
        return violations, replay.counts[Check.PREFERENCE].judged

    (violation,), count = found(UsePurpose.SEARCH, UsePurpose.TRAIN_AI)
    assert (violation.check, violation.line, violation.url) == (Check.PREFERENCE, 2, f"{SITE}/")
    assert violation.rule == "Content-Signal: search=yes, ai-train=no"
    assert count == 1
    assert found(UsePurpose.SEARCH) == ([], 1)
    assert found() == ([], 0)


@pytest.mark.parametrize("action", ["restricted", "defer", "given_up", "unreachable", "elsewhere", "no such action"])
def test_nothing_may_be_asked_of_a_closed_site(action: str) -> None:
    closed = [version(0.1, None, action=action)]
    assert Check.PERMISSION in breaches(robots(0, status=403), sent(3), versions=closed)


def test_a_text_that_is_not_there_permits_nothing() -> None:
    assert breaches(robots(0), sent(3), texts=[]) == [Check.PERMISSION]


# --- robots.txt first, and fresh --------------------------------------------------------------


def test_robots_first() -> None:
    without = [Check.ROBOTS_FIRST, Check.FRESH]
    assert breaches(sent(3)) == without
    assert breaches(robots(0, site="http://b.test", site_id=2), sent(3)) == without


def test_robots_answered_before() -> None:
    late = robots(0, took_s=5)
    assert set(breaches(late, sent(3))) == {Check.ROBOTS_FIRST, Check.FRESH, Check.OVERLAP}
    versions = [version(0.1)]
    again = (robots(0), robots(20, took_s=20), sent(30))
    assert breaches(*again, versions=versions) == [Check.OVERLAP], "an answer before it counts"


def test_no_version_in_force() -> None:
    assert breaches(robots(0), sent(3), versions=[]) == [Check.FRESH]
    assert breaches(robots(0), sent(3), versions=[version(5)]) == [Check.FRESH]


# --- pauses -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("start", "expected"), [(2.0985, [Check.PAUSE]), (2.0995, []), (2.1, [])])
def test_the_delay_to_the_millisecond(start: float, expected: list[Check]) -> None:
    assert breaches(robots(0), sent(start)) == expected


@pytest.mark.parametrize(
    ("took_s", "pause_s", "expected"), [(2, 9.9, [Check.PAUSE]), (2, 10, []), (20, 29.9, [Check.PAUSE]), (20, 30, [])]
)
def test_slow_answers(took_s: float, pause_s: float, expected: list[Check]) -> None:
    slow = sent(3, took_s=took_s)
    assert breaches(robots(0), slow, sent(slow.finished_at + pause_s)) == expected


@pytest.mark.parametrize(
    ("start", "cap_s", "expected"),
    [(13.0, None, [Check.PAUSE]), (13.1, None, []), (8.0, 5.0, [Check.PAUSE]), (8.1, 5.0, [])],
)
def test_crawl_delay(start: float, cap_s: float | None, expected: list[Check]) -> None:
    """Ten seconds are asked for: kept from page to page, and cut only by the run's own cap."""
    body = b"User-agent: *\nCrawl-delay: 10\n"
    log = (robots(-20), sent(3), sent(start, "/b"))
    terms = [replace(paced(crawl_delay_cap_s=cap_s), started_at=-30)]
    assert breaches(*log, versions=[version(-19.9, body)], texts=[body], terms=terms) == expected


def test_crawl_delay_holds_from_the_answer_that_brought_it() -> None:
    body = b"User-agent: *\nCrawl-delay: 10\n"
    for start, expected in ((9.0, [Check.PAUSE]), (10.1, [])):
        (log, versions) = (robots(0), sent(start)), [version(0.1, body)]
        assert breaches(*log, versions=versions, texts=[body]) == expected


def test_crawl_delay_does_not_count_from_the_request_itself() -> None:
    """As it might for a robots.txt that is asked for on another site's behalf, and answers within the tolerance."""
    body = b"User-agent: *\nCrawl-delay: 10\n"
    log = (robots(0), robots(20, took_s=0.0005))
    assert breaches(*log, versions=[version(0.1, body)], texts=[body]) == []


def test_crawl_delay_of_a_version_that_ran_out_ends_with_it() -> None:
    slow, fast = b"User-agent: *\nCrawl-delay: 100\n", b"User-agent: *\nCrawl-delay: 1\n"
    versions = [version(0.1, slow, until=200.0), version(300.1, fast)]
    log = (robots(0), sent(110), robots(300), sent(303))
    assert breaches(*log, versions=versions, texts=[slow, fast]) == []


def test_a_pause_is_that_of_the_run_it_begins_in() -> None:
    hurried = replace(paced(delay_s=0.0, slow_factor=0.0), run=2)
    log = (robots(0), sent(3), sent(4, run=2), sent(5.1, run=2), sent(5.2, run=2))
    assert breaches(*log, terms=[TERMS, hurried]) == [Check.PAUSE]


def test_hosts_of_a_domain_wait_for_each_other_where_configured() -> None:
    one, other = "http://a.example.test", "http://b.example.test"
    log = (robots(0, site=one), robots(0.5, site=other, site_id=2), sent(5, site=one), sent(5.5, site=other, site_id=2))
    assert breaches(*log) == []
    assert breaches(*log, terms=[paced(group=GroupBy.DOMAIN)]) == [Check.PAUSE, Check.PAUSE]


def test_ports_of_a_host_wait_for_each_other() -> None:
    log = (robots(0), robots(0.5, site="http://a.test:8080", site_id=2))
    assert breaches(*log) == [Check.PAUSE]


# --- overlaps ---------------------------------------------------------------------------------


def test_an_overlap_is_found_past_a_shorter_request() -> None:
    found, _ = judged(robots(0), sent(3, "/long", took_s=60), sent(10, "/short"), sent(50, "/third"))
    assert [(f.check, f.before) for f in found] == [(Check.OVERLAP, f"{SITE}/long")] * 2


def test_touching_is_no_overlap() -> None:
    hurried = [paced(delay_s=0.0, slow_factor=0.0)]
    assert breaches(robots(0), sent(0.1), sent(0.1995), terms=hurried) == []
    assert breaches(robots(0), sent(0.1), sent(0.1985), terms=hurried) == [Check.OVERLAP]


# --- Retry-After ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "asked_s", "pause_s", "expected"),
    [
        (503, 3600.0, 3599.9, [Check.RETRY_AFTER]),
        (503, 3600.0, 3600.0, []),
        (500, 60.0, 59.9, [Check.RETRY_AFTER]),
        (429, None, 9.9, [Check.RETRY_AFTER]),
        (429, None, 10.0, []),
        (429, 1.0, 9.9, [Check.RETRY_AFTER]),
        (500, None, 2.0, []),
    ],
)
def test_retry_after_uncut(status: int, asked_s: float | None, pause_s: float, expected: list[Check]) -> None:
    refused = sent(3, status=status, error=str(status), retry_after_s=asked_s)
    found, replay = judged(robots(0), refused, sent(refused.finished_at + pause_s, "/b"))
    assert [f.check for f in found] == expected
    assert replay.counts[Check.RETRY_AFTER].judged == (status != 500 or asked_s is not None)


def test_every_request_before_the_time_given_is_one_too_many() -> None:
    refused = sent(3, status=503, error="503", retry_after_s=100.0)
    found, replay = judged(robots(0), refused, sent(20, "/b"), sent(30, "/c"), sent(110, "/d"))
    assert [(f.check, f.url[-1]) for f in found] == [(Check.RETRY_AFTER, "b"), (Check.RETRY_AFTER, "c")]
    assert replay.counts[Check.RETRY_AFTER].judged == 1


# --- who sent it, and the log ------------------------------------------------------------------


def test_a_contact_is_needed_outside_loopback() -> None:
    nobody = [called(contact="")]
    assert breaches(robots(0), terms=nobody) == [Check.IDENTITY]
    for host in ("127.0.0.1:8080", "localhost", "x.localhost", "[::1]", "home.test"):
        assert breaches(robots(0, site=f"http://{host}"), terms=nobody) == [], host
    assert breaches(robots(0), terms=[called(agent="")]) == [Check.IDENTITY]


def test_a_request_refused_by_the_address_guard_was_not_sent() -> None:
    reason = refusal("192.0.2.1", allow_private=True, loopback_only=True)
    nobody = [called(contact="")]
    assert breaches(robots(0, status=None, error=reason, error_kind="address", bytes=0), terms=nobody) == []
    no_name = robots(0, status=None, error="no such name", error_kind="dns_no_name", bytes=0)
    assert breaches(no_name, terms=nobody) == [], "a name that does not exist"
    assert breaches(robots(0, status=None, error="timeout", bytes=0), terms=nobody) == [Check.IDENTITY]


def test_the_log_must_be_of_its_run() -> None:
    assert breaches(robots(0, run=7), versions=[]) == [Check.LOG]
    assert breaches(robots(-5)) == [Check.LOG]
    assert breaches(robots(0, took_s=-1)) == [Check.LOG]
    ended = [replace(TERMS, finished_at=50.0)]
    assert breaches(robots(0), sent(50.0), terms=ended) == []
    assert breaches(robots(0), sent(50.1), terms=ended) == [Check.LOG]


def test_the_lag_of_the_crawler_lengthens_no_pause() -> None:
    slow = sent(20, "/a", took_s=4.0)
    assert breaches(robots(0), slow, sent(27, "/b")) == [Check.PAUSE]
    assert breaches(robots(0), slow._replace(lag_s=3.9), sent(27, "/b")) == []
    assert breaches(robots(0), slow._replace(lag_s=3.9), sent(25, "/b")) == [Check.PAUSE], "the delay stays"
    assert breaches(robots(0), slow._replace(lag_s=-9.0), sent(44, "/b")) == []


HOUR_S = 3600.0


def walled(at: float, path: str) -> LoggedRequest:
    return sent(at, path, status=403, error_kind="wall", error="x")


def test_after_three_walls_the_site_rests_and_after_the_last_rest_it_is_closed() -> None:
    three = [robots(0), walled(10, "/1"), walled(20, "/2"), walled(30, "/3")]
    assert breaches(*three, walled(30.1 + HOUR_S, "/1")) == []
    assert breaches(*three, walled(30.1 + HOUR_S - 1, "/1")) == [Check.RESTS]
    assert breaches(*three[:3], sent(30, "/2"), walled(40, "/3"), sent(50, "/4")) == [], "another answer between them"
    assert breaches(*three[:3], walled(30, "/2"), sent(40, "/4")) == [], "the same URL"
    again = [walled(3700, "/1"), walled(3800 + DAY_S, "/1"), walled(3900 + 8 * DAY_S, "/1")]
    assert Check.RESTS not in breaches(*three, *again)
    assert Check.RESTS in breaches(*three, *again, sent(50 * DAY_S, "/5"))


def test_a_site_that_refuses_ten_urls_and_its_front_page_rests() -> None:
    def refusals(*paths: str) -> list[LoggedRequest]:
        return [sent(10.0 * n, path, status=403) for n, path in enumerate(paths, 1)]

    nine = [f"/{n}" for n in range(9)]
    assert breaches(robots(0), *refusals("/", *nine), sent(110 + HOUR_S, "/1")) == []
    assert breaches(robots(0), *refusals("/", *nine, "/9")) == [Check.RESTS]
    assert breaches(robots(0), *refusals("/a", *nine, "/9")) == [], "without the front page"
    answered = sent(5, "/x")
    assert breaches(robots(0), answered, *refusals("/", *nine, "/9")) == [], "the site has brought a page"
    again = [sent(200 + HOUR_S, "/1", status=403), sent(300 + HOUR_S, "/2")]
    assert breaches(robots(0), *refusals("/", *nine), *again) == [Check.RESTS], "one request after the rest"


def test_a_wall_in_place_of_robots_txt_makes_the_site_rest() -> None:
    wall = robots(0, status=403, error_kind="wall", error="x")
    assert breaches(wall, robots(100), versions=[]).count(Check.RESTS) == 1
    assert breaches(wall, robots(HOUR_S + 1), versions=[]).count(Check.RESTS) == 0
