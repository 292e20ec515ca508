"""Carries out ``crawler run``."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from crawler.cli.console import PrintableConsole, console
from crawler.cli.logs import set_up_logging
from crawler.cli.options import configured, given_settings, named_seeds
from crawler.cli.output import print_json, quietly, tell, to_json
from crawler.cli.shared import STOPPED, collect_garbage_seldom, run_async
from crawler.cli.signals import END_WITHIN_S, TEAM_ENDS_WITHIN_S, ForcedEnd, Reconnecting, Signals
from crawler.clock import SystemClock
from crawler.engine.progress import Progress
from crawler.engine.tasks import background_task
from crawler.errors import CrawlerError, Setting, UsageError, fault, joined
from crawler.fetch import open_files
from crawler.formatting import many
from crawler.inspect.first_match import describe_first_matches
from crawler.inspect.seeds import Told, describe_patterns, ledger_at_end
from crawler.model import Reading
from crawler.reasons import EndCode, RunEnd
from crawler.robots.tokens import warning_about
from crawler.run.live_display import WaitNotes, Watch, Watched, print_summary, summary
from crawler.run.minute_log import log_minutes
from crawler.run.notify import notify, require_login
from crawler.run.refresh import queue_refresh
from crawler.run.team import Team, require_shares
from crawler.run.worker_process import WorkerProcess, forked
from crawler.sampling import load, of_list
from crawler.session.crawl_session import (
    begun,
    crawl_session,
    finish_crawl,
    log_end,
    run_to_end,
)
from crawler.session.hooks import hooks_of
from crawler.session.nothing_crawled import NOTHING_CRAWLED, why_nothing
from crawler.session.refusals import at_refused_addresses, refusals, require_alone, seeds_at_refused_addresses
from crawler.settings.keys import Key, terminal_name
from crawler.settings.seeds import Seeds
from crawler.settings.settings import Settings
from crawler.settings.stored import differing, settings_stored_at
from crawler.store.location import db_argument, shown

if TYPE_CHECKING:
    from crawler.store.sections import Store

_LOG = logging.getLogger("crawler.run")
_warn = partial(tell, level=logging.WARNING)

_VALUES_SHOWN = 3  # of a list that an earlier run was given


def run(seeds: tuple[str, ...], config: Path | None, refresh: bool, options: Mapping[str, Any]) -> int:
    """Start or continue a crawl. ``options`` are the values of the options of settings, as click has read them."""
    given = given_settings(options)

    def with_given(settings: Settings) -> Settings:
        return configured(settings, config, options)

    output = with_given(Settings()).output
    set_up_logging(output.log_level, output.log_format)

    async def run_crawl(forced_end: ForcedEnd, forks: list[WorkerProcess]) -> int:
        settings, changes = await _as_begun(with_given)
        _require_sample_size(settings, given)
        require_login(settings.output.notify)
        if settings.robots.reading is not Reading.RFC9309 and (warning := warning_about(settings.identity.agent)):
            tell(f"{warning} ({terminal_name(Setting('identity.agent'))})")
        execution = _Execution(settings, changes, forced_end, forks)
        if refresh:
            return await execution.notified(execution.refresh(seeds))
        return await execution.notified(execution.run(named_seeds(settings, seeds)))

    def work() -> int:
        given_now = with_given(Settings())
        # A forced end is possible also while the loop waits for its threads.
        with ForcedEnd() as forced_end, forked(_forks_for(given_now), given_now.store.db) as forks:
            forced_end.is_quiet = output.quiet
            try:
                return run_async(run_crawl(forced_end, forks))
            except (Exception, KeyboardInterrupt, asyncio.CancelledError) as error:
                if forced_end.code is None:
                    raise
                if isinstance(error, Exception):
                    _tell_failure(error)
                return forced_end.code

    open_files.raise_limit()
    open_files.require_room()  # before the event loop, which needs both
    return quietly(work, quiet_codes=(0, STOPPED)) if output.quiet else work()


def _forks_for(settings: Settings) -> int:
    """How many workers to fork before the event loop begins, as far as the command line and the file say."""
    if settings.workers.count == 1:
        return 0
    with suppress(UsageError):  # the run says so, if the store does not remember other limits
        require_shares(settings)
        return settings.workers.count
    return 0


async def _as_begun(with_given: Callable[[Settings], Settings]) -> tuple[Settings, str]:
    """The settings of a run: those that the store remembers, changed by what is given. Prints which are remembered.

    Also returns the sentence about what the run changes when it begins, "" if nothing. ``with_given`` puts what is
    given in place of settings. Seeds that a command names are added to the crawl, and change no setting.
    """
    fresh = of_list(with_given(Settings()))
    before = await settings_stored_at(fresh)
    if before is None:
        return fresh, ""
    settings = of_list(with_given(before))
    argument = db_argument(settings.store.db)
    if begun_with := [_setting_text(key, key.value(settings), short=True) for key in differing(settings, fresh)]:
        tell(
            f"goes on with {', '.join(begun_with)}, as the crawl was begun "
            f"(`crawler settings{argument}` lists all settings)"
        )
    changes = [
        f"{_setting_text(key, key.value(settings))} (was {_plain(key, key.value(before))})"
        for key in differing(settings, before)
    ]
    return settings, f"changes the crawl: {', '.join(changes)}" if changes else ""


def _setting_text(key: Key, value: Any, *, short: bool = False) -> str:
    name = terminal_name(Setting(key.name))
    written = key.kind.written(value)
    if key.option and isinstance(written, list | tuple) and written:  # an option for each value, as a shell takes them
        shown = written[:_VALUES_SHOWN] if short else written
        more = f" … ({len(written):,} in all)" if len(shown) < len(written) else ""
        return " ".join(f"{name} {quote(str(item))}" for item in shown) + more
    return name if value is True and key.option else f"{name} {_plain(key, value)}"


def _plain(key: Key, value: Any) -> str:
    """The value for a reader: TOML without quotes, and flags as "on" and "off"."""
    if isinstance(value, bool):
        return "on" if value else "off"
    written = key.kind.written(value)
    return written if isinstance(written, str) and written else key.kind.toml(value)


def _require_sample_size(settings: Settings, given: Iterable[str]) -> None:
    """Raise :class:`UsageError` for options about a sample if no sample is to be drawn."""
    idle = [Setting(key) for key in given if key.startswith("sample.") and key != "sample.size"]
    if idle and settings.sample.size is None:
        listed = [part for setting in idle for part in (", ", setting)][1:]
        raise UsageError(
            *listed, " without ", Setting("sample.size"), ": say how many URLs to draw, or leave the options out"
        )


@dataclass(slots=True)
class _Execution:
    """A run of the command line. ``changes`` says what it changes when it begins; a refused run changes nothing.

    ``told`` are the seeds of which the end of a run before has told. ``left_out`` are the named seeds at addresses that
    are refused, and ``others`` is the number of other seeds.
    """

    settings: Settings
    changes: str
    forced_end: ForcedEnd
    forks: list[WorkerProcess]
    told: Told = frozenset()
    left_out: Sequence[str] = ()
    others: int = 0

    async def refresh(self, names: tuple[str, ...]) -> int:
        """Visit what is named again, and go on with the crawl."""
        if self.settings.sample.size is not None:
            raise UsageError(
                "--refresh visits pages again, and a sample is of first visits: give no --refresh, or name another "
                "store with ",
                Setting("store.db"),
            )
        queued = await queue_refresh(self.settings, names)
        tell(f"{many(queued, 'visit')} queued by --refresh")
        return await self.run(Seeds([], {}))

    async def run(self, seeds: Seeds) -> int:
        """Begin or continue the crawl, and run it to its end; returns the exit code."""
        settings, forced_end = self.settings, self.forced_end
        mistakes = list(refusals(settings, seeds.urls, seeds.strata))
        if len(mistakes) > 1:  # else what refuses the run says so
            raise joined(mistakes)
        if not mistakes:
            self.left_out = at_refused_addresses(settings, seeds.urls)
            self.others = len(seeds.urls) - len(self.left_out)
        work = self._alone
        if settings.workers.count > 1:
            require_alone(settings, "run one process, and start no other on this store")
            require_shares(settings)
            hooks_of(settings.hooks)  # before workers start
            work = self._in_team
        clock, signals = SystemClock(), Signals(forced_end=forced_end)
        result = await work(seeds, clock, signals)
        assert forced_end.code is not None, "the end was told"
        if not signals.came:  # else the process has no time, and somebody knows
            forced_end.cancel()  # a mail server is given longer
            await self._notify(result, forced_end.code)
            forced_end.after(END_WITHIN_S)
        return forced_end.code

    async def _alone(self, seeds: Seeds, clock: SystemClock, signals: Signals) -> dict[str, Any]:
        collect_garbage_seldom()
        session = crawl_session(self.settings, seeds, clock=clock, tell=self._tell)
        async with session as (crawl, store):
            async with self._watched(crawl, store, store, clock, signals):
                end = await run_to_end(crawl, store, clock)
            stopped = signals.came or end.code in (EndCode.OPERATOR, EndCode.SUPERSEDED)
            return await self._ended(crawl, store, end, clock, stopped=stopped)

    async def _in_team(self, seeds: Seeds, clock: SystemClock, signals: Signals) -> dict[str, Any]:
        """Run the crawl in several worker processes. This process starts and watches them."""
        beginning = begun(self.settings, seeds, clock, at_work=False, tell=self._tell)
        async with beginning as (store, _):
            team = Team(self.settings, store, clock, tell, self.forks)
            async with self._watched(team, team, store, clock, signals, end_within_s=TEAM_ENDS_WITHIN_S):
                end = await team.run()
                if not team.stopped:
                    await finish_crawl(team.progress, store, clock)
            log_end(end)
            await store.end_run(end, clock.now())
            return await self._ended(team, store, end, clock, stopped=signals.came or team.cut_short)

    @asynccontextmanager
    async def _watched(
        self,
        crawl: Any,
        awaited: Reconnecting,
        store: Store,
        clock: SystemClock,
        signals: Signals,
        *,
        end_within_s: float = END_WITHIN_S,
    ) -> AsyncIterator[None]:
        """A context in which signals stop ``crawl``, and in which it is shown and logged.

        ``awaited`` is the store, or the team whose workers wait for it. If the display fails when the crawl has ended,
        that is printed.
        """
        self._tell_changes()
        if store.run_id != 1:
            ledger = await ledger_at_end(store, self.settings.store.db, clock.now())
            self.told = frozenset() if ledger is None else ledger.told()
            self.others = 1 if ledger is None else len(ledger.seeds) - len(self.left_out)
        if self.left_out and self.others:  # else the end of the run tells why nothing was crawled
            tell(f"leaves out {seeds_at_refused_addresses(self.left_out)}")
        signals.stop_from_now_on(crawl, awaited, end_within_s=end_within_s)
        self.forced_end.last_words = partial(_print_forced_end, self.settings, crawl, clock)
        signals.end_after(self.settings.limits.max_time_s)
        has_ended = False
        try:
            async with (
                background_task(log_minutes(crawl, store, clock)),
                _display(self.settings, crawl, awaited, store, clock, signals),
            ):
                yield
                has_ended = True
        except Exception as error:
            if not has_ended:
                raise
            _tell_failure(error)

    async def _ended(
        self, crawl: Watched, store: Store, end: RunEnd, clock: SystemClock, *, stopped: object
    ) -> dict[str, Any]:
        """Tell the end of the run, and set the exit code; returns the summary."""
        settings, db, now = self.settings, self.settings.store.db, clock.now()
        nothing: str | None = None  # why it crawled nothing
        sentences: list[str] = []  # about seeds and links without a page
        survey = None
        result = summary(crawl, None, end, shown(db), now)
        with _failures_shown():
            ledger = await ledger_at_end(store, db, now)
            seeds = None if ledger is None else ledger.in_short(self.told)
            result = summary(crawl, await store.counts(), end, shown(db), now, seeds)
            nothing = None if stopped else await why_nothing(store, crawl.progress, end, settings, now)
            if ledger is not None:
                sentences += ledger.lines_at_end(has_causes=nothing is not None, told=self.told)
            sentences += await describe_patterns(store, settings.scope.include)
            sentences += await describe_first_matches(store, settings)
            draw = await store.samples.drawn() if settings.sample.size is not None else None
            if draw is not None and draw.stands:
                survey = await load("survey").survey(store, now)
                result["sample"] = survey.as_json()
        with _failures_shown():
            if nothing:
                _warn(nothing)
            for sentence in sentences:
                tell(sentence)
            if settings.output.json:
                print_json(result)
            else:
                is_told = nothing and end.code is EndCode.SEEDS_LEFT_OUT
                print_summary(result | {"ended_by": end.code.meaning} if is_told else result, console)
                if survey is not None:
                    console.print()
                    load("rendering").render(survey, console)
                elif settings.sample.size is not None:
                    console.print(
                        "No sample yet: it is drawn when its whole sampling frame is known; the same command continues"
                    )
            sys.stdout.flush()  # from here on, the process may be ended by force
        self.forced_end.code = _exit_code(crawl.progress, db, nothing, stopped=stopped)
        return result

    async def notified(self, run: Coroutine[Any, Any, int]) -> int:
        """The exit code of ``run``. A failure before its end goes to ``output.notify`` as the summary would."""
        try:
            return await run
        except CrawlerError as error:
            if self.forced_end.code is not None:
                raise
            db = shown(self.settings.store.db)
            await self._notify(
                {"db": db, "ended_by": error.message(terminal_name), "ended_code": "error"}, error.exit_code
            )
            raise

    async def _notify(self, result: dict[str, Any], exit_code: int) -> None:
        sent = result | {"exit_code": exit_code}
        await notify(self.settings.output.notify, sent, self.settings.identity.contact_email, _warn)

    def _tell(self, sentence: str) -> None:
        """Print a sentence of the run, and before the first one what the run changes."""
        self._tell_changes()
        tell(sentence)

    def _tell_changes(self) -> None:
        if self.changes:
            tell(self.changes)
            self.changes = ""


@contextmanager
def _failures_shown() -> Iterator[None]:
    """A context after the end of a run is in the store. A failure inside is printed and keeps the exit code."""
    try:
        yield
    except BrokenPipeError:
        pass  # nobody reads the summary any more, as with `| head -1`
    except Exception as error:
        _tell_failure(error)


def _tell_failure(error: Exception) -> None:
    """The run ended in order, and a step after its end failed."""
    _LOG.debug("a step after the end of the run failed", exc_info=error)
    why = error.message(terminal_name) if isinstance(error, CrawlerError) else fault(error)
    _warn(f"the run has ended, and everything is kept; a step after its end failed: {why}")


def _print_forced_end(settings: Settings, crawl: Watched, clock: SystemClock) -> None:
    """Print what this process knows of the run, without its event loop and its store, which may be stuck.

    Nothing here waits for a lock of another thread: the text is made first, and written at once.
    """
    result = summary(crawl, None, RunEnd(EndCode.FORCED), shown(settings.store.db), clock.now())
    if settings.output.json:
        text = f"{to_json(result)}\n"
    else:
        page = io.StringIO()
        print_summary(result, PrintableConsole(file=page, width=console.width))
        text = page.getvalue()
    os.write(1, text.encode(errors="replace"))


def _exit_code(progress: Progress, db: str, nothing: str | None, *, stopped: object) -> int:
    """The exit code of a run; ``nothing`` says why it crawled nothing, if so."""
    if faults := progress.faults:
        tell(
            f"{many(faults, 'answer')} met a bug in the crawler: the URLs failed, or wait for the robots.txt that "
            f"met it; please report what `crawler status{db_argument(db)}` shows about them"
        )
    if stopped:
        return STOPPED
    return 1 if faults else NOTHING_CRAWLED if nothing else 0


def _display(
    settings: Settings, crawl: Watched, awaited: Reconnecting, store: Store, clock: SystemClock, signals: Signals
) -> AbstractAsyncContextManager[None]:
    """The live display on a terminal, otherwise notes on standard error."""
    db = settings.store.db
    if settings.output.progress and not settings.output.quiet and console.is_terminal and not settings.output.json:
        workers = settings.workers.count
        return Watch(crawl, store, clock, console, lambda: signals.came, db, workers, robots=settings.robots).shown()
    patience_s = settings.workers.patience_s
    notes = WaitNotes(crawl, awaited, clock, tell, lambda: signals.came, patience_s, db, settings.robots)
    return background_task(notes.keep_telling())
