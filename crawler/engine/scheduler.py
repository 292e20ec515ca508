"""The scheduler of a crawl: what to claim, when to commit, what to wait for, and when the crawl is over. Pure.

:func:`decide` is a function of a phase, an event and the situation of the crawl. It returns the next phase and the
one action that this phase asks for; ``ENDED`` asks for none. :class:`crawler.engine.driver.Driver` carries the action
out and reports the event that the action ended with. The seam is these three steps, in a loop:

    event = await carry_out(decision.action)
    situation = observe()
    decision = decide(decision.phase, event, situation)

:data:`FIRST` is the first decision. :data:`TRANSITIONS` is the whole table: the first row whose phase, event and guard
match is taken. :func:`mermaid` draws the table; ``ARCHITECTURE.md`` contains that picture.

Invariants, each held by ``tests/unit/engine/test_scheduler.py``:

1. Every phase has a row without a guard for each event that its action can end with: no event is unexpected.
2. Groups are claimed in ``COMMITTING`` alone, and never after a stop was requested.
3. While finished work is not committed, no wait is longer than :data:`COMMIT_AGE_S`. While further groups are wanted,
   they are asked for ``horizon_s`` after the last commit at the latest, however often the alarm rings.
4. ``ENDED`` is reached through ``CLOSING``, which commits the remaining work, or through ``REJOINING``, which
   commits the part that holds without a lease.
5. From every phase ``ENDED`` can be reached. After a stop was requested, no phase is visited twice on the way, except
   that each lost lease adds one visit of ``REJOINING``.
6. The crawl is found to be over only if nothing is claimed and nothing is left to commit.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from crawler.store.protocols import Waiting

#: How long finished work waits for its commit, in seconds, if it comes slowly.
COMMIT_AGE_S = 0.5
#: How long an urgent commit is delayed, in seconds, if other requests are in flight.
GATHER_S = 0.02
#: How many groups one commit claims at most: the first of them need not wait for all.
CLAIMED_AT_ONCE = 500
#: How often the store is looked at, in seconds, for work that other workers have made. They also notify.
LOOK_EVERY_S = 1.0
#: How long requests in flight get to end after a stop, in seconds.
STOP_GRACE_S = 6.0


class Phase(Enum):
    """The step that the crawl is in."""

    PREPARING = "loads the results of earlier runs"
    COMMITTING = "commits finished work and claims groups, in one transaction"
    WORKING = "claim tasks go through their groups, no commit is due"
    GATHERING = "a commit is due, finished work of the next 20 ms joins it"
    CHECKING = "nothing is claimed, the store is asked for the next group"
    IDLE = "nothing is claimed, waits for a group or for other workers"
    RESTRICTING = "the page limit is reached, admits nothing but revisits"
    QUEUEING_REVISITS = "queues the revisits that are due"
    DRAWING_SAMPLE = "closes the sampling frame and draws the sample"
    CONCLUDING = "asks the store why nothing is left"
    DRAINING = "stopped, waits for the requests in flight"
    CLOSING = "commits the remaining work and claims nothing"
    REJOINING = "the lease was lost, lets go of all groups and joins the run again"
    ENDED = "is over"


# --- events -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prepared:
    """The driver has loaded the results of earlier runs."""


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit has landed. It claimed ``claimed`` groups of the ``asked`` for."""

    claimed: int = 0
    asked: int = 0


@dataclass(frozen=True, slots=True)
class LeaseWasLost:
    """The store refused a commit: other workers may hold the groups of this worker now."""


@dataclass(frozen=True, slots=True)
class Waited:
    """A wait is over: ``woken`` by something that happened, or else by time."""

    woken: bool


@dataclass(frozen=True, slots=True)
class FrontierSeen:
    """The group that is ``ready`` first, if any is queued, and whether other workers may still queue some."""

    ready: Waiting | None
    others_at_work: bool


@dataclass(frozen=True, slots=True)
class Restricted:
    """Nothing but revisits is admitted from now on."""


@dataclass(frozen=True, slots=True)
class RevisitsQueued:
    """``count`` revisits were queued."""

    count: int


@dataclass(frozen=True, slots=True)
class SampleDrawn:
    """The sampling frame was closed; the URLs drawn are queued."""


@dataclass(frozen=True, slots=True)
class Concluded:
    """The reason why nothing is left is known; or not ``is_over``: something was queued meanwhile."""

    is_over: bool


@dataclass(frozen=True, slots=True)
class Drained:
    """No request is in flight any more."""


@dataclass(frozen=True, slots=True)
class Rejoined:
    """This worker is one of the run again, with nothing claimed; or a stop was requested."""


Event = (
    Prepared
    | Committed
    | LeaseWasLost
    | Waited
    | FrontierSeen
    | Restricted
    | RevisitsQueued
    | SampleDrawn
    | Concluded
    | Drained
    | Rejoined
)


