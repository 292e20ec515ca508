"""The crawler from Python: ``crawler.open``, then ``crawl.run``. See README.md for an example."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import AsyncGeneratorType, TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Self, TypeVar, Unpack
from weakref import ref

from crawler import validation as arguments
from crawler.clock import SystemClock
from crawler.engine.crawl import Crawl
from crawler.errors import Argument, StoreInUse, UsageError
from crawler.frontier.decide import Outcome
from crawler.reasons import EndCode, RunEnd
from crawler.run.session import crawl_session, run_to_end
from crawler.settings.keys import KEYS
from crawler.settings.loading import apply, load_file, settings_from
from crawler.settings.seeds import Seeds, all_seeds, read_seeds
from crawler.settings.settings import Settings
from crawler.settings.stores import existing_store
from crawler.store.location import is_url, store_name
from crawler.store.protocols import Store
from crawler.store.rows import Parameters
from crawler.stored_pages import Page, PageLink, page_of, stored_links, stored_pages
from crawler.validation import RunLimits

if TYPE_CHECKING:
    from crawler.export import ExportProgress
    from crawler.rank.ranking import RankingSummary
    from crawler.rup.robot.subscribe import Subscriber
    from crawler.sampling.survey import Survey
    from crawler.search.build_index import IndexSummary
    from crawler.search.results import SearchResult

T = TypeVar("T")
_LOG = logging.getLogger("crawler")
_BUFFER = 1  # pages handed over but not yet taken; more would be no faster, and lost to a loop that is left


def open(db: str | Path | None = None, config: Settings | Mapping[str, object] | str | Path | None = None) -> OpenCrawl:
    """A crawl on the store ``db``, as an async context manager; without it that of the key ``store.db``, "crawl.db".

    ``config`` is a TOML file's path, a mapping of its keys (``{"politeness.delay": 5}``), or
    :class:`~crawler.settings.loading.Settings`. Raises :class:`~crawler.errors.ConfigError` naming every wrong key.
    """
    match config:
        case None:
            settings = Settings()
        case Settings():
            settings = config
        case Mapping():
            settings = settings_from(config, source="config")
        case _:
            settings = load_file(Settings(), Path(arguments.path("config", config)))
    return OpenCrawl(settings if db is None else _on_store(settings, arguments.path("db", db)))


def _on_store(settings: Settings, db: str) -> Settings:
    """``settings`` with the store ``db``. Raises :class:`UsageError` if ``db`` cannot name one."""
    try:
        store = KEYS["store.db"].kind.read(db)
    except ValueError as error:
        raise UsageError("open(): ", Argument("db", db), f": {error}") from None
    return replace(settings, output=replace(settings.output, db=store))


class OpenCrawl:
    """What :func:`open` gives; enter it with ``async with``. One task uses it at a time.

    ``ended_by`` is the sentence that says why the newest run ended, ``ended_code`` its code. A run whose loop was left
    goes on to its end in the background: the next call, or the end of the context, waits for that end, and raises the
    error that the run failed with.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._runs: set[_Run] = set()  # those that may be under way, or whose failure nobody has heard of
        self._writing = asyncio.Lock()
        self._readings: set[_Reading] = set()  # those that have a store open
        self.ended_by: str | None = None
        self.ended_code: EndCode | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for reading in tuple(self._readings):
            await reading.close()
        failures = [await run.end() for run in tuple(self._runs)]
        self._runs.clear()
        if error is None:
            _raise_first(failures)

    def run(
        self, seeds: Iterable[str] | Mapping[str, str] = (), **limits: Unpack[RunLimits]
    ) -> AsyncGenerator[Page, None]:
        """Crawl, and yield each page that this run fetches, once it is committed, and at most once.

        Leaving the loop early stops the crawl in order, which takes up to 6 s; pages that were fetched ahead stay in
        the store, where :meth:`pages` has them, but no run hands them over any more (see ``docs/python.md``).
        ``seeds`` are URLs, or one alone, or for a stratified sample URLs with the stratum of each; without any they
        come from the file that the key ``seeds.file`` names. Bad ones are passed over with ``seeds.skip_bad``, and
        logged as ``crawler``.
        ``limits`` are keys of the TOML table ``limits`` (``max_pages=100``). Why it ended is in ``ended_by``.
        """
        run = _Run()
        pages = self._pages_of(run, seeds, limits)
        run.taker = ref(pages)
        return pages

    async def _pages_of(
        self, run: _Run, seeds: Iterable[str] | Mapping[str, str], limits: RunLimits
    ) -> AsyncGenerator[Page, None]:
        settings = apply(self._settings, {f"limits.{key}": value for key, value in limits.items()}, source="run()")
        taken = _seeds(settings, seeds)
        async with self._alone():
            run.task = asyncio.create_task(self._crawl(settings, taken, run))
            self._runs.add(run)
        try:
            while (page := await run.next_page()) is not None:
                yield page
            self._runs.discard(run)
            run.task.result()
        finally:
            if await run.end() is None:
                self._runs.discard(run)

    async def _settle(self) -> None:
        """Wait for the end of the runs whose loops were left: Python closes their generators only some time later."""
        left = [run for run in self._runs if run.is_left()]
        failures = [await run.end() for run in left]
        self._runs.difference_update(left)
        _raise_first(failures)

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """One call that writes at a time. Raises :class:`StoreInUse` while a run of our own has the file."""
        async with self._writing:
            await self._settle()
            db = self._settings.output.db
            if not is_url(db) and any(not run.task.done() for run in self._runs):
                raise StoreInUse(
                    f"{db}: a run() of this crawl is under way; leave its loop, or take all its pages, first"
                )
            yield

    @asynccontextmanager
    async def _store(self, *, read_only: bool = True) -> AsyncIterator[Store]:
        await self._settle()
        async with existing_store(self._settings, read_only=read_only) as store:
            yield store

    async def query(self, sql: str, parameters: Parameters = ()) -> list[dict[str, Any]]:
        """Read the store's views (``pages``, ``links``, ``urls`` …) with SQL, which can only read: a statement that
        writes raises :class:`~crawler.errors.UsageError`."""
        async with self._store() as store:
            return await store.query(sql, parameters)

    async def body(self, url: str, version: int | None = None) -> bytes | None:
        """The decoded body of a fetched URL, the newest unless told; ``None`` where there is none."""
        canonical = _canonical(url)
        async with self._store() as store:
            return await store.body(canonical, version)

    def pages(self, where: str | None = None) -> AsyncGenerator[Page, None]:
        """The pages in the store as they are when this begins, one in memory at a time, also while a crawl goes on.

        ``where`` is an SQL condition on the columns of the view ``pages`` (``"depth < 3 AND status = 200"``). Raises
        :class:`UsageError` for one that cannot be asked, and where there is no store.
        """
        from crawler.export.job import require_one_expression

        if where is not None:
            require_one_expression(arguments.text("where", where))
        return self._read(lambda store: stored_pages(store, where, SystemClock().now()))

    def links(self, url: str) -> AsyncGenerator[PageLink, None]:
        """The links from a URL, then those of other pages to it; none for a URL that the crawl has not met.

        One in memory at a time. For the links to it, all links of the crawl are gone through.
        """
        canonical = _canonical(url)
        return self._read(lambda store: stored_links(store, canonical))

    def _read(self, read: Callable[[Store], AsyncGenerator[T, None]]) -> AsyncGenerator[T, None]:
        reading = _Reading()
        items = self._items(reading, read)
        reading.taker = ref(items)
        return items

    async def _items(
        self, reading: _Reading, read: Callable[[Store], AsyncGenerator[T, None]]
    ) -> AsyncGenerator[T, None]:
        self._readings.add(reading)
        try:
            async with self._store() as store, aclosing(read(store)) as items:
                async for item in items:
                    yield item
        finally:
            self._readings.discard(reading)
            reading.closed.set()

    async def export(
        self,
        format: str,
        out: str | Path | BinaryIO,
        *,
        table: str | None = None,
        where: str | None = None,
        bodies: bool = False,
        base_url: str | None = None,
    ) -> ExportProgress:
        """Write what the store holds to a file, whole or not at all; see :func:`crawler.export.export`.

        ``out`` is a path, "-" for standard output, or a file open in binary.
        """
        from crawler.export import export as export_to

        target = arguments.output("out", out)
        async with self._store() as store:  # its own: the export opens a transaction on it
            now = SystemClock().now()
            return await export_to(
                store, format, target, now=now, table=table, where=where, bodies=bodies, base_url=base_url
            )

    async def rank(self) -> RankingSummary:
        """Rank pages and sites by their links, into the views ``ranks`` and ``site_ranks``. Needs the extra ``rank``.

        Raises :class:`UsageError` without a store or that extra, :class:`StoreInUse` while it is crawled into.
        """
        from crawler.rank import load_ranking

        ranking = load_ranking()
        async with self._alone(), self._store(read_only=False) as store:
            ranked: RankingSummary = await ranking.rank(store)
            return ranked

    @asynccontextmanager
    async def rup(
        self, site: str | None = None, tell: Callable[[str], None] = lambda note: None
    ) -> AsyncIterator[Subscriber]:
        """Updates by the Remote Update Protocol: enter it for the
        :class:`~crawler.rup.robot.subscribe.Subscriber`, whose methods are those of ``crawler rup``.

        ``site`` (scheme, host, port) is whom it is about; ``tell`` gets a sentence on everything of note. Not while
        :meth:`run` is under way.
        """
        from crawler.rup.robot.session import robot

        await self._settle()
        async with robot(self._settings, site, tell, make=True) as subscriber:
            yield subscriber

    async def index(self) -> IndexSummary:
        """Build the search index, or bring it up to date with the crawl. Not while :meth:`run` is under way."""
        from crawler.search.build_index import build_index

        async with self._alone(), self._store(read_only=False):
            return await build_index(self._settings.output.db)

    async def sample(self) -> Survey:
        """What the sample that :meth:`run` drew says of the rest (settings ``sample.*``). Needs the extra ``sample``.

        Raises :class:`UsageError` without a store, a sample in it, or that extra.
        """
        from crawler.sampling import load

        estimate = load("survey")
        async with self._store() as store:
            survey: Survey = await estimate.survey(store)
            return survey

    async def search(self, words: str, *, limit: int = 10, site: str | None = None) -> SearchResult:
        """Search the pages crawled, after :meth:`index`; see :func:`crawler.search.results.search`."""
        from crawler.search.results import search

        limit = arguments.count("limit", limit)
        async with self._store() as store:
            return await search(store, words, now=SystemClock().now(), limit=limit, site=site)

    async def report(self, out: str | Path) -> None:
        """Write the crawl as one HTML page. Raises :class:`UsageError` where ``out`` is no place for it."""
        from crawler.report.gather import gather
        from crawler.report.write import require_html, write

        path = require_html(Path(arguments.path("out", out)))
        async with self._store() as store:
            facts = await gather(store, store_name(self._settings.output.db), SystemClock().now())
        write(path, facts)

    async def _crawl(self, settings: Settings, seeds: Seeds, run: _Run) -> None:
        async def hand_over(outcomes: list[Outcome]) -> None:
            for outcome in outcomes:
                if not run.stop.is_set():
                    await run.pages.put(page_of(outcome))

        clock, strata = SystemClock(), seeds.strata
        session = crawl_session(settings, seeds.urls, strata=strata, clock=clock, on_pages=hand_over)
        async with session as (crawl, store):
            stopper = asyncio.create_task(_stop_when(run.stop, crawl))
            try:
                end = await run_to_end(crawl, store, clock)
                self.ended_by, self.ended_code = end.sentence, end.code
            finally:
                stopper.cancel()


