"""``crawler.open``, and the crawl that it returns."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import AsyncGeneratorType, TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Self, TypeVar, Unpack
from weakref import ref

from crawler.api import arguments
from crawler.api.arguments import RunLimits
from crawler.clock import SystemClock
from crawler.engine.crawl import Crawl
from crawler.engine.hooks import Hooks
from crawler.errors import Argument, StoreInUse, UsageError
from crawler.frontier.decide import Outcome
from crawler.reasons import EndCode, ReasonCode, RunEnd
from crawler.session.crawl_session import crawl_session, run_to_end
from crawler.session.hooks import Follow, Keep, hooks_of, with_functions
from crawler.session.refusals import require_contact
from crawler.settings.keys import KEYS
from crawler.settings.loading import apply, load_file, settings_from
from crawler.settings.seeds import Seeds, all_seeds, read_seeds
from crawler.settings.settings import Settings
from crawler.settings.stores import existing_store
from crawler.store.location import is_url, store_name
from crawler.store.named_rows import Parameters
from crawler.store.statements import UserSql
from crawler.stored_pages import Page, PageLink, page_of, stored_links, stored_pages

if TYPE_CHECKING:
    from crawler.audit.run_audit import AuditResult
    from crawler.duplicates.find import DuplicatesSummary
    from crawler.export import ExportProgress
    from crawler.rank.ranking import RankingSummary
    from crawler.run.hints import HintsGiven
    from crawler.rup.robot.subscribe import Subscriber
    from crawler.sampling.survey import Survey
    from crawler.sampling.variables import Variable
    from crawler.search.build_index import IndexSummary
    from crawler.search.results import SearchResult
    from crawler.store.sections import Store

T = TypeVar("T")
_LOG = logging.getLogger("crawler")
_BUFFER = 1  # pages handed over and not taken yet; a larger buffer is not faster, and loses more if the loop is left


def open(db: str | Path | None = None, config: Settings | Mapping[str, object] | str | Path | None = None) -> OpenCrawl:
    """A crawl on the store ``db``, as an async context manager.

    Without ``db``, the setting ``store.db`` names the store ("crawl.db" by default). ``config`` is the path of a TOML
    file, a mapping with the same keys (``{"politeness.delay": 5}``), or
    :class:`~crawler.settings.settings.Settings`. Raises :class:`~crawler.errors.ConfigError` that names every wrong
    key, and :class:`~crawler.errors.UsageError` for a ``db`` that cannot name a store.
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
    return replace(settings, store=replace(settings.store, db=store))


