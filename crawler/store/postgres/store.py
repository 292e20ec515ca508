"""The store on a PostgreSQL database, written by any number of workers on any number of machines.

What differs from SQLite is that others write at the same time. A turn takes its locks in one order (new URLs, known
URLs, groups, each by number), and is done again where it clashed nevertheless. A connection that breaks is made anew;
the number of turns in the worker's row tells whether one was committed.

And the tables can be distributed by the politeness group: every row that a turn writes carries its group, contents are
there before the turn that names them, and what is for other groups is carried over after it (``postgres_offers``).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, Self, TypeVar

from crawler.clock import SystemClock, boot_s, monotonic_s
from crawler.errors import ConnectionLost, LeaseLost, StoreError, UsageError
from crawler.frontier.politeness import GroupBy, PolitenessSettings
from crawler.model import Body
from crawler.reasons import RunEnd
from crawler.store.keys import render_keys
from crawler.store.postgres.commit import PostgresTurns
from crawler.store.postgres.connection import ENDING, OPENING, PAGES, Postgres, ensure_schema, locked
from crawler.store.postgres.groups import GROUPED, GroupedPostgres
from crawler.store.postgres.offers import Carrier, PostgresOffers
from crawler.store.postgres.parts import parts_of
from crawler.store.postgres.reconnect_policy import Patience
from crawler.store.protocols import Beat, ClaimLimits, CommitBatch, CommitResult
from crawler.store.retrying import lasting
from crawler.store.rows import Parameters, row_class
from crawler.store.sql.control import SqliteControl
from crawler.store.sql.revisits import Revisits
from crawler.store.sql.statements import load_queries
from crawler.store.sql.store import SqlStore
from crawler.store.sql.subscriptions import SqliteRup
from crawler.store.sql.workers import Workers
from crawler.store.sqlite.connection import compress, every, one

T = TypeVar("T")

_CHANNEL = "polite_crawler"
_TELL_EVERY_S = 0.25  # each telling makes all commits of the database queue up for a moment
_CARRY_EVERY_S = 1.0  # what workers have left that are gone
_MOMENTS_TRIED, _MOMENT_S = 50, 0.1  # until nothing is on its way
_ROWS_AT_ONCE = 500
#: Tables whose rows the database numbers.
_NUMBERED = dict.fromkeys(
    ("run", "worker", "site", "robots_text", "robots_copy", "body", "rup_mail", "control"), "id"
) | {"sample": "draw"}


class _Revisits(Revisits):
    async def _due(self, terms: tuple[object, ...]) -> AsyncIterator[Any]:
        for row in await every(self._db, self._sql["due_revisits"], terms):
            yield row

    async def sweep(self) -> None:
        """Unless somebody else is at work: a turn may be about to name a content that was there already. Nobody begins
        meanwhile; of two that end at once, one ends after the other."""
        at_work = "SELECT 1 FROM worker WHERE ended_at IS NULL LIMIT 1"
        if await one(self._db, at_work) is None:
            await self._db.execute("LOCK TABLE worker IN SHARE MODE")
            if await one(self._db, at_work) is None:
                await super().sweep()


class _Control(SqliteControl):
    """Signs of life are of workers here: on two machines, processes may have the same number."""

    def __init__(self, workers: Workers, *rest: Any) -> None:
        super().__init__(*rest)
        self._workers = workers

    async def beat(self, beat: Beat) -> None:
        async with self._writing():
            await self._db.execute(self._sql["forget_beats"], (beat.run_id,))
            row = (self._workers.id, beat.run_id, beat.pid, beat.seen_at, beat.memory_bytes, beat.lag_s)
            await self._db.execute(self._sql["beat"], row)


class _Workers(Workers):
    async def pages_left(self, max_pages: int) -> tuple[int, int]:
        await self._db.execute("SELECT pg_advisory_xact_lock(?)", (PAGES,))
        return await super().pages_left(max_pages)


class PostgresStore(SqlStore):
    """One database. Make one with :meth:`open` and close it."""

    dialect = "postgres"
    _db: GroupedPostgres
    _is_patient = False
    _offers: PostgresOffers
    _turns: PostgresTurns

    def __init__(
        self, url: str, politeness: PolitenessSettings, lease_s: float, patience_s: float, *, read_only: bool
    ) -> None:
        self._db = GroupedPostgres(url, crawling=True)
        self._reader = Postgres(url, looking=read_only)
        self._reckoner = Postgres(url)  # nobody waits for it, and it may take its time
        self._patience = Patience(self._db.name, patience_s)
        self._sql = load_queries("postgres")
        self._politeness = politeness
        self._offers = PostgresOffers(self._db, self._sql, politeness.group)
        self._workers = _Workers(self._db, self._sql, politeness, lease_s)
        self._revisits = _Revisits(self._db, self._sql, self._offers)
        self._turns = self._turn_taker()
        self._carrier = Carrier(self._db, self._sql, self._offers, self._every, self._writing, self._again)
        self._told_at = self._carried_at = 0.0
        self._late: list[CommitBatch] = []
        self._mutex = asyncio.Lock()
        self._clock: SystemClock | None = None
        self.rup = SqliteRup(self._every, self._db, self._writing, self._again)
        read = self._every
        self.control = _Control(self._workers, self._db, self._sql, read, self._writing, self._again, read)

    @classmethod
    async def open(
        cls,
        url: str,
        politeness: PolitenessSettings | None = None,
        *,
        read_only: bool = False,
        may_make: bool = True,
        lease_s: float = 150.0,
        patience_s: float = 120.0,
        patient: bool = False,
        clock: SystemClock | None = None,
    ) -> Self:
        """Open a store to crawl into, or to read; without ``may_make``, one that is there already. ``clock`` is made to
        go by the database's, which all workers share. A worker waits ``patience_s`` for a database that goes away, and
        who is ``patient`` for one that is away when it comes: it was there for who sent it.

        Raises :class:`crawler.errors.UsageError` for a database that cannot be used so,
        :class:`crawler.errors.StoreError` for one that cannot be reached.
        """
        store = cls(url, politeness or PolitenessSettings(), lease_s, patience_s, read_only=read_only)
        store._is_patient = patient
        try:
            await store._again(lambda: ensure_schema(store._reader, may_make=may_make and not read_only))
            ((nodes,),) = await store._every("SELECT count(DISTINCT node_of(n)) FROM generate_series(1, 100) AS n")
            store._db.is_spread = nodes > 1
            store._clock = clock
            await store._tell_time()
        except BaseException:
            await store.close()
            raise
        return store

    async def close(self) -> None:
        await self._db.close()
        await self._reader.close()
        await self._reckoner.close()

    @asynccontextmanager
    async def beginning(self) -> AsyncIterator[None]:
        """One process at a time begins a run, or joins one."""
        async with locked(self._reader, OPENING):
            yield

    # --- the crawl ----------------------------------------------------------------------------

    async def commit(self, batch: CommitBatch) -> CommitResult:
        bodies = {o.page.body.sha256: o.page.body for o in batch.outcomes if o.page and o.page.body}
        if bodies:
            stored = await asyncio.to_thread(lambda: [(sha256, _stored(body)) for sha256, body in bodies.items()])
            await self._put(stored)
        parts, results = await self._parts(batch), []
        for number, part in enumerate(parts):
            try:
                results.append(await super().commit(part))
            except LeaseLost as lost:
                if number:  # then the rest of it is to be handed in
                    self._late = parts[number + lost.committed :]
                    lost.committed = True
                raise
        now = monotonic_s()
        if self._offers.has_left or now - self._carried_at > _CARRY_EVERY_S:
            self._carried_at = now
            await self._carry(self._workers.id, batch.limits)
        if (batch.outcomes or batch.released) and now - self._told_at > _TELL_EVERY_S:
            self._told_at = now
            await self._tell()
        robots_ids = {site: number for result in results for site, number in result.robots_ids.items()}
        mirrors = [pair for result in results for pair in result.mirrors]
        return replace(results[-1], robots_ids=robots_ids, mirrors=mirrors)

    @lasting
    async def _parts(self, batch: CommitBatch) -> list[CommitBatch]:
        async with self._mutex:
            return await parts_of(batch, self._db)

    async def commit_late(self, late: CommitBatch) -> None:
        """Besides, of the last turn, the parts that were not committed."""
        batches, self._late = [*self._late, late], []
        requests = [row for batch in batches for row in batch.requests]
        paces = {name: pace for batch in batches for name, pace in batch.paces.items()}
        await super().commit_late(replace(late, requests=requests, paces=paces))

    async def recover(self, now: float) -> None:
        await super().recover(now)
        await self._carry_all()

    async def begin_moment(self) -> None:
        for _ in range(_MOMENTS_TRIED):
            await self._carry_all()
            await super().begin_moment()
            if not await self._every("SELECT 1 FROM offer LIMIT 1"):
                return
            await self.query("ROLLBACK")
            await asyncio.sleep(_MOMENT_S)
        raise UsageError(
            f"{self.name}: a crawl is at work, and never without links that are on their way; "
            "pause it with crawler control pause, or wait for its end"
        )

    async def begin_notes(self) -> None:
        await self.query("BEGIN READ WRITE")

    async def _carry_all(self) -> None:
        """What anybody has left, as the crawl has it that left it: this process may be about to group otherwise."""
        last = await self.last_run()
        settings = {} if last is None else json.loads(last["settings"])
        group_by = settings.get("politeness", {}).get("group", self._politeness.group)
        with self._offers.grouped(GroupBy(group_by)):
            await self._carry(None, ClaimLimits(0))

    async def _carry(self, worker: int | None, limits: ClaimLimits) -> None:
        await self._carrier.carry(
            worker, lambda groups: self._turns.refresh(groups, limits.pages_per_site, limits.below_depth)
        )

    @lasting
    async def _tell(self) -> None:
        """Wake workers that wait for work. Now and then is enough: they look by themselves too."""
        async with self._writing():
            await self._db.execute("SELECT pg_notify(?, '')", (_CHANNEL,))

    @lasting
    async def _put(self, bodies: Sequence[tuple[bytes, bytes]]) -> None:
        async with self._writing():
            await self._turns.put_bodies(bodies)

    async def renew(self, now: float) -> None:
        await super().renew(now)
        await self._tell_time()

    async def join_run(self, run_id: int, now: float) -> None:
        assert self._workers.lease_s is not None
        self._db.timeout_s = self._reader.timeout_s = max(5.0, self._workers.lease_s / 5)
        await super().join_run(run_id, now)

    async def _end_run(self, end: RunEnd, now: float) -> None:
        """One after the other: of two that end at once, neither would see that the other one is no more."""
        await self._db.execute("SELECT pg_advisory_xact_lock(?)", (ENDING,))
        await super()._end_run(end, now)

    async def find_content_mirrors(self, now: float) -> int:
        self._db.timeout_s = self._reader.timeout_s = None  # it may take minutes
        return await super().find_content_mirrors(now)

    def on_news(self, wake: Callable[[], None]) -> None:
        async def listen(connection: Any) -> None:
            await connection.add_listener(_CHANNEL, lambda *_: wake())

        self._reader.on_connect = [listen]
        self._reader.drop()  # the next connection listens

    async def _tell_time(self) -> None:
        if self._clock is not None:
            asked_at = boot_s()
            ((told,),) = await self._every("SELECT clock()")
            answered_at = boot_s()
            self._clock.follow(told, told + answered_at - asked_at, answered_at)

    # --- reading ------------------------------------------------------------------------------

    async def query(self, sql: str, parameters: Parameters = ()) -> list[dict[str, Any]]:
        return [dict(row) for row in await self._every(sql, parameters)]

    async def rows(self, sql: str, parameters: Parameters = ()) -> AsyncGenerator[Any, None]:
        own = not self._reader.is_in_transaction()
        if own:
            await self._reader.execute("BEGIN")
        try:
            cursor = await self._reader.open_cursor(sql, parameters)
            while batch := await self._reader.fetch_from(cursor, _ROWS_AT_ONCE):
                make = row_class(tuple(batch[0].keys()))._make
                for row in batch:
                    yield make(row)
        finally:
            if own:
                with suppress(StoreError):
                    await self._reader.execute("ROLLBACK")

    def is_held(self) -> bool:
        return True  # who is at work on other machines cannot be told for sure

    async def regroup(self) -> None:
        """Besides, all rows of a site go with it into another group."""
        await super().regroup()
        async with self._writing():
            for table, column in GROUPED.items():
                site = "t.site_id" if column == "site_id" else f"site_of(t.{column})"
                sql = (
                    f"UPDATE {table} t SET group_id = s.group_id FROM site s WHERE s.id = {site}"
                    " AND t.group_id <> s.group_id"
                )
                await self._db.execute(render_keys(sql))

    async def columns_of(self, table: str) -> list[str]:
        """Without the group that rows carry here, which their site tells."""
        rows = await self._every(
            "SELECT column_name FROM information_schema.columns"
            " WHERE table_schema = current_schema() AND table_name = ? ORDER BY ordinal_position",
            (table,),
        )
        return [row[0] for row in rows if table not in GROUPED or row[0] != "group_id"]

    async def insert_rows(self, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        async with self._writing():
            if table in GROUPED:
                at = columns.index(GROUPED[table])
                groups = await self._db.groups_of([row[at] for row in rows])
                columns = (*columns, "group_id")
                rows = [(*row, group) for row, group in zip(rows, groups, strict=True)]
            await self._db.copy_in(table, columns, rows)

    async def finish_copy(self, now: float) -> None:
        """Besides, numbers go on after those that were copied."""
        async with self._writing():
            for table, column in _NUMBERED.items():
                await self._db.execute(
                    f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), max({column})) FROM {table}"
                )
            await self._db.execute("UPDATE request_number SET last = (SELECT coalesce(max(id), 0) FROM request)")
            await self._db.execute("ANALYZE")
        await super().finish_copy(now)

    # --- what SqlStore stands on --------------------------------------------------------------

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[None]:
        async with self._mutex:
            try:
                await self._db.execute("BEGIN")
                yield
                await self._db.execute("COMMIT")
            except BaseException as error:
                self._offers.forget()  # what it remembers may have been rolled back
                if isinstance(error, StoreError) and not isinstance(error, ConnectionLost):
                    with suppress(StoreError):
                        await self._db.execute("ROLLBACK")
                else:
                    self._db.drop()  # whatever it is at now, it ends with the connection
                raise

    async def _every(self, sql: str, parameters: Parameters = ()) -> list[Any]:
        if self._reader.is_in_transaction():
            return await self._reader.execute_fetchall(sql, parameters)
        return await self._again(lambda: self._reader.execute_fetchall(sql, parameters))

    async def _reckoned(self, sql: str) -> list[Any]:
        if not self._workers.id:
            return await self._every(sql)
        return await self._again(lambda: self._reckoner.execute_fetchall(sql))

    async def _again(self, attempt: Callable[[], Awaitable[T]], /) -> T:
        return await self._patience.again(attempt, waits=lambda: bool(self._workers.id or self._is_patient))

    @property
    def away_s(self) -> float | None:
        return self._patience.away_s

    def give_up(self) -> None:
        self._patience.give_up()
        for connection in (self._db, self._reader, self._reckoner):
            connection.give_up()

    def _turn_taker(self) -> PostgresTurns:
        return PostgresTurns(self._db, self._sql, self._offers, self._workers, self._run_id)

    async def _end_crashed(self, now: float) -> None:
        """Who is dead is known by its lease alone, and by its connection: none that may still commit is skipped."""
        await self._db.execute(self._sql["await_lost_workers"])

    @property
    def name(self) -> str:
        return self._db.name


def _stored(body: Body) -> bytes:
    return body.gzipped or compress(body.plain or b"")