# --- actions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prepare:
    """Load the results of earlier runs. Ends with :class:`Prepared`."""


@dataclass(frozen=True, slots=True)
class Commit:
    """Commit all finished work and claim ``groups`` at most. Ends with :class:`Committed` or :class:`LeaseWasLost`."""

    groups: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait until something happens, and until the time ``until`` at most.

    The driver waits for the group ``waiting_for`` if one is named. Ends with :class:`Waited`.
    """

    until: float | None
    waiting_for: Waiting | None = None


@dataclass(frozen=True, slots=True)
class Gather:
    """Wait for ``seconds``, whatever happens. Ends with :class:`Waited`."""

    seconds: float


@dataclass(frozen=True, slots=True)
class SeeFrontier:
    """Ask the store for the next group and for other workers. Ends with :class:`FrontierSeen`."""


@dataclass(frozen=True, slots=True)
class Restrict:
    """Admit nothing but revisits. Ends with :class:`Restricted`."""


@dataclass(frozen=True, slots=True)
class QueueRevisits:
    """Queue the revisits that are due. Ends with :class:`RevisitsQueued`."""


@dataclass(frozen=True, slots=True)
class DrawSample:
    """Close the sampling frame. Ends with :class:`SampleDrawn`."""


@dataclass(frozen=True, slots=True)
class Conclude:
    """Find out why nothing is left. Ends with :class:`Concluded`."""


@dataclass(frozen=True, slots=True)
class Drain:
    """Wait for requests in flight; they end ``STOP_GRACE_S`` after a stop at the latest. Ends with :class:`Drained`."""


@dataclass(frozen=True, slots=True)
class Rejoin:
    """Cancel all claim tasks, commit what holds without a lease, join the run again. Ends with :class:`Rejoined`."""


Action = (
    Prepare | Commit | Wait | Gather | SeeFrontier | Restrict | QueueRevisits | DrawSample | Conclude | Drain | Rejoin
)


# --- the situation and the guards -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Situation:
    """The facts that decide beside the event. Times in seconds since the epoch."""

    now: float
    stop_requested: bool = False
    lease_lost: bool = False
    groups_held: int = 0  # claimed groups with a worker
    requests_in_flight: int = 0
    uncommitted_since: float | None = None  # when the oldest finished work that is not committed was finished
    commit_urgent: bool = False  # a batch is full, or a task waits for its commit
    commit_awaited: bool = False  # the task that waits holds others up: the commit does not wait for further work
    groups_wanted: int = 0  # that this worker could work on beside those it holds
    horizon_s: float = 1.0  # how long before its time a group may be claimed
    last_commit_at: float = -math.inf  # when the last commit was over
    page_limit_reached: bool = False
    revisits_only: bool = False
    revisits_enabled: bool = False
    pages_with_others: bool = False  # other workers hold all pages that the limit leaves
    sample_to_draw: bool = False
    frame_closes_at: float = math.inf  # when the sample is drawn if no page is answered until then
    has_other_workers: bool = False  # other workers may take part in this crawl


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition on an event and the situation, with its name in the picture."""

    name: str
    holds: Callable[[Event, Situation], bool]


def _is_due(event: Event, seen: Situation) -> bool:
    assert isinstance(event, Waited)
    if seen.commit_urgent:
        return True
    if seen.uncommitted_since is None and not event.woken:
        return True  # groups may be ready
    due_at = _next_commit_at(seen)
    return due_at is not None and seen.now >= due_at


def _claimed_all(event: Event, seen: Situation) -> bool:
    return isinstance(event, Committed) and event.claimed == event.asked > 0


def _has_to_wait(event: Event, seen: Situation) -> bool:
    assert isinstance(event, FrontierSeen)
    return event.ready is not None or event.others_at_work


def _is_overdue(event: Event, seen: Situation) -> bool:
    assert isinstance(event, FrontierSeen)
    is_waiting = event.ready is None or event.ready.until > seen.now
    return is_waiting and seen.sample_to_draw and seen.now >= seen.frame_closes_at


