"""The driver of a crawl: carries out what the scheduler decides. All waiting, and all talk with the store, is here."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import assert_never

from crawler.clock import Clock, boot_s
from crawler.engine import operator_log, scheduler
from crawler.engine.alarm import Alarm
from crawler.engine.claim_capacity import ClaimCapacity
from crawler.engine.claim_task import ClaimTasks
from crawler.engine.crawl_policy import CrawlPolicy
from crawler.engine.gate import Gate
from crawler.engine.lease import Lease
from crawler.engine.main_sites import MainSites
from crawler.engine.outbox import Outbox
from crawler.engine.page_budget import Budget
from crawler.engine.part_exchange import PartExchange
from crawler.engine.progress import Progress
from crawler.engine.recording import Recorder, record_all
from crawler.engine.sampling_frame import SamplingFrame
from crawler.engine.scheduler import Action, Decision, Event, Phase, Situation
from crawler.engine.shutdown import Shutdown, stop_at
from crawler.engine.tasks import background_task
from crawler.engine.termination import conclude
from crawler.errors import ConnectionLost, LeaseLost, StoreError
from crawler.frontier.decide import Outcome
from crawler.frontier.scope import Scope, adopt_mains
from crawler.model import Purpose
from crawler.reasons import EndCode, RunEnd
from crawler.store.protocols import ClaimLimits, EngineStore, RequestRow

#: Takes the pages of a commit that has landed. The crawl waits for it: a slow consumer slows the crawl.
OnPages = Callable[[list[Outcome]], Awaitable[None]]
#: Waits until the consumer of pages has handled all that it got; returns whether URLs were added since the last call.
Settled = Callable[[], Awaitable[bool]]


class Driver:
    """Carries out the actions of :mod:`crawler.engine.scheduler`, one at a time, and reports how each ended.

    Invariants:

    1. One action is carried out at a time, so one commit is under way at most.
    2. The archive gets the work of a commit before the store does, the consumer of pages after it.
    3. Whatever ends the crawl, all claim tasks have ended when :meth:`run` returns or raises.

    Cancellation and each failure of an action end the crawl at once. The requests that were sent and the pauses that
    they ask for are then committed if the store accepts them. Other finished work is dropped: its URLs are queued.
    """

    def __init__(
        self,
        *,
        store: EngineStore,
        clock: Clock,
        policy: CrawlPolicy,
        scope: Scope,
        lease: Lease,
        gate: Gate,
        main_sites: MainSites,
        budget: Budget,
        capacity: ClaimCapacity,
        outbox: Outbox,
        alarm: Alarm,
        shutdown: Shutdown,
        claim_tasks: ClaimTasks,
        progress: Progress,
        frame: SamplingFrame | None,
        recorder: Recorder | None,
        on_pages: OnPages | None,
        settled: Settled | None = None,
        exchange: PartExchange | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._policy = policy
        self._scope = scope
        self._lease = lease
        self._gate = gate
        self._main_sites = main_sites
        self._budget = budget
        self._capacity = capacity
        self._outbox = outbox
        self._alarm = alarm
        self._shutdown = shutdown
        self._claim_tasks = claim_tasks
        self._progress = progress
        self._frame = frame
        self._recorder = recorder
        self._on_pages = on_pages
        self._settled = settled
        self._exchange = exchange
        self._end: RunEnd | None = None  # that the crawl came to by itself
        self._last_commit_at = -math.inf  # when it was over

    async def run(self) -> RunEnd:
        """Crawl until nothing is left, a limit is reached or a stop is requested; return why it ended.

        Raises :class:`StoreError` if the store fails, the error of the consumer of pages, and the first failure of a
        task.
        """
        self._store.on_news(self._alarm.ring)
        try:
            async with (
                background_task(self._stop_in_time(), self._shutdown.fail),
                background_task(self._end_grace(), self._shutdown.fail),
                background_task(self._receive(), self._shutdown.fail),
            ):
                decision = scheduler.FIRST
                while decision.phase is not Phase.ENDED:
                    async with background_task(self._keep_lease(), self._shutdown.fail):
                        decision = await self._follow(decision)
                    if decision.phase is Phase.REJOINING:
                        decision = await self._step(decision)
        except BaseException as error:
            if not isinstance(error, ConnectionLost):  # a full disk may have room for the requests that were sent
                with suppress(StoreError):
                    await self._hand_in_late()
            raise
        finally:
            await self._claim_tasks.cancel()
        self._shutdown.raise_failure()
        return self._end or self._shutdown.end or RunEnd(EndCode.STOPPED)

    async def _follow(self, decision: Decision) -> Decision:
        """Carry out one decision after the other, until the crawl is over or the lease is lost."""
        while decision.phase not in (Phase.ENDED, Phase.REJOINING):
            decision = await self._step(decision)
        return decision

    async def _step(self, decision: Decision) -> Decision:
        assert decision.action is not None, "a crawl that is over takes no step"
        event = await self._carry_out(decision.action)
        return scheduler.decide(decision.phase, event, self._observe())

    async def _carry_out(self, action: Action) -> Event:
        match action:
            case scheduler.Prepare():
                return await self._prepare()
            case scheduler.Commit(groups):
                return await self._commit(groups)
            case scheduler.Wait(until, waiting_for):
                self._progress.note_wait(waiting_for, None if self._frame is None else self._frame.closes_at)
                woken = await self._alarm.wait(None if until is None else until - self._clock.now())
                self._progress.note_wait(None)
                return scheduler.Waited(woken)
            case scheduler.Gather(seconds):
                await self._clock.sleep(seconds)
                return scheduler.Waited(woken=False)
            case scheduler.SeeFrontier():
                ready = await self._store.next_ready(self._clock.now())
                return scheduler.FrontierSeen(ready, ready is None and await self._others_may_queue())
            case scheduler.Restrict():
                self._budget.restrict_to_revisits()
                await self._store.prepare(0)
                return scheduler.Restricted()
            case scheduler.QueueRevisits():
                return scheduler.RevisitsQueued(await self._queue_revisits())
            case scheduler.DrawSample():
                if self._frame is not None:
                    await self._frame.close()
                return scheduler.SampleDrawn()
            case scheduler.Conclude():
                if await self._is_added_to():
                    return scheduler.Concluded(False)
                self._end = await conclude(self._store, self._policy, self._budget, self._progress)
                return scheduler.Concluded(self._end is not None)
            case scheduler.Drain():
                await self._claim_tasks.drain()
                return scheduler.Drained()
            case scheduler.Rejoin():
                return await self._rejoin()
            case _:
                assert_never(action)

    async def _others_may_queue(self) -> bool:
        """Whether another worker, or another part of the crawl, may still queue a URL."""
        if await self._store.others_at_work():
            return True
        return self._exchange is not None and await self._exchange.may_bring_work()

    async def _receive(self) -> None:
        if self._exchange is not None:
            await self._exchange.keep_receiving(self._alarm.ring)

    async def _is_added_to(self) -> bool:
        """Whether the consumer of pages added URLs since the last call. Waits until it is idle, or until a stop."""
        if self._settled is None:
            return False
        settled, stopped = asyncio.ensure_future(self._settled()), asyncio.create_task(self._shutdown.wait())
        try:
            await asyncio.wait([settled, stopped], return_when=asyncio.FIRST_COMPLETED)
            return settled.done() and settled.result()
        finally:
            settled.cancel()
            stopped.cancel()

    def _observe(self) -> Situation:
        budget, frame = self._budget, self._frame
        limits = self._policy.limits
        room = self._capacity.room(limits.claimed_groups, limits.concurrency, self._gate.groups_in_pause())
        return Situation(
            now=self._clock.now(),
            stop_requested=self._shutdown.requested,
            lease_lost=self._shutdown.lease_lost,
            groups_held=len(self._claim_tasks),
            requests_in_flight=self._gate.requests_in_flight,
            uncommitted_since=self._outbox.uncommitted_since,
            commit_urgent=self._alarm.is_urgent,
            commit_awaited=self._alarm.is_awaited,
            groups_wanted=budget.more_groups(room),
            horizon_s=self._capacity.horizon_s(),
            last_commit_at=self._last_commit_at,
            page_limit_reached=budget.is_spent,
            revisits_only=budget.only_revisits,
            revisits_enabled=self._policy.revisit.enabled,
            pages_with_others=budget.waits_for_others,
            sample_to_draw=frame is not None and not frame.is_closed,
            frame_closes_at=math.inf if frame is None else frame.closes_at,
            has_other_workers=self._store.lease_s is not None,
        )

    # --- the actions --------------------------------------------------------------------------

    async def _prepare(self) -> Event:
        await self._main_sites.remember()
        await self._budget.begin(self._store)
        await self._queue_revisits()
        return scheduler.Prepared()

    async def _queue_revisits(self) -> int:
        """Queue what is due and was not visited by this run, so that the run ends. Returns how many were queued."""
        revisit, now = self._policy.revisit, self._clock.now()
        if not revisit.enabled:
            return 0
        return await self._store.revisits.queue_due(revisit, now, self._progress.started_at, self._pages_per_site())

    def _pages_per_site(self) -> int | None:
        return 0 if self._budget.only_revisits else self._policy.limits.max_pages_per_site

    async def _commit(self, groups: int) -> Event:
        """Commit what the outbox holds, claim ``groups`` at most, and start a task on each claim.

        The commit is one transaction: all of it lands or nothing. If it fails, the
        requests and paces go back into the outbox. If the commit landed and only its answer was lost, the error says so
        (:class:`~crawler.errors.LeaseLost`: ``committed``).
        """
        contents = self._outbox.take()
        pages = [outcome for outcome in contents.outcomes if outcome.page is not None]
        new_pages = sum(outcome.queued.seen is None for outcome in pages)
        contents.now = now = self._clock.now()
        contents.limits, contents.worst_lag_s = self._limits(groups, new_pages), self._progress.worst_lag_s
        asked_at = boot_s()
        try:
            await record_all(self._recorder, contents.recorded)
            result = await self._store.commit(contents)
        except BaseException as error:
            if isinstance(error, LeaseLost) and error.committed:
                self._progress.committed(contents.requests, contents.outcomes)
                self._outbox.finish(contents)
            else:
                self._outbox.put_back(contents)
            if isinstance(error, LeaseLost):
                return scheduler.LeaseWasLost()
            raise
        self._lease.begin(asked_at)
        operator_log.commit_took(boot_s() - asked_at, len(contents.requests))
        self._progress.committed(contents.requests, contents.outcomes)
        if self._frame is not None and any(map(_is_answer, contents.requests)):
            self._frame.answered_at = now
        self._budget.settle(new_pages, result.grant)
        self._capacity.learn_share(result.share)
        adopt_mains(self._scope, result.mirrors)
        self._main_sites.learn(result.mirrors)
        self._main_sites.refute(result.refuted)
        self._gate.stored(contents.paces)
        self._outbox.committed(result.robots_ids)
        for claim in result.claims:
            self._claim_tasks.start(claim)
        self._capacity.note_claims(len(result.claims), groups, self._policy.limits.claimed_groups, now)
        if pages and self._on_pages is not None:
            await self._on_pages(pages)
        self._outbox.finish(contents)
        self._last_commit_at = self._clock.now()
        return scheduler.Committed(len(result.claims), groups)

    def _limits(self, groups: int, new_pages: int) -> ClaimLimits:
        """The bounds of a commit that claims ``groups`` at most and takes in ``new_pages``."""
        budget, held = self._budget, len(self._claim_tasks)
        is_stopping = self._shutdown.requested
        under_way = budget.under_way - new_pages
        return ClaimLimits(
            groups=groups,
            urls_per_group=self._capacity.urls_per_group(self._policy.politeness.delay_s),
            horizon_s=self._capacity.horizon_s(),
            pages_per_site=self._pages_per_site(),
            max_depth=self._policy.limits.max_depth,
            below_depth=None if self._frame is None else self._frame.held_from,
            held=held,
            max_pages=budget.limit,
            pages_under_way=under_way,
            pages_kept=under_way + budget.keep(0 if is_stopping else held),
            pages_per_group=0 if is_stopping else budget.per_group,
        )

    async def _rejoin(self) -> Event:
        await self._hand_in_late()
        if not self._shutdown.requested:
            self._end = None
            self._outbox.forget_tasks()
            self._budget.drop()
            self._gate.forget()
            self._shutdown.regain_lease()
            if not await self._store.rejoin(self._clock.now()):
                self._shutdown.request(RunEnd(EndCode.SUPERSEDED))
        return scheduler.Rejoined()

    async def _hand_in_late(self) -> None:
        """End all claim tasks, and commit the part that holds without a lease: requests sent and their pauses.

        All other finished work is dropped: its URLs are still queued, and another worker may have claimed them.
        """
        await self._claim_tasks.cancel()
        contents = self._outbox.take()
        try:
            await record_all(self._recorder, contents.recorded)
        finally:  # an archive whose disk is full is no reason to lose what the store has room for
            await self._store.commit_late(contents)
            self._progress.committed(contents.requests, [])

    # --- in the background --------------------------------------------------------------------

    async def _keep_lease(self) -> None:
        try:
            await self._lease.keep()
        except LeaseLost:
            self._shutdown.lose_lease()

    async def _stop_in_time(self) -> None:
        if (limit_s := self._policy.limits.max_time_s) is not None:
            await stop_at(self._progress.started_at + limit_s, self._shutdown.request, self._clock)

    async def _end_grace(self) -> None:
        """Cancel the requests that are in flight when the grace after a request to stop is over."""
        await self._shutdown.wait()
        await self._clock.sleep(scheduler.STOP_GRACE_S)
        await self._claim_tasks.cancel()


def _is_answer(request: RequestRow) -> bool:
    """Whether a page or sitemap was answered by more than a temporary failure."""
    is_robots = request.purpose is Purpose.ROBOTS
    return not is_robots and request.status is not None and request.status < 500 and request.status != 429
