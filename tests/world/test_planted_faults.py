"""The checks of the world bite: faults planted in the crawler are found within some worlds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from crawler.engine.gate import FetchPermit, Gate
from crawler.engine.lease import Lease
from crawler.engine.outbox import Outbox
from crawler.engine.workbench import Ticket, Workbench
from crawler.frontier import politeness
from crawler.frontier.decide import Outcome
from crawler.frontier.politeness import Pace, PauseFacts
from crawler.model import FetchResult, Request, State
from crawler.robots.readings import SiteRules
from crawler.robots.rules import Verdict
from crawler.store.rows import CommitBatch
from crawler.store.sql.commit import Committer
from crawler.store.sql.workers import Workers
from tests.records import replace
from tests.world.plan import draw_plan
from tests.world.worlds import run_world, shrink

Plant = Callable[[pytest.MonkeyPatch], None]
_WORLDS = 40


def no_pause(patch: pytest.MonkeyPatch) -> None:
    """The workbench forgets a pause now and then."""
    kept, calls = Workbench.done, []

    def done(bench: Workbench, ticket: Ticket, now: float, answer: PauseFacts, crawl_delay_s: float | None) -> Pace:
        calls.append(ticket)
        pace = kept(bench, ticket, now, answer, crawl_delay_s)
        if len(calls) % 7 == 0:
            bench._groups[ticket.group].pace = replace(pace, next_at=now)
        return pace

    patch.setattr(Workbench, "done", done)


def no_back_off(patch: pytest.MonkeyPatch) -> None:
    """The back-off after trouble does not grow."""
    patch.setattr(politeness, "backoff_after", lambda before_s, answer, settings: 0.0)


def verdict_ignored(patch: pytest.MonkeyPatch) -> None:
    """A path that robots.txt forbids is fetched."""
    patch.setattr(SiteRules, "verdict", lambda rules, path: Verdict(True, None, "", rules.reading))


def expiry_ignored(patch: pytest.MonkeyPatch) -> None:
    """A robots.txt is used after it has expired."""
    patch.setattr("crawler.robots.response.freshness", lambda headers, reading, settings, now: now + 1e7)


def two_at_once(patch: pytest.MonkeyPatch) -> None:
    """A page is requested twice, at the same time."""
    fetch, calls = Gate._fetch, []

    async def fetch_twice(gate: Gate, request: Request, permit: FetchPermit, ticket: Ticket, now: float) -> FetchResult:
        calls.append(request)
        again = [gate._fetcher.fetch(request)] if len(calls) % 5 == 0 else []
        answer, *_ = await asyncio.gather(fetch(gate, request, permit, ticket, now), *again)
        return answer

    patch.setattr(Gate, "_fetch", fetch_twice)


def outcome_dropped(patch: pytest.MonkeyPatch) -> None:
    """A commit loses an outcome."""
    kept = Committer.commit

    async def commit(committer: Committer, batch: CommitBatch) -> Any:
        kept_ones = [outcome for outcome in batch.outcomes if outcome.queued.id % 5]
        return await kept(committer, replace(batch, outcomes=kept_ones))

    patch.setattr(Committer, "commit", commit)


def request_lost(patch: pytest.MonkeyPatch) -> None:
    """A commit loses the row of a request."""
    kept = Committer.commit

    async def commit(committer: Committer, batch: CommitBatch) -> Any:
        return await kept(committer, replace(batch, requests=batch.requests[:1]))

    patch.setattr(Committer, "commit", commit)


def offers_lost(patch: pytest.MonkeyPatch) -> None:
    """The link to another site is lost."""
    add = Outbox.add_outcome

    def add_outcome(outbox: Outbox, outcome: Outcome) -> None:
        add(outbox, replace(outcome, offers=outcome.offers[:2], links=outcome.links[:2]))

    patch.setattr(Outbox, "add_outcome", add_outcome)


def pause_lost_in_a_crash(patch: pytest.MonkeyPatch) -> None:
    """The groups of a process that was killed are asked at once."""
    patch.setattr("crawler.store.sql.workers.after_crash", lambda pace, settings, now: Pace())


def groups_never_released(patch: pytest.MonkeyPatch) -> None:
    """The groups of a process that was killed stay claimed."""

    async def lost_groups(workers: Workers, now: float) -> set[int]:
        return set()

    patch.setattr(Workers, "lost_groups", lost_groups)


def block_ignored(patch: pytest.MonkeyPatch) -> None:
    """A host is asked although the operator has blocked it."""
    patch.setattr("crawler.frontier.operator._names_of", lambda url: ())


def visited_again(patch: pytest.MonkeyPatch) -> None:
    """A page that was fetched stays queued."""
    add = Outbox.add_outcome

    def add_outcome(outbox: Outbox, outcome: Outcome) -> None:
        if outcome.page is not None:
            outcome = replace(outcome, state=State.QUEUED, retry_at=outcome.page.fetched_at)
        add(outbox, outcome)

    patch.setattr(Outbox, "add_outcome", add_outcome)


def lease_ignored(patch: pytest.MonkeyPatch) -> None:
    """A worker whose lease is over goes on to send requests."""
    patch.setattr(Lease, "may_send", lambda lease: True)
    patch.setattr(Lease, "covers_request", lambda lease: True)
    patch.setattr(Gate, "knows_orders", lambda gate, until: None)  # to read them takes long enough to notice


def late_log_lost(patch: pytest.MonkeyPatch) -> None:
    """A worker that has lost its lease does not log the requests that it had sent."""

    async def commit_late(committer: Committer, batch: Any) -> None:
        pass

    patch.setattr(Committer, "commit_late", commit_late)


PLANTS: dict[Plant, str] = {
    no_pause: "cut short",
    no_back_off: "back-off cut short",
    verdict_ignored: "robots.txt forbids this",
    expiry_ignored: "had expired",
    two_at_once: "two requests at once",
    outcome_dropped: "lost|ended as|requested again|turns in a circle|does not end",
    request_lost: "are logged",
    offers_lost: "lost|ended as",
    pause_lost_in_a_crash: "cut short",
    groups_never_released: "turns in a circle|does not end",
    block_ignored: "blocked the host",
    visited_again: "requested again",
}
#: Faults that need several workers.
TEAM_PLANTS: dict[Plant, str] = {
    lease_ignored: "two requests at once|cut short|requested again",
    late_log_lost: "are logged",
}


#: One fault of each kind of check: pauses, one request at a time, states, crashes, blocks, leases.
_SHORT = (no_pause, two_at_once, outcome_dropped, pause_lost_in_a_crash, block_ignored, lease_ignored)
#: The first world tried, if the fault seldom matters in the worlds before it, or makes them endless. The others follow.
_FIRST_SEED = {block_ignored: 13, lease_ignored: 62, outcome_dropped: 3, pause_lost_in_a_crash: 6}


@pytest.mark.slow
@pytest.mark.parametrize(
    "plant",
    [plant if plant in _SHORT else pytest.param(plant, marks=pytest.mark.long) for plant in (*PLANTS, *TEAM_PLANTS)],
    ids=lambda plant: plant.__name__,
)
def test_a_planted_fault_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    words, workers = {**PLANTS, **TEAM_PLANTS}[plant].split("|"), 2 if plant in TEAM_PLANTS else 1
    worlds = _WORLDS * workers  # workers seldom lose a lease
    for number in range(worlds):
        seed = (number + _FIRST_SEED.get(plant, 0)) % worlds
        result = run_world(draw_plan(seed, 8, is_quiet=False, workers=workers))
        if result.violations:
            assert any(word in violation for violation in result.violations for word in words)
            return
    pytest.fail(f"not found in {worlds} worlds")


def test_a_world_that_fails_is_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    pause_lost_in_a_crash(monkeypatch)
    plans = (draw_plan(seed, 8, is_quiet=False, workers=1) for seed in range(99))
    plan = next(plan for plan in plans if run_world(plan).violations)
    smaller = shrink(plan, lambda plan: bool(run_world(plan).violations))
    assert len(smaller.events) == 1
    assert run_world(smaller).violations
    assert run_world(smaller).digest == run_world(smaller).digest