def _canonical(url: str) -> str:
    good, bad = read_seeds([arguments.text("url", url).encode(errors="surrogatepass")])
    if bad or not good:
        raise UsageError(f"not a URL: {url[:200]!r}")
    return good[0]


async def _stop_when(asked: asyncio.Event, crawl: Crawl) -> None:
    await asked.wait()
    crawl.stop(RunEnd(EndCode.CALLER))


@dataclass(slots=True, eq=False)
class _Run:
    """A crawl under way in a task of its own, the pages it hands over to ``taker``, and how to stop it."""

    pages: asyncio.Queue[Page] = field(default_factory=lambda: asyncio.Queue(_BUFFER))
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] = field(init=False)
    taker: ref[AsyncGenerator[Page, None]] = field(init=False)

    def is_left(self) -> bool:
        """Whether nobody can take pages any more: the generator is being closed, or gone."""
        return self.stop.is_set() or self.taker() is None

    async def next_page(self) -> Page | None:
        """The next page, or ``None`` once the crawl has ended and every page was taken."""
        if self.pages.empty() and not self.task.done():
            getter = asyncio.create_task(self.pages.get())
            try:
                await asyncio.wait([getter, self.task], return_when=asyncio.FIRST_COMPLETED)
            finally:
                getter.cancel()
            if getter.done() and not getter.cancelled():
                return getter.result()
        return None if self.pages.empty() else self.pages.get_nowait()

    async def end(self) -> BaseException | None:
        """Let the crawl come to its end in order, although nobody takes its pages any more; gives what failed in it."""
        self.stop.set()
        try:
            while not self.task.done():
                await self.next_page()
        except asyncio.CancelledError:  # in a hurry: what is committed is kept
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)
            raise
        return None if self.task.cancelled() else self.task.exception()


