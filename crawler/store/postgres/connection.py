"""Connections to a PostgreSQL store: where it is, its schema, and what its errors mean to a user."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from shlex import quote
from typing import Any

import asyncpg

from crawler.errors import Action, ConnectionLost, NoStore, StatementError, StoreError, UsageError
from crawler.store.location import bad_url, shown
from crawler.store.postgres.dialect import bind, columns, storable
from crawler.store.rows import Parameters
from crawler.store.sql.statements import SCHEMA_VERSION, has_store, schema

#: Keys of PostgreSQL's advisory locks, which are this database's own: for opening a store, for a limit on pages, for
#: building the search index, for ending a run.
OPENING, PAGES, INDEXING, ENDING = 7_465_401, 7_465_402, 7_465_403, 7_465_404

_CONNECT_S = 10.0
#: What comes and goes with a connection, and not with a statement.
_LOST = (
    OSError,
    EOFError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.exceptions.InternalClientError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.IdleInTransactionSessionTimeoutError,
)
#: A transaction that met another one; done again, it will go through.
_CLASHES = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
_REFUSED = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InsufficientPrivilegeError,
    asyncpg.exceptions.ClientConfigurationError,
)
#: The plans of a crawl are look-ups by key, whatever the tables' sizes when they were made.
_CRAWLING = {"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "jit": "off"}
#: What a connection that went away half-way had locked is free again after so long.
_SERVER = {"application_name": "polite-crawler", "idle_in_transaction_session_timeout": "20s"}
_LOOKING = {
    "default_transaction_isolation": "repeatable read",
    "default_transaction_read_only": "on",
    "application_name": "polite-crawler",
    "jit": "off",
}


_SILENCE = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 3, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 15_000}


class Clash(StoreError):
    """Two transactions were in each other's way, and this one gave way."""


