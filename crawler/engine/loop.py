"""The loop of a crawl: it commits, claims, waits, looks for work, and finds out that the crawl is over.

The loop is :meth:`CrawlLoop._crawl`. Two pure functions decide for it:

* :func:`next_commit`, while there is work: commit now, and claim how many groups, or wait?
* :func:`when_idle`, when nothing is claimed: claim, wait, add work, or conclude?

Invariants of the decisions, each held by ``tests/unit/engine/test_loop.py``:

1. A commit asks for no more groups than are wanted, and for :data:`CLAIMED_AT_ONCE` at most.
2. While finished work is not committed, no wait is longer than ``commit_age_s``. While further groups are wanted, they
   are asked for ``claim_age_s`` after the last commit at the latest, however often the alarm rings.
3. The crawl is concluded only if no group can be asked before its end and no work could be added, or if its page limit
   is reached.
"""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from enum import Enum, auto
from typing import TYPE_CHECKING, assert_never

import msgspec

from crawler.clock import boot_s
from crawler.engine import operator_log
from crawler.engine.claim_task import ClaimTasks
from crawler.engine.recording import record_all
from crawler.engine.shutdown import stop_at
from crawler.engine.tasks import background_task
from crawler.engine.termination import conclude
from crawler.errors import ConnectionLost, LeaseLost, StoreError
from crawler.frontier.scope import adopt_mains
from crawler.reasons import EndCode, RunEnd
from crawler.store.rows import ClaimLimits, CommitBatch, UrlLimits, Waiting

if TYPE_CHECKING:
    from crawler.engine.crawl import Crawl

#: How long finished work waits for its commit, in seconds, if it comes slowly.
COMMIT_AGE_S = 0.5
#: How long an urgent commit is delayed, in seconds, if other requests are in flight.
GATHER_S = 0.02
#: How many groups one commit claims at most: the first of them need not wait for all.
CLAIMED_AT_ONCE = 500
#: How often an idle worker reads the store, in seconds, for work that other workers have made.
POLL_EVERY_S = 1.0
#: How long requests in flight get to end after a stop, in seconds.
STOP_GRACE_S = 6.0


# --- while there is work ----------------------------------------------------------------------


class Work(msgspec.Struct, frozen=True):
    """The facts that decide when to commit. Times in seconds since the epoch."""

    now: float
    is_due: bool  # the wait for this commit is over
    groups_wanted: int  # that this worker could work on beside those it holds
    more_ready: bool  # the last commit claimed as many groups as it asked for
    requests_in_flight: int
    uncommitted_since: float | None  # when the oldest finished work that is not committed was finished
    commit_urgent: bool  # a batch is full, a task waits for its commit, or half of the groups held were given back
    commit_awaited: bool  # the task that waits holds others up: the commit does not wait for further work
    last_commit_at: float  # when the last commit was over
    pages_need_commit: bool  # tasks wait for pages, or this worker has spare ones
    commit_age_s: float  # how long finished work waits for its commit, if it comes slowly
    claim_age_s: float  # how long after a commit the next one comes that only claims


class Commit(msgspec.Struct, frozen=True):
    """Commit all finished work now, and claim this number of groups at most."""

    groups: int


class Gather(msgspec.Struct, frozen=True):
    """A commit is due: let finished work of the next :data:`GATHER_S` join it."""


class Wait(msgspec.Struct, frozen=True):
    """Wait until something happens, and until the time ``until`` at most. ``waiting_for`` is the group that is next."""

    until: float | None
    waiting_for: Waiting | None = None


def next_commit(seen: Work) -> Commit | Gather | Wait:
    """Whether to commit now, and how many groups to claim.

    The age of a commit with nothing but a claim counts from the last commit. From now, every ring of the alarm would
    put it off.
    """
    if not seen.is_due:
        if seen.commit_urgent or seen.more_ready:
            if seen.requests_in_flight and not seen.commit_awaited:
                return Gather()
        elif seen.uncommitted_since is not None:
            if seen.now < (due_at := seen.uncommitted_since + seen.commit_age_s):
                return Wait(due_at)
        elif not seen.groups_wanted and not seen.pages_need_commit:
            return Wait(None)
        elif seen.now < (
            due_at := seen.last_commit_at + (COMMIT_AGE_S if seen.pages_need_commit else seen.claim_age_s)
        ):
            return Wait(due_at)
    return Commit(min(seen.groups_wanted, CLAIMED_AT_ONCE))


# --- when nothing is claimed ------------------------------------------------------------------


class Idle(msgspec.Struct, frozen=True):
    """The facts that decide what follows when nothing is claimed. Times in seconds since the epoch."""

    now: float
    ready: Waiting | None  # the group that is ready first
    others_at_work: bool  # they may still queue a group for this run
    nothing_added: bool  # the step ADD_WORK has just been tried in vain
    adds_work_at: float  # when that step is due although groups wait
    has_other_workers: bool  # other workers may take part in this crawl
    horizon_s: float  # how long before its time a group may be claimed
    ends_at: float  # when the run ends at the latest


