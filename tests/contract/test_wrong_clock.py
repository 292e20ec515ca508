"""A run whose clock was ahead does not stall the next one, and no pause gets shorter. On both databases."""

from __future__ import annotations

import logging

import pytest

from crawler.frontier.politeness import Pace
from crawler.reasons import WaitCode, WaitReason
from tests.contract.visits import NOW, Harness, deferred, fetched, queued_urls, retried, robots

A, B, C = "http://a.test/", "http://b.test/", "http://c.test/"
AHEAD_S = 400 * 86400.0


async def _run_ahead(harness: Harness, pause_s: float, code: WaitCode) -> None:
    """Crawl a page of a.test, fail to get the robots.txt of b.test, and put a URL of c.test off, 400 days ahead."""
    harness.now = then = NOW + AHEAD_S
    await harness.reopen()
    await harness.seed(A, B, C)
    a, b, c = sorted(await harness.claim(), key=lambda claim: claim.group)
    (site_a,), (site_b,) = a.sites, b.sites
    await harness.news(site_a, A[:-1], robots(at=then, until=then + 1000))
    await harness.news(site_b, B[:-1], deferred(then, then + 500))
    await harness.finish(
        a, fetched(a.urls[0], [f"{A}x"]), pace=Pace(then + pause_s, pause_s, 0.0, WaitReason(code, "503"))
    )
    await harness.commit(released=[b.group_id])
    await harness.finish(c, retried(c.urls[0], then + 30))
    harness.now = NOW


async def test_after_a_clock_that_was_ahead_the_waits_begin_anew(
    harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    await _run_ahead(harness, 0.3, WaitCode.DELAY)
    with caplog.at_level(logging.WARNING, "crawler.store"):
        await harness.reopen()
    assert "the clock of an earlier run was 400 d ahead" in caplog.text
    assert "the waits of 1 host, 2 robots.txt files, 1 URL and 0 revisits begin anew now" in caplog.text
    harness.now = NOW + 3
    claims = await harness.claim()
    assert sorted(queued_urls(claims)) == [f"{A}x", C]
    assert [claim.pace.next_at for claim in claims if claim.group == "a.test"] == [NOW + 2]  # politeness.delay is 2 s
    copies = [site.copy for claim in claims for site in claim.sites.values()]
    assert copies == [None, None], "robots.txt is requested again"
    await harness.commit(released=[claim.group_id for claim in claims])
    harness.now = NOW + 490
    claims = await harness.claim()
    assert B not in queued_urls(claims), "the wait for its robots.txt is not shortened"
    await harness.commit(released=[claim.group_id for claim in claims])
    harness.now = NOW + 501
    assert B in queued_urls(await harness.claim())
    caplog.clear()
    with caplog.at_level(logging.WARNING, "crawler.store"):
        await harness.reopen()
    assert caplog.text == "", "the clock is right now"


@pytest.mark.parametrize("code", [WaitCode.RETRY_AFTER, WaitCode.CRAWL_DELAY])
async def test_a_pause_that_was_asked_for_is_kept_whole(harness: Harness, code: WaitCode) -> None:
    asked_s = 30 * 86400.0
    await _run_ahead(harness, asked_s, code)
    await harness.reopen()
    assert f"{A}x" not in queued_urls(await harness.claim())
    harness.now = NOW + asked_s - 5
    await harness.reopen()
    assert f"{A}x" not in queued_urls(await harness.claim())
    harness.now = NOW + asked_s + 5
    await harness.reopen()
    assert f"{A}x" in queued_urls(await harness.claim())


async def test_a_long_pause_is_no_wrong_clock(harness: Harness, caplog: pytest.LogCaptureFixture) -> None:
    await harness.seed(A)
    (claim,) = await harness.claim()
    pace = Pace(NOW + AHEAD_S, AHEAD_S, 0.0, WaitReason(WaitCode.RETRY_AFTER, "503"))
    await harness.finish(claim, retried(claim.urls[0], NOW + AHEAD_S), pace=pace)
    with caplog.at_level(logging.WARNING, "crawler.store"):
        await harness.reopen()
    assert caplog.text == ""
    assert (await harness.store.group_pace("a.test")).next_at == NOW + AHEAD_S
    assert await harness.urls("next_at") == {A: NOW + AHEAD_S}


async def test_the_lease_of_a_worker_seen_in_the_future_begins_anew(harness: Harness) -> None:
    (before,) = await harness.store.query("SELECT lease_until - seen_at AS lease_s FROM worker")
    lease_s = before["lease_s"]
    await harness.store.query(
        "UPDATE worker SET processes = 'elsewhere', seen_at = seen_at + 1e7, lease_until = lease_until + 1e7"
    )
    await harness.store.recover(NOW + 5)
    (row,) = await harness.store.query("SELECT seen_at, lease_until - seen_at AS lease_s FROM worker")
    assert row["seen_at"] == NOW + 5
    assert row["lease_s"] == (None if lease_s is None else pytest.approx(lease_s))
