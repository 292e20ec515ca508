"""The range of the time that a crawl takes."""

from __future__ import annotations

import math

import pytest

from crawler.frontier.politeness import PolitenessSettings
from crawler.frontier.time_left import DepthCount, End, GroupBacklog, Limits, TimeLeft, time_left

POLITENESS = PolitenessSettings(delay_s=2.0, slow_factor=0.0)
LEAVES = {0: DepthCount(answered=1), 1: DepthCount(queued=100, answered=900)}
NOW = 1000.0


def left(*backlogs: GroupBacklog, depths: dict[int, DepthCount] = LEAVES, limits: Limits | None = None) -> TimeLeft:
    seen = time_left(backlogs, depths, POLITENESS, limits or Limits(), NOW)
    assert seen is not None
    return seen


def test_the_slowest_group_bounds_the_time_from_below() -> None:
    seen = left(GroupBacklog("a", 10), GroupBacklog("b", 90, usual_s=0.5), GroupBacklog("c", 0))
    assert seen.least_s == pytest.approx(89 * 2.5)
    assert (seen.slowest, seen.slowest_queued) == ("b", 90)
    assert seen.end is End.BOUNDED
    assert seen.most_s is not None
    assert seen.least_s < seen.most_s < 1.5 * seen.least_s


def test_a_crawl_delay_and_a_slow_server_lengthen_the_pause() -> None:
    assert left(GroupBacklog("a", 11, crawl_delay_s=30.0)).least_s == pytest.approx(300)
    slow = PolitenessSettings(delay_s=2.0, slow_factor=5.0)
    seen = time_left([GroupBacklog("a", 11, usual_s=4.0)], LEAVES, slow, Limits(), NOW)
    assert seen is not None
    assert seen.least_s == pytest.approx(10 * (20 + 4))


def test_many_slow_answers_fill_the_slots() -> None:
    seen = left(*(GroupBacklog(f"{n}", 1, usual_s=10.0) for n in range(640)))
    assert seen.least_s == pytest.approx(90)


def test_above_a_group_without_an_answer_is_as_slow_as_the_others_on_average() -> None:
    known = (GroupBacklog("b", 1, usual_s=4.0), GroupBacklog("c", 1, usual_s=6.0))
    unknown, average = (left(GroupBacklog("a", 50, usual_s=usual_s), *known) for usual_s in (0.0, 5.0))
    assert unknown.most_s == average.most_s
    assert unknown.least_s < average.least_s


def test_known_waits_count() -> None:
    assert left(GroupBacklog("a", 1, ready_at=NOW + 60)).least_s == 60
    assert left(GroupBacklog("a", 1, last_due_at=NOW + 70)).least_s == 70
    awaited = left(GroupBacklog("a", 50, ready_at=NOW + 60, give_up_at=NOW + 500))
    assert awaited.least_s == 60, "the robots.txt may be given up, and the URLs fail without a request"
    assert awaited.most_s is not None
    assert awaited.most_s > 500


def test_a_crawl_whose_last_hosts_do_not_answer_ends_when_these_are_given_up() -> None:
    """However many new URLs the pages brought that were fetched."""
    endless = {0: DepthCount(answered=100), 1: DepthCount(queued=150)}
    dead = (GroupBacklog("a", 3, give_up_at=NOW + 500), GroupBacklog("b", 9, ready_at=NOW + 70, give_up_at=NOW + 90))
    seen = left(*dead, depths=endless)
    assert (seen.end, seen.slowest, seen.slowest_queued, seen.groups) == (End.AWAITED, "a", 3, 2)
    assert seen.most_s == pytest.approx(500, abs=5)
    assert seen.least_s == 70
    assert left(*dead, GroupBacklog("c", 1), depths=endless).end is End.NO_END_IN_SIGHT


def test_refused_urls_cost_no_time() -> None:
    half = {0: DepthCount(answered=1), 1: DepthCount(queued=100, answered=50, refused=51)}
    assert left(GroupBacklog("a", 100), depths=half).least_s == pytest.approx(49 * 2)


