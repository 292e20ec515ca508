"""The processes of a crawl in a world: each opens the store, crawls, and ends, is stopped, fails or is killed."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from contextvars import copy_context
from dataclasses import asdict, dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any
from unittest import mock

from crawler.engine import disk_reserve, loop, operator
from crawler.engine.crawl import Crawl, RunInputs
from crawler.engine.crawl_policy import CrawlPolicy, RobotsPolicy
from crawler.engine.crawl_settings import LimitSettings
from crawler.engine.gate import FetcherSide
from crawler.engine.lease import Lease
from crawler.engine.loop_lag import LoopLag
from crawler.engine.parser_pool import ReadingOptions
from crawler.errors import StoreError, UsageError
from crawler.frontier.operator import Command
from crawler.frontier.revisit import RevisitSettings
from crawler.frontier.scope import Scope, ScopeMode, ScopeSettings
from crawler.model import FetchResult, Request
from crawler.reasons import EndCode
from crawler.session import crawl_session as session
from crawler.settings.changes import begin
from crawler.settings.crawl_scope import adopt_known
from crawler.store.open import give_order_to_file
from crawler.store.rows import ClaimedSite, CommitBatch, CommitResult
from crawler.store.sqlite.store import SqliteStore
from tests.reading import ReaderInProcess
from tests.virtual_time import EPOCH_S, VirtualClock
from tests.world.disk import DISK, Disk
from tests.world.plan import Plan
from tests.world.rules import TOKEN
from tests.world.web import Web
from tests.world.witness import Life, Seen, Witness

#: The lease of one of several workers, in seconds, and the longest request of this web. A long lease is renewed seldom.
_LEASE_S = 600.0
#: Rounds of cancellation until every task of a killed process has gone.
_ROUNDS = 200
#: More requests than one commit logs in these worlds.
_MOST_IN_BATCH = 2_000


class End(Enum):
    """How a process ended."""

    DONE = auto()
    STOPPED = auto()
    STORE_FAILED = auto()
    KILLED = auto()


class ProcessClock(VirtualClock):
    """The clock of one process: it never jumps while the process lives. Nobody wakes up while the process stalls."""

    def __init__(self, loop: Any, ahead_s: float, disk: Disk) -> None:
        super().__init__(loop)
        self._ahead_s = ahead_s
        self._disk = disk

    def now(self) -> float:
        return EPOCH_S + self._ahead_s + self.loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self.awake()

    async def awake(self) -> None:
        """Wait until the process does not stall."""
        if (rest_s := self._disk.stalled_until - self.loop.time()) > 0:
            await self.sleep(rest_s)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of the crawl, in the form that the store keeps."""

    scope: ScopeSettings
    politeness: Any
    fetch: Any
    robots: Any
    revisit: RevisitSettings


@dataclass(slots=True)
class Team:
    """The processes that crawl at the same time, under one clock that is ``ahead_s`` ahead of virtual time.

    The first process begins the run ``run_id``, and the others join it.
    """

    ahead_s: float
    begun: asyncio.Event
    run_id: int | None = None


