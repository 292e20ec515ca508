"""The store in SQL, and on one SQLite file. What another database does otherwise, a subclass says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import astuple
from pathlib import Path
from typing import Any, Self

import aiosqlite
from filelock import FileLock

from crawler.errors import StoreError
from crawler.frontier.hints import Heeded, Hint, Refusal
from crawler.frontier.offers import Offer
from crawler.frontier.politeness import Pace, PolitenessSettings, group_name
from crawler.frontier.revisit import RevisitSettings
from crawler.gunzip import BROKEN
from crawler.model import RobotsCopy, State
from crawler.reasons import Reason, ReasonCode
from crawler.robots.mirrors import MIN_ALIKE, judge_alike
from crawler.store.keys import url_number
from crawler.store.protocols import (
    Claim,
    CommitBatch,
    CommitResult,
    Counts,
    PageRank,
    SampleDraw,
    SampleRow,
    SiteRank,
    Waiting,
)
from crawler.store.retrying import lasting
from crawler.store.rows import Parameters
from crawler.store.sql.commit import TurnTaker, robots_copy
from crawler.store.sql.control import SqliteControl
from crawler.store.sql.offers import Offers
from crawler.store.sql.revisits import Revisits
from crawler.store.sql.runs import SqlRuns
from crawler.store.sql.statements import load_queries
from crawler.store.sql.subscriptions import SqliteRup
from crawler.store.sql.workers import Workers
from crawler.store.sqlite.connection import (
    close_with_ear,
    decompress,
    every,
    fit_cache,
    is_held,
    lock_store,
    one,
    open_with_ear,
    reader,
    reading,
    require_usable,
    rows_of,
    transaction,
)
from crawler.url import split


class SqlStore(SqlRuns):
    """See :class:`crawler.store.protocols.Store`. All but the connection, which a subclass has."""

    @lasting
    async def begin_trial(self, claim: Claim) -> None:
        async with self._writing():
            await self._workers.begin_trial(claim)

    # --- seeds and scope ----------------------------------------------------------------------

    async def add_seeds(self, urls: Sequence[tuple[str, Reason | None]]) -> None:
        for start in range(0, len(urls), 5000):
            batch: dict[str, tuple[Offer, int | None]] = {
                url: (Offer(url, 0, refusal, seed=True), None) for url, refusal in urls[start : start + 5000]
            }
            async with self._writing():
                numbers, touched = await self._offers.take(batch, None)
                await self._db.executemany(self._sql["set_seed"], [(n,) for n in numbers.values()])
                await self._turns.refresh(touched, None)

    async def seeds(self) -> list[str]:
        rows = await self._every("SELECT url FROM urls WHERE seed = 1")
        return [row[0] for row in rows]

    async def main_sites(self) -> list[tuple[str, str]]:
        rows = await self._every("SELECT site, main_site FROM mirror WHERE evidence = 'host'")
        return [(row[0], row[1]) for row in rows]

    async def excluded(self, after: int, limit: int) -> list[tuple[int, str, ReasonCode, int, bool]]:
        rows = await self._every(self._sql["excluded_from"], (after, limit))
        return [(row[0], row[1], ReasonCode(row[2]), row[3], bool(row[4])) for row in rows]

    async def queued(self, after: int, limit: int) -> list[tuple[int, str, int, bool]]:
        rows = await self._every(self._sql["queued_from"], (after, limit))
        return [(row[0], row[1], row[2], bool(row[3])) for row in rows]

    @lasting
    async def exclude(self, numbers: Sequence[tuple[int, Reason]]) -> None:
        async with self._writing():
            await self._offers.lock([number for number, _ in numbers])  # a turn may be putting one off
            await self._db.executemany(self._sql["dequeue"], [(number,) for number, _ in numbers])
            await self._db.executemany(
                self._sql["exclude"], [(why.code, why.sentence, number) for number, why in numbers]
            )
            self._offers.forget()

    @lasting
    async def requeue(self, numbers: Sequence[int]) -> None:
        async with self._writing():
            await self._db.executemany(self._sql["requeue"], [(n,) for n in numbers])
            await self._db.executemany(self._sql["enqueue"], [(n,) for n in numbers])
            await self._turns.refresh(await self._offers.groups(numbers), None)
            self._offers.forget()

    async def expire_robots(self, now: float, *, unreached: bool = False) -> None:
        async with self._writing():
            await self._db.execute(self._sql["end_robots_wait"], (unreached,))
            await self._db.execute(self._sql["expire_robots"], (now, now, unreached))

    async def regroup(self) -> None:
        async with self._writing():
            latest: dict[str, Pace] = {}
            sites = list(await every(self._db, self._sql["all_sites"]))
            for _, site, _, *pace in sites:
                name, kept = group_name(site, self._politeness.group), Pace(*pace)
                if name not in latest or latest[name].next_at < kept.next_at:
                    latest[name] = kept
            await self._db.executemany(self._sql["add_groups"], [(name,) for name in latest])
            await self._db.executemany(
                self._sql["regroup_site"],
                [(group_name(site, self._politeness.group), number) for number, site, *_ in sites],
            )
            await self._db.executemany(
                self._sql["set_pace"],
                [(p.next_at, p.pause_s, p.backoff_s, p.waits_for, name) for name, p in latest.items()],
            )
            self._offers.forget()

    @lasting
    async def prepare(self, pages_per_site: int | None) -> None:
        async with self._writing():
            await self._db.execute(self._sql["keep_longer_pauses"], (self._politeness.delay_s,))
            await self._turns.refresh_all(pages_per_site)

    async def robots_copy(self, site: str) -> RobotsCopy | None:
        row = await self._one(self._sql["robots_copy_of"], (site,))
        return None if row is None else robots_copy(list(row))

    @lasting
    async def find_content_mirrors(self, now: float) -> int:
        pairs = await self._every(self._sql["alike_sites"], (MIN_ALIKE,))
        found = [(pair, judge_alike(alike=pair[2], sample=pair[3], pages=pair[4])) for pair in pairs]
        rows = [
            (site, main, alike.sample, alike.confidence, now) for (site, main, *_), alike in found if alike is not None
        ]
        async with self._writing():
            await self._db.execute("DELETE FROM mirror WHERE evidence = 'content'")
            await self._db.executemany(self._sql["insert_content_mirror"], rows)
        return len(rows)

    # --- revisits -----------------------------------------------------------------------------

    @lasting
    async def queue_due(
        self, settings: RevisitSettings, now: float, since: float, per_site: int | None, *, hinted_only: bool = False
    ) -> int:
        async with self._writing():
            await self._revisits.take_up(settings, now)
            numbers = await self._revisits.queue_due(settings, now, since, hinted_only=hinted_only)
            await self._turns.refresh(await self._offers.groups(numbers), per_site)
        return len(numbers)

    async def take_hints(
        self,
        hints: Iterable[Hint],
        settings: RevisitSettings,
        now: float,
        refusal: Refusal,
        *,
        most_new: int | None = None,
    ) -> Heeded:
        async with self._writing():
            await self._revisits.take_up(settings, now)
            heeded, touched = await self._revisits.take_hints(hints, now, refusal, most_new)
            await self._turns.refresh(touched, None)
        return heeded

    # --- the crawl ----------------------------------------------------------------------------

    @lasting
    async def commit(self, batch: CommitBatch) -> CommitResult:
        async with self._writing():
            await self._workers.renew(batch, batch.now)
            result = await self._turns.take(batch)
        self._workers.turns += 1
        return result

    async def group_pace(self, name: str) -> Pace:
        row = await self._one(
            "SELECT next_at, pause_s, backoff_s, waits_for FROM politeness_group WHERE name = ?", (name,)
        )
        return Pace() if row is None else Pace(*row)

    @lasting
    async def visit(self, site: str) -> int | None:
        async with self._writing():
            number = (await self._offers.sites([site]))[site][0]
            group, me = group_name(site, self._politeness.group), self._workers.id
            return None if await one(self._db, self._sql["visit_group"], (me, group, me, me)) is None else number

    async def crawl_delay(self, site: str) -> float | None:
        row = await self._one(self._sql["crawl_delay"], (site,))
        return None if row is None else row[0]

    async def next_ready(self) -> Waiting | None:
        row = await self._one(self._sql["next_ready"])
        return None if row is None else Waiting(row[1], row[0], row[2])

    async def waiting(self, now: float, limit: int) -> list[Waiting]:
        rows = await self._every(self._sql["waiting_groups"], (now, limit))
        return [Waiting(name, until, reason) for name, until, reason in rows]

    # --- reading ------------------------------------------------------------------------------

    async def counts(self) -> Counts:
        ((urls, queued, ended, pages, links, requests, sites),) = await self._reckoned(self._sql["counts"])
        states = {State(state): n for state, n in json.loads(ended).items()}
        states[State.QUEUED] = queued
        states[State.FETCHED] = urls - sum(states.values())
        return Counts({state: states.get(state, 0) for state in State}, pages, links, requests, sites)

    async def replace_ranks(self, pages: Iterable[PageRank], sites: Iterable[SiteRank]) -> None:
        async with self._writing():
            await self._db.execute("DELETE FROM rank")
            await self._db.execute("DELETE FROM site_rank")
            await self._db.executemany(self._sql["insert_rank"], pages)
            await self._db.executemany(self._sql["insert_site_rank"], sites)

    async def sample_draw(self) -> SampleDraw | None:
        row = await self._one("SELECT * FROM sample_draw")
        if row is None:
            return None
        method, per, size, seed, drawn_at, frame, cut_sites, follows, stands = row
        return SampleDraw(method, per, size, seed, drawn_at, frame, cut_sites, bool(follows), bool(stands))

    @lasting
    async def replace_sample(
        self, draw: SampleDraw, rows: Sequence[SampleRow], held_from: int | None, pages_per_site: int | None
    ) -> None:
        async with self._writing():
            await self._db.execute("DELETE FROM sample_draw")
            await self._db.execute("DELETE FROM sample")
            await self._db.execute("INSERT INTO sample_draw VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", astuple(draw))
            await self._db.executemany(self._sql["insert_sample"], rows)
            if held_from is not None:
                await self._db.execute(self._sql["exclude_not_drawn"], (ReasonCode.SAMPLE.sentence, held_from))
                await self._db.execute(self._sql["dequeue_not_drawn"], (held_from,))
                self._offers.forget()
            await self._turns.refresh_all(pages_per_site)

    @lasting
    async def reopen_sample(self) -> None:
        async with self._writing():
            await self._db.execute("UPDATE sample_draw SET stands = 0")

    async def find(self, url: str) -> int | None:
        """The number of a known URL."""
        site, path = split(url)
        row = await self._one("SELECT id FROM site WHERE name = ?", (site,))
        number = None if row is None else url_number(row[0], path)
        while number is not None:
            row = await self._one("SELECT path FROM url WHERE id = ?", (number,))
            if row is not None and row[0] == path:
                return number
            number = None if row is None else number + 1
        return None

    async def way_to(self, number: int) -> list[str]:
        return list(dict.fromkeys(row[0] for row in await self._every(self._sql["way_to"], (number,))))

    async def body(self, url: str, version: int | None = None) -> bytes | None:
        number = await self.find(url)
        row = await self._one(self._sql["body_of"], (number, version))
        try:
            return None if row is None else decompress(row[0])
        except BROKEN as error:
            raise StoreError(f"{self.name}: the body of {url} cannot be decoded: {error}") from None


class SqliteStore(SqlStore):
    """One SQLite file. Make one with :meth:`open` and close it."""

    dialect = "sqlite"
    _db: aiosqlite.Connection

    def __init__(
        self,
        path: Path,
        db: aiosqlite.Connection,
        ear: aiosqlite.Connection,
        politeness: PolitenessSettings,
        lock: FileLock | None,
        lease_s: float | None,
    ) -> None:
        self._path = path
        self._db = db
        self._ear = ear
        self._lock = lock
        self._politeness = politeness
        self._sql = load_queries("sqlite")
        self._offers = Offers(db, self._sql, politeness.group)
        self._workers = Workers(db, self._sql, politeness, lease_s)
        self._revisits = Revisits(db, self._sql, self._offers)
        self._turns = self._turn_taker()
        self._file = (path.stat().st_dev, path.stat().st_ino)
        self._cache_kib = 0
        self._mutex = asyncio.Lock()  # one transaction at a time on the one connection
        self.rup = SqliteRup(self._every, db, self._writing, self._again)
        self.control = SqliteControl(db, self._sql, self._every, self._writing, self._again, reader(ear, path))

    @classmethod
    async def open(
        cls,
        path: Path,
        politeness: PolitenessSettings | None = None,
        *,
        read_only: bool = False,
        lease_s: float | None = None,
        locked: bool = False,
    ) -> Self:
        """Open a store to crawl into, or to read. Raises what :func:`open_database` raises, and
        :class:`StoreInUse` where another process crawls into it.

        Several workers share a store where each has a lease of ``lease_s`` and one process above them the lock
        (``locked``).
        """
        require_usable(path, read_only)
        path = path.resolve()  # one store is one store, whatever links lead to it
        lock = None if read_only or locked else lock_store(path)
        try:
            db, ear = await open_with_ear(path, read_only=read_only)
        except BaseException:
            if lock is not None:
                lock.release()
            raise
        return cls(path, db, ear, politeness or PolitenessSettings(), lock, lease_s)

    async def close(self) -> None:
        await close_with_ear(self._db, self._ear)
        if self._lock is not None:
            self._lock.release()

    async def query(self, sql: str, parameters: Parameters = ()) -> list[dict[str, Any]]:
        async with reading(self._path):
            cursor = await self._db.execute(sql, parameters)
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in await cursor.fetchall()]

    async def rows(self, sql: str, parameters: Parameters = ()) -> AsyncGenerator[Any, None]:
        async with reading(self._path), aclosing(rows_of(self._db, sql, parameters)) as found:
            async for row in found:
                yield row

    def on_news(self, wake: Callable[[], None]) -> None:
        """SQLite sends no news: workers on one file look now and then."""

    def is_held(self) -> bool:
        return self._lock is not None or is_held(self._path)

    async def columns_of(self, table: str) -> list[str]:
        return [row[0] for row in await self._every("SELECT name FROM pragma_table_info(?) ORDER BY cid", (table,))]

    async def insert_rows(self, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        places = ", ".join("?" * len(columns))
        async with self._writing():
            await self._db.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", rows)

    def lock_fds(self) -> tuple[int, ...]:
        fd = None if self._lock is None else self._lock._context.lock_file_fd
        return () if fd is None else (fd,)

    def _turn_taker(self) -> TurnTaker:
        return TurnTaker(self._db, self._sql, self._offers, self._workers, self._run_id)

    async def _end_crashed(self, now: float) -> None:
        await self._db.execute(self._sql["end_all_workers"], (now,))  # we have the lock: nobody else is alive

    @property
    def name(self) -> str:
        return str(self._path)

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[None]:
        async with self._mutex:
            file_bytes = self._require_file()
            try:
                async with transaction(self._db, self._path):
                    self._cache_kib = await fit_cache(self._db, file_bytes, self._cache_kib)
                    yield
            except BaseException:
                self._offers.forget()  # what it remembers may have been rolled back
                raise

    def _require_file(self) -> int:
        """SQLite goes on happily with a file that was deleted or replaced under it; what it commits there is lost.
        Returns its size in bytes."""
        try:
            now = self._path.stat()
        except OSError:
            now = None
        if now is None or (now.st_dev, now.st_ino) != self._file:
            raise StoreError(f"{self._path}: the store was deleted or replaced while the crawl was using it")
        return now.st_size

    async def _every(self, sql: str, parameters: Parameters = ()) -> list[Any]:
        return await reader(self._db, self._path)(sql, parameters)
