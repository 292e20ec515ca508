"""Builds the engine of a run from the inputs of the run. Both are frozen records."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING

from crawler.clock import Clock
from crawler.engine.alarm import Alarm
from crawler.engine.answers import Answers
from crawler.engine.crawl_policy import CrawlPolicy
from crawler.engine.disk_reserve import DiskReserve
from crawler.engine.gate import Gate, Transport
from crawler.engine.hooks import Hooks
from crawler.engine.lease import Lease
from crawler.engine.licences import Licences
from crawler.engine.loop_lag import LoopLag
from crawler.engine.main_sites import MainSites
from crawler.engine.outbox import Outbox
from crawler.engine.page_counter import PageCounter
from crawler.engine.parser_pool import PageReader
from crawler.engine.progress import Progress
from crawler.engine.recording import Recorder, RecordingFetcher
from crawler.engine.robots_cache import RobotsCache
from crawler.engine.robots_intake import CrawlRobotsIntake, admits_site
from crawler.engine.rules_cache import RulesCache
from crawler.engine.sampling_frame import Sample
from crawler.engine.shutdown import Shutdown
from crawler.engine.site_files import SiteFiles, soft_404_kind, tdmrep_kind
from crawler.engine.workbench import Workbench
from crawler.errors import StoreFull, SystemFull
from crawler.frontier.decide import Outcome
from crawler.frontier.scope import Scope
from crawler.page.soft_404 import NotFoundExample
from crawler.robots.tdmrep import TdmRules
from crawler.store.rows import SiteNews

if TYPE_CHECKING:
    from crawler.store.sections import Store

#: Takes the pages of a commit that has landed. The crawl waits for it: a slow consumer slows the crawl.
OnPages = Callable[[list[Outcome]], Awaitable[None]]
#: Waits until the consumer of pages has handled all that it got; returns whether URLs were added since the last call.
AllConsumed = Callable[[], Awaitable[bool]]
#: Keeps news of a commit outside the store. The commit waits for it.
WriteAhead = Callable[[SiteNews], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetcherSide(Transport):
    """The part of a run that sends requests and reads the answers: ``reader`` reads pages, and is the ``room``."""

    reader: PageReader
    lease: Lease
    lag: LoopLag


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInputs:
    """The inputs of one run over ``store``.

    ``recorder`` gets requests before the commit that they are part of, ``on_pages`` gets the pages after it. ``hooks``
    has the functions of the caller; ``all_consumed`` waits until the caller is done with all pages. ``sample`` releases
    the pages that it holds back when nothing else is left. The crawl pauses
    while a disk has less free space than ``reserve``. ``write_ahead`` gets the news of a commit before the store does.
    """

    store: Store
    clock: Clock
    policy: CrawlPolicy
    scope: Scope
    side: FetcherSide
    reserve: DiskReserve = field(default_factory=lambda: DiskReserve(()))
    sample: Sample = field(default_factory=Sample)
    recorder: Recorder | None = None
    hooks: Hooks | None = None
    on_pages: OnPages | None = None
    all_consumed: AllConsumed | None = None
    write_ahead: WriteAhead | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine(RunInputs):
    """The inputs of a run and the objects made for it. The loop, claim tasks and the operator's tasks share them."""

    alarm: Alarm
    shutdown: Shutdown
    progress: Progress
    pages: PageCounter
    outbox: Outbox
    bench: Workbench
    gate: Gate
    main_sites: MainSites
    rules_cache: RulesCache
    robots_cache: RobotsCache
    tdmrep: SiteFiles[TdmRules] | None  # None: it is not wanted, as the next
    soft_404: SiteFiles[NotFoundExample] | None
    licences: Licences
    answers: Answers

    def waits_for_room(self, error: StoreFull) -> bool:
        """Whether work that had no room is tried again: the crawl pauses for the disk, or others may make room."""
        may_pass = self.progress.low_disk is not None or isinstance(error, SystemFull)
        return may_pass and not self.shutdown.requested


def assemble(run: RunInputs) -> Engine:
    """The engine of one run."""
    store, clock, policy, scope, reader = run.store, run.clock, run.policy, run.scope, run.side.reader
    alarm, progress = Alarm(), Progress(clock.now())
    outbox = Outbox(clock, alarm)
    bench = Workbench(policy.politeness, policy.limits.concurrency, reader.has_room, policy.limits.claimed_groups)
    gate = Gate(_transport(run, outbox), clock, bench, outbox, scope.blocks)
    main_sites = MainSites(store, clock, outbox)
    rules_cache = RulesCache(policy.robots, gate, store, main_sites, reader)
    compares = policy.discovery.soft_404 or run.sample.compares_soft_404s
    robots_cache = RobotsCache(
        policy=policy.robots,
        gate=gate,
        store=store,
        clock=clock,
        intake=CrawlRobotsIntake(outbox=outbox, gate=gate, policy=policy, scope=scope, sample=run.sample),
        may_ask=partial(admits_site, scope),
        progress=progress,
        main_sites=main_sites,
        rules_cache=rules_cache,
        outbox=outbox,
    )
    return Engine(
        **{each.name: getattr(run, each.name) for each in fields(run)},
        alarm=alarm,
        shutdown=Shutdown(gate, alarm),
        progress=progress,
        pages=PageCounter(policy.limits.max_pages),
        outbox=outbox,
        bench=bench,
        gate=gate,
        main_sites=main_sites,
        rules_cache=rules_cache,
        robots_cache=robots_cache,
        licences=Licences(policy.robots, gate, store, clock, outbox, robots_cache, rules_cache),
        tdmrep=SiteFiles(tdmrep_kind(), gate, store, outbox) if policy.robots.settings.tdmrep else None,
        soft_404=SiteFiles(soft_404_kind(reader), gate, store, outbox) if compares else None,
        answers=Answers(policy, scope, rules_cache, store, reader, None if run.recorder is None else outbox, run.hooks),
    )


def _transport(run: RunInputs, outbox: Outbox) -> Transport:
    """The means of one run to send requests. If there is a recorder, the outbox keeps the exchanges for it."""
    side = replace(run.side, room=run.side.reader)
    return side if run.recorder is None else replace(side, fetcher=RecordingFetcher(side.fetcher, outbox))
