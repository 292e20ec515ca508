"""What a store keeps of sites that refuse: their rests, the one URL after each, and what is queued again."""

from __future__ import annotations

from dataclasses import replace

from crawler.frontier.decide import Outcome
from crawler.frontier.refusals import NO_REFUSALS, RefusalNews, Refusals
from crawler.model import RobotsAction, RobotsCopy, State
from crawler.reasons import Reason, ReasonCode
from crawler.store.rows import Claim, RobotsNews
from tests.contract.visits import NOW, Harness, deferred, queued_urls, retried

A = "http://a.test"
URLS = [f"{A}/{n}" for n in range(8)]
UNTIL = NOW + 3600


def walled(claim: Claim, place: int) -> Outcome:
    return Outcome(claim.urls[place], State.FAILED, Reason(ReasonCode.WALL, "x"), is_walled=True)


async def rest(harness: Harness) -> tuple[Claim, Refusals]:
    """Let a.test rest after walls at three of its eight URLs, the last of which is asked for again."""
    await harness.seed(*URLS)
    (claim,) = await harness.claim()
    probe = claim.urls[2]
    refusals = Refusals(walls=3, rest_count=1, probe=probe.id)
    news = [RefusalNews(probe.site_id, Refusals(walls=1)), RefusalNews(probe.site_id, refusals, UNTIL)]
    outcomes = [walled(claim, 0), walled(claim, 1), retried(probe, UNTIL)]
    await harness.commit(*outcomes, refusals=news, released=[claim.group_id])
    return claim, refusals


async def test_a_resting_site_is_asked_for_one_url_when_it_has_rested(harness: Harness) -> None:
    claim, refusals = await rest(harness)
    assert await harness.claim() == []
    (row,) = await harness.store.query(
        "SELECT wait_code, waits_for, next_at, rest_count, rests_until, closed_at FROM sites"
    )
    assert row == {
        "wait_code": "wall",
        "waits_for": "rest after walls or refusals",
        "next_at": UNTIL,
        "rest_count": 1,
        "rests_until": UNTIL,
        "closed_at": None,
    }
    assert [wait.reason for wait in await harness.store.waiting(NOW, 5)] == ["rest after walls or refusals"]
    await harness.reopen()
    assert await harness.claim() == [], "also after a crash"
    harness.now = UNTIL
    (again,) = await harness.claim()
    assert queued_urls([again]) == [claim.urls[2].url]
    (site,) = again.sites.values()
    assert site.refusals == refusals


async def test_a_new_robots_txt_does_not_cut_a_rest_short(harness: Harness) -> None:
    claim, _ = await rest(harness)
    free = RobotsCopy(RobotsAction.FREE, "404", NOW, NOW + 900)
    await harness.news(claim.urls[0].site_id, A, free)
    assert await harness.claim() == []


async def test_a_site_that_opens_gets_its_walled_urls_back(harness: Harness) -> None:
    claim, _ = await rest(harness)
    news = RefusalNews(claim.urls[0].site_id, NO_REFUSALS, queues_again=frozenset({ReasonCode.WALL}))
    await harness.commit(refusals=[news])
    (again,) = await harness.claim()
    assert sorted(queued_urls([again])) == sorted({*URLS} - {claim.urls[2].url}), "that is due when the site has rested"
    assert set((await harness.urls("reason_code")).values()) == {"new", "requeued", "retry"}


async def test_a_closed_site_is_known_when_it_is_claimed_and_refresh_opens_it(harness: Harness) -> None:
    claim, refusals = await rest(harness)
    closed = replace(refusals, closed=True, probe=None)
    await harness.commit(refusals=[RefusalNews(claim.urls[0].site_id, closed, before=refusals)])
    harness.now = UNTIL
    (again,) = await harness.claim()
    (site,) = again.sites.values()
    assert site.refusals == closed
    ended = [Outcome(q, State.EXCLUDED, Reason(ReasonCode.REFUSED_AT_THE_EDGE, "x")) for q in again.urls]
    await harness.commit(*ended, released=[again.group_id])
    assert await harness.claim() == []
    await harness.store.forget_refusals([A], harness.now)
    (opened,) = await harness.claim()
    assert sorted(queued_urls([opened])) == URLS
    (site,) = opened.sites.values()
    assert site.refusals == NO_REFUSALS


async def test_refresh_asks_for_a_robots_txt_in_place_of_which_a_wall_came(harness: Harness) -> None:
    await harness.seed(f"{A}/")
    (claim,) = await harness.claim()
    wall = RobotsCopy(RobotsAction.DEFER, "wall", NOW, UNTIL, failures=3, failing_since=NOW, retry_at=UNTIL)
    await harness.news(claim.urls[0].site_id, A, wall)
    await harness.commit(released=[claim.group_id])
    assert await harness.claim() == []
    await harness.store.forget_refusals([A], NOW + 1)
    (again,) = await harness.claim()
    (site,) = again.sites.values()
    assert site.copy is not None
    assert (site.copy.retry_at, site.copy.failures, site.copy.expires_at <= NOW + 1) == (None, 0, True)


async def test_a_refusal_does_not_end_the_wait_for_a_robots_txt_of_the_same_commit(harness: Harness) -> None:
    await harness.seed(*URLS)
    (claim,) = await harness.claim()
    site_id = claim.urls[0].site_id
    robots = RobotsNews(site_id, A, deferred(NOW, UNTIL), None, None)
    await harness.commit(
        robots=[robots], refusals=[RefusalNews(site_id, Refusals(refused=1))], released=[claim.group_id]
    )
    assert await harness.claim() == []
    harness.now = UNTIL
    assert await harness.claim() != []
