"""Puts the parts of the engine together: one frozen record, built in one place for each run of a crawl."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawler.clock import Clock
from crawler.engine.alarm import Alarm
from crawler.engine.answers import Answers
from crawler.engine.claim_capacity import ClaimCapacity
from crawler.engine.crawl_policy import CrawlPolicy
from crawler.engine.disk_reserve import DiskReserve
from crawler.engine.gate import AddressBook, Connections, Fetcher, Gate, Memory
from crawler.engine.hooks import Hooks
from crawler.engine.lease import Lease
from crawler.engine.loop_lag import LoopLag
from crawler.engine.main_sites import MainSites
from crawler.engine.outbox import Outbox
from crawler.engine.page_counter import PageCounter
from crawler.engine.parser_pool import PageReader
from crawler.engine.part_exchange import PartExchange
from crawler.engine.progress import Progress
from crawler.engine.recording import Recorder, RecordingFetcher
from crawler.engine.robots_cache import RobotsCache
from crawler.engine.robots_intake import CrawlRobotsIntake
from crawler.engine.rules_cache import RulesCache
from crawler.engine.sampling_frame import Sample
from crawler.engine.shutdown import Shutdown
from crawler.engine.tdmrep_cache import TdmrepCache
from crawler.frontier.decide import Outcome
from crawler.frontier.scope import Scope

if TYPE_CHECKING:
    from crawler.store.sections import Store

#: Takes the pages of a commit that has landed. The crawl waits for it: a slow consumer slows the crawl.
OnPages = Callable[[list[Outcome]], Awaitable[None]]
#: Waits until the consumer of pages has handled all that it got; returns whether URLs were added since the last call.
AllConsumed = Callable[[], Awaitable[bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """The parts of one run. The loop, the claim tasks and the operator's tasks share them."""

    # --- from the caller ----------------------------------------------------------------------
    store: Store
    clock: Clock
    policy: CrawlPolicy
    scope: Scope
    lease: Lease
    lag: LoopLag
    reserve: DiskReserve
    sample: Sample
    recorder: Recorder | None
    on_pages: OnPages | None
    all_consumed: AllConsumed | None
    exchange: PartExchange | None

    # --- built here ---------------------------------------------------------------------------
    alarm: Alarm
    shutdown: Shutdown
    progress: Progress
    pages: PageCounter
    capacity: ClaimCapacity
    outbox: Outbox
    gate: Gate
    main_sites: MainSites
    rules_cache: RulesCache
    robots_cache: RobotsCache
    tdmrep: TdmrepCache | None  # None: it is not wanted
    answers: Answers

    def waits_for_room(self) -> bool:
        """Whether work that a full disk does not take is tried again: the crawl pauses for the disk, and goes on."""
        return self.progress.low_disk is not None and not self.shutdown.requested


def assemble(
    *,
    store: Store,
    fetcher: Fetcher,
    clock: Clock,
    policy: CrawlPolicy,
    scope: Scope,
    reader: PageReader,
    lease: Lease,
    on_pages: OnPages | None = None,
    all_consumed: AllConsumed | None = None,
    hooks: Hooks | None = None,
    sample: Sample | None = None,
    recorder: Recorder | None = None,
    exchange: PartExchange | None = None,
    lag: LoopLag | None = None,
    reserve: DiskReserve | None = None,
    book: AddressBook | None = None,
    connections: Connections | None = None,
    memory: Memory | None = None,
) -> Engine:
    """The engine of one run over ``store``.

    ``recorder`` gets requests before the commit that they are part of, ``on_pages`` gets the pages after it. ``hooks``
    has the functions of the caller; ``all_consumed`` waits until the caller is done with all pages. ``sample`` releases
    the pages that it holds back when nothing else is left. ``exchange`` is with the other parts of the
    crawl. The crawl pauses while a disk has less free space than ``reserve``. ``book`` knows the addresses of hosts,
    ``connections`` keeps idle connections, and ``memory`` bounds large bodies; all belong to ``fetcher``.
    """
    lag, sample = lag or LoopLag(clock), sample or Sample()
    alarm, progress, capacity = Alarm(), Progress(clock.now()), ClaimCapacity(clock)
    outbox = Outbox(clock, alarm)
    if recorder is not None:
        fetcher = RecordingFetcher(fetcher, outbox)
    gate = Gate(
        fetcher,
        clock,
        policy.politeness,
        policy.limits.concurrency,
        outbox,
        blocks=scope.blocks,
        lease=lease,
        room=reader,
        lag=lag,
        book=book,
        connections=connections,
    )
    intake = CrawlRobotsIntake(outbox=outbox, gate=gate, policy=policy, scope=scope, sample=sample)
    main_sites = MainSites(store, clock, outbox)
    rules_cache = RulesCache(policy.robots, gate, store, main_sites, reader, exchange)
    return Engine(
        store=store,
        clock=clock,
        policy=policy,
        scope=scope,
        lease=lease,
        lag=lag,
        reserve=reserve or DiskReserve(()),
        sample=sample,
        recorder=recorder,
        on_pages=on_pages,
        all_consumed=all_consumed,
        exchange=exchange,
        alarm=alarm,
        shutdown=Shutdown(gate, alarm),
        progress=progress,
        pages=PageCounter(policy.limits.max_pages),
        capacity=capacity,
        outbox=outbox,
        gate=gate,
        main_sites=main_sites,
        rules_cache=rules_cache,
        robots_cache=RobotsCache(
            policy=policy.robots,
            gate=gate,
            store=store,
            clock=clock,
            intake=intake,
            progress=progress,
            main_sites=main_sites,
            rules_cache=rules_cache,
            outbox=outbox,
        ),
        tdmrep=TdmrepCache(gate, store, outbox) if policy.robots.settings.tdmrep else None,
        answers=Answers(policy, scope, rules_cache, store, reader, None if recorder is None else outbox, hooks),
    )
