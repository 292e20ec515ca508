"""The scheduler as a pure function: every row of the table, and the invariants that its docstring phases."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.engine import scheduler
from crawler.engine.scheduler import (
    ALWAYS,
    CLAIMED_AT_ONCE,
    COMMIT_AGE_S,
    FIRST,
    LOOK_EVERY_S,
    TRANSITIONS,
    Action,
    Commit,
    Committed,
    Conclude,
    Concluded,
    Drain,
    Drained,
    DrawSample,
    Event,
    FrontierSeen,
    Gather,
    LeaseWasLost,
    Phase,
    Prepare,
    Prepared,
    QueueRevisits,
    Rejoin,
    Rejoined,
    Restrict,
    Restricted,
    RevisitsQueued,
    SampleDrawn,
    SeeFrontier,
    Situation,
    Wait,
    Waited,
    decide,
    mermaid,
)
from crawler.store.protocols import Waiting

ROOT = Path(__file__).parents[3]
NOW = 1000.0
QUIET = Situation(NOW)
STOPPED = Situation(NOW, stop_requested=True)
LATER = Waiting("b.test", NOW + 60, "")

#: The events that each action can end with.
ENDS: dict[type[Action], tuple[Event, ...]] = {
    Prepare: (Prepared(),),
    Commit: (Committed(0, 0), Committed(0, 7), Committed(3, 7), Committed(7, 7), LeaseWasLost()),
    Wait: (Waited(True), Waited(False)),
    Gather: (Waited(False),),
    SeeFrontier: tuple(FrontierSeen(ready, others) for ready in (None, LATER) for others in (False, True)),
    Restrict: (Restricted(),),
    QueueRevisits: (RevisitsQueued(0), RevisitsQueued(5)),
    DrawSample: (SampleDrawn(),),
    Conclude: (Concluded(True), Concluded(False)),
    Drain: (Drained(),),
    Rejoin: (Rejoined(),),
}
#: The action of each phase.
ACTIONS: dict[Phase, type[Action | None]] = {
    Phase.PREPARING: Prepare,
    Phase.COMMITTING: Commit,
    Phase.WORKING: Wait,
    Phase.GATHERING: Gather,
    Phase.CHECKING: SeeFrontier,
    Phase.IDLE: Wait,
    Phase.RESTRICTING: Restrict,
    Phase.QUEUEING_REVISITS: QueueRevisits,
    Phase.DRAWING_SAMPLE: DrawSample,
    Phase.CONCLUDING: Conclude,
    Phase.DRAINING: Drain,
    Phase.CLOSING: Commit,
    Phase.REJOINING: Rejoin,
    Phase.ENDED: type(None),
}
STEPS = [(phase, event) for phase, action in ACTIONS.items() if phase is not Phase.ENDED for event in ENDS[action]]

situations = st.builds(
    Situation,
    now=st.just(NOW),
    stop_requested=st.booleans(),
    lease_lost=st.booleans(),
    groups_held=st.integers(0, 3),
    requests_in_flight=st.integers(0, 2),
    uncommitted_since=st.none() | st.floats(NOW - 2, NOW),
    commit_urgent=st.booleans(),
    commit_awaited=st.booleans(),
    groups_wanted=st.integers(0, 2 * CLAIMED_AT_ONCE),
    horizon_s=st.sampled_from([0.1, 1.0]),
    last_commit_at=st.floats(NOW - 2, NOW),
    page_limit_reached=st.booleans(),
    revisits_only=st.booleans(),
    revisits_enabled=st.booleans(),
    pages_with_others=st.booleans(),
    sample_to_draw=st.booleans(),
    frame_closes_at=st.sampled_from([NOW - 1, NOW, math.inf]),
    has_other_workers=st.booleans(),
)
steps = st.sampled_from(STEPS)


# --- the table ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("phase", "event"), STEPS, ids=lambda each: str(getattr(each, "name", each)))
def test_each_event_that_an_action_ends_with_has_a_row_without_a_guard(phase: Phase, event: Event) -> None:
    rows = [row for row in TRANSITIONS if row.source is phase and isinstance(event, row.event)]
    assert rows
    assert rows[-1].guard is ALWAYS
    assert all(row.guard is not ALWAYS for row in rows[:-1]), "a row behind one without a guard is never taken"


def test_every_row_is_reached_by_an_event_that_the_action_of_its_state_ends_with() -> None:
    for row in TRANSITIONS:
        assert row.event in {type(event) for event in ENDS[ACTIONS[row.source]]}, row


def test_an_event_that_cannot_happen_is_an_error() -> None:
    possible = {(phase, type(event)) for phase, event in STEPS}
    samples = {type(event): event for events in ENDS.values() for event in events}
    assert set(samples) == set(get_args(Event))
    for phase, kind in product(Phase, samples):
        if (phase, kind) not in possible:
            with pytest.raises(ValueError, match="cannot happen"):
                decide(phase, samples[kind], QUIET)


def test_every_state_is_entered_and_can_be_left_for_the_end() -> None:
    assert {row.target for row in TRANSITIONS} | {FIRST.phase} == set(Phase)
    reaching = {Phase.ENDED}
    while more := {row.source for row in TRANSITIONS if row.target in reaching} - reaching:
        reaching |= more
    assert reaching == set(Phase)


def test_architecture_md_has_exactly_the_picture_of_the_table() -> None:
    assert f"```mermaid\n{mermaid()}```\n" in (ROOT / "ARCHITECTURE.md").read_text(), (
        "put the output of `python -m crawler.engine.scheduler` into ARCHITECTURE.md"
    )


# --- one decision after the other ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "event", "seen", "target", "action"),
    [
        (Phase.PREPARING, Prepared(), Situation(NOW, groups_wanted=9), Phase.COMMITTING, Commit(9)),
        (Phase.PREPARING, Prepared(), Situation(NOW, groups_wanted=2000), Phase.COMMITTING, Commit(CLAIMED_AT_ONCE)),
        (Phase.COMMITTING, LeaseWasLost(), QUIET, Phase.REJOINING, Rejoin()),
        (Phase.COMMITTING, Committed(), replace(STOPPED, lease_lost=True), Phase.REJOINING, Rejoin()),
        (Phase.COMMITTING, Committed(), replace(STOPPED, groups_held=3), Phase.DRAINING, Drain()),
        (Phase.COMMITTING, Committed(5, 5), Situation(NOW, groups_wanted=4), Phase.COMMITTING, Commit(4)),
        (
            Phase.COMMITTING, Committed(5, 5), Situation(NOW, groups_held=5, requests_in_flight=1),
            Phase.GATHERING, Gather(0.02),
        ),
        (
            Phase.COMMITTING, Committed(3, 5),
            Situation(NOW, groups_held=3, groups_wanted=2, horizon_s=0.5, last_commit_at=NOW - 0.25),
            Phase.WORKING, Wait(NOW + 0.25),
        ),
        (Phase.COMMITTING, Committed(3, 3), Situation(NOW, groups_held=3), Phase.COMMITTING, Commit(0)),
        (Phase.COMMITTING, Committed(), Situation(NOW, groups_held=3), Phase.WORKING, Wait(None)),
        (Phase.COMMITTING, Committed(), Situation(NOW, uncommitted_since=NOW - 0.2), Phase.WORKING, Wait(NOW + 0.3)),
        (Phase.COMMITTING, Committed(), Situation(NOW, groups_held=1, commit_urgent=True), Phase.WORKING, Wait(NOW)),
        (Phase.COMMITTING, Committed(), Situation(NOW, page_limit_reached=True), Phase.CONCLUDING, Conclude()),
        (
            Phase.COMMITTING, Committed(), Situation(NOW, page_limit_reached=True, revisits_enabled=True),
            Phase.RESTRICTING, Restrict(),
        ),
        (
            Phase.COMMITTING, Committed(),
            Situation(NOW, page_limit_reached=True, revisits_enabled=True, revisits_only=True),
            Phase.CHECKING, SeeFrontier(),
        ),
        (Phase.COMMITTING, Committed(), Situation(NOW, pages_with_others=True), Phase.IDLE, Wait(NOW + LOOK_EVERY_S)),
        (Phase.COMMITTING, Committed(), QUIET, Phase.CHECKING, SeeFrontier()),
        (Phase.WORKING, Waited(True), Situation(NOW, lease_lost=True), Phase.REJOINING, Rejoin()),
        (Phase.WORKING, Waited(True), replace(STOPPED, groups_wanted=3), Phase.COMMITTING, Commit(0)),
        (Phase.WORKING, Waited(True), Situation(NOW, commit_urgent=True), Phase.COMMITTING, Commit(0)),
        (
            Phase.WORKING, Waited(True), Situation(NOW, commit_urgent=True, requests_in_flight=2),
            Phase.GATHERING, Gather(0.02),
        ),
        (
            Phase.WORKING, Waited(True),
            Situation(NOW, commit_urgent=True, commit_awaited=True, requests_in_flight=2), Phase.COMMITTING, Commit(0),
        ),
        (Phase.WORKING, Waited(False), Situation(NOW, groups_wanted=3), Phase.COMMITTING, Commit(3)),
        (Phase.WORKING, Waited(True), Situation(NOW, uncommitted_since=NOW - 0.5), Phase.COMMITTING, Commit(0)),
        (Phase.WORKING, Waited(True), Situation(NOW, uncommitted_since=NOW - 0.1), Phase.WORKING, Wait(NOW + 0.4)),
        (Phase.WORKING, Waited(True), Situation(NOW, groups_held=1), Phase.WORKING, Wait(None)),
        (Phase.GATHERING, Waited(False), Situation(NOW, groups_wanted=2), Phase.COMMITTING, Commit(2)),
        (Phase.RESTRICTING, Restricted(), QUIET, Phase.CHECKING, SeeFrontier()),
        (Phase.CHECKING, FrontierSeen(LATER, False), Situation(NOW, lease_lost=True), Phase.REJOINING, Rejoin()),
        (Phase.CHECKING, FrontierSeen(LATER, False), STOPPED, Phase.DRAINING, Drain()),
        (Phase.CHECKING, FrontierSeen(LATER, False), QUIET, Phase.IDLE, Wait(NOW + 59, LATER)),
        (
            Phase.CHECKING, FrontierSeen(LATER, True), Situation(NOW, has_other_workers=True),
            Phase.IDLE, Wait(NOW + LOOK_EVERY_S, LATER),
        ),
        (Phase.CHECKING, FrontierSeen(None, True), QUIET, Phase.IDLE, Wait(NOW + LOOK_EVERY_S)),
        (
            Phase.CHECKING, FrontierSeen(None, False), Situation(NOW, revisits_enabled=True, sample_to_draw=True),
            Phase.QUEUEING_REVISITS, QueueRevisits(),
        ),
        (
            Phase.CHECKING, FrontierSeen(None, False), Situation(NOW, sample_to_draw=True),
            Phase.DRAWING_SAMPLE, DrawSample(),
        ),
        (
            Phase.CHECKING, FrontierSeen(LATER, False), Situation(NOW, sample_to_draw=True, frame_closes_at=NOW),
            Phase.DRAWING_SAMPLE, DrawSample(),
        ),
        (
            Phase.CHECKING, FrontierSeen(LATER, False), Situation(NOW, sample_to_draw=True, frame_closes_at=NOW + 5),
            Phase.IDLE, Wait(NOW + 5, LATER),
        ),
        (
            Phase.CHECKING, FrontierSeen(LATER._replace(until=NOW), False),
            Situation(NOW, sample_to_draw=True, frame_closes_at=NOW - 5), Phase.IDLE,
            Wait(NOW, LATER._replace(until=NOW)),
        ),
        (Phase.CHECKING, FrontierSeen(None, False), QUIET, Phase.CONCLUDING, Conclude()),
        (Phase.IDLE, Waited(True), Situation(NOW, lease_lost=True), Phase.REJOINING, Rejoin()),
        (Phase.IDLE, Waited(True), STOPPED, Phase.DRAINING, Drain()),
        (Phase.IDLE, Waited(False), Situation(NOW, groups_wanted=1), Phase.COMMITTING, Commit(1)),
        (Phase.QUEUEING_REVISITS, RevisitsQueued(2), Situation(NOW, sample_to_draw=True), Phase.COMMITTING, Commit(0)),
        (
            Phase.QUEUEING_REVISITS, RevisitsQueued(0), Situation(NOW, sample_to_draw=True),
            Phase.DRAWING_SAMPLE, DrawSample(),
        ),
        (Phase.QUEUEING_REVISITS, RevisitsQueued(0), QUIET, Phase.CONCLUDING, Conclude()),
        (Phase.DRAWING_SAMPLE, SampleDrawn(), QUIET, Phase.COMMITTING, Commit(0)),
        (Phase.CONCLUDING, Concluded(True), Situation(NOW, groups_wanted=3), Phase.CLOSING, Commit(0)),
        (Phase.CONCLUDING, Concluded(False), Situation(NOW, groups_wanted=3), Phase.COMMITTING, Commit(3)),
        (Phase.DRAINING, Drained(), Situation(NOW, groups_wanted=3), Phase.CLOSING, Commit(0)),
        (Phase.CLOSING, Committed(), QUIET, Phase.ENDED, None),
        (Phase.CLOSING, LeaseWasLost(), QUIET, Phase.REJOINING, Rejoin()),
        (Phase.REJOINING, Rejoined(), STOPPED, Phase.ENDED, None),
        (Phase.REJOINING, Rejoined(), Situation(NOW, groups_wanted=3), Phase.COMMITTING, Commit(3)),
    ],
)  # fmt: skip
def test_a_decision(phase: Phase, event: Event, seen: Situation, target: Phase, action: Action) -> None:
    decision = decide(phase, event, seen)
    assert (decision.phase, decision.action) == (target, action)


def test_each_row_is_the_reason_of_some_decision_above() -> None:
    cases = test_a_decision.pytestmark[0].args[1]  # type: ignore[attr-defined]
    taken = {
        next(row for row in TRANSITIONS if row.source is s and isinstance(e, row.event) and row.guard.holds(e, seen))
        for s, e, seen, *_ in cases
    }
    assert taken == set(TRANSITIONS)


# --- invariants ---------------------------------------------------------------------------------


@given(steps, situations)
def test_a_state_has_one_action_and_an_action_names_the_state(step: tuple[Phase, Event], seen: Situation) -> None:
    decision = decide(*step, seen)
    assert type(decision.action) is ACTIONS[decision.phase]


@given(steps, situations)
def test_groups_are_claimed_by_a_commit_and_never_after_a_stop(step: tuple[Phase, Event], seen: Situation) -> None:
    phase, action = (decision := decide(*step, seen)).phase, decision.action
    if isinstance(action, Commit):
        assert 0 <= action.groups <= min(seen.groups_wanted, CLAIMED_AT_ONCE)
        assert not action.groups or (phase is Phase.COMMITTING and not seen.stop_requested)


@given(steps, situations)
def test_finished_work_does_not_wait_long_for_its_commit(step: tuple[Phase, Event], seen: Situation) -> None:
    action = decide(*step, seen).action
    if seen.uncommitted_since is not None and decide(*step, seen).phase is Phase.WORKING:
        assert isinstance(action, Wait)
        assert action.until is not None
        assert action.until <= max(seen.now, seen.uncommitted_since + COMMIT_AGE_S)


@given(steps, situations)
def test_groups_that_are_wanted_are_asked_for_within_a_horizon_of_the_last_commit(
    step: tuple[Phase, Event], seen: Situation
) -> None:
    decision = decide(*step, seen)
    if seen.groups_wanted and seen.uncommitted_since is None and decision.phase is Phase.WORKING:
        assert isinstance(decision.action, Wait)
        assert decision.action.until is not None
        assert decision.action.until <= seen.last_commit_at + seen.horizon_s


def test_rings_of_the_alarm_do_not_put_off_a_claim() -> None:
    seen = Situation(NOW, groups_held=1, requests_in_flight=1, groups_wanted=3, last_commit_at=NOW)
    decision = decide(Phase.COMMITTING, Committed(1, 4), seen)
    phases = [decision.phase]
    for ring in range(1, 6):
        if decision.phase is Phase.WORKING:
            decision = decide(Phase.WORKING, Waited(True), replace(seen, now=NOW + 0.3 * ring))
            phases.append(decision.phase)
    assert phases == [*4 * [Phase.WORKING], Phase.COMMITTING]
    assert decision.action == Commit(3)


@given(steps, situations)
def test_a_crawl_is_found_to_be_over_only_with_nothing_claimed_and_all_committed(
    step: tuple[Phase, Event], seen: Situation
) -> None:
    phase, event = step
    if decide(phase, event, seen).phase is Phase.CONCLUDING and phase is Phase.COMMITTING:
        assert seen.groups_held == 0
        assert seen.uncommitted_since is None


@given(steps, situations)
def test_the_end_comes_after_the_last_commit_or_without_a_lease(step: tuple[Phase, Event], seen: Situation) -> None:
    if decide(*step, seen).phase is Phase.ENDED:
        assert step[0] in (Phase.CLOSING, Phase.REJOINING)


@given(steps, situations, st.data())
def test_after_a_stop_any_events_end_the_crawl_soon(
    step: tuple[Phase, Event], seen: Situation, data: st.DataObject
) -> None:
    seen, visited = replace(seen, stop_requested=True), list[Phase]()
    decision = decide(*step, seen)
    while decision.phase is not Phase.ENDED:
        assert decision.phase not in visited
        visited.append(decision.phase)
        event = data.draw(st.sampled_from(ENDS[type(decision.action)]))
        seen = replace(data.draw(situations), stop_requested=True)
        decision = decide(decision.phase, event, seen)


def test_the_picture_has_each_row_and_no_character_that_mermaid_cuts_a_text_at() -> None:
    arrows = {line.strip().partition(": ")[0]: line.partition(": ")[2] for line in mermaid().splitlines()}
    for row in TRANSITIONS:
        label = f"{row.event.__name__} [{row.guard.name}]" if row.guard.name else row.event.__name__
        assert label in arrows[f"{row.source.name} --> {row.target.name}"].split("<br/>")
    assert not any(";" in text or ":" in text for text in arrows.values())


def test_the_module_prints_the_picture(capsys: pytest.CaptureFixture[str]) -> None:
    scheduler.main()
    assert capsys.readouterr().out == mermaid()