ALWAYS = Guard("", lambda event, seen: True)
LEASE_LOST = Guard("lease lost", lambda event, seen: seen.lease_lost)
STOP = Guard("stop requested", lambda event, seen: seen.stop_requested)
URGENT_BUT_BUSY = Guard(
    "urgent, requests in flight",
    lambda event, seen: seen.commit_urgent and not seen.commit_awaited and seen.requests_in_flight > 0,
)
DUE = Guard("commit due", _is_due)
CLAIMED_ALL_BUT_BUSY = Guard(
    "claimed all it asked for, requests in flight",
    lambda event, seen: _claimed_all(event, seen) and seen.requests_in_flight > 0,
)
CLAIMED_ALL = Guard("claimed all it asked for", _claimed_all)
UNDER_WAY = Guard("work under way", lambda event, seen: seen.groups_held > 0 or seen.uncommitted_since is not None)
LIMIT_REACHED = Guard("page limit reached", lambda event, seen: seen.page_limit_reached and not seen.revisits_enabled)
ONLY_REVISITS_LEFT = Guard(
    "page limit reached, revisits enabled",
    lambda event, seen: seen.page_limit_reached and seen.revisits_enabled and not seen.revisits_only,
)
PAGES_WITH_OTHERS = Guard("other workers hold the last pages", lambda event, seen: seen.pages_with_others)
HAS_TO_WAIT = Guard("a group or another worker to wait for", _has_to_wait)
REVISITS = Guard("revisits enabled", lambda event, seen: seen.revisits_enabled)
SOME_QUEUED = Guard("some were due", lambda event, seen: isinstance(event, RevisitsQueued) and event.count > 0)
SAMPLE = Guard("sample not drawn", lambda event, seen: seen.sample_to_draw)
OVERDUE = Guard("sampling frame overdue", _is_overdue)
OVER = Guard("nothing is left", lambda event, seen: isinstance(event, Concluded) and event.is_over)


# --- the table --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Transition:
    """In ``source``, ``event`` leads to ``target`` if ``guard`` holds."""

    source: Phase
    event: type[Event]
    guard: Guard
    target: Phase


TRANSITIONS = (
    Transition(Phase.PREPARING, Prepared, ALWAYS, Phase.COMMITTING),
    Transition(Phase.COMMITTING, LeaseWasLost, ALWAYS, Phase.REJOINING),
    Transition(Phase.COMMITTING, Committed, LEASE_LOST, Phase.REJOINING),
    Transition(Phase.COMMITTING, Committed, STOP, Phase.DRAINING),
    Transition(Phase.COMMITTING, Committed, CLAIMED_ALL_BUT_BUSY, Phase.GATHERING),
    Transition(Phase.COMMITTING, Committed, CLAIMED_ALL, Phase.COMMITTING),
    Transition(Phase.COMMITTING, Committed, UNDER_WAY, Phase.WORKING),
    Transition(Phase.COMMITTING, Committed, LIMIT_REACHED, Phase.CONCLUDING),
    Transition(Phase.COMMITTING, Committed, ONLY_REVISITS_LEFT, Phase.RESTRICTING),
    Transition(Phase.COMMITTING, Committed, PAGES_WITH_OTHERS, Phase.IDLE),
    Transition(Phase.COMMITTING, Committed, ALWAYS, Phase.CHECKING),
    Transition(Phase.WORKING, Waited, LEASE_LOST, Phase.REJOINING),
    Transition(Phase.WORKING, Waited, STOP, Phase.COMMITTING),
    Transition(Phase.WORKING, Waited, URGENT_BUT_BUSY, Phase.GATHERING),
    Transition(Phase.WORKING, Waited, DUE, Phase.COMMITTING),
    Transition(Phase.WORKING, Waited, ALWAYS, Phase.WORKING),
    Transition(Phase.GATHERING, Waited, ALWAYS, Phase.COMMITTING),
    Transition(Phase.RESTRICTING, Restricted, ALWAYS, Phase.CHECKING),
    Transition(Phase.CHECKING, FrontierSeen, LEASE_LOST, Phase.REJOINING),
    Transition(Phase.CHECKING, FrontierSeen, STOP, Phase.DRAINING),
    Transition(Phase.CHECKING, FrontierSeen, OVERDUE, Phase.DRAWING_SAMPLE),
    Transition(Phase.CHECKING, FrontierSeen, HAS_TO_WAIT, Phase.IDLE),
    Transition(Phase.CHECKING, FrontierSeen, REVISITS, Phase.QUEUEING_REVISITS),
    Transition(Phase.CHECKING, FrontierSeen, SAMPLE, Phase.DRAWING_SAMPLE),
    Transition(Phase.CHECKING, FrontierSeen, ALWAYS, Phase.CONCLUDING),
    Transition(Phase.IDLE, Waited, LEASE_LOST, Phase.REJOINING),
    Transition(Phase.IDLE, Waited, STOP, Phase.DRAINING),
    Transition(Phase.IDLE, Waited, ALWAYS, Phase.COMMITTING),
    Transition(Phase.QUEUEING_REVISITS, RevisitsQueued, SOME_QUEUED, Phase.COMMITTING),
    Transition(Phase.QUEUEING_REVISITS, RevisitsQueued, SAMPLE, Phase.DRAWING_SAMPLE),
    Transition(Phase.QUEUEING_REVISITS, RevisitsQueued, ALWAYS, Phase.CONCLUDING),
    Transition(Phase.DRAWING_SAMPLE, SampleDrawn, ALWAYS, Phase.COMMITTING),
    Transition(Phase.CONCLUDING, Concluded, OVER, Phase.CLOSING),
    Transition(Phase.CONCLUDING, Concluded, ALWAYS, Phase.COMMITTING),
    Transition(Phase.DRAINING, Drained, ALWAYS, Phase.CLOSING),
    Transition(Phase.CLOSING, Committed, ALWAYS, Phase.ENDED),
    Transition(Phase.CLOSING, LeaseWasLost, ALWAYS, Phase.REJOINING),
    Transition(Phase.REJOINING, Rejoined, STOP, Phase.ENDED),
    Transition(Phase.REJOINING, Rejoined, ALWAYS, Phase.COMMITTING),
)

