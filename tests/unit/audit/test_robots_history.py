"""The audit's judgement of answers for robots.txt: their meaning, their site, and their validity."""

from __future__ import annotations

import pytest

from crawler.audit.checks import Check
from crawler.audit.records import LoggedRequest, RunRecord, SourceVersion
from crawler.model import Reading
from tests.unit.audit.audit_cases import (
    CLOSED,
    DAY_S,
    SITE,
    TERMS,
    breaches,
    judged,
    paced,
    robots,
    sent,
    under,
    version,
)


@pytest.mark.parametrize(
    ("status", "error", "reading", "allowed"),
    [
        (404, "404 Not Found", Reading.STRICT, True),
        (418, "418", Reading.STRICT, True),
        (403, "403 Forbidden", Reading.STRICT, False),
        (401, "401", Reading.DRAFT1996, False),
        (403, "403 Forbidden", Reading.RFC9309, True),
        (429, "429", Reading.RFC9309, False),
        (503, "503", Reading.STRICT, False),
        (None, "timeout", Reading.STRICT, False),
        (200, "the connection broke before the end of the body", Reading.STRICT, False),
        (200, None, Reading.STRICT, False),  # a file came, and is not there
    ],
)
def test_a_free_site_must_have_answered_so(
    status: int | None, error: str | None, reading: Reading, allowed: bool
) -> None:
    """The audit does not rely on the recorded conclusion: it judges the status of the answer again."""
    found = breaches(
        robots(0, status=status, error=error),
        sent(20),
        versions=[version(0.1, None, action="free", until=50.0)],
        terms=[under(reading=reading)],
    )
    assert found == ([] if allowed else [Check.PERMISSION])


def test_a_file_in_force_while_the_site_fails_needs_the_setting() -> None:
    log = (robots(0), sent(3), robots(20, status=503, error="503"), sent(40))
    versions = [version(0.1, until=20.1), version(20.1, until=80.1)]
    stretched = [under(stale_if_error=True)]
    assert breaches(*log, versions=versions) == [Check.PERMISSION]
    assert breaches(*log, versions=versions, terms=stretched) == []
    for until, headers, expected in ((80.2, None, [Check.LOG]), (620.1, {"Retry-After": "600"}, [])):
        longer = [versions[0], version(20.1, until=until, headers=headers)]
        assert breaches(*log, versions=longer, terms=stretched) == expected


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Content-Range": "bytes 0-13/14"}, []),
        ({"Content-Range": "bytes 0-13/500"}, [Check.LOG, Check.PERMISSION]),
        ({}, [Check.LOG, Check.PERMISSION]),
    ],
)
def test_a_part_of_a_file_is_no_answer(headers: dict[str, str], expected: list[Check]) -> None:
    log = (robots(0, status=206), sent(20))
    assert breaches(*log, versions=[version(0.1, headers=headers)]) == expected


def test_an_answer_counts_though_its_version_was_taken_out() -> None:
    log = (robots(0), sent(3), robots(20, status=403, error="403"), sent(40))
    (found,), _ = judged(*log, versions=[version(0.1)])
    assert found.check == Check.PERMISSION
    assert found.done == "/robots.txt had answered 403 since, and no version is recorded for that"


# --- redirects of robots.txt ------------------------------------------------------------------

OTHER = "http://b.test"


def led(at: float = 0.0, to: str | None = f"{OTHER}/x", **more: object) -> LoggedRequest:
    """The first site's robots.txt, a redirect."""
    return robots(at, **{"status": 301, "location": to, **more})  # type: ignore[arg-type]


def abroad(at: float, path: str = "/x", **more: object) -> LoggedRequest:
    """Asked of the other site, for the first one."""
    return robots(at, path=path, site=OTHER, site_id=2, for_site_id=1, **more)


#: The robots.txt of the other site, and its version: it allows ``/x`` and forbids ``/closed/``.
ROBOTS_THERE = robots(1, site=OTHER, site_id=2)
THERE = version(1.1, by=f"{OTHER}/robots.txt")