class Step(Enum):
    """The step of the loop when nothing is claimed and it does not wait."""

    ADD_WORK = auto()  # revisits that are due, or pages that a sample holds back
    CLAIM = auto()  # the group that is ready
    CONCLUDE = auto()


def when_idle(seen: Idle) -> Step | Wait:
    """The next step when nothing is claimed and everything is committed."""
    poll_at = seen.now + POLL_EVERY_S
    add_at = math.inf if seen.nothing_added else seen.adds_work_at
    if (seen.ready is None or seen.ready.until > seen.now) and seen.now >= add_at:
        return Step.ADD_WORK
    if seen.ready is not None:
        if (until := seen.ready.until - seen.horizon_s) <= seen.now:
            return Step.CLAIM
        if min(until, add_at) < seen.ends_at:
            return Wait(min(until, add_at, poll_at if seen.has_other_workers else math.inf), seen.ready)
    if seen.others_at_work:
        return Wait(poll_at)
    return Step.CONCLUDE if seen.nothing_added else Step.ADD_WORK


# --- the loop ---------------------------------------------------------------------------------


class CrawlLoop:
    """Runs a crawl. All commits, and all waiting between them, are here.

    Invariants:

    1. One commit is under way at most, and groups are claimed by commits alone, never after a stop was requested.
    2. The archive gets the work of a commit, and ``write_ahead`` its news, before the store does. The consumer of
       pages gets them after it.
    3. A crawl ends with a commit of all finished work, or without a lease with the part that holds without one.
    4. Whatever ends the crawl, all claim tasks have ended when :meth:`run` returns or raises.

    Cancellation and each failure of the loop end the crawl at once. The requests that were sent and what their answers
    forbid are then committed if the store accepts them. Other finished work is dropped: its URLs are queued.
    """

    def __init__(self, context: Crawl) -> None:
        self._context = context
        self._claim_tasks = ClaimTasks(context)
        self._last_commit_at = -math.inf  # when it was over

    async def run(self) -> RunEnd:
        """Crawl until nothing is left, a limit is reached or a stop is requested; return why it ended.

        Raises :class:`StoreError` if the store fails, the error of the consumer of pages, and the first failure of a
        task.
        """
        context, fail = self._context, self._context.shutdown.fail
        end: RunEnd | None = None
        try:
            async with (
                background_task(self._stop_in_time(), fail),
                background_task(self._end_grace(), fail),
            ):
                while end is None:
                    try:
                        async with background_task(self._keep_lease(), fail):
                            end = await self._crawl()
                    except LeaseLost:
                        end = await self._rejoin()
        except BaseException as error:
            if not isinstance(error, ConnectionLost):  # a full disk may have room for the requests that were sent
                with suppress(StoreError):
                    await self._hand_in_late()
            raise
        finally:
            await self._claim_tasks.cancel()
        context.shutdown.raise_failure()
        return end

    async def _crawl(self) -> RunEnd:
        """Crawl to the end, with nothing claimed at first. Raises :class:`LeaseLost`."""
        context = self._context
        await context.main_sites.remember()
        await self._queue_revisits()
        is_due, more_ready = True, False
        while (stopped_by := context.shutdown.end) is None:
            match next_commit(self._work(is_due=is_due, more_ready=more_ready)):
                case Wait(until):
                    is_due = not await self._wait(until)
                case Gather():
                    await context.clock.sleep(GATHER_S)
                    is_due = True
                case Commit(groups):
                    claimed = await self._commit(groups)
                    is_due, more_ready = self._is_idle, claimed == groups > 0
                    if is_due and (end := await self._find_work()) is not None:
                        await self._commit(0)
                        return end
            if context.shutdown.lease_lost:
                raise LeaseLost("the lease of this worker was lost between two commits")
        if context.bench.held and context.outbox.uncommitted_since is not None:
            await self._commit(0)  # what is finished need not wait for the requests in flight
        await self._claim_tasks.drain()
        await self._commit(0)
        return stopped_by

    async def _find_work(self) -> RunEnd | None:
        """Nothing is claimed: wait for work, or make some. Returns why the crawl is over if there is none.

        The store is only read until there is something to claim or to commit.
        """
        context, nothing_added = self._context, False
        if context.pages.is_reached and not context.pages.only_revisits:
            if not await self._may_revisit():
                return await self._conclude()
            context.pages.only_revisits = True
            await context.store.prepare(0)
        while self._is_idle:
            seen = await self._idle(nothing_added=nothing_added)
            match when_idle(seen):
                case Wait(until, waiting_for):
                    context.progress.note_wait(waiting_for, context.sample.adds_work_at)
                    await self._wait(until)
                    context.progress.note_wait(None)
                    nothing_added = False
                    if context.pages.is_limited:
                        return None  # a commit counts the pages of other workers
                case Step.CLAIM:
                    return None
                case Step.ADD_WORK:
                    may_draw = seen.ready is None or context.sample.adds_work_at <= context.clock.now()
                    if await self._queue_revisits() or (may_draw and await context.sample.add_work()):
                        return None
                    nothing_added = True
                case Step.CONCLUDE:
                    return await self._conclude()
                case other:
                    assert_never(other)
        return None

    async def _conclude(self) -> RunEnd | None:
        """Why the crawl is over; ``None`` if the consumer of pages has added URLs, or a group was queued meanwhile."""
        context = self._context
        if await self._is_added_to():
            return None
        return await conclude(context.store, context.policy, context.pages, context.progress, self._ends_at)

    @property
    def _is_idle(self) -> bool:
        """Whether nothing is claimed, nothing is to be committed, and the crawl goes on."""
        context = self._context
        is_going_on = context.shutdown.end is None and not context.shutdown.lease_lost
        is_committed = context.outbox.uncommitted_since is None and not context.alarm.is_urgent
        return is_going_on and is_committed and not context.bench.held

    # --- what the decisions see ---------------------------------------------------------------

    def _work(self, *, is_due: bool, more_ready: bool) -> Work:
        context, now, held = self._context, self._context.clock.now(), self._context.bench.held
        return Work(
            now=now,
            is_due=is_due,
            groups_wanted=context.pages.more_groups(context.bench.may_claim(), held),
            more_ready=more_ready,
            requests_in_flight=context.gate.requests_in_flight,
            uncommitted_since=context.outbox.uncommitted_since,
            commit_urgent=context.alarm.is_urgent or context.outbox.released >= max(1, held),
            commit_awaited=context.alarm.is_awaited,
            last_commit_at=self._last_commit_at,
            pages_need_commit=context.store.lease_s is not None and context.pages.needs_commit,
            commit_age_s=COMMIT_AGE_S * context.inputs.rarer,
            claim_age_s=context.bench.horizon_s(now) * context.inputs.rarer,
        )

    async def _idle(self, *, nothing_added: bool) -> Idle:
        """The facts as the store has them. An order that is carried out may still queue URLs, as other workers may."""
        context, now, ends_at = self._context, self._context.clock.now(), self._ends_at
        ready = await context.store.next_ready(now)
        others_at_work = (ready is None or ready.until >= ends_at) and (
            bool(context.progress.open_orders) or await context.store.others_at_work(ends_at)
        )
        return Idle(
            now=now,
            ready=ready,
            others_at_work=others_at_work,
            nothing_added=nothing_added,
            adds_work_at=context.sample.adds_work_at,
            has_other_workers=context.store.lease_s is not None,
            horizon_s=context.bench.horizon_s(now),
            ends_at=ends_at,
        )

    @property
    def _ends_at(self) -> float:
        """When the run ends at the latest, in seconds since the epoch."""
        return self._context.clock.now() + self._context.inputs.side.lease.run_time_left_s()

    # --- the steps ----------------------------------------------------------------------------

    async def _wait(self, until: float | None) -> bool:
        """Wait for a ring of the alarm, until ``until`` at most; returns whether it rang."""
        return await self._context.alarm.wait(None if until is None else until - self._context.clock.now())

    async def _is_added_to(self) -> bool:
        """Whether the consumer of pages added URLs since the last call. True also if a stop ended the wait for it."""
        if self._context.inputs.all_consumed is None:
            return False
        consumed = asyncio.ensure_future(self._context.inputs.all_consumed())
        stopped = asyncio.create_task(self._context.shutdown.wait())
        try:
            await asyncio.wait([consumed, stopped], return_when=asyncio.FIRST_COMPLETED)
            return consumed.result() if consumed.done() else True
        finally:
            consumed.cancel()
            stopped.cancel()

    async def _queue_revisits(self) -> int:
        """Queue what is due and was not visited by this run, so that the run ends. Returns how many were queued."""
        context, revisit = self._context, self._context.policy.revisit
        if not revisit.enabled:
            return 0
        now, since = context.clock.now(), context.progress.started_at
        return await context.store.revisits.queue_due(revisit, now, since, self._pages_per_site())

    async def _may_revisit(self) -> bool:
        """Whether a revisit is queued, or may be: by this run when it is due, or by an order of the operator."""
        context = self._context
        may_queue = context.policy.revisit.enabled or context.progress.open_orders > 0
        return may_queue or await context.store.revisits.are_queued()

    def _pages_per_site(self) -> int | None:
        return 0 if self._context.pages.only_revisits else self._context.policy.limits.max_pages_per_site

    async def _commit(self, groups: int) -> int:
        """Commit what the outbox holds, claim ``groups`` at most, and start a task on each claim.

        Returns how many groups were claimed. The commit is one transaction: all of it lands or nothing. If it fails,
        the news of sites goes back into the outbox. If the commit landed and only its answer was lost, the error
        says so (:class:`~crawler.errors.LeaseLost`: ``committed``).
        """
        context = self._context
        contents = context.outbox.next_batch()
        pages = [outcome for outcome in contents.outcomes if outcome.page is not None]
        new_pages = sum(outcome.queued.seen is None for outcome in pages)
        contents.now = now = context.clock.now()
        contents.limits = self._url_limits()
        contents.claim_limits = ClaimLimits(
            groups=groups,
            urls_per_group=context.bench.urls_per_group(now),
            horizon_s=context.bench.horizon_s(now),
            held=context.bench.held,
            pages=context.pages.request(new_pages),
        )
        contents.worst_lag_s = context.progress.worst_lag_s
        asked_at = boot_s()
        try:
            await record_all(context.inputs.recorder, contents.recorded, context.waits_for_room)
            await self._write_ahead(contents)
            result = await context.store.commit(contents)
        except BaseException as error:
            if isinstance(error, LeaseLost) and error.committed:
                context.progress.committed(contents.requests, contents.outcomes)
                context.outbox.finish(contents)
            else:
                context.outbox.put_back(contents)
            raise
        context.inputs.side.lease.begin(asked_at)
        operator_log.commit_took(boot_s() - asked_at, len(contents.requests))
        context.progress.committed(contents.requests, contents.outcomes)
        context.sample.committed(contents.requests, now)
        context.pages.learn(new_pages, result.grant)
        adopt_mains(context.scope, result.heard.mirrors)
        context.scope.adopt_hosts(result.heard.adopted_hosts)
        context.main_sites.learn(result.heard.mirrors)
        context.main_sites.refute(result.heard.refuted)
        context.outbox.committed(result.robots_ids)
        for claim in result.claims:
            self._claim_tasks.start(claim)
        context.bench.note_claims(len(result.claims), groups, result.share, now)
        if pages and context.inputs.on_pages is not None:
            await context.inputs.on_pages(pages)
        context.outbox.finish(contents)
        self._last_commit_at = context.clock.now()
        return len(result.claims)

    async def _write_ahead(self, contents: CommitBatch) -> None:
        if self._context.inputs.write_ahead is not None:
            await self._context.inputs.write_ahead(contents)

    def _url_limits(self) -> UrlLimits:
        max_depth = self._context.policy.limits.max_depth
        return UrlLimits(max_depth, self._pages_per_site(), self._context.sample.held_from)

    # --- the lease ----------------------------------------------------------------------------

    async def _rejoin(self) -> RunEnd | None:
        """The lease was lost: let go of all groups, and join the run again unless a stop was requested.

        Returns why the crawl ends, if it does.
        """
        context = self._context
        await self._hand_in_late()
        if not context.shutdown.requested:
            context.outbox.forget_tasks()
            context.pages.lose()
            context.shutdown.lease_lost = False
            if not await context.store.rejoin(context.clock.now()):
                context.shutdown.request(RunEnd(EndCode.SUPERSEDED))
        return context.shutdown.end

    async def _hand_in_late(self) -> None:
        """End all claim tasks, and commit what holds without a lease: requests sent, and the news of their sites.

        All other finished work is dropped: its URLs are still queued, and another worker may have claimed them.
        """
        context = self._context
        await self._claim_tasks.cancel()
        contents = context.outbox.next_batch()
        contents.unread |= contents.read  # their outcomes are dropped
        contents.now, contents.limits = context.clock.now(), self._url_limits()
        try:
            await record_all(context.inputs.recorder, contents.recorded, lambda _: False)
            await self._write_ahead(contents)
        finally:  # an archive whose disk is full is no reason to lose what the store has room for
            await context.store.commit_late(contents)
            context.progress.committed(contents.requests, [])

    # --- in the background --------------------------------------------------------------------

    async def _keep_lease(self) -> None:
        try:
            await self._context.inputs.side.lease.keep()
        except LeaseLost:
            self._context.shutdown.lose_lease()

    async def _stop_in_time(self) -> None:
        context = self._context
        if (limit_s := context.policy.limits.max_time_s) is not None:
            await stop_at(context.progress.started_at + limit_s, context.shutdown.request, context.clock)

    async def _end_grace(self) -> None:
        """Cancel the requests that are in flight when the grace after a request to stop is over."""
        await self._context.shutdown.wait_for_grace(STOP_GRACE_S)
        await self._claim_tasks.cancel()