@dataclass(slots=True, eq=False)
class _Reading:
    """A generator under way that reads the store, by whom it is taken from."""

    taker: ref[AsyncGenerator[Any, None]] = field(init=False)
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    async def close(self) -> None:
        """Have it let go of the store. One whose loop was left nobody has any more: Python is closing it then."""
        taker = self.taker()
        if taker is None:
            await self.closed.wait()
        elif (
            isinstance(taker, AsyncGeneratorType) and not taker.ag_running
        ):  # else another task takes from it, and closes it
            await taker.aclose()


def _raise_first(failures: Iterable[BaseException | None]) -> None:
    failure = next(filter(None, failures), None)
    if failure is not None:
        raise failure


def _seeds(settings: Settings, seeds: Iterable[str] | Mapping[str, str]) -> Seeds:
    """What a run begins with. Raises :class:`UsageError` where it cannot begin so."""
    if settings.team.workers > 1:
        raise UsageError(
            f"workers.count = {settings.team.workers}: run() is one process; leave it out, or crawl by `crawler run`"
        )
    texts, output = arguments.urls("seeds", seeds), settings.output
    file, skip = "" if texts else output.seeds, output.skip_bad_seeds
    taken = all_seeds(texts, file, source="run(seeds=…)", skip_bad=skip, tell=_LOG.warning)
    return Seeds(taken.urls, _strata(seeds)) if isinstance(seeds, Mapping) else taken


def _strata(seeds: Mapping[str, str]) -> dict[str, str]:
    """The stratum of each seed, by its canonical URL."""
    urls = ((read_seeds([seed.encode(errors="surrogatepass")])[0], stratum) for seed, stratum in seeds.items())
    return {url: stratum for found, stratum in urls for url in found}
