"""The judge finds each kind of violation in doctored logs, and none in a polite log."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crawler.demo.pages import Hit
from tests.judge import Manners, most_at_once, violations


def hit(
    path: str, start: float, end: float, *, host: str = "a.test", status: int = 200, after: float | None = None
) -> Hit:
    return Hit(host, path, start, end, status, "TestBot/1.0 (+http://me.test/)", after)


POLITE = [
    hit("/robots.txt", 0.0, 0.1),
    hit("/", 1.1, 1.2),
    hit("/a", 2.2, 2.5),
    hit("/b", 3.5, 3.6, status=503, after=5),
    hit("/b", 8.6, 8.7),
    hit("/robots.txt", 1.15, 1.2, host="b.test"),  # another host may be asked at the same time
]
MANNERS = Manners(delay_s=1.0, agent="TestBot", forbidden=lambda host, path: path.startswith("/private/"))


def rules(log: list[Hit], manners: Manners = MANNERS) -> list[str]:
    return [violation.rule for violation in violations(log, manners)]


def test_nothing_is_found_in_a_polite_log() -> None:
    assert violations(POLITE, MANNERS) == []


def test_the_order_of_the_log_does_not_matter() -> None:
    assert rules(POLITE[::-1]) == []


def test_a_site_whose_robots_txt_was_never_asked_for() -> None:
    log = [*POLITE, hit("/", 0.0, 0.1, host="c.test")]
    (found,) = violations(log, MANNERS)
    assert (found.rule, found.host, found.path, found.at) == ("robots first", "c.test", "/", 0.0)
    assert str(found) == "0.000 c.test/: robots first: robots.txt was never asked for"


def test_a_page_asked_for_before_robots_txt_had_been_answered() -> None:
    log = [hit("/robots.txt", 0.0, 0.5), hit("/", 0.4, 0.6)]
    assert rules(log, Manners()) == ["robots first", "overlap", "pause"]
    assert rules([hit("/", 0.0, 0.1), hit("/robots.txt", 1.1, 1.2)]) == ["robots first"]


@pytest.mark.parametrize("status", [0, 401, 403, 408, 425, 429, 500, 503])
def test_a_page_of_a_site_whose_robots_txt_defers_or_restricts(status: int) -> None:
    log = [hit("/robots.txt", 0.0, 0.1, status=status), hit("/", 2.0, 2.1)]
    assert rules(log) == ["closed site"]


@pytest.mark.parametrize("status", [200, 301, 304, 404, 410])
def test_a_page_of_a_site_whose_robots_txt_lets_it_be_fetched(status: int) -> None:
    assert rules([hit("/robots.txt", 0.0, 0.1, status=status), hit("/", 2.0, 2.1)]) == []


def test_a_403_restricts_no_site_in_a_crawl_by_rfc_9309() -> None:
    log = [hit("/robots.txt", 0.0, 0.1, status=403), hit("/", 2.0, 2.1)]
    assert rules(log, replace(MANNERS, restricted_statuses=frozenset())) == []


def test_a_robots_txt_that_recovers_opens_its_site() -> None:
    log = [hit("/robots.txt", 0.0, 0.1, status=503), hit("/robots.txt", 2.0, 2.1), hit("/", 4.0, 4.1)]
    assert rules(log) == []
    assert rules([log[0], log[2], replace(log[1], started_at=6, finished_at=6.1)]) == ["closed site"]


def test_two_requests_of_one_host_at_a_time() -> None:
    log = [hit("/robots.txt", 0, 0.1), hit("/slow", 2, 9), hit("/a", 4, 4.1), hit("/b", 6, 6.1)]
    found = [violation for violation in violations(log, MANNERS) if violation.rule == "overlap"]
    assert [violation.path for violation in found] == ["/a", "/b"]
    assert "before the end of /slow" in found[0].detail


def test_a_server_learns_a_little_late_that_the_client_broke_off() -> None:
    log = [hit("/robots.txt", 0, 0.1), hit("/slow", 2, 3.01, status=0), hit("/a", 3.0, 3.1)]
    assert rules(log, Manners()) == []
    assert rules(log, Manners(tolerance_s=0.001)) == ["overlap", "pause"]


def test_a_pause_that_is_too_short() -> None:
    log = [hit("/robots.txt", 0.0, 0.1), hit("/", 1.0, 1.1)]
    (found,) = violations(log, MANNERS)
    assert (found.rule, found.detail) == ("pause", "0.900 s after /robots.txt, 1.000 s were due")


def test_a_pause_may_be_short_by_the_error_of_timers_and_clocks() -> None:
    assert rules([hit("/robots.txt", 0.0, 0.1), hit("/", 1.09, 1.2)]) == []
    assert rules([hit("/robots.txt", 0.0, 0.1), hit("/", 1.07, 1.2)]) == ["pause"]


def test_a_crawl_delay_is_of_its_host_only() -> None:
    manners = replace(MANNERS, crawl_delay_s={"a.test": 3.0})
    log = [hit("/robots.txt", 0.0, 0.1), hit("/", 2.0, 2.1)]
    assert rules(log, manners) == ["pause"]
    assert rules([replace(one, host="b.test") for one in log], manners) == []


def test_a_slow_answer_lengthens_the_pause_up_to_a_cap() -> None:
    log = [hit("/robots.txt", 0.0, 1.0), hit("/", 5.0, 5.1)]
    assert rules(log, replace(MANNERS, slow_factor=5)) == ["pause"]
    assert rules(log, replace(MANNERS, slow_factor=5, slow_cap_s=4)) == []


def test_a_request_before_its_retry_after_is_over() -> None:
    log = [
        hit("/robots.txt", 0.0, 0.1),
        hit("/", 2.0, 2.1, status=429, after=60),
        hit("/a", 10.0, 10.1),
        hit("/b", 20.0, 20.1),
    ]
    assert rules(log) == ["Retry-After", "Retry-After"]


def test_a_request_for_a_forbidden_path() -> None:
    assert rules([*POLITE, hit("/private/x", 20.0, 20.1)]) == ["forbidden"]
    assert rules(POLITE, replace(MANNERS, forbidden=lambda host, path: path == "/robots.txt")) == []


def test_a_request_that_does_not_name_the_crawler() -> None:
    assert rules([replace(POLITE[0], user_agent="Mozilla/5.0")]) == ["agent"]


def test_how_many_requests_were_under_way_together() -> None:
    log = [hit("/a", 0, 3), hit("/b", 1, 4), hit("/c", 3, 5), hit("/", 0, 9, host="b.test")]
    assert most_at_once(log) == {"a.test": 2, "b.test": 1}