class Process:
    """One life of the crawl: of its only worker, or of one worker in a team."""

    def __init__(
        self,
        number: int,
        plan: Plan,
        web: Web,
        witness: Witness,
        path: Path,
        loop: asyncio.AbstractEventLoop,
        team: Team,
    ) -> None:
        self._plan, self._web, self._witness = plan, web, witness
        self._path = path
        self._team = team
        self.life = Life(number, loop.time())
        self.disk = Disk(random.Random(f"{plan.seed} disk {number}"), self.kill, plan.most_calls)
        self._clock = ProcessClock(loop, team.ahead_s, self.disk)
        self._lease: Lease | None = None
        self._in_flight: dict[int, Seen] = {}
        self._killed = asyncio.Event()
        self._hosts: dict[int, str] = {}  # by the number of the site

    @property
    def is_alive(self) -> bool:
        return not self._killed.is_set()

    def stall(self, seconds: float) -> None:
        """Let the process do nothing for a while, as SIGSTOP does. The answers on their way to it arrive."""
        until = max(self.disk.stalled_until, self._clock.loop.time() + seconds)
        self.disk.stalled_until = self.life.awake_at = until

    def kill(self) -> None:
        """End the process at this instant, as ``kill -9`` does."""
        if self._killed.is_set():
            return
        self._killed.set()
        self.disk.die()
        for seen in list(self._in_flight.values()):
            self._witness.ended(seen, self._clock.now(), None, None)
        self._in_flight.clear()
        self._witness.lost(self.life, _last_logged(self._path))

    async def live(self) -> End:
        """Run the process until it ends."""
        context = copy_context()
        context.run(DISK.set, self.disk)
        task = asyncio.get_running_loop().create_task(self._work(), context=context)
        killed = asyncio.create_task(self._killed.wait())
        try:
            await asyncio.wait([task, killed], return_when=asyncio.FIRST_COMPLETED)
        finally:
            killed.cancel()
            await self._bury([task])
        if self._killed.is_set():
            if not task.cancelled():
                task.exception()  # whatever the dead process met
            return End.KILLED
        end = task.result()
        if end is End.STORE_FAILED:
            self._witness.lost(self.life, _last_logged(self._path))
        else:
            self._witness.finished(self.life)
        return end

    async def _bury(self, tasks: list[asyncio.Task[Any]]) -> None:
        """Let go of what is left of the process. Nothing that its tasks still do has an effect."""
        for _ in range(_ROUNDS):
            left = [*self.disk.tasks] + [task for task in tasks if not task.done()]
            if not left:
                return
            for task in left:
                if self._killed.is_set():
                    task.cancel()
            await asyncio.wait(left, timeout=0 if self._killed.is_set() else 60)
        self._witness.complain(f"tasks that do not end: {left[0]}")

    # --- the work -----------------------------------------------------------------------------

    async def _work(self) -> End:
        try:
            async with self._opened() as (crawl, store):
                end = await session.run_to_end(crawl, store, self._clock)
        except StoreError as error:
            if self._killed.is_set() or "full" not in str(error):
                raise
            return End.STORE_FAILED
        if crawl.progress.faults:
            self._witness.complain(f"{crawl.progress.faults} bugs were counted")
        return End.DONE if end.code is not EndCode.OPERATOR else End.STOPPED

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[tuple[Crawl, SqliteStore]]:
        plan, clock = self._plan, self._clock
        settings = Settings(
            ScopeSettings(ScopeMode.ANY), plan.politeness, plan.fetch, plan.robots, RevisitSettings(plan.days > 0)
        )
        is_team = plan.workers > 1
        lease_s = _LEASE_S if is_team else None
        if is_team and self._team.run_id is None:  # workers open a store that their supervisor has made
            made = await SqliteStore.open(self._path)
            await made.close()
        store = await WatchedStore.open(self._path, plan.politeness, lease_s=lease_s, locked=is_team)
        store.process = self
        try:
            known = await store.seeds()
            seeds = sorted(set(self._web.seeds()) - set(known))
            scope = Scope(settings.scope, [*known, *seeds])
            if self._team.run_id is None:
                await begin(store, scope, asdict(settings), seeds, clock.now(), pages_per_site=None)
                self._team.run_id = store.run_id
                self._team.begun.set()
            else:
                await adopt_known(store, scope)
                await store.join_run(self._team.run_id, clock.now())
            robots = RobotsPolicy(plan.robots, TOKEN)
            limits = LimitSettings(concurrency=plan.concurrency)
            policy = CrawlPolicy(limits, plan.politeness, plan.fetch, robots, settings.revisit)
            reader = ReaderInProcess(ReadingOptions(TOKEN, plan.robots.reading))
            self._lease = Lease(store, clock, policy.fetch.total_timeout_s, clock.loop.time)
            side = FetcherSide(fetcher=self, reader=reader, lease=self._lease, lag=LoopLag(clock))
            inputs = RunInputs(store=store, clock=clock, policy=policy, scope=scope, side=side)
            yield Crawl(inputs), store
        finally:
            await store.close()

    async def fetch(self, request: Request) -> FetchResult:
        """Send one request into the web."""
        while self._killed.is_set():  # a task of a killed process
            await asyncio.get_running_loop().create_future()
        clock = self._clock
        asked_at = clock.now()
        await clock.awake()
        if self._lease is not None and not self._lease.may_send():
            raise asyncio.CancelledError  # as the fetcher does when the connection stands
        seen = self._witness.sent(self.life, request, clock.now(), asked_at)
        self._in_flight[id(seen)] = seen
        answer = self._web.answer(request, seen.began_at)
        received = None
        try:
            await asyncio.sleep(answer.delay_s)
            received = answer.received(request, seen.wall_began, clock.now())
        finally:
            if self._in_flight.pop(id(seen), None) is not None:
                self._witness.ended(seen, clock.now(), answer, received)
        if clock.loop.time() >= self.disk.stalled_until and asked_at == seen.wall_began:
            return received
        await clock.awake()
        self._witness.heard(seen, clock.now())
        return answer.received(request, asked_at, clock.now())

    def committed(self, batch: CommitBatch, result: CommitResult | None, asked_at: float) -> None:
        """A commit of this process has landed, which was asked for at ``asked_at`` of virtual time."""
        if not self._killed.is_set():
            rows = [(self._hosts[row.site_id], row) for row in batch.requests]
            pages = [outcome.queued.url for outcome in batch.outcomes if outcome.page is not None]
            self._witness.committed(self.life, rows, pages, len(batch.outcomes))
            for claim in result.claims if result is not None else []:
                self.know({site.id: site.name for site in claim.sites.values()})
                self._witness.acquired(self.life, claim.group, asked_at)

    def now(self) -> float:
        """Virtual time."""
        return self._clock.loop.time()

    def know(self, sites: dict[int, str]) -> None:
        """Learn the names of sites."""
        self._hosts |= {number: name.partition("://")[2] for number, name in sites.items()}


