"""The store in a PostgreSQL database, which any number of workers on any number of machines share.

Unlike SQLite, other workers write at the same time. A commit acquires its locks in one order (contents, new URLs,
known URLs, groups, each by its key), and is retried if it conflicts nevertheless. A broken connection is reopened; the
number of commits in the worker's row shows whether a commit whose answer was lost took place.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import cached_property
from typing import Any, Self, TypeVar

from crawler.clock import SystemClock, boot_s
from crawler.errors import ConnectionLost, StoreError, UsageError
from crawler.frontier.politeness import PolitenessSettings
from crawler.reasons import RunEnd
from crawler.store.named_rows import Parameters
from crawler.store.postgres.commit import PostgresCommitter
from crawler.store.postgres.connection import ENDING, OPENING, PAGES, Postgres, ensure_schema, locked, named
from crawler.store.postgres.dialect import translate
from crawler.store.postgres.offers import PostgresOffers
from crawler.store.postgres.user_sql import HARMLESS, NotReading, words_of
from crawler.store.reconnect_policy import ReconnectPolicy
from crawler.store.sql.schema import load_queries
from crawler.store.sql.section import in_transaction
from crawler.store.sql.store import Store
from crawler.store.sql.tables import StoreStatements, tables
from crawler.store.sql.workers import Workers
from crawler.store.statements import ONLY_READS, Queries, UserSql

T = TypeVar("T")

_ROWS_AT_ONCE = 500


class _Workers(Workers):
    async def pages_left(self, max_pages: int) -> tuple[int, int]:
        await self._sql.fetch("lock", key=PAGES)
        return await super().pages_left(max_pages)


class PostgresStore(Store):
    """One database. Make a store with :meth:`open`, and close it."""

    dialect = "postgres"

    def __init__(
        self, url: str, politeness: PolitenessSettings, lease_s: float, reconnect_s: float, *, read_only: bool
    ) -> None:
        queries = self._sql_of = load_queries("postgres")
        self._db = Postgres(url, crawling=True)
        self._reader = Postgres(url, read_only=read_only)
        self._counter = Postgres(url)  # for statements that may take minutes
        self._reconnect_policy = ReconnectPolicy(self._db.name, reconnect_s)
        self._waits_at_start = False
        self._sql = sql = StoreStatements(self._db, "postgres")
        self._read = Queries(self._fetch, queries)
        self._slow = Queries(self._fetch_slowly, queries)
        self._politeness = politeness
        self._offers = PostgresOffers(sql, politeness.group, politeness.sites)
        self._workers = _Workers(sql, politeness, lease_s)
        self._control_read = self._read
        self._make_sections()
        self._mutex = asyncio.Lock()
        self._clock: SystemClock | None = None

    @classmethod
    async def open(
        cls,
        url: str,
        politeness: PolitenessSettings | None = None,
        *,
        read_only: bool = False,
        may_make: bool = True,
        lease_s: float = 150.0,
        reconnect_s: float = 120.0,
        waits_at_start: bool = False,
        clock: SystemClock | None = None,
    ) -> Self:
        """Open a store to crawl into, or to read. Without ``may_make`` the store must exist.

        ``clock`` is set to follow the clock of the database, which all workers share. A worker waits ``reconnect_s``
        for a database that is away. With ``waits_at_start`` it waits also before it is registered: another process has
        reached the database just before.

        Raises :class:`crawler.errors.UsageError` for a database that cannot be used, and
        :class:`crawler.errors.StoreError` for one that cannot be reached.
        """
        store = cls(url, politeness or PolitenessSettings(), lease_s, reconnect_s, read_only=read_only)
        store._waits_at_start = waits_at_start
        try:
            await store._retry(lambda: ensure_schema(store._reader, may_make=may_make and not read_only))
            store._clock = clock
            await store._follow_clock()
        except BaseException:
            await store.close()
            raise
        return store

    async def close(self) -> None:
        await self._db.close()
        await self._reader.close()
        await self._counter.close()

    @property
    def name(self) -> str:
        return self._db.name

    @property
    def warning(self) -> str:
        if not self._reader.is_superuser():
            return ""
        return (
            f"{self.name}: this role is a superuser of PostgreSQL, and a crawl needs none of its rights; crawl as a "
            "role that owns the database alone (docs/install.md)"
        )

    @asynccontextmanager
    async def beginning(self) -> AsyncIterator[None]:
        async with locked(self._reader, OPENING):
            yield

    # --- the crawl ----------------------------------------------------------------------------

    async def begin_snapshot(self) -> None:
        await self.query("BEGIN READ ONLY")

    async def begin_notes(self) -> None:
        await self.query("BEGIN READ WRITE")

    async def renew(self, now: float) -> None:
        await super().renew(now)
        await self._follow_clock()

    async def join_run(self, run_id: int, now: float) -> None:
        assert self._workers.lease_s is not None
        self._db.timeout_s = self._reader.timeout_s = max(5.0, self._workers.lease_s / 5)
        await super().join_run(run_id, now)

    async def _end_run(self, end: RunEnd, now: float) -> None:
        """One worker after the other: if two ended at once, neither would see that the other has ended."""
        await self._sql.fetch("lock", key=ENDING)
        await super()._end_run(end, now)

    async def find_content_mirrors(self, now: float) -> int:
        self._db.timeout_s = self._reader.timeout_s = None  # it may take minutes
        return await super().find_content_mirrors(now)

    async def _follow_clock(self) -> None:
        if self._clock is not None:
            asked_at = boot_s()
            server_now = (await self._read.fetch_one("clock")).now
            answered_at = boot_s()
            self._clock.follow(server_now, server_now + answered_at - asked_at, answered_at)

    # --- queries ------------------------------------------------------------------------------

    async def query(self, sql: str, parameters: Parameters = ()) -> list[dict[str, Any]]:
        if isinstance(sql, UserSql):
            return [dict(record) for record in await self._user_records(sql, parameters)]
        return [dict(record) for record in await self._records(sql, parameters)]

    def deadline(self, seconds: float) -> AbstractAsyncContextManager[None]:
        return self._reader.deadline(seconds)

    async def batches(self, sql: str, parameters: Parameters = ()) -> AsyncGenerator[list[Any], None]:
        async with self._read_only_transaction():
            if isinstance(sql, UserSql):
                await self._require_read_only(sql)
            cursor = await self._reader.open_cursor(sql, parameters)
            while batch := await self._reader.fetch_from(cursor, _ROWS_AT_ONCE):
                yield named(batch)

    def is_held(self) -> bool:
        return True  # workers on other machines cannot be seen

    @in_transaction
    async def insert_rows(self, table: str, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> None:
        await self._db.copy_in(table, columns, rows)

    @in_transaction
    async def empty(self, tables: Sequence[str]) -> None:
        await self._db.execute(f"TRUNCATE {', '.join(tables)} CASCADE")

    async def finish_copy(self, now: float) -> None:
        """Also sets the sequences, for numbers to go on after those that were copied."""
        await self._set_sequences()
        await super().finish_copy(now)

    @in_transaction
    async def _set_sequences(self) -> None:
        numbered = ((name, table.key[0]) for name, table in tables("sqlite").items() if table.is_numbered)
        for table, column in numbered:
            await self._db.execute(
                f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), max({column})) FROM {table}"
            )
        await self._sql.execute("number_requests")
        await self._db.execute("ANALYZE")

    # --- for Store -------------------------------------------------------------------------

    @cached_property
    def _committer(self) -> PostgresCommitter:
        return PostgresCommitter(self)

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[None]:
        async with self._mutex:
            try:
                await self._db.execute("BEGIN")
                yield
                await self._db.execute("COMMIT")
            except BaseException as error:
                self._offers.forget()  # its numbers may have been rolled back
                if isinstance(error, StoreError) and not isinstance(error, ConnectionLost):
                    with suppress(StoreError):
                        await self._db.execute("ROLLBACK")
                else:
                    self._db.drop()  # this ends the statement in progress
                raise

    async def _fetch(self, sql: str, parameters: Any = None) -> list[Any]:
        return named(await self._records(sql, parameters))

    async def _records(self, sql: str, parameters: Any) -> list[Any]:
        if self._reader.is_in_transaction():
            return await self._reader.fetch_records(sql, parameters)
        return await self._retry(lambda: self._reader.fetch_records(sql, parameters))

    async def _user_records(self, sql: UserSql, parameters: Any) -> list[Any]:
        async def attempt() -> list[Any]:
            async with self._read_only_transaction():
                await self._require_read_only(sql)
                return await self._reader.fetch_records(sql, parameters)

        return await (attempt() if self._reader.is_in_transaction() else self._retry(attempt))

    @asynccontextmanager
    async def _read_only_transaction(self) -> AsyncIterator[None]:
        """A transaction that only reads; the one that is open already, if there is one."""
        if self._reader.is_in_transaction():
            yield
            return
        await self._reader.execute("BEGIN READ ONLY")
        try:
            yield
        finally:
            with suppress(StoreError):
                await self._reader.execute("ROLLBACK")

    async def _require_read_only(self, sql: UserSql) -> None:
        """Raise :class:`UsageError` for a statement that does more than read (:mod:`crawler.store.postgres.user_sql`).

        PostgreSQL compiles it as one statement, in a transaction that only reads.
        """
        try:
            words = words_of(translate(sql).sql) - HARMLESS
        except NotReading as error:
            raise UsageError(f"{self.name}: {ONLY_READS}, {error}") from None
        for row in await self._reader.execute_fetchall(self._sql_of["volatile_functions"], {"words": sorted(words)}):
            raise UsageError(f"{self.name}: {ONLY_READS}, without {row.proname}")

    async def _fetch_slowly(self, sql: str, parameters: Any = None) -> list[Any]:
        return await self._retry(lambda: self._counter.execute_fetchall(sql, parameters))

    async def _count(self, statement: str) -> list[Any]:
        return await (self._slow if self._workers.id else self._read).fetch(statement)

    async def _retry(self, attempt: Callable[[], Awaitable[T]], /) -> T:
        return await self._reconnect_policy.retry(attempt, waits=lambda: bool(self._workers.id or self._waits_at_start))

    @property
    def away_s(self) -> float | None:
        waits = [self._reconnect_policy.away_s, super().away_s]
        return max((away_s for away_s in waits if away_s is not None), default=None)

    def give_up(self) -> None:
        super().give_up()
        self._reconnect_policy.give_up()
        for connection in (self._db, self._reader, self._counter):
            connection.give_up()

    async def _end_crashed(self, now: float) -> None:
        """Wait for commits of workers whose leases have ended: only their leases show that they are dead."""
        await self._sql.execute("await_lost_workers")
