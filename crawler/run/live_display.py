"""The display of a running crawl: a live panel on a terminal, or single notes, and a summary at the end."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from shlex import quote
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from crawler.cli.console import PrintableConsole
from crawler.cli.layout import Fact, facts
from crawler.clock import Clock, brief_time
from crawler.engine.progress import Progress, trouble
from crawler.engine.tasks import background_task
from crawler.errors import StoreError
from crawler.formatting import duration, many, size
from crawler.frontier.politeness import Pace
from crawler.frontier.time_left import TimeLeft
from crawler.inspect.seeds import Outcome, describe_outcomes
from crawler.inspect.status import resume_hint
from crawler.inspect.time_left import describe_time_left, read_time_left
from crawler.inspect.unknown_hosts import describe_wait, first_wait
from crawler.model import State
from crawler.reasons import DNS_KINDS, ErrorKind, ReasonCode, RunEnd
from crawler.robots.response import RobotsSettings
from crawler.settings.keys import terminal_name
from crawler.store.location import db_argument
from crawler.store.rows import Counts, Waiting
from crawler.store.statements import load_statements

if TYPE_CHECKING:
    from crawler.cli.signals import Reconnecting
    from crawler.store.sections import Store

_REFRESH_S = 0.5
_DEFAULT_ROBOTS = RobotsSettings()
_LONGEST_REST_S = 30.0
_REST_FACTOR = 20  # times as long as a query has taken, until it is asked again
_SLOW_S = 3.0  # an answer that takes longer is reported
_LONG_WAIT_S = 10.0
_NOTE_EVERY_S = 600.0
_TROUBLES = 10
_SQL = load_statements("crawler.run")
_HINT = "Ctrl-C stops; the same command continues the crawl"
_AT_ONCE = "Ctrl-C again ends it now"
_NO_NAME = (
    "no host name could be looked up so far: is this machine offline, or its name server (/etc/resolv.conf) at fault?"
)
_GRACE_NOTED_AFTER_S = 1.5  # most runs have ended before, and a worker has told that its database is away
_GRACE = "stopping, requests in flight get a few seconds"


class _Snapshot(msgspec.Struct):
    queued: int = 0
    excluded: int = 0
    waiting: tuple[Waiting, ...] = ()
    time_left: TimeLeft | None = None
    rate: float = 0.0
    pages_before: int = 0
    others: int = 0  # workers of other commands
    at: float = 0.0


class Watched(Protocol):
    """The crawl that is shown: of this process, or of several."""

    @property
    def progress(self) -> Progress: ...

    def slowest(self) -> tuple[str, Pace] | None: ...


class Watch:
    """Draws the progress of a crawl on a terminal."""

    def __init__(
        self,
        crawl: Watched,
        store: Store,
        clock: Clock,
        console: PrintableConsole,
        stopped_by: Callable[[], str | None],
        db: str,
        workers: int = 1,
        hint: str = _HINT,
        robots: RobotsSettings = _DEFAULT_ROBOTS,
    ) -> None:
        self._crawl, self._store, self._clock, self._console = crawl, store, clock, console
        self._stopped_by, self._workers = stopped_by, workers
        self._db, self._hint, self._robots = db, hint, robots
        self._seen = _Snapshot(at=clock.now())
        self._next_time_left_at = 0.0  # it reads all URLs, and an engine on SQLite waits meanwhile
        self._has_figures = asyncio.Event()
        self._asked_at: float | None = None  # when the question was asked that the store has not answered yet

    @asynccontextmanager
    async def shown(self) -> AsyncIterator[None]:
        """Draw while the context is entered."""
        with Live(console=self._console, auto_refresh=False, transient=True) as live:
            async with background_task(self._keep_reading()), background_task(self._draw(live)):
                yield

    async def _draw(self, live: Live) -> None:
        await self._has_figures.wait()
        while True:
            live.update(self._panel(), refresh=True)
            await self._clock.sleep(_REFRESH_S)

    async def _keep_reading(self) -> None:
        while True:
            began, took_s = self._clock.now(), 0.0
            self._asked_at = self._asked_at or began
            with suppress(StoreError):  # the crawl waits for the database, and reports if it is lost
                await self._read_figures()
                took_s, self._asked_at = self._clock.now() - began, None
            self._has_figures.set()
            # Counting a large frontier takes the store a while. The crawl gets the store for twenty times as long.
            await self._clock.sleep(min(max(_REFRESH_S, _REST_FACTOR * took_s), _LONGEST_REST_S))

    async def _read_figures(self) -> None:
        now, seen, pages = self._clock.now(), self._seen, self._crawl.progress.pages
        seen.queued = await self._store.queued_count()
        seen.excluded = await self._store.excluded_count()
        seen.waiting = tuple(await self._store.waiting(now, 1))
        if now >= self._next_time_left_at:
            began = self._clock.now()
            seen.time_left = await read_time_left(self._store, now)
            ended = self._clock.now()
            self._next_time_left_at = ended + _REST_FACTOR * (ended - began)
        if self._store.lease_s is not None:
            (there,) = await self._store.query(_SQL["count_at_work"], {"now": now})
            seen.others = max(0, there["n"] - self._workers)
        if now > seen.at:
            recent = (pages - seen.pages_before) / (now - seen.at)
            seen.rate = recent if seen.rate == 0 else 0.8 * seen.rate + 0.2 * recent
        seen.pages_before, seen.at = pages, now

    def _panel(self) -> RenderableType:
        progress, seen, now = self._crawl.progress, self._seen, self._clock.now()
        ends = progress.ends
        together = f", with {many(seen.others, 'other worker')}" if seen.others else ""
        revisits = f", {progress.revisits.total():,} visited again" if progress.revisits else ""
        lines = [
            Text.assemble(
                (many(progress.pages, "page"), "bold green"),
                f" ({seen.rate:.1f}/s){revisits}, {ends[State.REDIRECTED]:,} redirected, ",
                (f"{ends[State.FAILED]:,} failed", "red" if ends[State.FAILED] else ""),
            ),
            Text(f"in the store: {seen.queued:,} queued, {seen.excluded:,} excluded"),
            Text(
                f"{many(progress.active, 'site')} worked on, {many(progress.sent_requests, 'request')}, "
                f"{size(progress.wire_bytes)}, {duration(now - progress.started_at)}{together}"
            ),
        ]
        if seen.time_left is not None:
            lines.append(Text(describe_time_left(seen.time_left, seen.at)))
        if progress.troubles:
            lines.append(Text("trouble: " + _troubles(progress.troubles.most_common(4)), style="yellow"))
        if finds_no_name(progress, self._robots, now):
            lines.append(Text(_NO_NAME, style="bold yellow"))
        if (slowest := self._slowest(now)) is not None:
            lines.append(Text(slowest, style="magenta"))
        if progress.idle_for is not None and progress.idle_for.until - now > _LONG_WAIT_S:
            lines.append(Text(_remedies(progress.idle_for, self._db), style="magenta"))
        if progress.idle_for is not None and progress.frame_closes_at is not None:
            latest = brief_time(progress.frame_closes_at, now)
            lines.append(
                Text(f"the sample waits for {progress.idle_for.group}, until {latest} at the latest", "magenta")
            )
        if self._asked_at is not None and now - self._asked_at > _SLOW_S:
            lines.append(Text(f"no answer from the store for {duration(now - self._asked_at)}", style="bold yellow"))
        if progress.paused_since is not None:
            since = brief_time(progress.paused_since, now)
            lines.append(Text(f"paused by the operator since {since}; {resume_hint(self._db)}", style="bold yellow"))
        if progress.low_disk is not None:
            lines.append(Text(f"paused: {progress.low_disk}; goes on by itself (--min-free)", style="bold yellow"))
        stopped_by = self._stopped_by()
        hint = self._hint
        if stopped_by is not None:
            is_away = self._store.away_s is not None
            hint = f"{stopped_by}: {'stopping when the database answers' if is_away else _GRACE}; {_AT_ONCE}"
        lines.append(Text(hint, style="bold" if stopped_by else "dim"))
        return Group(*lines)

    def _slowest(self, now: float) -> str | None:
        """The longest pause, of the groups that are worked on and of those that wait in the store."""
        if (wait := self._crawl.progress.idle_for) is not None and wait.until > now + _REFRESH_S:
            return f"everything left {first_wait(wait, self._robots, now)}"
        longest = max(self._seen.waiting, key=lambda wait: wait.until, default=None)
        live = self._crawl.slowest()
        if live is not None and live[1].next_at > now + 1 and (longest is None or live[1].next_at > longest.until):
            longest = Waiting(live[0], live[1].next_at, live[1].waits_for.sentence)
        if longest is None:
            return None
        reason = describe_wait(longest, self._robots, now)
        return f"waiting for {longest.group} until {brief_time(longest.until, now)}, {reason}"


class WaitNotes:
    """Prints notes in place of a live display.

    It prints what the crawl waits for if all of it waits for long, that the operator paused or resumed it, that it
    pauses for a full disk, and that the database does not answer. The crawl waits for the database for ``patience_s``
    seconds at most.
    """

    def __init__(
        self,
        crawl: Watched,
        awaited: Reconnecting,
        clock: Clock,
        tell: Callable[[str], None],
        stopped_by: Callable[[], str | None],
        patience_s: float,
        db: str,
        robots: RobotsSettings,
    ) -> None:
        self._crawl, self._awaited, self._clock, self._tell = crawl, awaited, clock, tell
        self._stopped_by, self._patience_s, self._db = stopped_by, patience_s, db
        self._robots = robots
        self._reported = set[str]()  # about the database that does not answer
        self._away_s = 0.0

    async def keep_telling(self) -> None:
        """Print notes until it is cancelled."""
        noted_at = -_NOTE_EVERY_S
        paused: float | None = None
        is_short = False
        stopped_at = self._clock.now()
        next_at = self._clock.now() + _LONG_WAIT_S
        while True:
            await self._clock.sleep(_REFRESH_S)
            now, wait = self._clock.now(), self._crawl.progress.idle_for
            if paused != (paused := self._crawl.progress.paused_since):
                self._tell("resumed" if paused is None else f"paused by the operator; {resume_hint(self._db)}")
            if is_short != (is_short := self._crawl.progress.low_disk is not None):
                self._tell(
                    f"paused: {self._crawl.progress.low_disk}; make room, and the crawl goes on by itself (--min-free)"
                    if is_short
                    else "goes on: the disk has room again"
                )
            self._note_silence()
            if finds_no_name(self._crawl.progress, self._robots, now):
                self._tell_once(_NO_NAME)
            if self._stopped_by() != "SIGINT":
                stopped_at = now
            elif self._awaited.away_s is None and now - stopped_at >= _GRACE_NOTED_AFTER_S:
                self._tell_once(f"SIGINT: {_GRACE}; {_AT_ONCE}", "grace")
            if now < next_at:
                continue
            next_at = now + _LONG_WAIT_S
            if wait is not None and wait.until - now > _LONG_WAIT_S and now - noted_at >= _NOTE_EVERY_S:
                noted_at = now
                first = first_wait(wait, self._robots, now)
                self._tell(f"everything left {first}; {_remedies(wait, self._db)}")

    def _note_silence(self) -> None:
        away_s, stopped_by = self._awaited.away_s, self._stopped_by()
        if away_s is None:
            if self._away_s:
                self._tell(f"the database answers again, after {duration(self._away_s)}")
                self._away_s = 0.0
                self._reported.clear()
            return
        self._away_s = away_s
        if stopped_by is not None:
            left = duration(max(0.0, self._patience_s - away_s))
            self._tell_once(
                f"{stopped_by}: stopping when the database answers, in at most {left}; {_AT_ONCE}", "stopping"
            )
        elif away_s > _SLOW_S:
            patience = duration(self._patience_s)
            trouble = "the database does not answer, or its disk is full"
            self._tell_once(f"{trouble}; the crawl waits {patience} at most (workers.patience)")

    def _tell_once(self, what: str, kind: str = "") -> None:
        if kind not in self._reported:
            self._reported.add(kind)
            self._tell(what)


def finds_no_name(progress: Progress, robots: RobotsSettings, now: float) -> bool:
    """Whether every look-up has failed, of several names: then the names are probably not the cause.

    One name alone is looked up again after pauses that double; more look-ups than these are of several names.
    """
    failed = sum(n for kind, n in progress.troubles.items() if kind in DNS_KINDS)
    of_one_name = 1 + int(math.log2(1 + max(0.0, now - progress.started_at) / robots.retry_first_s))
    return progress.sent_requests == 0 and failed == progress.requests and failed > of_one_name


def _remedies(wait: Waiting, db: str) -> str:
    argument = db_argument(db)
    is_unknown = wait.robots_status == ErrorKind.DNS_NO_NAME
    other = f"`crawler control queue URL{argument}` adds the right address, " if is_unknown else ""
    return f"{other}`crawler control block {quote(wait.site or wait.group)}{argument}` leaves it out"


def summary(
    crawl: Watched,
    counts: Counts | None,
    end: RunEnd,
    db: str,
    now: float,
    seeds: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The end of a run as one JSON object. ``urls``, ``pages``, ``links`` and ``sites`` count the whole store.

    They are ``None`` without ``counts``, at a forced end. ``seeds`` is the ledger in short.
    """
    progress = crawl.progress
    return {
        "ended_by": end.message(terminal_name),
        "ended_code": end.code,
        "db": db,
        "seconds": round(now - progress.started_at, 3),
        "urls": None if counts is None else {state.value: n for state, n in counts.states.items()},
        "pages": None if counts is None else counts.pages,
        "links": None if counts is None else counts.links,
        "sites": None if counts is None else counts.sites,
        "seeds": seeds,
        "run": {
            "pages": progress.pages,
            "requests": progress.sent_requests,
            "bytes": progress.wire_bytes,
            # Copies: at a forced end another thread is asking.
            "revisits": {found.value: n for found, n in dict(progress.revisits).items()},
            "troubles": dict(progress.troubles),
            "refusals": {code.value: n for code, n in dict(progress.refusals).items()},
        },
    }


