"""Sites whose robots.txt waits for a URL of another site."""

from __future__ import annotations

import pytest

from crawler.model import RobotsAction, RobotsCopy
from crawler.reasons import EndCode, RunEnd
from crawler.store.rows import RobotsNews, RobotsTarget, RobotsWait, SiteHold
from crawler.url import ROBOTS_PATH
from tests.contract.visits import NOW, Harness, deferred, queued_urls

A, B = "http://a.test", "http://b.test"
RULES = RobotsTarget(B, "/rules", 2)
UNTIL = NOW + 600
FREE = RobotsCopy(RobotsAction.FREE, "404", NOW, NOW + 900)


async def wait(harness: Harness, target: RobotsTarget = RULES, *, seen: bool = True) -> int:
    """Let a.test wait, which has a URL. Returns its number."""
    await harness.seed(f"{A}/")
    (claim,) = await harness.claim()
    (number,) = claim.sites
    way = (f"{A}/robots.txt", f"{target.site}{target.path}") if seen else ()
    await harness.commit(robots_waits=[RobotsWait(number, A, target, way, UNTIL)], released=[claim.group_id])
    return number


async def test_the_target_is_claimed_and_the_site_that_waits_is_not(harness: Harness) -> None:
    number = await wait(harness)
    (claim,) = await harness.claim()
    assert (claim.group, claim.urls, claim.targets) == ("b.test", [], [RULES])
    assert await harness.store.robots_waits(RULES) == [RobotsWait(number, A, RULES, (f"{A}/robots.txt", f"{B}/rules"))]
    assert await harness.urls() == {f"{A}/": "queued"}, "in no view"


async def test_limits_on_pages_do_not_count_a_target(harness: Harness) -> None:
    await wait(harness)
    await harness.store.prepare(0)
    assert [claim.group for claim in await harness.claim()] == ["b.test"]


async def test_the_copy_ends_the_wait_and_wakes_the_site(harness: Harness) -> None:
    number = await wait(harness)
    (target,) = await harness.claim()
    news = RobotsNews(number, A, FREE, None, None, answered_by=f"{B}/rules")
    await harness.commit(robots=[news], targets_answered=[RULES], released=[target.group_id])
    (claim,) = await harness.claim()
    assert (queued_urls([claim]), claim.targets) == ([f"{A}/"], [])
    site = claim.sites[number]
    assert (site.is_waiting, site.copy and site.copy.action) == (False, RobotsAction.FREE)
    known = await harness.store.robots_copy_from(f"{B}/rules", NOW + 1)
    assert known is not None
    assert known.expires_at == NOW + 900
    assert await harness.store.robots_copy_from(f"{B}/rules", NOW + 901) is None


async def test_a_copy_for_a_site_that_waits_no_longer_is_not_stored(harness: Harness) -> None:
    """Its patience was over, and it has asked by itself meanwhile."""
    number = await wait(harness)
    own = await harness.news(number, A, deferred(NOW, NOW + 60))
    news = RobotsNews(number, A, FREE, None, None, answered_by=f"{B}/rules", not_before=0.0)
    await harness.commit(robots=[news], targets_answered=[RULES])
    site = await harness.store.site(A)
    assert site is not None
    assert site.robots_id == own


async def test_a_site_that_waits_without_a_redirect_is_woken_by_the_answer(harness: Harness) -> None:
    await wait(harness, seen=False)
    (target,) = await harness.claim()
    await harness.commit(targets_answered=[RULES], released=[target.group_id])
    assert queued_urls(await harness.claim()) == [f"{A}/"]


async def test_a_site_waits_for_a_bounded_time(harness: Harness) -> None:
    number = await wait(harness)
    await harness.claim()
    harness.now = UNTIL
    (claim,) = await harness.claim()
    assert claim.sites[number].is_waiting


async def test_the_commit_that_closes_a_circle_of_waits_ends_one_of_them(harness: Harness) -> None:
    await harness.seed(f"{A}/", f"{B}/")
    claims = await harness.claim()
    sites = {site.name: number for claim in claims for number, site in claim.sites.items()}
    waits = [
        RobotsWait(sites[A], A, RobotsTarget(B, ROBOTS_PATH), (f"{A}{ROBOTS_PATH}", f"{B}{ROBOTS_PATH}"), UNTIL),
        RobotsWait(sites[B], B, RobotsTarget(A, ROBOTS_PATH), (f"{B}{ROBOTS_PATH}", f"{A}{ROBOTS_PATH}"), UNTIL),
    ]
    await harness.commit(robots_waits=waits, released=[claim.group_id for claim in claims])
    (claim,) = await harness.claim()
    assert (claim.group, claim.sites[sites[B]].is_waiting) == ("b.test", True)
    assert claim.targets == [RobotsTarget(B, ROBOTS_PATH)]


async def test_a_hold_postpones_the_pages_of_a_site_and_not_what_others_wait_for(harness: Harness) -> None:
    await harness.seed(f"{A}/", f"{A}/2", f"{B}/")
    claims = await harness.claim()
    held = next(number for claim in claims for number, site in claim.sites.items() if site.name == A)
    waiting = next(number for claim in claims for number, site in claim.sites.items() if site.name == B)
    target = RobotsTarget(A, "/rules")
    waits = [RobotsWait(waiting, B, target, (f"{B}{ROBOTS_PATH}", f"{A}/rules"), UNTIL)]
    holds = [SiteHold(held, UNTIL, "licence http://c.test/: 503")]
    await harness.commit(robots_waits=waits, holds=holds, released=[claim.group_id for claim in claims])
    (claim,) = await harness.claim()
    assert (claim.group, claim.urls, claim.targets) == ("a.test", [], [target])
    await harness.commit(targets_answered=[target], released=[claim.group_id])
    found = await harness.store.query("SELECT reason_code, reason, next_at FROM urls WHERE site = 'http://a.test'")
    assert {tuple(row.values()) for row in found} == {("retry", "licence http://c.test/: 503", UNTIL)}
    harness.now = UNTIL
    assert sorted(queued_urls(await harness.claim())) == [f"{A}/", f"{A}/2", f"{B}/"]


@pytest.mark.parametrize("is_over", [True, False])
async def test_the_next_run_asks_again(harness: Harness, *, is_over: bool) -> None:
    """Its log has no answer that the copy could come from."""
    await wait(harness)
    if is_over:
        await harness.store.end_run(RunEnd(EndCode.STOPPED), harness.now)
    await harness.reopen()
    (claim,) = await harness.claim()
    assert queued_urls([claim]) == [f"{A}/"]
    assert not claim.sites[claim.urls[0].site_id].is_waiting


async def test_a_group_is_claimed_by_the_name_of_a_site(harness: Harness) -> None:
    group = await harness.store.claim_group(A)
    await harness.seed(f"{A}/")
    assert group is not None
    assert await harness.claim() == []
    await harness.commit(released=[group])
    (claim,) = await harness.claim()
    assert await harness.store.claim_group(A) == claim.group_id, "by this worker"
