"""Connections to a PostgreSQL store, its schema, and the errors that a user sees."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from shlex import quote
from typing import Any

import asyncpg

from crawler.clock import monotonic_s
from crawler.errors import (
    Action,
    ConnectionLost,
    NoStore,
    QueryInterrupted,
    StatementError,
    StoreError,
    StoreFull,
    StoreInUse,
    UsageError,
)
from crawler.store.location import bad_url, needs_tls, shown
from crawler.store.named_rows import row_class
from crawler.store.postgres.dialect import Translated, columns, storable, translate
from crawler.store.retrying import TransactionConflict
from crawler.store.sql.schema import SCHEMA_VERSION, migration, own_views, schema, version_in
from crawler.store.statements import ONLY_READS

#: Keys of the advisory locks in the database of a store: for opening the store, for a limit on pages, for building the
#: search index, for ending a run.
OPENING, PAGES, ENDING = 7_465_401, 7_465_402, 7_465_404

_CONNECT_S = 10.0
_LEAST_S = 0.001
#: Errors of a connection, not of a statement.
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
#: Conflicts of two transactions. The transaction succeeds when it is retried.
_CONFLICTS = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
_REFUSED = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InsufficientPrivilegeError,
    asyncpg.exceptions.ClientConfigurationError,
)
#: All plans of a crawl look rows up by key, for any size that the tables had when the plans were made.
_CRAWLING = {"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "jit": "off"}
#: A backslash in a text is a character (:mod:`crawler.store.postgres.user_sql`).
_QUOTING = {"standard_conforming_strings": "on", "client_encoding": "UTF8"}
#: The server releases the locks of an unfinished transaction whose client has disappeared after this time.
_SERVER = _QUOTING | {"application_name": "polite-crawler", "idle_in_transaction_session_timeout": "20s"}
_READING = _QUOTING | {
    "default_transaction_isolation": "repeatable read",
    "default_transaction_read_only": "on",
    "application_name": "polite-crawler",
    "jit": "off",
}


_SILENCE = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 3, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 15_000}


class Postgres:
    """One connection, opened when it is first used and reopened after it broke.

    It is a :class:`crawler.store.statements.Database` for statements in the words of SQLite. It executes one
    statement at a time. A statement that takes longer than ``timeout_s`` breaks the connection.
    """

    def __init__(self, url: str, *, crawling: bool = False, read_only: bool = False) -> None:
        self._url = url
        self._settings = _READING if read_only else _SERVER | (_CRAWLING if crawling else {})
        self._connection: Any = None
        self._was_connected = False
        self._connecting: asyncio.Timeout | None = None
        self._one_at_a_time = asyncio.Lock()
        self.timeout_s: float | None = None
        self._until: float | None = None  # of the deadline, by the monotonic clock

    @property
    def name(self) -> str:
        return shown(self._url)

    async def connect(self) -> Any:
        """The connection of asyncpg. Raises :class:`ConnectionLost`, and :class:`UsageError` for a bad URL."""
        if not self._is_open():
            with self._errors():
                try:
                    async with asyncio.timeout(None) as self._connecting:
                        self._connection = await self._made()
                finally:
                    self._connecting = None
        return self._connection

    async def _made(self) -> Any:
        """A new connection, prepared for use."""
        # Without TLS the password and all pages could be read on the way. asyncpg itself would only prefer it.
        tls = {"ssl": "require"} if needs_tls(self._url, os.environ) else {}
        with self._bad_address():
            made = await asyncpg.connect(
                self._url, timeout=_CONNECT_S, server_settings=self._settings, statement_cache_size=500, **tls
            )
        try:
            async with asyncio.timeout(_CONNECT_S):
                _notice_silence(made)
                # Sums of bigints are numerics in PostgreSQL.
                await made.set_type_codec(
                    "numeric", schema="pg_catalog", encoder=str, decoder=lambda n: float(n) if "." in n else int(n)
                )
        except BaseException:
            made.terminate()
            raise
        self._was_connected = True
        return made

    def is_superuser(self) -> bool:
        """Whether the role of the open connection is a superuser; the server reports that to its clients."""
        return self._is_open() and getattr(self._connection.get_settings(), "is_superuser", "off") == "on"

    def _is_open(self) -> bool:
        return self._connection is not None and not self._connection.is_closed()

    async def close(self) -> None:
        if self._is_open():
            with suppress(*_LOST):
                await self._connection.close(timeout=2)
        self._connection = None

    def drop(self) -> None:
        """Terminate a connection whose state is unknown."""
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    def give_up(self) -> None:
        """Terminate the connection; statements and connection attempts under way fail at once."""
        self.drop()
        connecting, self._connecting = self._connecting, None
        if connecting is not None:
            connecting.reschedule(0.0)

    async def execute(self, sql: str, parameters: Any = None, /) -> str:
        return str(await self._run("execute", sql, parameters or ()))

    async def executemany(self, sql: str, parameters: Iterable[Any], /) -> None:
        """Execute a statement that takes each column of the rows as an array."""
        for batch in columns(parameters):
            await self._run("execute", sql, batch)

    async def execute_fetchall(self, sql: str, parameters: Any = None, /) -> list[Any]:
        """The rows as named tuples."""
        return named(await self.fetch_records(sql, parameters))

    async def fetch_records(self, sql: str, parameters: Any = None, /) -> list[Any]:
        """The rows as mappings, with the names of the columns as they are."""
        records: list[Any] = await self._run("fetch", sql, parameters or ())
        return records

    async def _run(self, how: str, sql: str, parameters: Any) -> Any:
        translated = translate(sql)
        values = self._values(translated, parameters)
        async with self._one_at_a_time:
            connection = await self.connect()
            with self._errors():
                if self._until is None:
                    return await getattr(connection, how)(translated.sql, *values, timeout=self.timeout_s)
                try:  # at the timeout asyncpg has the server cancel the statement
                    left_s = max(self._until - monotonic_s(), _LEAST_S)
                    return await getattr(connection, how)(translated.sql, *values, timeout=left_s)
                except TimeoutError:
                    raise QueryInterrupted(f"{self.name}: a query took too long") from None

    @asynccontextmanager
    async def deadline(self, seconds: float) -> AsyncIterator[None]:
        """See :meth:`crawler.store.sql.store.Store.deadline`."""
        self._until = monotonic_s() + seconds
        try:
            yield
        finally:
            self._until = None

    def _values(self, translated: Translated, parameters: Any) -> list[Any]:
        try:
            return translated.values(parameters)
        except KeyError as error:
            raise StatementError(f"{self.name}: no value for the parameter {error}") from None

    async def copy_in(self, table: str, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows with COPY, which accepts values for columns that the database numbers itself."""
        records = [tuple(storable(value) for value in row) for row in rows]
        async with self._one_at_a_time:
            connection = await self.connect()
            with self._errors():
                await connection.copy_records_to_table(table, records=records, columns=list(names))

    async def open_cursor(self, sql: str, parameters: Any) -> Any:
        """A cursor, within a transaction that is open."""
        translated = translate(sql)
        values = self._values(translated, parameters)
        async with self._one_at_a_time:
            with self._errors():
                return await (await self.connect()).cursor(translated.sql, *values)

    async def fetch_from(self, cursor: Any, count: int) -> list[Any]:
        """The next records of a cursor."""
        async with self._one_at_a_time:
            with self._errors():
                records: list[Any] = await cursor.fetch(count)
                return records

    def is_in_transaction(self) -> bool:
        return self._connection is not None and bool(self._connection.is_in_transaction())

    @contextmanager
    def _bad_address(self) -> Iterator[None]:
        """Turn errors while connecting that a user caused into :class:`UsageError`."""
        try:
            yield
        except asyncpg.exceptions.ClientConfigurationError:
            raise  # it is a ValueError, and its message names the mistake
        except ValueError:
            raise bad_url(self._url) from None  # the message may contain parts of a password
        except asyncpg.InvalidAuthorizationSpecificationError as error:
            remedy = "the password comes from PGPASSWORD, PGPASSFILE or ~/.pgpass"
            raise UsageError(f"{self.name}: {_text(error)}; {remedy}") from error
        except asyncpg.SyntaxOrAccessError as error:
            raise UsageError(f"{self.name}: {_text(error)}") from error

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn errors of asyncpg and of the system into the errors that a user sees."""
        try:
            yield
        except _REFUSED as error:
            is_lacking = isinstance(error, asyncpg.InsufficientPrivilegeError)
            remedy = "; connect as the role that owns the database and the store" if is_lacking else ""
            raise UsageError(f"{self.name}: {_text(error)}{remedy}") from error
        except _CONFLICTS as error:
            raise TransactionConflict(f"{self.name}: {_text(error)}") from error
        except _LOST as error:
            if isinstance(error, asyncpg.InterfaceError) and self._is_open():
                raise StatementError(
                    f"{self.name}: {_text(error)}"
                ) from error  # the parameters do not fit the statement
            self.drop()
            remedy = "check that it is running and that the address is right"
            if needs_tls(self._url, os.environ):
                remedy += ", and that it has TLS (?sslmode=disable is for a network that nobody else can read)"
            if self._was_connected:
                remedy = "what was committed is kept, run the same command again when it is back"
            raise ConnectionLost(f"{self.name}: the database cannot be reached ({_text(error)}); {remedy}") from error
        except (asyncpg.SyntaxOrAccessError, asyncpg.DataError, asyncpg.FeatureNotSupportedError) as error:
            raise StatementError(f"{self.name}: {_text(error)}") from error
        except asyncpg.ReadOnlySQLTransactionError as error:
            if self._settings is not _READING:  # the database itself is read-only
                raise StoreError(f"{self.name}: {_text(error)}") from error
            raise UsageError(f"{self.name}: {ONLY_READS}") from None
        except asyncpg.InsufficientResourcesError as error:
            kind = StoreFull if isinstance(error, asyncpg.DiskFullError) else StoreError
            raise kind(
                f"{self.name}: {_text(error)}; what was committed is kept, make room and run the same command again"
            ) from error
        except asyncpg.PostgresError as error:
            raise StoreError(f"{self.name}: {_text(error)}") from error


def _text(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__


def _notice_silence(connection: Any) -> None:
    """Have the system close a connection whose peer is silent for 15 seconds."""
    opened = connection._transport.get_extra_info("socket")
    if opened is not None and opened.family in (socket.AF_INET, socket.AF_INET6):
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _SILENCE.items():
            if hasattr(socket, name):
                opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def named(records: list[Any]) -> list[Any]:
    """The records of a statement as named tuples."""
    if not records:
        return []
    make = row_class(tuple(records[0].keys()))._make
    return [make(record) for record in records]


@asynccontextmanager
async def locked(database: Postgres, key: int) -> AsyncIterator[None]:
    """Hold the advisory lock ``key`` of the session while inside."""
    await database.execute("SELECT pg_advisory_lock(?)", (key,))
    try:
        yield
    finally:
        with suppress(StoreError):
            await database.execute("SELECT pg_advisory_unlock(?)", (key,))


_GRANTS_ON_VIEWS = """
SELECT format('GRANT SELECT ON %I TO %I', table_name, grantee) AS statement
FROM information_schema.role_table_grants JOIN information_schema.views USING (table_schema, table_name)
WHERE table_schema = current_schema() AND privilege_type = 'SELECT' AND grantee <> grantor
"""
#: Also those that the role of this connection may not read.
_RELATIONS = """
SELECT relname AS name, pg_get_userbyid(relowner) AS owner, has_table_privilege(oid, 'SELECT') AS is_readable
FROM pg_catalog.pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')
"""
_WORKERS_ALIVE = """
SELECT host || ':' || pid AS name FROM worker
WHERE ended_at IS NULL AND lease_until > extract(epoch FROM clock_timestamp()) LIMIT 1
"""


async def ensure_schema(database: Postgres, *, may_make: bool) -> None:
    """Check the schema; make it in an empty database if ``may_make``, and migrate that of an earlier version.

    One process at a time does so.

    Raises :class:`NoStore` if there is no store and none may be made, :class:`UsageError` for a database that cannot
    hold a store, and :class:`StoreVersionError` for a store with another schema.
    """
    ((encoding,),) = await database.execute_fetchall("SHOW server_encoding")
    if encoding != "UTF8":
        raise UsageError(
            f"{database.name}: its encoding is {encoding}, which cannot hold all texts of the web; choose a database "
            "made with CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0"
        )
    version = await _version(database)
    if version == SCHEMA_VERSION:
        return
    if version is None and not may_make:
        run = Action(f"crawler run --db {quote(database.name)}", "run(seeds=…)")
        raise NoStore(f"{database.name}: no crawl store; ", run, " with seeds makes one")
    await database.execute("BEGIN READ WRITE")
    try:
        await database.execute("SELECT pg_advisory_xact_lock(?)", (OPENING,))
        await _bring_up(database)
        await database.execute("COMMIT")
    except BaseException:
        with suppress(StoreError):
            await database.execute("ROLLBACK")
        raise


async def _bring_up(database: Postgres) -> None:
    """Make the schema in an empty database, or bring an earlier one to this version's. Called in a transaction."""
    version = await _version(database)  # another process may have been faster
    if version == SCHEMA_VERSION:
        return
    if version is None:
        await database.execute(schema("postgres"))
        await database.execute("INSERT INTO store_version VALUES (?)", (SCHEMA_VERSION,))
        return
    for row in await database.execute_fetchall(_WORKERS_ALIVE):
        raise StoreInUse(
            f"{database.name}: written by an earlier version of the crawler, and its worker {row.name} is at work; "
            "stop all workers, then open the store with this version"
        )
    grants = await database.execute_fetchall(_GRANTS_ON_VIEWS)  # a view that is made again has no readers
    # Views of the user that read one of these keep it from being dropped: the error names them.
    drop_views = f"DROP VIEW IF EXISTS {', '.join(own_views())}"
    for sql in (drop_views, migration("postgres", version), *(row.statement for row in grants)):
        await database.execute(sql)
    await database.execute("UPDATE store_version SET version = ?", (SCHEMA_VERSION,))


async def holds_store(url: str) -> bool:
    """Whether this database holds a store. Changes nothing."""
    database = Postgres(url)
    try:
        return await _version(database) is not None
    finally:
        await database.close()


async def _version(database: Postgres) -> int | None:
    """See :func:`version_in`. Changes nothing."""
    relations = {row.name: row for row in await database.execute_fetchall(_RELATIONS)}
    version = 0
    if found := relations.get("store_version"):
        if not found.is_readable:
            raise UsageError(
                f"{database.name}: the store belongs to the role {found.owner}, and this role may not read it; connect "
                f"as {found.owner}, which can also make a role that reads (`crawler store grant-reader`)"
            )
        ((version,),) = await database.execute_fetchall("SELECT version FROM store_version")
    return version_in(database.name, relations, version)