_REFUSALS = {
    ReasonCode.PREFERENCE: "not requested, because robots.txt refuses a declared purpose",
    ReasonCode.WITHHELD: "fetched and withheld, because the page refuses a declared purpose",
}


def print_summary(result: dict[str, Any], console: PrintableConsole) -> None:
    """Print the end of a run for people."""
    run, urls = result["run"], result["urls"]
    rate = run["pages"] / result["seconds"] if result["seconds"] else 0.0
    rows: list[Fact] = [
        ("Ended", Text(result["ended_by"], style="bold")),
        (
            "This run",
            f"{many(run['pages'], 'page')}, {many(run['requests'], 'request')}, {size(run['bytes'])} "
            f"in {duration(result['seconds'])} ({rate:,.1f} pages/s)",
        ),
    ]
    if run["revisits"]:
        rows.append(("Revisits", ", ".join(f"{n:,} {found}" for found, n in run["revisits"].items())))
    if run["refusals"]:
        refused = (f"{many(n, 'page')} {_REFUSALS[ReasonCode(code)]}" for code, n in sorted(run["refusals"].items()))
        rows.append(("Preferences", ", ".join(refused)))
    if run["troubles"]:
        troubles = sorted(run["troubles"].items(), key=lambda item: -item[1])
        more = f" … ({len(troubles) - _TROUBLES:,} other kinds)" if len(troubles) > _TROUBLES else ""
        rows.append(("Trouble", _troubles(troubles[:_TROUBLES]) + more))
    if urls is None:
        rows.append(("Store", f"{result['db']}: `crawler status` counts what it holds"))
    else:
        rows.append(("Store", f"{result['db']}: {many(result['pages'], 'page')}, {many(result['links'], 'link')}"))
    if urls is not None:
        rows.append(("URLs", ", ".join(f"{n:,} {state}" for state, n in urls.items())))
    if (seeds := result["seeds"]) is not None and seeds["outcomes"].keys() - {Outcome.FETCHED}:
        rows.append(("Seeds", describe_outcomes(seeds["outcomes"])))
    console.print(facts(rows))


def _troubles(troubles: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{n:,} × {trouble(what)}" for what, n in troubles)
