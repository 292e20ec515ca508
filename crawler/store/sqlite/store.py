"""The store in one SQLite file."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import aiosqlite

from crawler.errors import StoreError, UsageError
from crawler.frontier.politeness import PolitenessSettings
from crawler.reasons import EndCode, RunEnd
from crawler.store.named_rows import Parameters
from crawler.store.sql.offers import Offers
from crawler.store.sql.schema import load_queries
from crawler.store.sql.store import Store
from crawler.store.sql.tables import StoreStatements
from crawler.store.sql.workers import Workers
from crawler.store.sqlite.connection import (
    close_with_control,
    fetch_rows,
    interrupting,
    is_held,
    lock_store,
    open_with_control,
    read_errors,
    require_usable,
    transaction,
    write_errors,
)
from crawler.store.sqlite.on_thread import OnThread
from crawler.store.sqlite.read_only import BEGINS_AS_QUERY
from crawler.store.statements import ONLY_READS, Queries, UserSql

if TYPE_CHECKING:
    from filelock import FileLock


T = TypeVar("T")

_PATIENCE_WITH_READERS_MS = 500
_ROWS_AT_ONCE = 500


class SqliteStore(Store):
    """One SQLite file. Make a store with :meth:`open`, and close it."""

    dialect = "sqlite"

    def __init__(
        self,
        path: Path,
        db: aiosqlite.Connection,
        control_db: aiosqlite.Connection,
        politeness: PolitenessSettings,
        lock: FileLock | None,
        lease_s: float | None,
    ) -> None:
        queries = load_queries("sqlite")
        self._path = path
        self._db = db
        self._control_db = control_db
        self._lock = lock
        self._politeness = politeness
        self._thread = OnThread(db)
        self._sql = sql = StoreStatements(self._thread, "sqlite")
        self._read = Queries(partial(fetch_rows, db, path), queries)
        self._offers = Offers(sql, politeness.group, politeness.sites)
        self._workers = Workers(sql, politeness, lease_s)
        self._control_read = Queries(partial(fetch_rows, control_db, path), queries)
        self._make_sections()
        self._file = (path.stat().st_dev, path.stat().st_ino)
        self._mutex = asyncio.Lock()  # one transaction at a time on the one connection

    @classmethod
    async def open(
        cls,
        path: Path,
        politeness: PolitenessSettings | None = None,
        *,
        read_only: bool = False,
        lease_s: float | None = None,
        locked: bool = False,
        alone: bool = False,
    ) -> Self:
        """Open a store to crawl into, or to read.

        Several workers can share a file: each has a lease of ``lease_s``, and the process that started them holds the
        lock (``locked``). A task may have a file ``alone``, and lose it if it ends.

        Raises the errors of :func:`open_database`, and :class:`crawler.errors.StoreInUse` if another process crawls
        into the file.
        """
        require_usable(path, read_only)
        path = path.resolve()  # links to the file share its lock
        lock = None if read_only or locked or alone else lock_store(path)
        try:
            db, control_db = await open_with_control(path, read_only=read_only, may_make=not locked, alone=alone)
        except BaseException:
            if lock is not None:
                lock.release()
            raise
        return cls(path, db, control_db, politeness or PolitenessSettings(), lock, lease_s)

    async def close(self) -> None:
        try:
            if self._lock is not None and self._lock.is_locked:  # a store may be closed twice
                await self._fold_log_in()
        finally:
            await close_with_control(self._db, self._control_db)
            if self._lock is not None:
                self._lock.release()

    async def _fold_log_in(self) -> None:
        """Write the write-ahead log into the file, so that a copy of the file alone has all pages.

        SQLite does that by itself only if nobody else has the file open. A reader in a long query keeps the rest.
        """
        with suppress(aiosqlite.Error):  # a full disk: the log is kept, and the next opening reads it
            await self._db.execute(f"PRAGMA busy_timeout = {_PATIENCE_WITH_READERS_MS}")
            await self._db.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")

    @property
    def name(self) -> str:
        return str(self._path)

    # --- queries ------------------------------------------------------------------------------

    async def query(self, sql: str, parameters: Parameters = ()) -> list[dict[str, Any]]:
        if isinstance(sql, UserSql) and BEGINS_AS_QUERY.match(sql) is None:
            raise UsageError(f"{self.name}: {ONLY_READS}")
        async with read_errors(self._path):
            cursor = await self._db.execute(sql, cast(Any, parameters))
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in await cursor.fetchall()]

    def deadline(self, seconds: float) -> AbstractAsyncContextManager[None]:
        return interrupting(self._db, seconds)

    async def batches(self, sql: str, parameters: Parameters = ()) -> AsyncGenerator[list[Any], None]:
        async with read_errors(self._path):
            cursor = await self._db.execute(sql, cast(Any, parameters))
            try:
                while batch := await cursor.fetchmany(_ROWS_AT_ONCE):
                    yield list(batch)
            except asyncio.CancelledError:
                raise  # the cursor ends with the connection
            except BaseException:
                await cursor.close()
                raise
            await cursor.close()

    async def read_in_steps(self, read: Callable[[sqlite3.Connection], Iterator[None]]) -> None:
        """Execute ``read``, a generator that reads the views: see :meth:`OnThread.step_through`."""
        async with read_errors(self._path):
            await self._thread.step_through(read)

    def is_held(self) -> bool:
        return self._lock is not None or is_held(self._path)

    def lock_fds(self) -> tuple[int, ...]:
        fd = None if self._lock is None else self._lock._context.lock_file_fd
        return () if fd is None else (fd,)

    # --- for Store -------------------------------------------------------------------------

    async def _end_crashed(self, now: float) -> None:
        end = RunEnd(EndCode.KILLED)  # this process has the lock: all others are dead
        await self._sql.execute("end_all_workers", now=now, ended_code=end.code, ended_by=end.sentence)

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[None]:
        async with self._mutex:
            with write_errors(self._path):
                async with self._transaction():
                    yield

    async def _transact(self, work: Callable[[], Coroutine[Any, Any, T]], /) -> T:
        async def whole() -> T:
            async with self._transaction():
                return await work()

        async with self._mutex:
            with write_errors(self._path):
                return await self._thread.run(whole)

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[None]:
        self._require_file()
        try:
            async with transaction(self._thread):
                yield
        except BaseException:
            self._offers.forget()  # its numbers may have been rolled back
            raise

    def _require_file(self) -> None:
        """Raise :class:`StoreError` if the file was deleted or replaced.

        SQLite itself keeps writing to a deleted file, and those commits are lost.
        """
        try:
            now = self._path.stat()
        except OSError:
            now = None
        if now is None or (now.st_dev, now.st_ino) != self._file:
            raise StoreError(f"{self._path}: the store was deleted or replaced while the crawl was using it")
