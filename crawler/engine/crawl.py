"""One run of a crawl over a store: puts the parts of the engine together."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from crawler.clock import Clock
from crawler.engine.alarm import Alarm
from crawler.engine.answers import Answers
from crawler.engine.claim_capacity import ClaimCapacity
from crawler.engine.claim_task import ClaimContext, ClaimTasks
from crawler.engine.crawl_policy import CrawlPolicy
from crawler.engine.disk_reserve import DiskReserve, DiskWatch
from crawler.engine.driver import Driver, OnPages, Settled
from crawler.engine.gate import AddressBook, Connections, Fetcher, Gate
from crawler.engine.hooks import Hooks
from crawler.engine.lease import Lease
from crawler.engine.loop_lag import LoopLag, loop_lag_measured
from crawler.engine.main_sites import MainSites
from crawler.engine.operator import OperatorListener
from crawler.engine.outbox import Outbox
from crawler.engine.page_budget import Budget, budget_for
from crawler.engine.parser_pool import PageReader
from crawler.engine.part_exchange import PartExchange
from crawler.engine.progress import Progress
from crawler.engine.recording import Recorder, RecordingFetcher
from crawler.engine.reservations import Reservations
from crawler.engine.robots_cache import RobotsCache
from crawler.engine.robots_intake import CrawlRobotsIntake
from crawler.engine.rules_cache import RulesCache
from crawler.engine.sampling_frame import SamplingFrame
from crawler.engine.shutdown import Shutdown
from crawler.engine.tdmrep_cache import TdmrepCache
from crawler.errors import UsageError
from crawler.frontier.politeness import Pace
from crawler.frontier.scope import Scope
from crawler.reasons import ReasonCode, RunEnd
from crawler.store.protocols import EngineStore


class Crawl:
    """One run of a crawl. It runs once.

    ``recorder`` gets requests before the commit that they are part of, ``on_pages`` gets the pages after it. ``frame``
    is closed, and its sample drawn, when nothing is left but the pages that it holds back. The crawl pauses while a
    disk has less free space than ``reserve``. ``hooks`` has the functions of the caller; ``settled`` waits until the
    caller is done with all pages, and says whether it has added URLs since. ``exchange`` is with the other parts of the
    crawl.
    """

    def __init__(
        self,
        store: EngineStore,
        fetcher: Fetcher,
        clock: Clock,
        policy: CrawlPolicy,
        scope: Scope,
        reader: PageReader,
        lease: Lease,
        on_pages: OnPages | None = None,
        frame: SamplingFrame | None = None,
        recorder: Recorder | None = None,
        lag: LoopLag | None = None,
        reserve: DiskReserve | None = None,
        book: AddressBook | None = None,
        connections: Connections | None = None,
        hooks: Hooks | None = None,
        settled: Settled | None = None,
        exchange: PartExchange | None = None,
    ) -> None:
        self._lag = lag or LoopLag(clock)
        alarm, capacity = Alarm(), ClaimCapacity(clock)
        self._progress = progress = Progress(clock.now())
        self._outbox = outbox = Outbox(clock, alarm)
        if recorder is not None:
            fetcher = RecordingFetcher(fetcher, outbox)
        self._gate = gate = Gate(
            fetcher,
            clock,
            policy.politeness,
            policy.limits.concurrency,
            outbox,
            scope.blocks,
            lease,
            reader,
            self._lag,
            book,
            connections,
        )
        self._shutdown = shutdown = Shutdown(gate, alarm)
        intake = CrawlRobotsIntake(outbox, gate, policy, scope, frame)
        reservations = Reservations(gate, store, clock, outbox, capacity.hold_s)
        main_sites = MainSites(store, clock, outbox)
        rules_cache = RulesCache(policy.robots, gate, store, main_sites, reader, exchange)
        robots_cache = RobotsCache(
            policy.robots, gate, store, clock, intake, progress, main_sites, rules_cache, reservations
        )
        answers = Answers(policy, scope, rules_cache, store, reader, None if recorder is None else outbox, hooks)
        self._budget = budget = budget_for(
            policy.limits.max_pages, policy.politeness.delay_s, is_shared=store.lease_s is not None
        )
        claim_tasks = ClaimTasks(
            ClaimContext(
                policy=policy,
                scope=scope,
                clock=clock,
                gate=gate,
                main_sites=main_sites,
                rules_cache=rules_cache,
                robots_cache=robots_cache,
                tdmrep=TdmrepCache(gate, store, outbox) if policy.robots.settings.tdmrep else None,
                answers=answers,
                budget=budget,
                capacity=capacity,
                outbox=outbox,
                alarm=alarm,
                shutdown=shutdown,
                progress=progress,
            )
        )
        self._disk_watch = DiskWatch(reserve or DiskReserve(()), clock, gate, progress, shutdown.request)
        self._operator = OperatorListener(store, clock, gate, scope.blocks, outbox, shutdown, progress, frame)
        self._driver = Driver(
            store=store,
            clock=clock,
            policy=policy,
            scope=scope,
            lease=lease,
            gate=gate,
            main_sites=main_sites,
            budget=budget,
            capacity=capacity,
            outbox=outbox,
            alarm=alarm,
            shutdown=shutdown,
            claim_tasks=claim_tasks,
            progress=progress,
            frame=frame,
            recorder=recorder,
            on_pages=on_pages,
            settled=settled,
            exchange=exchange,
        )
        store.wait_for_room(lambda: progress.low_disk is not None and not shutdown.requested)
        self._store, self._scope, self._alarm = store, scope, alarm

    @property
    def progress(self) -> Progress:
        """The progress of the run so far."""
        return self._progress

    @property
    def budget(self) -> Budget:
        """The pages that the run may still fetch."""
        return self._budget

    @property
    def stopped(self) -> bool:
        """Whether the run was told to end, and did not come to its end by itself."""
        return self._shutdown.requested

    def slowest(self) -> tuple[str, Pace] | None:
        """The group with the latest next request among those worked on."""
        return self._gate.slowest()

    async def run(self) -> RunEnd:
        """Crawl until nothing is left, a limit is reached or a stop is requested; return why it ended.

        Raises :class:`crawler.errors.StoreError` if the store fails. What was committed is kept, also on cancellation.
        """
        async with self._disk_watch.watching(self._shutdown.fail):
            return await self._driver.run()

    def measuring_lag(self) -> AbstractAsyncContextManager[None]:
        """A context in which the lag of the event loop is measured, and taken out of the times of answers."""
        return loop_lag_measured(self._lag, self._progress)

    def obeying_operator(self) -> AbstractAsyncContextManager[None]:
        """A context in which the operator's orders are carried out.

        Orders that no crawl has carried out come first, so entering the context may take long.
        """
        return self._operator.listening()

    def stop(self, end: RunEnd) -> None:
        """End soon: send nothing new, and give requests in flight six seconds. Only the first call counts."""
        self._shutdown.request(end)

    async def add(self, urls: Sequence[str]) -> None:
        """Queue canonical URLs as seeds of the crawl, before it ends.

        Raises :class:`crawler.errors.UsageError` if one is out of scope; then none is queued.
        """
        refused = [(url, self._scope.refusal(url, 0, is_seed=True)) for url in urls]
        for url, refusal in refused:
            if refusal is not None and refusal.code is not ReasonCode.BLOCKED:
                raise UsageError(f"{url} is out of scope: {refusal.sentence}; name it as a seed of a new run")
        await self._store.add_seeds(refused)
        self._alarm.ring()

    async def settle(self) -> None:
        """Wait until every decision so far is committed. The run must be under way."""
        await self._outbox.flush()