def test_more_than_one_new_url_a_page_has_no_end_in_sight() -> None:
    seen = left(GroupBacklog("a", 100), depths={0: DepthCount(answered=100), 1: DepthCount(queued=150)})
    assert (seen.end, seen.most_s) == (End.NO_END_IN_SIGHT, None)
    assert seen.new_per_page == 1.5
    assert seen.reason == "each page still brings at least one new URL (1.5)"
    few = left(GroupBacklog("a", 5), depths={0: DepthCount(answered=1), 1: DepthCount(queued=5, answered=1)})
    assert (few.end, few.most_s) == (End.TOO_EARLY, None)


def test_the_deepest_depth_allowed_brings_nothing() -> None:
    depths = {0: DepthCount(answered=100), 1: DepthCount(queued=150)}
    seen = left(GroupBacklog("a", 150), depths=depths, limits=Limits(max_depth=1))
    assert seen.end is End.BOUNDED
    begun = {0: DepthCount(answered=100), 1: DepthCount(queued=150, answered=50), 2: DepthCount(refused=10)}
    seen = left(GroupBacklog("a", 150), depths=begun, limits=Limits(max_depth=1))
    assert (seen.end, seen.new_per_page) == (End.BOUNDED, 2.0), "links of the deepest pages are refused, not new"


def test_growth_below_one_multiplies_the_upper_bound() -> None:
    """R = 0.5 at every depth: the queued URLs stand for twice as many."""
    depths = {0: DepthCount(answered=1), 1: DepthCount(answered=40_000), 2: DepthCount(queued=20_000)}
    none = {0: DepthCount(answered=1), 1: DepthCount(queued=20_000, answered=20_000)}
    growing, steady = left(GroupBacklog("a", 20_000), depths=depths), left(GroupBacklog("a", 20_000), depths=none)
    assert growing.least_s == steady.least_s
    assert growing.most_s is not None
    assert steady.most_s is not None
    assert growing.most_s / steady.most_s == pytest.approx(2, rel=0.05)


def test_limits_bound_the_time() -> None:
    endless = {0: DepthCount(answered=1), 1: DepthCount(queued=500, answered=10), 2: DepthCount(queued=90)}
    seen = left(GroupBacklog("a", 400), GroupBacklog("b", 100), depths=endless, limits=Limits(pages=20))
    assert seen.least_s == pytest.approx(9 * 2, abs=0.1), "ten pages of each group"
    assert left(GroupBacklog("a", 400), GroupBacklog("b", 100), depths=endless, limits=Limits(pages=200)).most_s == (
        pytest.approx(300 * 2.1, rel=0.01)
    ), "b has 100 of the 400 requests, and a has the others one after another"
    slow = GroupBacklog("slow", 1, pause_s=30)
    most_s = left(GroupBacklog("a", 400), slow, depths=endless, limits=Limits(pages=201)).most_s
    assert most_s == pytest.approx(400 * 2.1 + 30.1, rel=0.01), (
        "the one request that no queued URL makes may be of slow"
    )
    far = GroupBacklog("far", 9, last_due_at=NOW + 9000, pause_s=900)
    most_s = left(GroupBacklog("a", 400), far, depths=endless, limits=Limits(pages=20)).most_s
    assert most_s == pytest.approx(40 * 2.1, rel=0.01), "a group whose retry is far away does not hold up the limit"
    assert seen.end is End.BOUNDED
    assert seen.most_s is not None
    assert seen.most_s >= 19 * 2
    assert left(GroupBacklog("a", 400), limits=Limits(time_s=30)).most_s == 30
    assert time_left([GroupBacklog("a", 4)], LEAVES, POLITENESS, Limits(pages=0), NOW) is None


def test_nothing_queued_takes_no_time() -> None:
    assert time_left([], {}, POLITENESS, Limits(), NOW) is None


def test_without_an_answer_nothing_is_known_above() -> None:
    seen = left(GroupBacklog("a", 3), depths={0: DepthCount(queued=3)})
    assert (seen.end, seen.new_per_page) == (End.TOO_EARLY, 0.0)
    assert math.isfinite(seen.least_s)


def test_the_pages_that_a_site_may_still_have_bound_growth() -> None:
    grows = {0: DepthCount(answered=100), 1: DepthCount(queued=150)}
    seen = left(GroupBacklog("a", 1, room=1), GroupBacklog("b", 9, room=20), depths=grows)
    assert seen.end is End.BOUNDED
    assert seen.most_s is not None
    assert 9 * 2 <= seen.least_s + 2 <= seen.most_s < 60 * 2.1
