"""The two decisions of the loop: examples of each, and their invariants over all situations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from crawler.engine.loop import (
    CLAIMED_AT_ONCE,
    COMMIT_AGE_S,
    POLL_EVERY_S,
    Commit,
    Gather,
    Idle,
    Step,
    Wait,
    Work,
    next_commit,
    when_idle,
)
from crawler.store.rows import Waiting
from tests.records import replace

NOW = 1000.0
LATER = Waiting("b.test", NOW + 60, "")
READY = Waiting("b.test", NOW, "")
EITHER = (False, True)


def works() -> Iterator[Work]:
    """Every situation in which there is work, with a few values of each number."""
    for due, wanted, more, flying, since, urgent, awaited, last, need_commit, claim_age_s in product(
        EITHER, (0, 3, 2 * CLAIMED_AT_ONCE), EITHER, (0, 2), (None, NOW - 2, NOW - 0.5, NOW - 0.1, NOW), EITHER, EITHER,
        (-math.inf, NOW - 2, NOW - 0.5, NOW), EITHER, (0.1, 1.0),
    ):  # fmt: skip
        yield Work(NOW, due, wanted, more, flying, since, urgent, awaited, last, need_commit, 0.3, claim_age_s)


def idles() -> Iterator[Idle]:
    """Every situation in which nothing is claimed, with a few values of each number."""
    for ready, others, none_added, add_at, has_others, horizon_s, ends_at in product(
        (None, LATER, READY),
        EITHER,
        EITHER,
        (NOW - 1, NOW, NOW + 5, math.inf),
        EITHER,
        (0.1, 1.0),
        (NOW + 30, math.inf),
    ):
        yield Idle(NOW, ready, others, none_added, add_at, has_others, horizon_s, ends_at)


def work(**facts: Any) -> Work:
    """The situation with no work, but for these facts."""
    plain = Work(NOW, False, 0, False, 0, None, False, False, -math.inf, False, 0.5, 1.0)
    return replace(plain, **facts)


def idle(**facts: Any) -> Idle:
    """The situation in which nothing is queued, but for these facts."""
    return replace(Idle(NOW, None, False, False, math.inf, False, 1.0, math.inf), **facts)


# --- while there is work ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "decision"),
    [
        (work(is_due=True), Commit(0)),
        (work(is_due=True, groups_wanted=9), Commit(9)),
        (work(is_due=True, groups_wanted=2000), Commit(CLAIMED_AT_ONCE)),
        (work(more_ready=True, groups_wanted=4), Commit(4)),
        (work(more_ready=True, groups_wanted=4, requests_in_flight=1), Gather()),
        (work(commit_urgent=True), Commit(0)),
        (work(commit_urgent=True, requests_in_flight=2), Gather()),
        (work(commit_urgent=True, requests_in_flight=2, is_due=True), Commit(0)),
        (work(commit_urgent=True, commit_awaited=True, requests_in_flight=2), Commit(0)),
        (work(uncommitted_since=NOW - 0.1, groups_wanted=5), Wait(NOW + 0.4)),
        (work(uncommitted_since=NOW - 0.5, groups_wanted=5), Commit(5)),
        (work(groups_wanted=2, claim_age_s=0.5, last_commit_at=NOW - 0.25), Wait(NOW + 0.25)),
        (work(groups_wanted=2, claim_age_s=0.5, last_commit_at=NOW - 0.5), Commit(2)),
        (work(), Wait(None)),
        (work(pages_need_commit=True, last_commit_at=NOW - 0.25), Wait(NOW - 0.25 + COMMIT_AGE_S)),
        (work(pages_need_commit=True, last_commit_at=NOW - COMMIT_AGE_S), Commit(0)),
    ],
)
def test_when_the_next_commit_comes(seen: Work, decision: Commit | Gather | Wait) -> None:
    assert next_commit(seen) == decision


def test_a_commit_claims_what_is_wanted_and_not_all_at_once() -> None:
    for seen in works():
        if isinstance(decision := next_commit(seen), Commit):
            assert decision.groups == min(seen.groups_wanted, CLAIMED_AT_ONCE)


def test_a_wait_has_not_ended_yet_and_finished_work_does_not_wait_long() -> None:
    for seen in works():
        decision = next_commit(seen)
        assert not seen.is_due or isinstance(decision, Commit)
        if isinstance(decision, Wait):
            assert decision.until is None or decision.until > seen.now
            assert not seen.commit_urgent
            if seen.uncommitted_since is not None:
                assert decision.until is not None
                assert decision.until <= seen.uncommitted_since + seen.commit_age_s
            elif seen.pages_need_commit:
                assert decision.until is not None
                assert decision.until <= seen.last_commit_at + COMMIT_AGE_S
            elif seen.groups_wanted:
                assert decision.until is not None
                assert decision.until <= seen.last_commit_at + seen.claim_age_s


def test_an_urgent_commit_is_delayed_only_for_requests_in_flight() -> None:
    for seen in works():
        if next_commit(seen) == Gather():
            assert seen.commit_urgent or seen.more_ready
            assert seen.requests_in_flight
            assert not seen.commit_awaited


def test_rings_of_the_alarm_do_not_put_off_a_claim() -> None:
    seen = work(groups_wanted=3, requests_in_flight=1, last_commit_at=NOW)
    decisions = [next_commit(replace(seen, now=NOW + 0.3 * ring)) for ring in range(5)]
    assert decisions == [*4 * [Wait(NOW + 1)], Commit(3)]


# --- when nothing is claimed --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "decision"),
    [
        (idle(ready=LATER), Wait(NOW + 59, LATER)),
        (idle(ready=READY), Step.CLAIM),
        (idle(ready=LATER, others_at_work=True, has_other_workers=True), Wait(NOW + POLL_EVERY_S, LATER)),
        (idle(ready=LATER, adds_work_at=NOW + 5), Wait(NOW + 5, LATER)),
        (idle(ready=LATER, adds_work_at=NOW), Step.ADD_WORK),
        (idle(ready=READY, adds_work_at=NOW - 5), Step.CLAIM),
        (idle(ready=LATER, ends_at=NOW + 30), Step.ADD_WORK),
        (idle(ready=LATER, ends_at=NOW + 30, nothing_added=True), Step.CONCLUDE),
        (idle(ready=LATER, others_at_work=True, ends_at=NOW + 30), Wait(NOW + POLL_EVERY_S)),
        (idle(others_at_work=True), Wait(NOW + POLL_EVERY_S)),
        (idle(others_at_work=True, adds_work_at=NOW), Step.ADD_WORK),
        (idle(adds_work_at=NOW + 5), Step.ADD_WORK),
        (idle(), Step.ADD_WORK),
        (idle(nothing_added=True), Step.CONCLUDE),
    ],
)
def test_what_follows_when_nothing_is_claimed(seen: Idle, decision: Step | Wait) -> None:
    assert when_idle(seen) == decision


def test_each_step_is_taken_in_some_situation() -> None:
    assert {step for step in map(when_idle, idles()) if isinstance(step, Step)} == set(Step)


def test_a_crawl_is_concluded_only_when_nothing_can_come() -> None:
    for seen in idles():
        if when_idle(seen) is Step.CONCLUDE:
            assert not seen.others_at_work
            assert seen.ready is None or seen.ready.until > seen.ends_at
            assert seen.nothing_added


def test_work_is_added_in_time_and_not_before_a_group_that_is_ready() -> None:
    for seen in idles():
        decision = when_idle(seen)
        if decision is Step.ADD_WORK:
            assert not seen.nothing_added
            assert seen.ready is not READY
        if isinstance(decision, Wait) and decision.waiting_for is LATER and not seen.nothing_added:
            assert decision.until is not None
            assert decision.until <= seen.adds_work_at


def test_every_wait_has_an_end_and_other_workers_are_looked_for_within_a_second() -> None:
    for seen in idles():
        if isinstance(decision := when_idle(seen), Wait):
            assert decision.until is not None
            assert decision.until > seen.now
            if seen.has_other_workers or decision.waiting_for is None:
                assert decision.until <= seen.now + POLL_EVERY_S
