"""Puts a crawl together from settings and seeds: store, scope, fetcher, parsers and the engine."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from crawler.cli.secrets import secret
from crawler.clock import Clock, SystemClock, boot_s
from crawler.engine.crawl import AllConsumed, Crawl, OnPages, RunInputs
from crawler.engine.crawl_policy import CrawlPolicy, RobotsPolicy
from crawler.engine.disk_reserve import DiskReserve
from crawler.engine.gate import FetcherSide
from crawler.engine.hooks import Hooks
from crawler.engine.lease import Lease
from crawler.engine.loop_lag import LoopLag
from crawler.engine.parser_pool import ParserPool, ReadingOptions, default_parsers
from crawler.engine.progress import Progress
from crawler.engine.sampling_frame import Sample, SamplingFrame
from crawler.errors import ConnectionLost, HookError, Setting, StoreError, UsageError
from crawler.fetch.client import FetchSettings, HttpFetcher
from crawler.formatting import duration
from crawler.frontier.domain_addresses import with_addresses
from crawler.frontier.sample_design import Drawn, Method
from crawler.frontier.scope import Scope
from crawler.inspect.sampling_frame import frame_answered_at
from crawler.reasons import EndCode, RunEnd
from crawler.sampling import design_of_settings, draw_seeds, load, of_list, require_drawable, without_strata
from crawler.session.hooks import hooks_of, require_hooks
from crawler.session.refusals import (
    request_signer,
    require_alone,
    require_contact,
    require_extras,
    require_usable_proxy,
)
from crawler.settings.changes import begin, note_skipped, require_same_crawl, wait_for_others
from crawler.settings.crawl_scope import adopt_known, crawl_scope
from crawler.settings.keys import KEYS
from crawler.settings.seeds import Seeds
from crawler.settings.settings import Settings
from crawler.settings.stored import to_record
from crawler.settings.stores import open_store
from crawler.store.location import db_argument, is_url, shown
from crawler.store.open import is_there
from crawler.version import VERSION

if TYPE_CHECKING:
    from crawler.store.rows import SampleDraw
    from crawler.store.sections import Store
    from crawler.warc.recorder import WarcFolder

_LOG = logging.getLogger("crawler.run")


@asynccontextmanager
async def crawl_session(
    settings: Settings,
    seeds: Seeds,
    *,
    clock: Clock | None = None,
    on_pages: OnPages | None = None,
    hooks: Hooks | None = None,
    all_consumed: AllConsumed | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[tuple[Crawl, Store]]:
    """A crawl ready to run, on an opened store that knows the seeds.

    Raises what :func:`begun` raises, and :class:`UsageError` for a sample that cannot be drawn as asked.
    """
    require_extras(settings)
    drawn: list[Drawn] | None = None
    if settings.sample.size is not None:
        require_drawable(settings, seeds.urls, seeds.strata)
        settings = of_list(settings)
        if settings.sample.method is Method.STRATIFIED and seeds.strata:
            drawn = draw_seeds(settings, seeds.strata)
            seeds = seeds._replace(urls=[each.url for each in drawn])
    clock = clock or SystemClock()
    hooks = hooks or hooks_of(settings.hooks)
    max_time_s = settings.limits.max_time_s
    beginning = begun(settings, seeds, clock, at_work=True, tell=tell)
    async with beginning as (store, scope), AsyncExitStack() as opened:
        recorder = await opened.enter_async_context(_recorder(settings, clock)) if settings.output.warc else None
        if drawn is not None:
            limit = settings.limits.max_pages_per_site
            design = design_of_settings(settings, (), seeds.strata)
            before = await store.samples.drawn()
            await load("draw").keep_drawn(store, drawn, settings.sample, len(seeds.strata), limit, clock.now(), design)
            if before is not None and before != await store.samples.drawn():
                tell(_discarding(before))
        sample = await _sample(store, settings, clock, tell, is_drawn=drawn is not None)
        ends_at = math.inf if max_time_s is None else boot_s() + max_time_s
        lease = Lease(store, clock, settings.fetch.total_timeout_s, ends_at=ends_at)
        side = await opened.enter_async_context(fetcher_side(settings, clock, hooks, lease))
        inputs = replace(
            run_inputs(settings, store, scope, clock, side),
            on_pages=on_pages,
            all_consumed=all_consumed,
            hooks=hooks,
            sample=sample or Sample(),
            recorder=recorder,
        )
        yield Crawl(inputs), store


@asynccontextmanager
async def worker_session(
    settings: Settings, run_id: int, clock: Clock, ends_at: float = math.inf
) -> AsyncIterator[tuple[Crawl, Store]]:
    """The crawl of one worker among several, in a run that the process above it has begun.

    The worker sends nothing from ``ends_at`` on, in seconds of :func:`crawler.clock.boot_s`.
    """
    hooks = hooks_of(settings.hooks)
    store = await open_store(settings, for_worker=True, clock=clock)
    try:
        scope = crawl_scope(settings, await store.scope_urls(), clock.now())
        await adopt_known(store, scope)
        await store.join_run(run_id, clock.now())
        lease = Lease(store, clock, settings.fetch.total_timeout_s, ends_at=ends_at)
        async with fetcher_side(settings, clock, hooks, lease) as side:
            inputs = replace(run_inputs(settings, store, scope, clock, side), hooks=hooks)
            yield Crawl(inputs), store
    finally:
        await store.leave(clock.now())
        await store.close()


@asynccontextmanager
async def begun(
    settings: Settings,
    seeds: Seeds,
    clock: Clock,
    *,
    at_work: bool,
    tell: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[tuple[Store, Scope]]:
    """Begin a run, or join the run that other processes are working on; the context has its store and its scope.

    ``at_work`` says whether this process is a worker of the run. ``tell`` gets a sentence on what changed options do to
    known URLs. Raises :class:`UsageError` if there is nothing to crawl, if the crawl would leave loopback without a
    contact for the owners of sites, for settings that exclude a proxy, and if others work on the store with other
    settings.
    """
    require_usable_proxy(settings)
    require_contact(settings, seeds.urls)
    request_signer(settings)  # a key that cannot be used ends a run before it begins
    if not seeds.urls and not await is_there(settings.store.db):  # a refused start makes no store
        raise UsageError("no seeds, and no store to go on with: name URLs, or a file with ", Setting("seeds.file"))
    store = await open_store(settings, clock=clock)
    try:
        if store.warning:
            tell(store.warning)
        async with store.beginning():
            await store.require_whole()
            await store.bodies.keep_in(settings.store.bodies)
            await store.recover(clock.now())  # a worker whose lease has ended is not at work
            scope = await _begin_or_join(store, settings, seeds, clock, at_work=at_work, tell=tell)
            await note_skipped(store, seeds.skipped)
        _log_start(settings, store.run_id)
        yield store, scope
    finally:
        await store.leave(clock.now())
        await store.close()


async def _begin_or_join(
    store: Store,
    settings: Settings,
    seeds: Seeds,
    clock: Clock,
    *,
    at_work: bool,
    tell: Callable[[str], None],
) -> Scope:
    """Begin a run, or join the run under way; return its scope. Raises as :func:`begun`."""
    require_hooks(await store.last_settings(), settings.hooks)
    known, name = await store.seeds(), shown(settings.store.db)
    unknown = sorted(set(seeds.urls).difference(known))
    require_contact(settings, known)
    if not seeds.urls and not known:
        raise UsageError(f"{name} holds no seeds: name URLs, or a file with ", Setting("seeds.file"))
    if not seeds.urls:
        await _require_drawn(store, settings)
    await require_draw_kept(store, settings)
    new_domains = seeds.domains & set(unknown)
    urls = [*await store.scope_urls(), *with_addresses(unknown, new_domains)]
    scope = crawl_scope(settings, urls, clock.now())
    if (others := await store.run_under_way(clock.now())) is not None:
        require_alone(settings, f"others are at work on {name}; {wait_for_others(settings.store.db)}")
        require_same_crawl(others[1], to_record(settings), unknown, name)
        await adopt_known(store, scope)
        await store.register_in_run(others[0], clock.now(), at_work=at_work)
    else:
        await begin(
            store,
            scope,
            to_record(settings),
            unknown,
            clock.now(),
            pages_per_site=settings.limits.max_pages_per_site,
            domains=new_domains,
            at_work=at_work,
            tell=tell,
        )
    return scope


@asynccontextmanager
async def fetcher_side(
    settings: Settings, clock: Clock, hooks: Hooks | None, lease: Lease
) -> AsyncIterator[FetcherSide]:
    """Connections and parsers for one worker. They send nothing when its lease is over."""
    lag = LoopLag(clock)
    reading = ReadingOptions(settings.identity.agent, settings.robots.reading, settings.store.resources)
    parsers = settings.workers.parsers or default_parsers(settings.workers.count)
    fetching = replace(fetch_settings(settings), headers=() if hooks is None else hooks.headers)
    async with (
        ParserPool(reading, parsers) as reader,
        HttpFetcher(fetching, clock, lease.may_send, lag.now_s, request_signer(settings), reader.memory) as fetcher,
    ):
        reader.start()
        yield FetcherSide(
            fetcher=fetcher,
            reader=reader,
            lease=lease,
            lag=lag,
            book=fetcher.book,
            connections=fetcher.connections,
            memory=reader.memory,
        )


def run_inputs(settings: Settings, store: Store, scope: Scope, clock: Clock, side: FetcherSide) -> RunInputs:
    """The inputs that each worker of a run has."""
    return RunInputs(
        store=store,
        clock=clock,
        policy=crawl_policy(settings),
        scope=scope,
        side=side,
        reserve=_disk_reserve(settings, store),
    )


def _disk_reserve(settings: Settings, store: Store) -> DiskReserve:
    """The reserve on the disks of this machine that a crawl writes to: SQLite file with WAL, bodies, and archive."""
    db, bodies, warc = settings.store.db, store.bodies.location, settings.output.warc
    files = [] if is_url(db) else [Path(db), Path(f"{db}-wal")]
    folders = [Path(folder) for folder in (bodies, warc) if folder and not is_url(folder)]
    return DiskReserve(
        (*(file.resolve().parent for file in files[:1]), *folders),
        settings.store.min_free_bytes,
        max_used=settings.limits.max_disk_bytes,
        used=(*files, *folders),
    )


def _recorder(settings: Settings, clock: Clock) -> WarcFolder:
    from crawler.warc.recorder import WarcFolder

    return WarcFolder(
        Path(settings.output.warc),
        clock,
        user_agent=settings.identity.user_agent(VERSION),
        contact=settings.identity.contact,
        reading=settings.robots.reading,
    )


async def _require_drawn(store: Store, settings: Settings) -> None:
    """Raise :class:`UsageError` for a stratified sample that the store does not hold as ``settings`` ask for it."""
    sample = settings.sample
    if not sample.is_of_list:
        return
    draw = await store.samples.drawn()
    if (
        draw is None
        or not draw.stands
        or (draw.method, draw.size, draw.seed) != (sample.method, sample.size, sample.seed)
    ):
        raise without_strata()


async def require_draw_kept(store: Store, settings: Settings) -> None:
    """Raise :class:`UsageError` if a run with ``settings`` would request pages that the sample in the store left out.

    Another sample may be drawn in its place, if that holds back what this one held back.
    """
    draw = await store.samples.drawn()
    if draw is None or draw.held_from is None:
        return
    depth = of_list(settings).limits.max_depth
    if settings.sample.size is not None and depth is not None and depth <= draw.held_from:
        return
    options = {
        "sample.size": draw.size,
        "sample.per": draw.per,
        "sample.method": draw.method,
        "sample.seed": draw.seed,
        "sample.share": draw.share,
        "sample.sites": draw.sites,
        "sample.sites_by": draw.sites_by,
        "limits.max_depth": draw.held_from,
    }
    given = [Setting(key, value) for key, value in options.items() if value != KEYS[key].default]
    argument = db_argument(settings.store.db)
    raise UsageError(
        f"{shown(settings.store.db)} holds a sample, and this run would request pages that were not drawn: go on with "
        f"`crawler run{argument}`, give the options of the sample (",
        *[part for setting in given for part in (" ", setting)][1:],
        "), or name another store with ",
        Setting("store.db"),
    )


async def _sample(
    store: Store, settings: Settings, clock: Clock, tell: Callable[[str], None], *, is_drawn: bool
) -> Sample | None:
    """The sampling frame of a crawl; closed if the sample has been drawn, for good if it was drawn from a list."""
    sample, depth, limit = settings.sample, settings.limits.max_depth, settings.limits.max_pages_per_site
    if sample.size is None:
        return None
    if is_drawn:
        return SamplingFrame(store, depth, None, is_closed=True)

    async def draw() -> None:
        design = design_of_settings(settings, await store.seeds(), {})
        await load("draw").draw(store, sample, depth, limit, clock.now(), design)

    last = await store.samples.drawn()
    if last is not None and last.stands:
        return SamplingFrame(store, depth, None if sample.method is Method.STRATIFIED else draw, is_closed=True)
    answered_at = await frame_answered_at(store, clock.now())
    if last is not None:
        tell(_discarding(last))
    if depth is None and limit is None:
        tell(
            "Nothing bounds the sampling frame: a site with endless pages, such as a calendar, keeps the sample "
            "from being drawn. limits.max_depth bounds it, and so does limits.max_pages_per_site"
        )
    tell(
        f"The sample is drawn when its sampling frame is known, and {duration(sample.frame_patience_s)} after the last "
        "answer at the latest if sites that fail hold it up (sample.frame_patience)"
    )
    return SamplingFrame(store, depth, draw, patience_s=sample.frame_patience_s, answered_at=answered_at)


def _discarding(draw: SampleDraw) -> str:
    return (
        f"The settings or seeds are no longer those of {draw.description}. The crawl draws again, requests what it "
        "draws, and discards that draw: for a registered design, go on with its settings, and use another store for "
        "this one"
    )


async def run_to_end(crawl: Crawl, store: Store, clock: Clock, *, finishes: bool = True) -> RunEnd:
    """Run a crawl and note in the store why it ended.

    Afterwards :func:`finish_crawl`, unless a process above several workers does that when all have ended (``finishes``
    is false).
    """
    end = RunEnd(EndCode.FAILURE)
    try:
        async with crawl.measuring_lag(), crawl.obeying_operator():
            end = await crawl.run()
        if not crawl.stopped and store.lease_s is None:
            await finish_crawl(crawl.progress, store, clock)
    except ConnectionLost as error:
        log_end(RunEnd(EndCode.STORE_FAILED, str(error)))
        raise  # the store waited for the database: no end can be written there
    except StoreError as error:
        end = RunEnd(EndCode.STORE_FAILED, str(error))
        log_end(end)
        with suppress(StoreError):  # a full disk may have no room for it
            await store.end_run(end, clock.now())
        raise
    except BaseException as error:
        if isinstance(error, asyncio.CancelledError):
            end = RunEnd(EndCode.CUT_SHORT)
        elif isinstance(error, HookError):
            end = RunEnd(EndCode.HOOK, str(error))
        log_end(end)
        await store.end_run(end, clock.now())
        raise
    log_end(end)
    await store.end_run(end, clock.now())
    if not crawl.stopped and store.lease_s is not None and finishes:
        await finish_crawl(crawl.progress, store, clock)
    return end


def _log_start(settings: Settings, run_id: int | None) -> None:
    """Log the begin of a run with the settings that differ from their defaults."""
    if _LOG.isEnabledFor(logging.INFO):
        changed = {key.name: key.value(settings) for key in KEYS.values() if key.value(settings) != key.default}
        changed.pop("output.notify", None)  # the address of a webhook is a secret
        facts = {name: KEYS[name].kind.written(value) for name, value in changed.items()} | {
            "store.db": shown(settings.store.db)
        }
        listed = ", ".join(f"{name} = {value}" for name, value in facts.items())
        _LOG.info("run %s begins: %s", run_id, listed, extra={"run": run_id, "settings": facts})


def log_end(end: RunEnd) -> None:
    """Log why a run ended."""
    _LOG.info("the run ends: %s", end.sentence, extra={"ended_code": end.code.value})


async def finish_crawl(progress: Progress, store: Store, clock: Clock) -> None:
    """Look for what only the whole crawl shows: redirects in a circle and, if pages were fetched, mirrors.

    No-op if the run has sent nothing, or if other workers are still at work: the last one does it, also if it has sent
    nothing itself.
    """
    if await store.run_under_way(clock.now()) is not None:
        return
    if not progress.requests and not await store.sent_last_request():
        return
    await store.fail_circles()
    if progress.pages or not progress.requests:
        await store.find_content_mirrors(clock.now())


def fetch_settings(settings: Settings) -> FetchSettings:
    """The settings of the fetcher."""
    fetch, identity = settings.fetch, settings.identity
    return FetchSettings(
        user_agent=identity.user_agent(VERSION),
        from_email=identity.contact_email or None,
        accept_types=fetch.types,
        connect_timeout_s=fetch.connect_timeout_s,
        read_timeout_s=fetch.read_timeout_s,
        total_timeout_s=fetch.total_timeout_s,
        resolve=fetch.resolve,
        allow_private=fetch.allow_private,
        proxy=fetch.proxy,
        ca_file=fetch.ca_file,
        unverified=fetch.verify_off,
        loopback_only=not identity.contact,
        concurrency=settings.limits.concurrency,
        keep_exchanges=bool(settings.output.warc),
        site_headers=dict(_site_headers(settings)),
    )


def _site_headers(settings: Settings) -> Iterator[tuple[str, dict[str, str]]]:
    """The headers of single hosts with their values, which stand in the environment or in private files.

    Raises :class:`UsageError` if a variable has no value for a header.
    """
    for rule in settings.politeness.sites:
        values = {name: secret(variable) for name, variable in rule.headers}
        for name, variable in rule.headers:
            if not values[name] or not values[name].isascii() or not values[name].isprintable():
                raise UsageError(
                    f'[site."{rule.name}"] headers: {variable} must have the value of {name}: one line of ASCII text'
                )
        if values:
            yield rule.name, values


def crawl_policy(settings: Settings) -> CrawlPolicy:
    """The settings of the engine."""
    return CrawlPolicy(
        limits=settings.limits,
        politeness=settings.politeness,
        fetch=settings.fetch,
        robots=RobotsPolicy(
            settings=settings.robots,
            token=settings.identity.agent,
            known_hosts=tuple(pattern for pattern, _ in settings.fetch.resolve),
        ),
        discovery=replace(settings.discovery, soft_404=settings.compares_soft_404s),
        kept_headers=settings.store.headers,
        revisit=settings.revisit,
        updates=settings.updates,
        purposes=settings.identity.purpose,
    )