def test_a_redirected_robots_counts_for_the_site_first_asked() -> None:
    log = (led(), ROBOTS_THERE, abroad(5), sent(10))
    came = version(5.1, by=f"{OTHER}/x")
    assert breaches(*log, versions=[came], there=[THERE]) == []
    assert breaches(*log, sent(15, "/closed/x"), versions=[came], there=[THERE]) == [Check.PERMISSION]
    free = version(5.1, None, action="free", by=f"{OTHER}/x")
    (found,), _ = judged(*log, versions=[free], there=[THERE])
    assert found.done == "/robots.txt had answered 200 (parse), and free is recorded"


def test_a_path_of_another_site_needs_the_permission_of_that_site() -> None:
    """A robots.txt that redirects to a path does not open the path."""
    closed = (led(to=f"{OTHER}/closed/x"), ROBOTS_THERE, abroad(5, "/closed/x"), sent(10))
    came = version(5.1, by=f"{OTHER}/closed/x")
    (found,), _ = judged(*closed, versions=[came], there=[THERE])
    assert (found.check, found.url, found.line) == (Check.PERMISSION, f"{OTHER}/closed/x", 2)
    unasked = (led(), abroad(5), sent(10))
    assert breaches(*unasked, versions=[version(5.1, by=f"{OTHER}/x")]) == [Check.ROBOTS_FIRST, Check.FRESH]


def test_the_version_of_another_site_serves_the_sites_that_redirect_to_its_robots() -> None:
    log = (led(to=f"{OTHER}/robots.txt"), sent(10), sent(15, "/closed/x"))
    source = SourceVersion("parse", THERE.text_id, -100.0, 500.0)
    shared = version(0.1, until=500.0, by=f"{OTHER}/robots.txt")._replace(source=source)
    assert breaches(*log, versions=[shared]) == [Check.PERMISSION], "only the closed page"
    for forged in (
        shared._replace(valid_until=501.0),
        shared._replace(action="free", text_id=None),
        shared._replace(source=source._replace(action="defer")),
        shared._replace(source=source._replace(valid_until=0.0)),
        shared._replace(source=None),
        shared._replace(answered_by="http://c.test/robots.txt"),
    ):
        assert Check.LOG in breaches(*log, versions=[forged]), forged


@pytest.mark.parametrize(("source_from", "found"), [(0.2, []), (-100.0, [Check.LOG, Check.FRESH])])
def test_a_pause_prolongs_the_version_of_another_site_only_if_it_is_new(source_from: float, found: list[Check]) -> None:
    log = (led(retry_after_s=600.0, to=f"{OTHER}/robots.txt"), sent(650))
    source = SourceVersion("parse", THERE.text_id, source_from, 400.0)
    shared = version(0.3, until=900.0, by=f"{OTHER}/robots.txt")._replace(source=source)
    assert breaches(*log, versions=[shared]) == found


def test_a_redirect_on_the_same_site_is_resolved_against_it() -> None:
    log = (led(to="there?x=1#y"), robots(5, path="/there?x=1"), sent(10))
    assert breaches(*log, versions=[version(5.1, by=f"{SITE}/there?x=1")]) == []


def test_a_robots_asked_for_another_site_is_none_of_its_own() -> None:
    there = (led(to=f"{OTHER}/robots.txt"), abroad(5, "/robots.txt"))
    page = sent(10, site=OTHER, site_id=2)
    assert breaches(*there, page) == [Check.ROBOTS_FIRST, Check.FRESH]
    refused = (led(8, to=f"{OTHER}/robots.txt"), abroad(12, "/robots.txt", status=503, error="503"))
    (found,), _ = judged(robots(0, site=OTHER, site_id=2), *refused, sent(40, site=OTHER, site_id=2), sent(45))
    assert (found.check, found.url) == (Check.FRESH, f"{SITE}/"), "the answer counts for the site that it was asked for"


@pytest.mark.parametrize("location", [f"{SITE}/robots.txt", "ftp://a.test/", "http://c.test/"])
def test_a_robots_request_to_where_nothing_led(location: str) -> None:
    """A loop and what is no address are not followed."""
    log = (led(to=location), ROBOTS_THERE, abroad(5), sent(10))
    found = breaches(*log, versions=[version(5.1, by=f"{OTHER}/x")], there=[THERE])
    assert found == [Check.PERMISSION]