class Postgres:
    """One connection, made when it is first used and again after it broke: a :class:`Database` in SQLite's words.

    One statement at a time. ``timeout_s`` is how long a statement may take before the connection counts as broken.
    """

    def __init__(self, url: str, *, crawling: bool = False, looking: bool = False) -> None:
        self._url = url
        self._settings = _LOOKING if looking else _SERVER | (_CRAWLING if crawling else {})
        self._connection: Any = None
        self._was_there = False
        self._connecting: asyncio.Timeout | None = None
        self._one_at_a_time = asyncio.Lock()
        self.timeout_s: float | None = None
        self.on_connect: list[Any] = []  # awaited with each new connection

    @property
    def name(self) -> str:
        return shown(self._url)

    async def connect(self) -> Any:
        """The connection as asyncpg has it. Raises :class:`ConnectionLost`, and :class:`UsageError` for a bad URL."""
        if not self._is_open():
            with self._errors():
                try:
                    async with asyncio.timeout(None) as self._connecting:
                        self._connection = await self._made()
                finally:
                    self._connecting = None
        return self._connection

    async def _made(self) -> Any:
        """A new connection, fit for use."""
        with self._bad_address():
            made = await asyncpg.connect(
                self._url, timeout=_CONNECT_S, server_settings=self._settings, statement_cache_size=500
            )
        try:
            async with asyncio.timeout(_CONNECT_S):
                _notice_silence(made)
                # Sums of big numbers are numerics there.
                await made.set_type_codec(
                    "numeric", schema="pg_catalog", encoder=str, decoder=lambda n: float(n) if "." in n else int(n)
                )
                for prepare in self.on_connect:
                    await prepare(made)
        except BaseException:
            made.terminate()
            raise
        self._was_there = True
        return made

    def _is_open(self) -> bool:
        return self._connection is not None and not self._connection.is_closed()

    async def close(self) -> None:
        if self._is_open():
            with suppress(*_LOST):
                await self._connection.close(timeout=2)
        self._connection = None

    def drop(self) -> None:
        """Let go of a connection that cannot be trusted any more."""
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    def give_up(self) -> None:
        """Fail at once what is being waited for."""
        self.drop()
        connecting, self._connecting = self._connecting, None
        if connecting is not None:
            connecting.reschedule(0.0)

    async def execute(self, sql: str, parameters: Parameters | None = None, /) -> str:
        return str(await self._run("execute", sql, parameters or ()))

    async def executemany(self, sql: str, parameters: Iterable[Any], /) -> None:
        """Here the statement is written for columns, each of which comes as an array."""
        for batch in columns(parameters):
            await self._run("execute", sql, batch)

    async def execute_fetchall(self, sql: str, parameters: Parameters | None = None, /) -> list[Any]:
        found: list[Any] = await self._run("fetch", sql, parameters or ())
        return found

    async def _run(self, how: str, sql: str, parameters: Parameters) -> Any:
        translated, values = bind(sql, parameters)
        async with self._one_at_a_time:
            connection = await self.connect()
            with self._errors():
                return await getattr(connection, how)(translated, *values, timeout=self.timeout_s)

    async def copy_in(self, table: str, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        """Put rows into a table with COPY, which takes numbers that the database else gives by itself."""
        records = [tuple(storable(value) for value in row) for row in rows]
        async with self._one_at_a_time:
            connection = await self.connect()
            with self._errors():
                await connection.copy_records_to_table(table, records=records, columns=list(names))

    async def open_cursor(self, sql: str, parameters: Parameters) -> Any:
        """A cursor. Call it within a transaction."""
        translated, values = bind(sql, parameters)
        async with self._one_at_a_time:
            with self._errors():
                return await (await self.connect()).cursor(translated, *values)

    async def fetch_from(self, cursor: Any, count: int) -> list[Any]:
        async with self._one_at_a_time:
            with self._errors():
                found: list[Any] = await cursor.fetch(count)
                return found

    def is_in_transaction(self) -> bool:
        return self._connection is not None and bool(self._connection.is_in_transaction())

    @contextmanager
    def _bad_address(self) -> Iterator[None]:
        """What is raised when a connection is made, and is wrong with what the user named."""
        try:
            yield
        except asyncpg.exceptions.ClientConfigurationError:
            raise  # it is a ValueError too, and says what is wrong
        except ValueError:
            raise bad_url(self._url) from None  # it may say parts of a password
        except asyncpg.InvalidAuthorizationSpecificationError as error:
            remedy = "the password comes from PGPASSWORD, PGPASSFILE or ~/.pgpass"
            raise UsageError(f"{self.name}: {_text(error)}; {remedy}") from error
        except asyncpg.SyntaxOrAccessError as error:
            raise UsageError(f"{self.name}: {_text(error)}") from error

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What asyncpg and the system raise as what a user is told."""
        try:
            yield
        except _REFUSED as error:
            raise UsageError(f"{self.name}: {_text(error)}") from error
        except _CLASHES as error:
            raise Clash(f"{self.name}: {_text(error)}") from error
        except _LOST as error:
            if isinstance(error, asyncpg.InterfaceError) and self._is_open():
                raise StatementError(f"{self.name}: {_text(error)}") from error  # it does not fit its parameters
            self.drop()
            remedy = "see that it runs, and that the address is right"
            if self._was_there:
                remedy = "what was committed is kept, run the same command again when it is back"
            raise ConnectionLost(f"{self.name}: the database cannot be reached ({_text(error)}); {remedy}") from error
        except (asyncpg.SyntaxOrAccessError, asyncpg.DataError, asyncpg.FeatureNotSupportedError) as error:
            raise StatementError(f"{self.name}: {_text(error)}") from error
        except asyncpg.ReadOnlySQLTransactionError as error:
            if self._settings is not _LOOKING:  # the database itself is so
                raise StoreError(f"{self.name}: {_text(error)}") from error
            raise UsageError(f"{self.name}: a query only reads the store; begin it with SELECT") from None
        except asyncpg.InsufficientResourcesError as error:
            raise StoreError(
                f"{self.name}: {_text(error)}; what was committed is kept, make room and run the same command again"
            ) from error
        except asyncpg.PostgresError as error:
            raise StoreError(f"{self.name}: {_text(error)}") from error


def _text(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__


def _notice_silence(connection: Any) -> None:
    """Have the system give up a peer that is silent for a quarter of a minute."""
    opened = connection._transport.get_extra_info("socket")
    if opened is not None and opened.family in (socket.AF_INET, socket.AF_INET6):
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _SILENCE.items():
            if hasattr(socket, name):
                opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


@asynccontextmanager
async def locked(database: Postgres, key: int) -> AsyncIterator[None]:
    await database.execute("SELECT pg_advisory_lock(?)", (key,))
    try:
        yield
    finally:
        with suppress(StoreError):
            await database.execute("SELECT pg_advisory_unlock(?)", (key,))


async def ensure_schema(database: Postgres, *, may_make: bool) -> None:
    """Check the schema, and make it in an empty database if ``may_make``; one process at a time makes it.

    Raises :class:`NoStore` if there is no store and none may be made, :class:`UsageError` for a database that cannot
    hold a store, and :class:`StoreVersionError` for a store with another schema.
    """
    ((encoding,),) = await database.execute_fetchall("SHOW server_encoding")
    if encoding != "UTF8":
        raise UsageError(
            f"{database.name}: its encoding is {encoding}, which cannot hold all texts of the web; choose a database "
            "made with CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0"
        )
    if await _is_made(database):
        return
    if not may_make:
        run = Action(f"crawler run --db {quote(database.name)}", "run(seeds=…)")
        raise NoStore(f"{database.name}: no crawl store; ", run, " with seeds makes one")
    await database.execute("BEGIN")
    try:
        await database.execute("SELECT pg_advisory_xact_lock(?)", (OPENING,))
        if not await _is_made(database):
            await database.execute(schema("postgres"))
            await database.execute("INSERT INTO store_version VALUES (?)", (SCHEMA_VERSION,))
        await database.execute("COMMIT")
    except BaseException:
        with suppress(StoreError):
            await database.execute("ROLLBACK")
        raise


async def holds_store(url: str) -> bool:
    """Whether this database holds a store. Changes nothing."""
    database = Postgres(url)
    try:
        return await _is_made(database)
    finally:
        await database.close()


async def _is_made(database: Postgres) -> bool:
    """Whether the database holds a store that this crawler can use. Changes nothing."""
    rows = await database.execute_fetchall(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
    )
    tables = {name for (name,) in rows}
    version = 0
    if "store_version" in tables:
        ((version,),) = await database.execute_fetchall("SELECT version FROM store_version")
    return has_store(database.name, tables, version)
