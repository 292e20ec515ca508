"""The crawl: claim politeness groups, work on each in a task of its own, commit what they bring.

A *turn* of the store is the heartbeat: it commits what the workers have finished and claims what is
ready next, in one transaction. Between turns, each worker goes through its group's batch of URLs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

from crawler.clock import Clock, boot_s
from crawler.engine import operator_log, sitemaps
from crawler.engine.answers import Answers
from crawler.engine.claim_capacity import HOLD_S, ClaimCapacity
from crawler.engine.crawl_policy import CrawlPolicy
from crawler.engine.gate import Blocked, Fetcher, Gate
from crawler.engine.lease import Lease
from crawler.engine.outbox import Load, Outbox, Waiters
from crawler.engine.page_budget import budget_for, is_for_pages
from crawler.engine.parser_pool import PageReader
from crawler.engine.progress import Progress
from crawler.engine.recording import Listening, Recorder, of_document, record_all
from crawler.engine.robots_cache import RobotsKeeper
from crawler.engine.sampling_frame import SamplingFrame
from crawler.engine.tasks import background_task
from crawler.engine.termination import Ending
from crawler.engine.visits import Visits
from crawler.errors import ConnectionLost, LeaseLost, StoreError
from crawler.frontier.decide import Outcome, Queued, adopt_mains, before_robots
from crawler.frontier.politeness import Pace
from crawler.frontier.revisit_outcome import after_refusal
from crawler.frontier.scope import Scope
from crawler.model import Fetched, PageFacts, RobotsAction
from crawler.reasons import EndCode, RunEnd
from crawler.store.protocols import Claim, ClaimLimits, RequestRow, RobotsNews, Store

_BATCH = Load(100, 1_000, 16 << 20)  # in one transaction, when outcomes come fast
_CROWD = Load(250, 2_000, 64 << 20)  # when the workers wait for the store, or for whoever takes the pages
_BATCH_AGE_S = 0.5  # and how long the first of them waits, when they come slowly
_GATHER_S = 0.02  # a turn asked for waits this long for company, while others work
_CLAIMED_AT_ONCE = 500  # groups in one turn: the first of them need not wait for all
_STOP_GRACE_S = 6.0  # requests in flight get this long to end when the crawl is stopped

OnPages = Callable[[list[Outcome]], Awaitable[None]]


class Crawl:
    """One run of a crawl over a store. ``recorder`` gets requests before a commit, ``on_pages`` pages after it;
    ``frame`` is closed, and its sample drawn, when nothing is left that it does not hold back."""

    def __init__(
        self,
        store: Store,
        fetcher: Fetcher,
        clock: Clock,
        policy: CrawlPolicy,
        scope: Scope,
        reader: PageReader,
        on_pages: OnPages | None = None,
        frame: SamplingFrame | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        self.progress = Progress(clock.now())
        self._store = store
        self._clock = clock
        self._policy = policy
        self._scope = scope
        self._on_pages = on_pages
        self.frame = frame
        self._recorder = recorder
        if recorder is not None:
            fetcher = Listening(fetcher, lambda recorded: self._news().record(recorded))
        crawl = policy.crawl
        self.lease = Lease(store, clock, policy.longest_request_s)
        self.gate = Gate(
            fetcher, clock, policy.politeness, crawl.concurrency, self._log, scope.blocks, self.lease, reader.has_room
        )
        self.slowest = self.gate.slowest
        met = self.progress.met
        self._robots = RobotsKeeper(policy.robots, self.gate, store, clock, self._commit_robots, self._visited, met)
        self._answers = Answers(policy, scope, self._robots, store, reader, self._record)
        self.budget = budget_for(crawl.max_pages, policy.politeness.delay_s, is_shared=store.lease_s is not None)
        self._pending = Outbox()
        self._wake = asyncio.Event()
        self._uncrowded = asyncio.Event()
        self._uncrowded.set()
        self._turned = asyncio.Event()  # set by the next turn to begin, when it has ended
        self._workers: dict[int, tuple[str, asyncio.Task[None]]] = {}
        self._robots_waiters = Waiters()
        self._stopping: RunEnd | None = None
        self._hurried = False
        self._crowd = ClaimCapacity(clock)
        self._failure: BaseException | None = None
        self._ending = Ending(store, policy, clock, self.progress, self.budget, self._crowd)
        self._visits = Visits(policy, scope, clock, self.gate, self._robots, self._answers, self.budget, self)

    async def run(self) -> RunEnd:
        """Crawl until nothing is left or a limit is reached; returns why it ended. Raises :class:`StoreError` where the
        store fails: everything committed is kept."""
        await self._robots.remember()
        await self.budget.begin(self._store)
        self._store.on_news(self._wake.set)
        try:
            await self._ending.queue_due()
            while True:
                with suppress(LeaseLost):
                    return await self._lasting_as_the_lease()
                await self._hand_in_late()
                if (ended_by := self._stopping or await self._begin_anew()) is not None:
                    return ended_by
        except (StoreError, asyncio.CancelledError) as error:
            if not isinstance(error, ConnectionLost):  # a full disk may have room for what was sent
                with suppress(StoreError):
                    await self._hand_in_late()
            raise
        finally:
            await self._cancel_workers()

    async def _lasting_as_the_lease(self) -> RunEnd:
        async with background_task(self.lease.keep(self._wake.set, self.fail)):
            ended_by = await self._turns()
            await self._drain()
            if self._failure is not None:
                raise self._failure
            return ended_by

    async def _hand_in_late(self) -> None:
        """What was sent is logged, and pauses are kept; the rest is queued, and may be another worker's by now."""
        await self._cancel_workers()
        pending, self._pending = self._pending, Outbox()
        try:
            await record_all(self._recorder, pending.recorded)
        finally:  # an archive whose disk is full is no reason to forget what the store has room for
            await self._store.commit_late(pending.late(self._clock.now()))
            self.progress.committed(pending.requests, [])

    async def _begin_anew(self) -> RunEnd | None:
        self._robots_waiters.clear()
        self.budget.drop()
        self.gate.forget()
        self.lease.lost = None
        if not await self._store.rejoin(self._clock.now()):
            self.progress.stopped_by_operator = True
            self.stop(RunEnd(EndCode.SUPERSEDED))
        return self._stopping

    @property
    def stopped(self) -> bool:
        """Whether it was told to end, rather than came to its end."""
        return self._stopping is not None

    def stop(self, why: RunEnd) -> None:
        """End soon: nothing new is sent, requests in flight are waited for (6 s at most). May be called twice."""
        if self._stopping is None:
            self._stopping = why
            self.gate.close()
        self._wake.set()

    def fail(self, error: BaseException) -> None:
        """End with this error, unless there was another before."""
        self._failure = self._failure or error
        self._hurry()

    async def settle(self) -> None:
        """Wait for a turn, which comes at once: all that was decided on so far is committed by it."""
        self._hurry()
        await self._turned.wait()

    # --- the heartbeat ------------------------------------------------------------------------

    async def _turns(self) -> RunEnd:
        while True:
            await self._turn()
            if self.lease.lost is not None:
                raise self.lease.lost
            if self._failure is not None:
                self.stop(RunEnd(EndCode.BUG))
            if self._stopping is not None:
                return self._stopping
            if not self._workers and self._pending.since is None:
                ended_by = await self._nothing_under_way()
                if ended_by is not None:
                    return ended_by
            else:
                await self._until_due()
            if self._out_of_time():
                self.stop(RunEnd(EndCode.MAX_TIME))

    async def _nothing_under_way(self) -> RunEnd | None:
        """With nothing claimed: the end, or a wait for the first group whose time comes."""
        found = await self._ending.look(self.frame)
        if isinstance(found, RunEnd):
            return found
        if found > 0:
            await self._woken(found)
        self.progress.idle_for = None
        return None

    async def _until_due(self) -> None:
        """Until the next turn is worth it: a worker hurries, a batch is full, or old, or groups may be ready."""
        while not self._hurried and self._stopping is None and not self._out_of_time():
            if self._pending.since is not None:
                if (left_s := self._pending.since + _BATCH_AGE_S - self._clock.now()) <= 0:
                    return
                await self._woken(left_s)
            elif not await self._woken(self._crowd.horizon_s() if self._room() else None):
                return
        if self._hurried and any(self.gate.in_flight(group) for group, _ in self._workers.values()):
            await self._clock.sleep(_GATHER_S)
        self._hurried = False

    async def _woken(self, seconds: float | None) -> bool:
        """Wait to be woken, ``seconds`` and --max-time at most; False where time ran out."""
        limit_s = self._policy.crawl.max_time_s
        if limit_s is not None:
            left_s = max(0.0, self.progress.started_at + limit_s - self._clock.now())
            seconds = left_s if seconds is None else min(seconds, left_s)
        try:
            await asyncio.wait_for(self._wake.wait(), seconds)
        except TimeoutError:
            return False
        self._wake.clear()
        return True

    async def _turn(self) -> None:
        pending, self._pending = self._pending, Outbox()
        turned, self._turned = self._turned, asyncio.Event()
        pages = [outcome for outcome in pending.outcomes if outcome.page is not None]
        committed = sum(outcome.queued.seen is None for outcome in pages)
        now = self._clock.now()
        limits = ClaimLimits(
            groups=min(self._room(), _CLAIMED_AT_ONCE),
            urls_per_group=self._crowd.urls_per_group(self._policy.politeness.delay_s),
            horizon_s=self._crowd.horizon_s(),
            pages_per_site=self._ending.pages_per_site(),
            max_depth=self._scope.settings.max_depth,
            below_depth=None if self.frame is None else self.frame.held_from,
            held=len(self._workers),
            max_pages=self.budget.limit,
            pages_under_way=(under_way := self.budget.under_way - committed),
            pages_kept=under_way + self.budget.keep(0 if self._stopping else len(self._workers)),
            pages_per_group=0 if self._stopping else self.budget.per_group,
        )
        pending.visited = {group for group in pending.visited if not self._robots.is_visiting(group)}
        asked_at = boot_s()
        try:
            await record_all(self._recorder, pending.recorded)
            result = await self._store.commit(pending.turn(now, limits, self.progress.worst_lag_s))
        except (StoreError, asyncio.CancelledError) as error:
            if isinstance(error, LeaseLost) and error.committed:
                self.progress.committed(pending.requests, pending.outcomes)
            else:
                self._pending.take_back(pending)
            turned.set()
            raise
        self.lease.begin(asked_at)
        operator_log.commit_took(boot_s() - asked_at, len(pending.requests))
        self.progress.committed(pending.requests, pending.outcomes)
        self.budget.settle(committed, result.grant)
        self._crowd.share = result.share
        adopt_mains(self._scope, result.mirrors)
        self._robots.learn(result.mirrors)
        self.gate.stored(pending.paces)
        self._robots_waiters.tell(result.robots_ids)
        for claim in result.claims:
            self._start(claim)
        if len(result.claims) == limits.groups > 0:
            self._hurry()  # for the others
            if len(self._workers) >= self._policy.crawl.claimed_groups:
                self._crowd.seen(now)
        if pages and self._on_pages is not None:
            await self._on_pages(pages)
        self._uncrowded.set()
        turned.set()

    def _room(self) -> int:
        if self._stopping is not None or not (self.budget.is_free or self.budget.hopes or self.budget.only_revisits):
            return 0
        return self.budget.more_groups(max(0, self._policy.crawl.claimed_groups - len(self._workers)))

    def _out_of_time(self) -> bool:
        limit_s = self._policy.crawl.max_time_s
        return limit_s is not None and self._clock.now() >= self.progress.started_at + limit_s

    async def _drain(self) -> None:
        """Wait for what is in flight, then commit the rest."""
        if tasks := [task for _, task in self._workers.values()]:
            await asyncio.wait(tasks, timeout=_STOP_GRACE_S)
            await self._cancel_workers()
        await self._turn()

    async def _cancel_workers(self) -> None:
        for _, task in self._workers.values():
            task.cancel()
        await asyncio.gather(*(task for _, task in self._workers.values()), return_exceptions=True)

    def _news(self, *, hurry: bool = False) -> Outbox:
        """The pending turn, to be added to; wakes the heartbeat where that is due."""
        pending = self._pending
        if pending.since is None:
            pending.since = self._clock.now()
            self._wake.set()
        if hurry or pending.reaches(_BATCH):
            self._hurry()
        return pending

    def _hurry(self) -> None:
        self._hurried = True
        self._wake.set()

    def _log(self, row: RequestRow, group: str, pace: Pace) -> None:
        pending = self._news(hurry=pace.backoff_s > 0 or row.retry_after_s is not None)
        pending.requests.append(row)
        pending.paces[group] = pace

    def spared(self) -> None:
        """No page came of one that was to be taken: there may be room for another."""
        self._wake.set()

    def _visited(self, group: str) -> None:
        self._news().visited.add(group)

    def book(self, outcome: Outcome) -> None:
        pending = self._news()
        pending.book(outcome)
        if pending.reaches(_CROWD):
            self._uncrowded.clear()

    def _record(self, queued: Queued, result: Fetched, facts: PageFacts) -> None:
        if self._recorder is not None:
            self._news().record(of_document(queued, result, facts))

    async def _commit_robots(self, news: RobotsNews, group: str) -> int | None:
        """Hand in a robots copy and wait until it is committed; nobody waits once the crawl is stopping."""
        adopt_mains(self._scope, [(news.site, news.main_site)])
        if self._policy.crawl.sitemaps and not (self.frame is not None and self.frame.is_closed):
            news = replace(news, sitemaps=await sitemaps.to_ask_for(news, self._robots, self._scope))
        if self._policy.updates.rup:
            news = replace(news, sitemaps=(*news.sitemaps, *sitemaps.rupinfo_to_ask_for(news, self._scope)))
        pending = self._news(hurry=True)
        pending.robots.append(news)
        pending.paces[group] = self.gate.pace(group)  # with the Crawl-delay: it must survive a crash
        if self._stopping is not None:
            return None
        return await self.gate.idle(self._robots_waiters.wait(news.site_id))

    def _start(self, claim: Claim) -> None:
        self.gate.enter(claim.group, claim.pace)
        task = asyncio.create_task(self._work(claim))
        self._workers[claim.group_id] = (claim.group, task)
        self.budget.groups += is_for_pages(claim)
        task.add_done_callback(lambda done: self._release(claim, done))
        self.progress.active = len(self._workers)

    def _release(self, claim: Claim, task: asyncio.Task[None]) -> None:
        del self._workers[claim.group_id]
        self.budget.groups -= is_for_pages(claim)
        pending = self._news(hurry=True)
        pending.paces[claim.group] = self.gate.leave(claim.group)
        pending.released.append(claim.group_id)
        self.progress.active = len(self._workers)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)

    async def _work(self, claim: Claim) -> None:
        """Go through a claimed group's batch: one URL after the other, each at its time."""
        deferred: set[int] = set()
        for queued in claim.urls:
            if not self._uncrowded.is_set():
                await self.gate.idle(self._uncrowded.wait())
            if (
                self._stopping is not None
                or self.budget.ends_work()
                or self._crowd.has_too_many(len(self._workers))
                or self.gate.wait_s(claim.group) > self._crowd.hold_s()
            ):
                return
            if queued.site_id in deferred:
                continue
            while (early_s := queued.due_at - self._clock.now()) > 0:
                await self.gate.idle(self._clock.sleep(early_s))
            with suppress(Blocked):  # it is the next claim's to end it
                await self._take(queued, claim, deferred)

    async def _take(self, queued: Queued, claim: Claim, deferred: set[int]) -> None:
        site = claim.sites[queued.site_id]
        known = site.copy
        if (ended := before_robots(queued, self._scope)) is not None:
            self.book(after_refusal(ended, self._policy.revisit, self._clock.now()))
        else:
            copy = await self._robots.in_force(site, claim.group)
            # What was just asked for is waited with: at this group's next turn it might have run out again.
            hold_s = self._crowd.hold_s() if copy is known else HOLD_S
            if copy.action is RobotsAction.DEFER:
                deferred.add(queued.site_id)
            elif self._stopping is None and self.gate.wait_s(claim.group) <= hold_s:
                await self._visits.visit(queued, site, claim.group)