def test_a_redirect_is_followed_when_it_has_come() -> None:
    assert Check.PERMISSION in breaches(led(took_s=6), abroad(5, took_s=10), versions=[])


def test_no_more_redirects_than_the_settings_follow() -> None:
    log = (led(), ROBOTS_THERE, abroad(5, status=302, location="/y"), abroad(10, "/y"))
    versions = [version(10.1, by=f"{OTHER}/y")]
    for most, expected in ((2, []), (1, [Check.PERMISSION])):
        assert breaches(*log, versions=versions, there=[THERE], terms=[under(max_redirects=most)]) == expected


def test_a_redirect_that_was_not_followed_opens_nothing() -> None:
    (found,), _ = judged(led(), sent(10), versions=[version(0.1, until=60.1)])
    assert found.done == "/robots.txt had answered 301 (defer), and parse is recorded"


def test_a_page_cannot_hide_as_a_request_for_robots() -> None:
    hidden = robots(3, path="/closed/x")
    assert breaches(robots(0), hidden) == [Check.PERMISSION]
    assert breaches(robots(0), hidden._replace(for_site_id=1)) == [Check.PERMISSION]
    assert breaches(led(to=f"{SITE}/other"), hidden, versions=[]) == [Check.PERMISSION]


# --- how long a version holds ------------------------------------------------------------------


@pytest.mark.parametrize(("at", "expected"), [(99.9, []), (100.0005, []), (100.002, [Check.FRESH])])
def test_a_version_that_has_run_out(at: float, expected: list[Check]) -> None:
    (log, versions) = (robots(0), sent(at)), [version(0.1, until=100.0)]
    assert breaches(*log, versions=versions) == expected


@pytest.mark.parametrize(
    ("headers", "lasts_s"),
    [
        ({"Cache-Control": "max-age=3600"}, 3600.0),
        ({"Cache-Control": "max-age=3600", "Age": "600"}, 3000.0),
        ({"Cache-Control": "no-cache"}, 300.0),
        ({"Expires": "0"}, 300.0),
        ({}, 7 * DAY_S),
    ],
)
def test_the_end_of_a_version_is_reckoned_from_its_headers(headers: dict[str, str], lasts_s: float) -> None:
    """A page in time, one too late; what is recorded as the end counts only where it is sooner."""
    end = 0.1 + lasts_s
    in_time, late = sent(end - 1), sent(end + 5)
    assert breaches(robots(0), in_time, versions=[version(0.1, until=end, headers=headers)]) == []
    forged = [version(0.1, until=end + 100, headers=headers)]
    found, _ = judged(robots(0), in_time, late, versions=forged)
    assert [f.check for f in found] == [Check.LOG, Check.FRESH]
    assert found[0].done == "the recorded end is 100.000 s later"
    assert found[1].done == "it had expired 5.000 s before"


def test_each_renewal_has_an_end_of_its_own() -> None:
    hour = {"Cache-Control": "max-age=3600"}
    versions = [version(0.1, until=3600.1, headers=hour), version(5000.1, until=8600.1, headers=hour)]
    log = (robots(0), sent(10), robots(5000, status=304), sent(5003))
    assert breaches(*log, versions=versions) == []
    assert breaches(*log, sent(8601), versions=versions) == [Check.FRESH]
    assert breaches(robots(0), sent(4000), *log[2:], versions=versions) == [Check.FRESH], "it ran out before"


def test_a_304_renews_the_text_before_it_and_no_other() -> None:
    opened = b"User-agent: *\nDisallow:\n"
    log = (robots(0), robots(5000, status=304))
    versions = [version(0.1), version(5000.1, opened)]
    assert breaches(*log, versions=versions, texts=[CLOSED, opened]) == [Check.LOG]
    assert breaches(robots(0, status=304), versions=[version(0.1)]) == [Check.LOG]