class OpenCrawl:
    """The crawl that :func:`open` returns; enter it with ``async with``. One task uses it at a time.

    ``ended_by`` is the sentence that says why the newest run ended, ``ended_code`` its code. A run whose loop was left
    goes on to its end in the background: the next call, or the end of the context, waits for that end, and raises the
    error that the run failed with.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._runs: set[_Run] = set()  # runs that may be under way, or whose failure was not raised yet
        self._writing = asyncio.Lock()
        self._readings: set[_Reading] = set()  # generators that have a store open
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
        self,
        seeds: Iterable[str] | Mapping[str, str] = (),
        *,
        follow: Follow | str | None = None,
        keep: Keep | str | None = None,
        headers: Mapping[str, str] | None = None,
        **limits: Unpack[RunLimits],
    ) -> AsyncGenerator[Page, None]:
        """Crawl, and yield each page that this run fetches, after its commit and at most once.

        ``seeds`` are several URLs, one URL, or for a stratified sample a mapping from a URL to its stratum. Without
        ``seeds``, the crawler reads the file that the setting ``seeds.file`` names. With ``seeds.skip_bad``, the
        crawler skips a bad seed and logs a warning to the logger ``crawler``. ``limits`` are keys of the section
        ``limits`` (``max_pages=100``). After the run, ``ended_by`` says why it ended.

        ``follow`` says for each link that the rules allow whether to follow it; the URLs of the other links are
        excluded. ``keep`` says for each page whether to keep it; the body and texts of the others are not stored, and
        the loop does not get them, but their links are followed. Each is a function that returns True or False, and
        may be ``async``, or its importable name "MODULE:FUNCTION"; "none" goes on without the function of the last run.
        If one raises, the crawl ends in order, the URL of the page stays queued, and the loop raises
        :class:`~crawler.errors.HookError`. ``headers`` are sent with every request. None of them overrides robots.txt,
        the pauses, or a header that the crawler sets itself.

        If the caller leaves the loop early, the crawl stops in order within 6 s. Pages that were fetched ahead stay in
        the store, where :meth:`pages` finds them; no later run yields them (see ``docs/python.md``).
        """
        arguments.function("follow", follow)
        arguments.function("keep", keep)
        settings = with_functions(self._settings, follow, keep)
        run = _Run(hooks_of(settings.hooks, follow, keep, arguments.headers("headers", headers)))
        pages = self._pages_of(run, settings, seeds, limits)
        run.taker = ref(pages)
        return pages

    async def _pages_of(
        self, run: _Run, settings: Settings, seeds: Iterable[str] | Mapping[str, str], limits: RunLimits
    ) -> AsyncGenerator[Page, None]:
        settings = apply(settings, {f"limits.{key}": value for key, value in limits.items()}, source="run()")
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

    async def add(self, urls: Iterable[str]) -> None:
        """Queue URLs while :meth:`run` is under way, as further seeds; the run fetches them before it ends.

        Returns when they are stored. Raises :class:`UsageError` if no run is under way, and for a URL that is bad or
        out of scope; then none is queued.
        """
        crawl = next((run.crawl for run in self._runs if run.crawl is not None and not run.stop.is_set()), None)
        if crawl is None:
            raise UsageError("add(): no run() is under way; give the URLs to run(seeds=…)")
        if self._settings.sample.size is not None:
            raise UsageError("add(): a sample is drawn from what the seeds lead to, so nothing is added to it")
        texts = arguments.urls("urls", urls)
        good = all_seeds(texts, "", source="add(urls=…)", skip_bad=False, tell=_LOG.warning).urls
        require_contact(self._settings, good)
        for run in self._runs:
            run.added = True
        await crawl.add(good)

    async def _end_left_runs(self) -> None:
        """Wait for the end of each run whose loop was left, because Python closes such a generator only later."""
        left = [run for run in self._runs if run.is_left()]
        failures = [await run.end() for run in left]
        self._runs.difference_update(left)
        _raise_first(failures)

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Admit one writing call at a time. Raises :class:`StoreInUse` while a run of this object has the file."""
        async with self._writing:
            await self._end_left_runs()
            db = self._settings.store.db
            if not is_url(db) and any(not run.task.done() for run in self._runs):
                raise StoreInUse(
                    f"{db}: a run() of this crawl is under way; leave its loop, or take all its pages, first"
                )
            yield

    @asynccontextmanager
    async def _store(self, *, read_only: bool = True) -> AsyncIterator[Store]:
        await self._end_left_runs()
        async with existing_store(self._settings, read_only=read_only) as store:
            yield store

    async def query(self, sql: str, parameters: Parameters = ()) -> list[dict[str, Any]]:
        """The rows of an SQL query on the views of the store (``pages``, ``links``, ``urls`` …).

        The statement is a ``SELECT``, and does nothing but read. Raises :class:`~crawler.errors.UsageError` for another
        statement, and for one that reads tables or calls functions that act (docs/store.md). Raises
        :class:`~crawler.errors.StatementError` for one that the database rejects.
        """
        async with self._store() as store:
            return await store.query(UserSql(sql), parameters)

    async def body(self, url: str, version: int | None = None) -> bytes | None:
        """The decoded body of a fetched URL, or ``None`` if the store has none. ``version`` chooses an earlier body."""
        canonical = _canonical(url)
        async with self._store() as store:
            return await store.bodies.of_page(canonical, version)

    def pages(self, where: str | None = None) -> AsyncGenerator[Page, None]:
        """The pages in the store at the time of the first step, one in memory at a time. A crawl may go on meanwhile.

        ``where`` is an SQL condition on the columns of the view ``pages`` (``"depth < 3 AND status = 200"``). Raises
        :class:`UsageError` for a condition that the database rejects, and if there is no store.
        """
        from crawler.export.job import require_one_expression

        if where is not None:
            require_one_expression(arguments.text("where", where))
        return self._read(lambda store: stored_pages(store, where, SystemClock().now()))

    def links(self, url: str) -> AsyncGenerator[PageLink, None]:
        """The links from a URL, then the links of other pages to it, one in memory at a time.

        There are none for a URL that the crawl does not know. The second part reads all links of the crawl.
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
        add: Iterable[str] = (),
        allowed_for: Iterable[str] = (),
        chunk: int | None = None,
        since: int | None = None,
    ) -> ExportProgress:
        """Write the content of the store to a file, completely or not at all; see :func:`crawler.export.export`.

        ``out`` is a path, "-" for standard output, or a file open in binary.
        """
        from crawler.export import ExportOptions
        from crawler.export import export as export_to

        target = arguments.output("out", out)
        options = ExportOptions(
            table=table,
            where=where,
            add=tuple(add),
            allowed_for=tuple(allowed_for),
            chunk=chunk,
            since=since,
        )
        async with self._store() as store:  # its own: the export opens a transaction on it
            return await export_to(store, format, target, options, now=SystemClock().now())

    async def rank(self) -> RankingSummary:
        """Rank pages and sites by their links; fills the views ``ranks`` and ``site_ranks``. Needs the extra ``rank``.

        Raises :class:`UsageError` without a store or the extra, and :class:`StoreInUse` during a crawl.
        """
        from crawler.rank import load_ranking

        ranking = load_ranking()
        async with self._alone(), self._store(read_only=False) as store:
            ranked: RankingSummary = await ranking.rank(store)
            return ranked

    async def duplicates(self) -> DuplicatesSummary:
        """Find pages with nearly the same main text; fills the view ``near_duplicates``. Only changed pages are read.

        Raises :class:`UsageError` without a store, and :class:`StoreInUse` during a crawl.
        """
        from crawler.duplicates.find import find_duplicates
        from crawler.texts.reader import TextReader

        async with self._alone(), self._store(read_only=False) as store, TextReader() as reader:
            return await find_duplicates(store, reader)

    @asynccontextmanager
    async def rup(
        self, site: str | None = None, tell: Callable[[str], None] = lambda note: None
    ) -> AsyncIterator[Subscriber]:
        """Updates by the Remote Update Protocol, as an async context manager.

        It yields a :class:`~crawler.rup.robot.subscribe.Subscriber`, which has a method for each command of ``crawler
        rup``. ``site`` (scheme, host and port) is the site to talk to. ``tell`` gets a sentence on each notable event.
        Do not use it while :meth:`run` is under way.
        """
        from crawler.rup.robot.session import robot

        await self._end_left_runs()
        async with robot(self._settings, site, tell, make=True) as subscriber:
            yield subscriber

    async def index(self) -> IndexSummary:
        """Build or update the search index. Raises :class:`StoreInUse` while :meth:`run` is under way."""
        from crawler.search.build_index import build_index
        from crawler.texts.reader import TextReader

        async with self._alone(), self._store(read_only=False) as store, TextReader() as reader:
            return await build_index(self._settings.store.db, store, reader)

    async def sample(
        self,
        variables: Mapping[str, Variable] | None = None,
        *,
        by: str | None = None,
        since: str | Path | None = None,
    ) -> Survey:
        """The estimates from the sample that :meth:`run` drew (settings ``sample.*``). Needs the extra ``sample``.

        ``variables`` are SQL expressions over the columns of ``pages``, or functions of a :class:`Page` that return a
        number, a truth value, a text, or ``None`` for a page without a value; ``@FILE.csv`` names hand codes. ``by``
        makes all estimates for each ``stratum``, ``site`` or value of a variable too. ``since`` is a store with an
        earlier wave of the same sample, for estimates of the changes.
        Raises :class:`UsageError` without a store, a sample in it, or that extra, and for a variable that cannot be
        computed.
        """
        from crawler.sampling import load

        estimate, now = load("survey"), SystemClock().now()
        async with AsyncExitStack() as opened:
            store = await opened.enter_async_context(self._store())
            earlier = None
            if since is not None:
                past = replace(self._settings, store=replace(self._settings.store, db=str(since)))
                earlier = await opened.enter_async_context(existing_store(past))
            survey: Survey = await estimate.survey(store, now, variables, by, earlier)
            return survey

    async def search(
        self,
        words: str,
        *,
        limit: int = 10,
        site: str | None = None,
        language: str | None = None,
        depth: int | None = None,
        since: float | None = None,
        similar_to: str | None = None,
    ) -> SearchResult:
        """Search the pages crawled, after :meth:`index`; see :func:`crawler.search.results.search`.

        ``site``, ``language``, ``depth``, ``since`` and ``similar_to`` bound the pages
        (:class:`crawler.search.results.Filters`).
        """
        from crawler.search.results import Filters, search

        limit, filters = arguments.count("limit", limit), Filters(site, language, depth, since, similar_to)
        async with self._store() as store:
            db = self._settings.store.db
            return await search(store, db, words, now=SystemClock().now(), limit=limit, filters=filters)

    async def status(self) -> dict[str, Any]:
        """What the store holds and what the crawl waits for: the object that ``crawler status --json`` prints."""
        from crawler.inspect import status

        async with self._store() as store:
            return status.as_json(await status.read_status(store, SystemClock().now()))

    async def why(self, url: str) -> dict[str, Any]:
        """All that is known and decided about a URL: the object that ``crawler why URL --json`` prints."""
        from crawler.inspect.why import explain

        canonical = _canonical(url)
        async with self._store() as store:
            return await explain(store, canonical, now=SystemClock().now())

    async def audit(self) -> AuditResult:
        """Judge every request of the log by robots.txt and the pace; ``violation_count`` says how many broke a rule."""
        from crawler.audit.run_audit import run_audit

        async with self._store() as store:
            return await run_audit(store, SystemClock().now())

    async def hint(self, urls: Iterable[str], *, gone: bool = False, source: str = "user") -> HintsGiven:
        """Tell the crawl that URLs have changed, or are ``gone``: a run with ``revisit.enabled`` visits them first.

        ``source`` names where the hints come from; the crawl records how often each source is right. Raises
        :class:`UsageError` for a bad URL; then no hint is stored.
        """
        from crawler.frontier.hints import HintKind
        from crawler.run.hints import give_hints

        texts = arguments.urls("urls", urls)
        good = all_seeds(texts, "", source="hint(urls=…)", skip_bad=False, tell=_LOG.warning).urls
        async with self._alone(), self._store(read_only=False) as store:
            kind = HintKind.GONE if gone else HintKind.CHANGED
            return await give_hints(store, good, kind, arguments.text("source", source))

    async def report(self, out: str | Path) -> None:
        """Write the crawl as one HTML page. Raises :class:`UsageError` if ``out`` cannot be written."""
        from crawler.report.gather import gather
        from crawler.report.write import require_html, write

        path = require_html(Path(arguments.path("out", out)))
        async with self._store() as store:
            facts = await gather(store, store_name(self._settings.store.db), SystemClock().now())
        write(path, facts)

    async def _crawl(self, settings: Settings, seeds: Seeds, run: _Run) -> None:
        async def hand_over(outcomes: list[Outcome]) -> None:
            for outcome in outcomes:
                if not run.stop.is_set() and outcome.reason.code is not ReasonCode.NOT_KEPT:
                    await run.hand_over(page_of(outcome))

        clock = SystemClock()
        session = crawl_session(
            settings,
            seeds,
            clock=clock,
            on_pages=hand_over,
            hooks=run.hooks,
            all_consumed=run.all_consumed,
        )
        async with session as (crawl, store):
            run.crawl = crawl
            stopper = asyncio.create_task(_stop_when(run.stop, crawl))
            try:
                end = await run_to_end(crawl, store, clock)
                self.ended_by, self.ended_code = end.sentence, end.code
                if not (crawl.progress.pages or crawl.progress.revisits):
                    _LOG.warning("no page was fetched: %s", end.sentence)
            finally:
                run.crawl = None
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
    """A crawl in a task of its own. ``taker`` is the generator that takes its pages.

    ``crawl`` is the engine while it runs. ``added`` says that URLs were added since the last :meth:`all_consumed`.
    """

    hooks: Hooks | None
    pages: asyncio.Queue[Page] = field(default_factory=lambda: asyncio.Queue(_BUFFER))
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] = field(init=False)
    crawl: Crawl | None = None
    added: bool = False
    _asked: asyncio.Event = field(default_factory=asyncio.Event)  # the caller has handled all pages that it took
    taker: ref[AsyncGenerator[Page, None]] = field(init=False)

    def is_left(self) -> bool:
        """Whether no caller can take pages any more, because the generator is closed or gone."""
        return self.stop.is_set() or self.taker() is None

    async def hand_over(self, page: Page) -> None:
        """Give a page to the caller; waits while the caller has not taken the one before."""
        await self.pages.put(page)
        self._asked.clear()  # at once: the caller cannot have handled the page yet

    async def all_consumed(self) -> bool:
        """Wait until the caller has handled all pages, or has left; returns whether it has added URLs meanwhile."""
        stop, asked = asyncio.create_task(self.stop.wait()), asyncio.create_task(self._asked.wait())
        try:
            await asyncio.wait([stop, asked], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
            asked.cancel()
        added, self.added = self.added, False
        return added

    async def next_page(self) -> Page | None:
        """The next page, or ``None`` once the crawl has ended and every page was taken."""
        if self.pages.empty():
            self._asked.set()
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
        """Stop the crawl in order and drop its pages. Returns the error that the crawl failed with, if any."""
        self.stop.set()
        try:
            while not self.task.done():
                await self.next_page()
        except asyncio.CancelledError:  # do not wait for the orderly end; commits are kept
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)
            raise
        return None if self.task.cancelled() else self.task.exception()


@dataclass(slots=True, eq=False)
class _Reading:
    """A generator that reads the store. ``taker`` is the generator that the caller holds."""

    taker: ref[AsyncGenerator[Any, None]] = field(init=False)
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    async def close(self) -> None:
        """Close the generator and its store. If its loop was left, Python closes the generator; wait for that."""
        taker = self.taker()
        if taker is None:
            await self.closed.wait()
        elif (
            isinstance(taker, AsyncGeneratorType) and not taker.ag_running
        ):  # otherwise another task runs it, and closes it
            await taker.aclose()


def _raise_first(failures: Iterable[BaseException | None]) -> None:
    failure = next(filter(None, failures), None)
    if failure is not None:
        raise failure


def _seeds(settings: Settings, seeds: Iterable[str] | Mapping[str, str]) -> Seeds:
    """The seeds of a run. Raises :class:`UsageError` if the run cannot begin."""
    if settings.workers.count > 1:
        raise UsageError(
            "run() is one process; leave the setting out, or use `crawler run`",
            key="workers.count",
            value=settings.workers.count,
        )
    texts = arguments.urls("seeds", seeds)
    file, skip_bad = "" if texts else settings.seeds.file, settings.seeds.skip_bad
    taken = all_seeds(texts, file, source="run(seeds=…)", skip_bad=skip_bad, tell=_LOG.warning)
    return taken._replace(strata=_strata(seeds)) if isinstance(seeds, Mapping) else taken


def _strata(seeds: Mapping[str, str]) -> dict[str, str]:
    """The stratum of each seed, by its canonical URL."""
    urls = ((read_seeds([seed.encode(errors="surrogatepass")])[0], stratum) for seed, stratum in seeds.items())
    return {url: stratum for found, stratum in urls for url in found}
