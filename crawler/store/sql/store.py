"""The store in SQL: all that SQLite and PostgreSQL share. A subclass for each has the connections."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from crawler.errors import Setting, StoreError, UsageError
from crawler.frontier.domain_addresses import with_addresses
from crawler.frontier.offers import Offer
from crawler.frontier.parts import PartLook, Parts, PartTraffic
from crawler.frontier.politeness import Pace, PolitenessSettings, group_name
from crawler.model import Body, Fetched, Kind, RobotsCopy, State
from crawler.reasons import EndCode, Reason, ReasonCode, RunEnd, group_waits_for
from crawler.robots.mirrors import MIN_ALIKE, judge_alike
from crawler.robots.tdmrep import TdmrepFile
from crawler.robots.text import SMALL_BYTES
from crawler.store.computed import Computed
from crawler.store.location import shown
from crawler.store.protocols import (
    ClaimedSite,
    CommitBatch,
    CommitResult,
    Counts,
    OutgoingOffer,
    Refuted,
    RobotsTarget,
    RobotsWait,
    Waiting,
)
from crawler.store.retrying import retrying, while_full
from crawler.store.rows import Parameters
from crawler.store.sql.bodies import SqlBodies, find_url
from crawler.store.sql.control import SqlControl, read_parts
from crawler.store.sql.maintenance import SqlMaintenance
from crawler.store.sql.offers import FoundOffer, Offers, best_offers
from crawler.store.sql.readiness import Readiness
from crawler.store.sql.results import SqlResults
from crawler.store.sql.revisits import Revisits, SqlRevisits
from crawler.store.sql.samples import SqlSamples
from crawler.store.sql.schema import require_whole
from crawler.store.sql.section import Access
from crawler.store.sql.site_rows import claimed_site, refuted_of, robots_copy
from crawler.store.sql.unread import answer_of
from crawler.store.sql.workers import Workers, is_alive, pace_of, pace_row, processes
from crawler.store.sql.wrong_clock import set_right
from crawler.store.statements import Queries, Statements
from crawler.version import VERSION

if TYPE_CHECKING:
    from crawler.store.sql.commit import Committer
    from crawler.store.sql.subscriptions import SqlSubscriptions

T = TypeVar("T")

_SEEDS_AT_ONCE = 5000


def _waiting(row: Any) -> Waiting:
    reason = group_waits_for(row.robots_problem, row.waits_for)
    return Waiting(row.name, row.ready_at, reason, row.robots_status, row.failing_since)


def bodies_of(batch: CommitBatch) -> dict[bytes, Body]:
    """The bodies of the pages in a batch, by SHA-256."""
    return {o.page.body.sha256: o.page.body for o in batch.outcomes if o.page is not None and o.page.body is not None}


class SqlStore(ABC):
    """All sections of a store; see :mod:`crawler.store.protocols`."""

    dialect: str
    _sql: Statements  # on the connection of the one transaction that may be open
    _read: Queries  # outside of it
    _offers: Offers
    _readiness: Readiness
    _access: Access
    _workers: Workers
    _revisits: Revisits
    control: SqlControl
    bodies: SqlBodies
    revisits: SqlRevisits
    samples: SqlSamples
    results: SqlResults
    maintenance: SqlMaintenance
    _politeness: PolitenessSettings
    _run_id = 0

    def _make_parts(self) -> None:
        """Make the parts that are the same for both databases."""
        self._waits_for_room: Callable[[], bool] = lambda: False
        access, offers, readiness = self._access, self._offers, self._readiness
        self.revisits = SqlRevisits(access, offers, readiness, self._revisits)
        self.samples = SqlSamples(access, offers, readiness)
        self.results = SqlResults(access)
        self.maintenance = SqlMaintenance(access, offers, readiness, self._revisits, self.bodies)

    @cached_property
    def rup(self) -> SqlSubscriptions:
        from crawler.store.sql.subscriptions import SqlSubscriptions  # loads the forms and mails of the protocol

        return SqlSubscriptions(self._access)

    # --- provided by a subclass ---------------------------------------------------------------

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the store in messages."""

    @property
    @abstractmethod
    def _committer(self) -> Committer:
        """Executes the commits of this worker."""

    @abstractmethod
    def _writing(self) -> AbstractAsyncContextManager[None]:
        """A transaction on the connection of ``_sql``, rolled back whole if anything fails in it."""

    @abstractmethod
    async def _end_crashed(self, now: float) -> None:
        """End the workers that are known to be dead although their leases have not ended."""

    @abstractmethod
    def on_news(self, wake: Callable[[], None]) -> None: ...

    @abstractmethod
    async def query(self, sql: str, parameters: Parameters = ()) -> list[dict[str, Any]]: ...

    @abstractmethod
    def rows(self, sql: str, parameters: Parameters = ()) -> AsyncGenerator[Any, None]: ...

    @abstractmethod
    def is_held(self) -> bool: ...

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    async def columns_of(self, table: str) -> list[str]:
        """The columns of a table, in order."""

    @abstractmethod
    async def insert_rows(self, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows of another store into a table, in one transaction."""

    async def _retry(self, attempt: Callable[[], Awaitable[T]], /) -> T:
        """Retry an attempt as long as it may succeed. An error of a file is final, but for a disk that gets room."""
        return await while_full(attempt, self._waits_for_room)

    def wait_for_room(self, waits: Callable[[], bool]) -> None:
        """Try again what the disk has no room for, as long as ``waits`` returns true."""
        self._waits_for_room = waits

    async def _count(self, statement: str) -> Any:
        """The row of a statement that may take minutes. The crawl continues at the same time."""
        return await self._read.fetch_one(statement)

    @asynccontextmanager
    async def beginning(self) -> AsyncIterator[None]:
        yield  # the process that has the lock of the file is alone

    @property
    def away_s(self) -> float | None:
        return self.bodies.away_s  # a file is always there

    def give_up(self) -> None:
        self.bodies.give_up()

    def lock_fds(self) -> tuple[int, ...]:
        """Open files that a child process must inherit for the store to stay locked while the child lives."""
        return ()

    # --- runs ---------------------------------------------------------------------------------

    @property
    def lease_s(self) -> float | None:
        return self._workers.lease_s

    @property
    def run_id(self) -> int:
        return self._run_id

    @property
    def worker_id(self) -> int:
        return self._workers.id

    async def start_run(self, settings: dict[str, Any], now: float, *, at_work: bool = True) -> int:
        await self.recover(now)
        async with self._writing():
            if "auxiliary_run" not in settings:
                await self._sql.execute("settle")
            await self._revisits.sweep()
            await self._sql.execute("sweep_unread")
            await self._abandon_robots_waits()
            run = await self._sql.fetch_one("insert_run", now=now, version=VERSION, settings=json.dumps(settings))
        await self.bodies.delete_dropped()
        await self.take_part(int(run.id), now, at_work=at_work)
        return self._run_id

    async def _abandon_robots_waits(self) -> None:
        """Let the sites ask again that have waited for another site since an earlier run, within a transaction."""
        rows = await self._sql.fetch("abandon_robots_waits")
        if rows:
            await self._sql.execute("set_wait_until", until=0.0, sites=json.dumps([row.site_id for row in rows]))
            sites = {number for row in rows for number in (row.site_id, row.target_id)}
            groups = await self._sql.fetch("groups_of_sites", sites=json.dumps(list(sites)))
            await self._readiness.refresh({row.group_id for row in groups})

    async def take_part(self, run_id: int, now: float, *, at_work: bool) -> None:
        """Register for a run, as a worker or as a supervisor of workers that are about to start."""
        self._run_id = run_id
        if at_work:
            await self.join_run(run_id, now)
        elif self.lease_s is not None:
            async with self._writing():
                await self._workers.join(run_id, now, as_placeholder=True)

    @retrying
    async def join_run(self, run_id: int, now: float) -> None:
        async with self._writing():
            if self._workers.id:
                await self._workers.end(None, RunEnd(EndCode.REPLACED), now)
                await self._release_lost(now)
            await self._workers.join(run_id, now)
            await self._sql.execute("reopen_run", run_id=run_id)
        self._run_id = run_id
        self._committer.begin(run_id)

    @retrying
    async def rejoin(self, now: float) -> bool:
        async with self.beginning():
            last = await self.last_run()
            if last is None or last["id"] != self._run_id:
                return False
            await self.join_run(self._run_id, now)
        return True

    async def last_run(self) -> dict[str, Any] | None:
        row = await self._read.fetch_one("last_run")
        return None if row is None else row._asdict()

    async def computed(self) -> dict[Computed, bool]:
        rows = await self._read.fetch("computations")
        return {Computed(row.name): bool(row.is_behind) for row in rows}

    async def last_request(self) -> int:
        return int((await self._read.fetch_one("last_request")).id)

    async def last_settings(self) -> dict[str, Any] | None:
        row = await self._read.fetch_one("last_settings", run_id=self._run_id)
        return None if row is None else dict(json.loads(row.settings))

    async def run_under_way(self, now: float) -> tuple[int, dict[str, Any]] | None:
        row = await self._read.fetch_one("run_under_way", now=now)
        return None if row is None else (row.id, json.loads(row.settings))

    @retrying
    async def renew(self, now: float) -> None:
        async with self._writing():
            await self._workers.renew(None, now)
            await self._release_lost(now)

    @retrying
    async def bury(self, worker: int, end: RunEnd, now: float) -> None:
        async with self._writing():
            await self._workers.end(worker, end, now)
            await self._release_lost(now)

    async def known_dead(self) -> set[int]:
        if not self.is_held():
            return {row.id for row in await self._read.fetch("workers_not_ended")}
        neighbours = await self._read.fetch("neighbours", processes=processes(), worker=0)
        return {neighbour.id for neighbour in neighbours if not is_alive(neighbour.pid)}

    async def sent_last_request(self) -> bool:
        last = await self._read.fetch_one("last_asking_run")
        return last is not None and last.run_id == self.run_id

    async def others_at_work(self) -> bool:
        return bool((await self._read.fetch_one("others_at_work", worker=self._workers.id)).any_other)

    async def unsettle(self, now: float) -> None:
        async with self._writing():
            await self._sql.execute("unsettle", now=now)

    @retrying
    async def recover(self, now: float) -> None:
        async with self._writing():
            await set_right(self._sql, self._offers, self._readiness, now, self.name)
            await self._end_crashed(now)
            await self._release_lost(now)

    async def _release_lost(self, now: float) -> None:
        """Release the groups of lost workers, within a transaction."""
        await self._readiness.refresh(await self._workers.release_lost(now))

    async def end_run(self, end: RunEnd, now: float) -> None:
        await self._note_end(end, now)
        await self.bodies.delete_dropped()

    @retrying
    async def _note_end(self, end: RunEnd, now: float) -> None:
        async with self._writing():
            await self._end_run(end, now)

    async def _end_run(self, end: RunEnd, now: float) -> None:
        await self._workers.end(None, end, now)
        await self._revisits.sweep()
        await self._sql.execute("sweep_unread")
        await self._sql.execute("end_run", now=now, ended_code=end.code, ended_by=end.sentence, run_id=self._run_id)

    async def leave(self, now: float) -> None:
        """End this worker's part in a run that stopped or failed before its crawl began.

        Waits for nothing: if the database is away, the lease runs out.
        """
        if self._workers.id:
            with suppress(StoreError):
                async with self._writing():
                    if await self._workers.is_at_work():
                        await self._end_run(RunEnd(EndCode.NOT_BEGUN), now)

    # --- the frontier -------------------------------------------------------------------------

    @retrying
    async def commit(self, batch: CommitBatch) -> CommitResult:
        async with self._writing():
            await self._workers.renew(batch, batch.now)
            result = await self._committer.commit(batch)
        self._workers.commits += 1
        return result

    @retrying
    async def commit_late(self, batch: CommitBatch) -> None:
        async with self._writing():
            if await self._workers.count_late(len(batch.requests)):
                await self._committer.commit_late(batch)

    async def unread_answer(self, url_id: int) -> Fetched | None:
        row = await self._read.fetch_one("unread_answer", url_id=url_id)
        return None if row is None else answer_of(row)

    async def add_seeds(
        self, urls: Sequence[tuple[str, Reason | None]], domains: Collection[str] = frozenset()
    ) -> None:
        for start in range(0, len(urls), _SEEDS_AT_ONCE):
            batch = {
                url: FoundOffer(Offer(url, 0, refusal, seed=True, by_domain=url in domains), None)
                for url, refusal in urls[start : start + _SEEDS_AT_ONCE]
            }
            async with self._writing():
                numbers, touched = await self._offers.take(batch, None)
                named = [{"id": number, "by_domain": int(url in domains)} for url, number in numbers.items()]
                await self._sql.execute_many("set_seed", named)
                await self._readiness.refresh(touched)
            self._offers.forget()  # seeds are of many sites: few of them are worked on first

    async def unfetched_seed(self) -> str | None:
        row = await self._read.fetch_one("unfetched_seed", run_id=self._run_id)
        return None if row is None else str(row.url)

    async def seed_states(self) -> list[tuple[State, str]]:
        return [(State(row.state), row.reason) for row in await self._read.fetch("seed_states")]

    async def seed_causes(self) -> list[tuple[State, ReasonCode, str, int]]:
        rows = await self._read.fetch("seed_causes")
        return [(State(row.state), ReasonCode(row.reason_code), row.reason, row.urls) for row in rows]

    async def seeds(self) -> list[str]:
        return [row.url for row in await self._read.fetch("seeds")]

    async def places(self) -> list[str]:
        return with_addresses(await self.seeds(), await self.domains())

    async def domains(self) -> list[str]:
        return [row.url for row in await self._read.fetch("domains")]

    async def excluded(self, after: int, limit: int) -> list[tuple[int, str, ReasonCode, int, bool]]:
        rows = await self._read.fetch("excluded_from", after=after, limit=limit)
        return [(row.id, row.url, ReasonCode(row.reason_code), row.depth, bool(row.is_asked_for)) for row in rows]

    async def queued(self, after: int, limit: int) -> list[tuple[int, str, int, bool]]:
        rows = await self._read.fetch("queued_from", after=after, limit=limit)
        return [(row.id, row.url, row.depth, bool(row.is_asked_for)) for row in rows]

    @retrying
    async def exclude(self, numbers: Sequence[tuple[int, Reason]]) -> None:
        async with self._writing():
            await self._offers.lock([number for number, _ in numbers])  # a commit may be postponing one of them
            await self._sql.execute_many("dequeue", [{"id": number} for number, _ in numbers])
            await self._sql.execute_many(
                "exclude", [{"id": number, "reason_code": r.code, "reason": r.sentence} for number, r in numbers]
            )
            self._offers.forget()

    @retrying
    async def requeue(self, numbers: Sequence[int]) -> None:
        async with self._writing():
            await self._sql.execute_many("requeue", [{"id": number} for number in numbers])
            await self._offers.enqueue(numbers)
            await self._readiness.refresh(await self._offers.groups(numbers))
            self._offers.forget()

    @retrying
    async def prepare(self, pages_per_site: int | None) -> None:
        async with self._writing():
            await self._sql.execute("keep_longer_pauses", pause_s=self._politeness.delay_s)
            await self._readiness.refresh_all(pages_per_site)

    async def regroup(self) -> None:
        async with self._writing():
            latest: dict[str, Pace] = {}
            sites = await self._sql.fetch("all_sites")
            for site in sites:
                name = group_name(site.site, self._politeness.group)
                pace = pace_of(site)
                if name not in latest or latest[name].next_at < pace.next_at:
                    latest[name] = pace
            await self._sql.execute_many("add_groups", [{"name": name} for name in latest])
            await self._sql.execute_many(
                "regroup_site",
                [{"group_name": group_name(site.site, self._politeness.group), "id": site.id} for site in sites],
            )
            await self._sql.execute_many("set_pace", [pace_row(name, pace) for name, pace in latest.items()])
            self._offers.forget()

    @retrying
    async def claim_group(self, site: str) -> int | None:
        async with self._writing():
            await self._offers.sites([site])
            name = group_name(site, self._politeness.group)
            row = await self._sql.fetch_one("claim_group", worker=self._workers.id, group_name=name)
            return None if row is None else int(row.id)

    async def robots_waits(self, target: RobotsTarget) -> list[RobotsWait]:
        rows = await self._read.fetch("robots_waits", site=target.site, path=target.path)
        return [
            RobotsWait(row.site_id, row.name, target._replace(hops=row.hops), tuple(json.loads(row.seen or "[]")))
            for row in rows
        ]

    async def robots_copy_from(self, url: str, now: float) -> RobotsCopy | None:
        row = await self._read.fetch_one("robots_copy_from", url=url, now=now, small=SMALL_BYTES)
        return None if row is None else robots_copy(row)

    @retrying
    async def fail_circles(self) -> None:
        async with self._writing():
            await self._sql.execute("fail_circles", sentence=ReasonCode.REDIRECT_CIRCLE.sentence)

    async def group_pace(self, name: str) -> Pace:
        row = await self._read.fetch_one("group_pace", name=name)
        return Pace() if row is None else pace_of(row)

    async def tdmrep_file(self, site_id: int) -> TdmrepFile | None:
        row = await self._read.fetch_one("tdmrep_of", site_id=site_id)
        return None if row is None else TdmrepFile(row.fetched_at, row.status, bytes(row.body), row.note)

    async def next_ready(self, now: float = math.inf) -> Waiting | None:
        row = await self._read.fetch_one("next_ready", now=now)
        return None if row is None else _waiting(row)

    async def waiting(self, now: float, limit: int) -> list[Waiting]:
        rows = await self._read.fetch("waiting_groups", now=now, limit=limit)
        return [_waiting(row) for row in rows]

    # --- robots.txt and mirrors ---------------------------------------------------------------

    async def site(self, name: str) -> ClaimedSite | None:
        row = await self._read.fetch_one("site_named", name=name, small=SMALL_BYTES)
        return None if row is None else claimed_site(row)

    @retrying
    async def keep_robots_text(self, sha256: bytes, text: bytes) -> None:
        async with self._writing():
            await self._sql.execute_many("insert_robots_text", [{"sha256": sha256, "body": text}])

    async def robots_text(self, sha256: bytes) -> bytes:
        row = await self._read.fetch_one("robots_text", sha256=sha256)
        assert row is not None, "it was put there when the file arrived"
        return bytes(row.body)

    async def expire_robots(self, now: float, *, unreached: bool = False) -> None:
        async with self._writing():
            await self._sql.execute("end_robots_wait", unreached=unreached)
            await self._sql.execute("expire_robots", now=now, unreached=unreached)

    async def expire_robots_of(self, sites: Sequence[str], now: float) -> None:
        async with self._writing():
            await self._sql.execute("expire_robots_of", now=now, sites=json.dumps(list(sites)))

    async def main_sites(self) -> list[tuple[str, str]]:
        return [(row.site, row.main_site) for row in await self._read.fetch("host_mirrors")]

    async def refuted_mirrors(self) -> list[Refuted]:
        return [refuted_of(row) for row in await self._read.fetch("refuted_mirrors")]

    @retrying
    async def find_content_mirrors(self, now: float) -> int:
        pairs = await self._read.fetch("alike_sites", least=MIN_ALIKE)
        judged = [(pair, judge_alike(alike=pair.alike, sample=pair.compared, pages=pair.pages)) for pair in pairs]
        rows = [
            {
                "site": pair.site,
                "main_site": pair.main_site,
                "sample": alike.sample,
                "confidence": alike.confidence,
                "now": now,
            }
            for pair, alike in judged
            if alike is not None
        ]
        async with self._writing():
            await self._sql.execute("drop_content_mirrors")
            await self._sql.execute_many("insert_content_mirror", rows)
        return len(rows)

    # --- reading ------------------------------------------------------------------------------

    async def counts(self) -> Counts:
        row = await self._count("counts")
        states = {State(state): n for state, n in json.loads(row.ended).items()}
        states[State.QUEUED] = row.queued
        states[State.FETCHED] = row.urls - sum(states.values())
        in_order = {state: states.get(state, 0) for state in State}
        return Counts(in_order, row.pages, row.links, row.requests, row.sites)

    async def fetched_count(self) -> int:
        return int((await self._read.fetch_one("fetched_count")).n)

    async def fetched_by_run(self) -> int:
        return int((await self._read.fetch_one("fetched_by_run", run_id=self._run_id)).n)

    async def queued_count(self) -> int:
        return int((await self._count("queued_count")).n)

    async def excluded_count(self) -> int:
        return int((await self._count("excluded_count")).n)

    async def find(self, url: str) -> int | None:
        return await find_url(self._read, url)

    async def way_to(self, number: int) -> list[str]:
        return list(dict.fromkeys(row.url for row in await self._read.fetch("way_to", number=number)))

    # --- the other parts of the crawl ---------------------------------------------------------

    @property
    def parts(self) -> Parts | None:
        return self._offers.parts

    async def open_parts(self) -> None:
        """Find out which part of a crawl this store has."""
        self._offers.parts = await read_parts(self._read)

    async def keep_parts(self, parts: Parts | None) -> None:
        if parts == self.parts:
            return
        if self.parts is not None or await self.last_run() is not None:
            if self.parts is None:
                raise UsageError(
                    f"the crawl in {self.name} was begun on this database alone: leave out ", Setting("store.parts")
                )
            raise UsageError(
                f"the crawl in {self.name} was begun on {', '.join(map(shown, self.parts.dbs))}: name each of these "
                "parts, and no other, and give the seeds of the crawl",
                key="store.parts",
            )
        assert parts is not None
        async with self._writing():
            rows = [{"number": n, "db": db, "is_own": int(n == parts.own)} for n, db in enumerate(parts.dbs)]
            for row in rows:
                await self._sql.execute("insert_part", **row)
        self._offers.parts = parts

    async def part_look(self) -> PartLook:
        row = await self._read.fetch_one("part_look")
        offers_to = frozenset(map(int, row.offers_to.split(","))) if row.offers_to else frozenset()
        has_ended = row.finished_at is not None
        return PartLook(bool(row.has_begun), has_ended, bool(row.has_work), row.taken, row.seen_at, offers_to)

    async def part_traffic(self) -> list[PartTraffic]:
        rows = await self._read.fetch("part_traffic")
        return [PartTraffic(row.number, row.db, row.waiting, row.taken) for row in rows]

    async def outgoing(self, part: int, limit: int) -> list[OutgoingOffer]:
        return [
            OutgoingOffer(
                row.id,
                Offer(
                    row.url,
                    row.depth,
                    None,
                    row.hops,
                    bool(row.seed),
                    Kind(row.kind),
                    row.lastmod,
                    bool(row.by_domain),
                ),
            )
            for row in await self._read.fetch("outgoing", part=part, limit=limit)
        ]

    @retrying
    async def outgoing_taken(self, part: int, numbers: Sequence[int]) -> None:
        async with self._writing():
            await self._sql.execute("outgoing_taken", part=part, numbers=json.dumps(list(numbers)))

    @retrying
    async def take_in(
        self, part: int, offers: Sequence[Offer], max_depth: int | None, pages_per_site: int | None
    ) -> None:
        async with self._writing():
            _, touched = await self._offers.take(best_offers(FoundOffer(offer, None) for offer in offers), max_depth)
            await self._sql.execute("count_taken", part=part, offers=len(offers))
            await self._readiness.refresh(touched, pages_per_site)

    # --- snapshots and copies -----------------------------------------------------------------

    async def begin_snapshot(self) -> None:
        await self.query("BEGIN")

    async def begin_notes(self) -> None:
        await self.query("BEGIN")

    async def end_notes(self) -> None:
        await self.query("ROLLBACK")

    async def begin_settled_snapshot(self) -> None:
        await self.begin_snapshot()

    async def begin_copy(self, sources: Sequence[str]) -> None:
        async with self._writing():
            for source in sources:
                await self._sql.execute("begin_copy", source=source)

    async def complete_urls(self, rows: Sequence[tuple[int, int | None, int | None]]) -> None:
        async with self._writing():
            for number, found_on, target in rows:
                await self._sql.execute("complete_url", id=number, found_on=found_on, target=target)

    async def finish_copy(self, now: float) -> None:
        """Note that this store is a complete copy."""
        async with self._writing():
            await self._sql.execute("finish_copy", now=now)

    async def require_whole(self) -> None:
        """Raise :class:`crawler.errors.UsageError` for a copy that is not complete."""
        await require_whole(self._read, self.name)