def test_a_304_that_renews_nothing_defers_the_site() -> None:
    """It came to a request that named no copy, so it is logged with an error."""
    log = (robots(0, status=304, error="304 Not Modified"), robots(70), sent(80))
    deferred = version(0.1, None, action="defer", until=60.1)
    assert breaches(*log, versions=[deferred, version(70.1)]) == []
    assert breaches(log[0], sent(20), versions=[deferred]) == [Check.PERMISSION]
    assert breaches(log[0], sent(20), versions=[version(0.1)]) == [Check.LOG, Check.LOG, Check.PERMISSION]


def test_a_copy_kept_while_the_site_fails_is_the_one_before_it() -> None:
    opened = b"User-agent: *\nDisallow:\n"
    log = (robots(0), robots(20, status=503, error="503"), sent(40))
    for body, expected in ((CLOSED, []), (opened, [Check.LOG])):
        versions = [version(0.1, until=20.1), version(20.1, body, until=80.1)]
        assert breaches(*log, versions=versions, texts=[CLOSED, opened], terms=[under(stale_if_error=True)]) == expected


def test_every_version_is_that_of_an_answer() -> None:
    assert breaches(robots(0), versions=[version(0.1), version(50.0)]) == [Check.LOG]
    assert breaches(robots(0), versions=[version(0.1, by=f"{SITE}/other")]) == [Check.LOG]
    assert breaches(robots(0), versions=[version(0.1)._replace(run=2)]) == [Check.LOG]


def test_rfc9309_keeps_no_version_for_longer_than_a_day() -> None:
    rfc = [under(reading=Reading.RFC9309)]
    log = (robots(0), sent(DAY_S + 10))
    assert breaches(*log) == []
    assert breaches(*log, terms=rfc) == [Check.LOG, Check.FRESH]
    assert breaches(robots(0), sent(DAY_S), terms=rfc, versions=[version(0.1, until=DAY_S + 0.1)]) == []


# --- a version lasts until the pause after it is over ------------------------------------------

NO_CACHE = {"Cache-Control": "no-cache"}


def outlasts(until: float, *log: LoggedRequest, body: bytes = CLOSED, terms: RunRecord = TERMS) -> bool:
    """Whether a version that need not be kept at all, brought by the last of ``log``, may last until then."""
    came = version(log[-1].finished_at, body, until=until, headers=NO_CACHE)
    ruled = [version(request.finished_at, None, action="defer", until=0.0) for request in log[:-1]]
    found = breaches(*log, versions=[*ruled, came], texts=[body], terms=[terms])
    assert set(found) <= {Check.LOG}
    return not found


def test_a_version_outlasts_a_long_crawl_delay() -> None:
    slow = b"User-agent: *\nCrawl-delay: 1000\n"
    assert outlasts(1300.1, robots(0), body=slow)
    assert not outlasts(1301, robots(0), body=slow)
    assert not outlasts(1300.1, robots(0))
    assert not outlasts(1300.1, robots(0), body=slow, terms=paced(crawl_delay_cap_s=10.0))
    short = b"User-agent: *\nCrawl-delay: 290\n"
    assert not outlasts(590.1, robots(0), body=short), "there is time for a page"


def test_a_version_outlasts_the_crawl_delay_before_it() -> None:
    """The pause after robots.txt may still be that of the file before."""
    slow = b"User-agent: *\nCrawl-delay: 1000\n"
    for until, expected in ((6300.1, []), (6301.0, [Check.LOG])):
        versions = [version(0.1, slow, until=1300.1, headers=NO_CACHE), version(5000.1, until=until, headers=NO_CACHE)]
        assert breaches(robots(0), robots(5000), versions=versions, texts=[slow, CLOSED]) == expected


def test_a_version_outlasts_a_back_off_and_a_retry_after() -> None:
    busy = [
        robots(at, status=None, error="timeout", error_kind="timeout")
        for at in (0, 1000, 2000, 4000, 6000, 10_000, 15_000)
    ]
    end = 20_000.1
    assert outlasts(end + 320 + 300, *busy, robots(20_000)), "10 s, doubled six times, halved"
    assert not outlasts(end + 321 + 300, *busy, robots(20_000))
    assert not outlasts(end + 320 + 300, *busy[1:], robots(20_000))
    refused = robots(20_000, status=404, error="404", retry_after_s=2000.0)
    assert outlasts(end + 2000 + 300, refused)