def _last_logged(path: Path) -> list[tuple[str, str, float]]:
    """The host, path and start of the last requests in the log."""
    with closing(sqlite3.connect(path)) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'request'").fetchone():
            return []  # the process did not live to make the store
        rows = db.execute(
            "SELECT name, path, started_at FROM request r JOIN site s ON s.id = r.site_id ORDER BY r.id DESC LIMIT ?",
            (_MOST_IN_BATCH,),
        ).fetchall()
    return [(name.partition("://")[2], path, started_at) for name, path, started_at in rows]


class WatchedStore(SqliteStore):
    """The SQLite store, which tells its process of each commit that has landed."""

    process: Process

    async def commit(self, batch: CommitBatch) -> CommitResult:
        asked_at = self.process.now()
        result = await super().commit(batch)
        self.process.committed(batch, result, asked_at)
        return result

    async def commit_late(self, batch: CommitBatch) -> None:
        self.process.life.lost_lease = True
        await super().commit_late(batch)
        self.process.committed(CommitBatch(requests=list(batch.requests)), None, self.process.now())

    async def site(self, name: str) -> ClaimedSite | None:
        site = await super().site(name)
        if site is not None:
            self.process.know({site.id: site.name})
        return site


def own_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """From now on, each task that ``loop`` makes for a process is noted at the disk of that process."""

    def factory(loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, Any], **options: Any) -> asyncio.Task[Any]:
        task = asyncio.Task(coro, loop=loop, **options)
        disk = (options.get("context") or copy_context()).get(DISK)
        if disk is not None:
            disk.tasks[task] = None
            task.add_done_callback(lambda done: disk.tasks.pop(done, None))
        return task

    loop.set_task_factory(factory)


async def give(command: Command, host: str, path: Path, clock: VirtualClock, witness: Witness) -> bool:
    """Give an order to the crawl, as ``crawler control`` does. Returns whether the store took it."""
    try:
        await give_order_to_file(str(path), command, host, clock)
    except (UsageError, StoreError):
        return False
    witness.ordered(command.value, host)
    return True


def _virtual_s() -> float:
    return asyncio.get_running_loop().time()


@contextmanager
def quiet_engine(look_every_s: float) -> Iterator[None]:
    """Let the engine look less often at what costs time here, and do not measure the lag of a loop without one."""
    with (
        mock.patch.object(operator, "_POLL_EVERY_S", look_every_s),
        mock.patch.object(operator, "_KNOWN_FOR_S", 1.2 * look_every_s),
        mock.patch.object(operator, "_HOLDS_WITHIN_S", 2 * look_every_s),
        mock.patch.object(operator, "_BEAT_EVERY_S", 10 * look_every_s),
        mock.patch.object(disk_reserve, "_CHECK_EVERY_S", look_every_s),
        mock.patch.object(loop, "POLL_EVERY_S", 10 * look_every_s),
        mock.patch.object(loop, "boot_s", _virtual_s),
        mock.patch.object(LoopLag, "measure", mock.AsyncMock()),
    ):
        yield
