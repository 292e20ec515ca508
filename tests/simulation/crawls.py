"""Whole crawls on virtual time, with the real engine, rules and store, on a simulated web."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crawler.clock import Clock
from crawler.engine.body_memory import BodyMemory
from crawler.engine.crawl import Crawl, OnPages, RunInputs
from crawler.engine.crawl_policy import CrawlPolicy, RobotsPolicy
from crawler.engine.crawl_settings import DiscoverySettings, LimitSettings
from crawler.engine.disk_reserve import DiskReserve
from crawler.engine.gate import AddressBook, Fetcher, FetcherSide, Gate
from crawler.engine.lease import Lease
from crawler.engine.loop_lag import LoopLag
from crawler.engine.outbox import Outbox
from crawler.engine.parser_pool import PageReader, ReadingOptions
from crawler.engine.recording import Recorder
from crawler.engine.sampling_frame import Sample, SamplingFrame
from crawler.engine.workbench import Workbench
from crawler.fetch.idle_connections import IdleConnections
from crawler.frontier.domain_addresses import with_addresses
from crawler.frontier.politeness import PolitenessSettings
from crawler.frontier.request_settings import RequestSettings
from crawler.frontier.revisit import RevisitSettings
from crawler.frontier.scope import Scope, ScopeMode, ScopeSettings
from crawler.model import FetchResult, Request
from crawler.reasons import EndCode, RunEnd
from crawler.robots.response import RobotsSettings
from crawler.settings.changes import begin
from crawler.settings.settings import Identity, StoreSettings
from crawler.store.sqlite.store import SqliteStore
from tests.reading import ReaderInProcess
from tests.simulation.web import SimulatedWeb
from tests.virtual_time import VirtualClock

if TYPE_CHECKING:
    from crawler.store.sections import Store


def gate_on(
    fetcher: Fetcher,
    clock: Clock,
    log: Outbox,
    *,
    slots: int = 9,
    lease: Lease | None = None,
    memory: BodyMemory | None = None,
    book: AddressBook | None = None,
) -> Gate:
    """A gate with the default settings."""
    lease = lease or Lease(None, clock, 60.0)
    reader, lag = ReaderInProcess(), LoopLag(clock)
    side = FetcherSide(fetcher=fetcher, reader=reader, lease=lease, lag=lag, memory=memory, book=book)
    return Gate(side, clock, Workbench(PolitenessSettings(), slots), log)


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of a simulated crawl: every URL is in scope, and the pause is one second."""

    scope: ScopeSettings = field(default_factory=lambda: ScopeSettings(ScopeMode.ANY))
    limits: LimitSettings = field(default_factory=LimitSettings)
    discovery: DiscoverySettings = field(default_factory=DiscoverySettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    politeness: PolitenessSettings = field(default_factory=lambda: PolitenessSettings(delay_s=1.0))
    fetch: RequestSettings = field(default_factory=RequestSettings)
    robots: RobotsSettings = field(default_factory=RobotsSettings)
    revisit: RevisitSettings = field(default_factory=RevisitSettings)
    identity: Identity = field(default_factory=lambda: Identity("SimulatedBot"))


@asynccontextmanager
async def session(
    clock: VirtualClock,
    path: Path,
    fetcher: Fetcher,
    seeds: Sequence[str],
    options: Options,
    on_pages: OnPages | None = None,
    recorder: Recorder | None = None,
    frame: Callable[[Store], SamplingFrame] | None = None,
    reserve: DiskReserve | None = None,
    connections: IdleConnections | None = None,
    memory: BodyMemory | None = None,
    reader: PageReader | None = None,
    domains: AbstractSet[str] = frozenset(),
) -> AsyncIterator[tuple[Crawl, SqliteStore]]:
    """A crawl ready to run on an opened store."""
    store = await SqliteStore.open(path, options.politeness)
    try:
        known = await store.seeds()
        fresh = sorted(set(seeds) - set(known))
        places = [*await store.scope_urls(), *with_addresses(fresh, domains & set(fresh))]
        scope = Scope(options.scope, places, max_depth=options.limits.max_depth)
        limit = options.limits.max_pages_per_site
        await begin(store, scope, asdict(options), fresh, clock.now(), pages_per_site=limit, domains=domains)
        robots = RobotsPolicy(options.robots, options.identity.agent)
        policy = CrawlPolicy(
            options.limits,
            options.politeness,
            options.fetch,
            robots,
            options.revisit,
            discovery=options.discovery,
            purposes=options.identity.purpose,
        )
        reading = ReadingOptions(robots.token, options.robots.reading, options.store.resources)
        lasts_s = math.inf if options.limits.max_time_s is None else options.limits.max_time_s
        lease = Lease(store, clock, policy.fetch.total_timeout_s, clock.now, ends_at=clock.now() + lasts_s)
        side = FetcherSide(
            fetcher=fetcher,
            reader=reader or ReaderInProcess(reading),
            lease=lease,
            lag=LoopLag(clock),
            book=fetcher if isinstance(fetcher, SimulatedWeb) else None,
            connections=connections,
            memory=memory,
        )
        inputs = RunInputs(
            store=store,
            clock=clock,
            policy=policy,
            scope=scope,
            side=side,
            reserve=reserve or DiskReserve(()),
            sample=Sample() if frame is None else frame(store),
            recorder=recorder,
            on_pages=on_pages,
        )
        run = Crawl(inputs)
        if SAMPLER is None:
            yield run, store
        else:
            async with SAMPLER(run, store, path, clock, options):
                yield run, store
    finally:
        await store.close()


#: Looks at each simulated crawl from beside it (:mod:`tests.simulation.time_left`); ``None``: nothing looks.
SAMPLER: Callable[[Crawl, SqliteStore, Path, VirtualClock, Options], AbstractAsyncContextManager[None]] | None = None


async def crawl(
    clock: VirtualClock,
    path: Path,
    fetcher: Fetcher,
    seeds: Sequence[str] = (),
    options: Options | None = None,
    *,
    domains: AbstractSet[str] = frozenset(),
) -> str:
    """Crawl to the end; returns why it ended."""
    async with session(clock, path, fetcher, seeds, options or Options(), domains=domains) as (run, store):
        ended_by = await run.run()
        await store.end_run(ended_by, clock.now())
        return str(ended_by)


async def crawl_for(
    clock: VirtualClock,
    path: Path,
    fetcher: Fetcher,
    seeds: Sequence[str],
    options: Options,
    seconds: float,
    *,
    crash: bool,
    reader: PageReader | None = None,
    domains: AbstractSet[str] = frozenset(),
) -> bool:
    """Crawl for ``seconds`` at most, then stop, or crash without a commit. Returns whether it ended by itself."""
    async with session(clock, path, fetcher, seeds, options, reader=reader, domains=domains) as (run, _):
        task = asyncio.create_task(run.run())
        done, _ = await asyncio.wait([task], timeout=seconds)
        if not done and crash:
            task.cancel()
        elif not done:
            run.stop(RunEnd(EndCode.CALLER))
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()  # raises what went wrong
        return bool(done)


class Jittery:
    """A fetcher that delays each request by a random time; the same seed gives the same times."""

    def __init__(self, fetcher: Fetcher, clock: VirtualClock, seed: int, most_s: float = 1.0) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._chance = random.Random(seed)
        self._most_s = most_s

    async def fetch(self, request: Request) -> FetchResult:
        await self._clock.sleep(self._chance.uniform(0, self._most_s))
        return await self._fetcher.fetch(request)


@dataclass(frozen=True, slots=True)
class Found:
    """The contents of a store without times: latencies, stops and crashes must not change them."""

    urls: frozenset[tuple[str, str, int]]  # URL, state, depth
    pages: frozenset[tuple[str, str]]  # URL, body
    links: frozenset[tuple[str, str, str, str]]


async def look(path: Path) -> Found:
    """Read the contents of a store. Every fetched URL must have one page, and no row may occur twice."""
    urls = await rows(path, "SELECT url, state, depth FROM urls")
    pages = await rows(path, "SELECT url, body_sha256 FROM pages")
    links = await rows(path, "SELECT source, target, anchor, rel FROM links")
    found = Found(frozenset(urls), frozenset(pages), frozenset(links))
    assert [len(found.urls), len(found.pages), len(found.links)] == [len(urls), len(pages), len(links)]
    assert {url for url, state, _ in urls if state == "fetched"} == {url for url, _ in pages}
    return found


async def rows(path: Path, sql: str, parameters: Iterable[object] = ()) -> list[tuple[Any, ...]]:
    """Read a store with SQL."""
    store = await SqliteStore.open(path, read_only=True)
    try:
        return [tuple(row.values()) for row in await store.query(sql, tuple(parameters))]
    finally:
        await store.close()


async def states(path: Path) -> dict[str, tuple[str, str]]:
    """State and reason by URL."""
    return {url: (state, reason) for url, state, reason in await rows(path, "SELECT url, state, reason FROM urls")}