_ROWS: dict[tuple[Phase, type[Event]], list[Transition]] = {}
for _row in TRANSITIONS:
    _ROWS.setdefault((_row.source, _row.event), []).append(_row)


# --- the decision -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Decision:
    """The next phase, and the action that it asks for: none if the crawl is over."""

    phase: Phase
    action: Action | None


#: How a crawl begins.
FIRST = Decision(Phase.PREPARING, Prepare())


def decide(phase: Phase, event: Event, seen: Situation) -> Decision:
    """The decision of the first row of :data:`TRANSITIONS` that matches.

    Raises :class:`ValueError` if no row does: the driver has reported an event that no action of ``phase`` ends with.
    """
    for row in _ROWS.get((phase, type(event)), ()):
        if row.guard.holds(event, seen):
            return Decision(row.target, _action(row.target, event, seen))
    raise ValueError(f"{type(event).__name__} cannot happen in the phase {phase.name}")


def _action(phase: Phase, event: Event, seen: Situation) -> Action | None:
    match phase:
        case Phase.PREPARING:
            return Prepare()
        case Phase.COMMITTING:
            return Commit(0 if seen.stop_requested else min(seen.groups_wanted, CLAIMED_AT_ONCE))
        case Phase.WORKING:
            return Wait(_next_commit_at(seen))
        case Phase.GATHERING:
            return Gather(GATHER_S)
        case Phase.CHECKING:
            return SeeFrontier()
        case Phase.IDLE:
            return _wait_for_group(event, seen)
        case Phase.RESTRICTING:
            return Restrict()
        case Phase.QUEUEING_REVISITS:
            return QueueRevisits()
        case Phase.DRAWING_SAMPLE:
            return DrawSample()
        case Phase.CONCLUDING:
            return Conclude()
        case Phase.DRAINING:
            return Drain()
        case Phase.CLOSING:
            return Commit(0)
        case Phase.REJOINING:
            return Rejoin()
        case Phase.ENDED:
            return None
        case _:
            assert_never(phase)


def _next_commit_at(seen: Situation) -> float | None:
    """When the next commit is due if nothing happens; ``None``: only an event can make one due.

    A commit with nothing but a claim is due a horizon after the last commit. Counted from now, it would be put off by
    every ring of the alarm.
    """
    if seen.commit_urgent:
        return seen.now
    if seen.uncommitted_since is not None:
        return seen.uncommitted_since + COMMIT_AGE_S
    return seen.last_commit_at + seen.horizon_s if seen.groups_wanted else None


def _wait_for_group(event: Event, seen: Situation) -> Wait:
    look_at = seen.now + LOOK_EVERY_S
    ready = event.ready if isinstance(event, FrontierSeen) else None
    if ready is None:
        return Wait(look_at)
    until = max(seen.now, min(ready.until - seen.horizon_s, seen.frame_closes_at))
    return Wait(min(until, look_at) if seen.has_other_workers else until, ready)


def mermaid() -> str:
    """:data:`TRANSITIONS` as a Mermaid state diagram: one arrow for all rows from one phase to another."""
    labels: dict[tuple[Phase, Phase], list[str]] = {}
    for row in TRANSITIONS:
        condition = f" [{row.guard.name}]" if row.guard.name else ""
        labels.setdefault((row.source, row.target), []).append(f"{row.event.__name__}{condition}")
    lines = ["stateDiagram-v2", *(f"    {phase.name}: {phase.name}<br/>{phase.value}" for phase in Phase)]
    lines += [f"    [*] --> {FIRST.phase.name}"]
    lines += [f"    {source.name} --> {target.name}: {'<br/>'.join(rows)}" for (source, target), rows in labels.items()]
    return "\n".join([*lines, f"    {Phase.ENDED.name} --> [*]"]) + "\n"


def main() -> None:
    """Print :func:`mermaid`: ``python -m crawler.engine.scheduler``."""
    sys.stdout.write(mermaid())


if __name__ == "__main__":
    main()
