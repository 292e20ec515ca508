"""One run of a crawl over a store: its inputs, and what its caller may do with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from crawler.clock import Clock
from crawler.engine.alarm import Alarm
from crawler.engine.answers import Answers
from crawler.engine.crawl_policy import CrawlPolicy
from crawler.engine.disk_reserve import DiskReserve, DiskWatch
from crawler.engine.gate import FetcherSide, Gate
from crawler.engine.hooks import Hooks
from crawler.engine.licences import Licences
from crawler.engine.loop import CrawlLoop
from crawler.engine.operator import OperatorListener
from crawler.engine.outbox import Outbox
from crawler.engine.page_counter import PageCounter
from crawler.engine.progress import Progress
from crawler.engine.recording import Recorder, RecordingFetcher
from crawler.engine.robots_cache import RobotsCache
from crawler.engine.sampling_frame import Sample
from crawler.engine.shutdown import Shutdown
from crawler.engine.site_files import SiteFiles, soft_404_kind, tdmrep_kind
from crawler.engine.sitemaps import SiteOffers
from crawler.engine.tasks import background_task
from crawler.engine.workbench import Workbench
from crawler.errors import StoreFull, SystemFull, UsageError
from crawler.frontier.decide import Outcome
from crawler.frontier.politeness import Pace
from crawler.frontier.scope import Scope
from crawler.reasons import ReasonCode, RunEnd
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
class RunInputs:
    """The inputs of one run over ``store``.

    ``recorder`` gets requests before the commit that they are part of, ``on_pages`` gets the pages after it. ``hooks``
    has the functions of the caller; ``all_consumed`` waits until the caller is done with all pages. ``sample`` releases
    the pages that it holds back when nothing else is left. The crawl pauses while a disk has less free space than
    ``reserve``. ``write_ahead`` gets the news of a commit before the store does. Commits that nothing waits for, and
    looks at the disks, are ``rarer`` than usual by this factor.
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
    rarer: float = 1.0


class Crawl:
    """One run of a crawl, made from its inputs. It runs once.

    Its attributes are the objects that the loop, claim tasks and the operator's tasks share.
    """

    def __init__(self, run: RunInputs) -> None:
        policy, scope, reader = run.policy, run.scope, run.side.reader
        self.inputs = run
        self.store, self.clock = run.store, run.clock
        self.policy, self.scope, self.sample = policy, scope, run.sample
        self.alarm = Alarm()
        self.progress = Progress(self.clock.now())
        self.pages = PageCounter(policy.limits.max_pages, self.alarm.ring)
        self.outbox = outbox = Outbox(self.clock, self.alarm)
        self.bench = Workbench(
            policy.politeness, policy.limits.concurrency, reader.has_room, policy.limits.claimed_groups
        )
        side = run.side
        if run.recorder is not None:
            side = msgspec.structs.replace(side, fetcher=RecordingFetcher(side.fetcher, outbox))
        self.gate = gate = Gate(side, self.clock, self.bench, outbox, scope.blocks)
        self.shutdown = Shutdown(gate, self.alarm)
        offers = SiteOffers(policy, scope, run.sample)
        self.robots_cache = RobotsCache(
            policy.robots, gate, self.store, self.clock, outbox, reader, self.progress, offers
        )
        self.main_sites, self.rules_cache = self.robots_cache.main_sites, self.robots_cache.rules_cache
        self.licences = Licences(self)
        self.tdmrep = SiteFiles(tdmrep_kind(), self) if policy.robots.settings.tdmrep else None
        self.soft_404 = SiteFiles(soft_404_kind(reader), self) if policy.discovery.soft_404 else None
        archive = None if run.recorder is None else outbox
        self.answers = Answers(policy, scope, self.rules_cache, self.store, reader, archive, run.hooks)
        self._loop = CrawlLoop(self)
        self._disk_watch = DiskWatch(self)
        self._operator = OperatorListener(self)
        self.store.wait_for_room(self.waits_for_room)

    @property
    def stopped(self) -> bool:
        """Whether the run was told to end, and did not come to its end by itself."""
        return self.shutdown.requested

    def slowest(self) -> tuple[str, Pace] | None:
        """The group with the latest next request among those worked on."""
        return self.bench.slowest()

    async def run(self) -> RunEnd:
        """Crawl until nothing is left, a limit is reached or a stop is requested; return why it ended.

        Raises :class:`crawler.errors.StoreError` if the store fails. What was committed is kept, also on cancellation.
        """
        async with self._disk_watch.watching():
            return await self._loop.run()

    def measuring_lag(self) -> AbstractAsyncContextManager[None]:
        """A context in which the lag of the event loop is measured, and taken out of the times of answers."""
        return background_task(self.inputs.side.lag.measure(self.progress))

    def obeying_operator(self) -> AbstractAsyncContextManager[None]:
        """A context in which the operator's orders are carried out.

        Orders that no crawl has carried out come first, so entering the context may take long.
        """
        return self._operator.listening()

    def stop(self, end: RunEnd) -> None:
        """End soon: send nothing new, and give requests in flight six seconds. Only the first call counts."""
        self.shutdown.request(end)

    def end_grace(self) -> None:
        """Give requests in flight no more time after :meth:`stop`. Their URLs stay queued."""
        self.shutdown.end_grace()

    async def add(self, urls: Sequence[str]) -> None:
        """Queue canonical URLs as seeds of the crawl, before it ends.

        Raises :class:`crawler.errors.UsageError` if one is out of scope; then none is queued.
        """
        refused = [(url, self.scope.refusal(url, 0, is_seed=True)) for url in urls]
        for url, refusal in refused:
            if refusal is not None and refusal.code is not ReasonCode.BLOCKED:
                raise UsageError(f"{url} is out of scope: {refusal.sentence}; name it as a seed of a new run")
        await self.store.add_seeds(refused)
        self.alarm.ring()

    def waits_for_room(self, error: StoreFull) -> bool:
        """Whether work that had no room is tried again: the crawl pauses for the disk, or others may make room."""
        may_pass = self.progress.low_disk is not None or isinstance(error, SystemFull)
        return may_pass and not self.shutdown.requested
