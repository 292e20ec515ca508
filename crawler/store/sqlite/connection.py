"""Opening a SQLite store: pragmas, the schema, the lock."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import Any, Protocol

import aiosqlite
from filelock import FileLock, Timeout

from crawler.errors import Action, Setting, StatementError, StoreError, StoreInUse, UsageError
from crawler.gunzip import gunzip
from crawler.store.rows import Parameters, row_class
from crawler.store.sql.statements import SCHEMA_VERSION, has_store, schema

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_GZIP = b"\x1f\x8b"
_PRAGMAS = """
PRAGMA page_size = 8192;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA cache_size = -8192;
PRAGMA wal_autocheckpoint = 4000;
PRAGMA busy_timeout = 10000;
PRAGMA temp_store = MEMORY;
"""
#: Those that take an argument.
_PRAGMAS_THAT_READ = {
    *("table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list"),
    *("foreign_key_check", "integrity_check", "quick_check"),
}
_INTERRUPT_AGAIN_S = 0.05
_ROWS_AT_ONCE = 500

#: Of what a store is a copy that is not finished.
UNFINISHED = "SELECT source FROM store_copy WHERE done_at IS NULL"


class Database(Protocol):
    """A connection that the SQL of a transaction goes to; ``aiosqlite.Connection`` is one."""

    def execute(self, sql: str, parameters: Any = None, /) -> Awaitable[Any]: ...

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> Awaitable[Any]:
        """Execute a statement for each row of parameters. No row may depend on what another one does."""
        ...

    def execute_fetchall(self, sql: str, parameters: Any = None, /) -> Awaitable[Iterable[Any]]: ...


class Read(Protocol):
    """Reads rows outside a transaction."""

    async def __call__(self, sql: str, parameters: Parameters = ()) -> list[Any]: ...


def compress(body: bytes) -> bytes:
    """The stored form of a body that came without gzip."""
    return zstd.compress(body, level=1)


def decompress(data: bytes) -> bytes:
    """A body as it was fetched (decoded), from its stored form: the gzip of the wire, or else our own zstd."""
    return gunzip(data) if data.startswith(_GZIP) else zstd.decompress(data)


def require_usable(path: Path, read_only: bool) -> None:
    """Raise :class:`UsageError` where there can be no store at ``path``, or none that may be used so."""
    if read_only and not path.exists():
        raise UsageError(
            f"{path}: no such store; ",
            Action(f"crawler run --db {quote(str(path))} --seeds FILE", "run(seeds=…)"),
            " makes one",
        )
    if not path.parent.is_dir():
        raise UsageError(f"{path}: the folder {path.parent} does not exist; make it first")
    if path.is_dir():
        raise UsageError(f"{path}: a folder, not a store; name a file in it")
    if read_only and path.stat().st_size == 0:
        raise UsageError(f"{path}: an empty file, no crawl store; choose another ", Setting("store.db"))
    if path.exists() and not os.access(path, os.R_OK if read_only else os.R_OK | os.W_OK):
        raise UsageError(f"{path}: cannot be {'read' if read_only else 'written'}: Permission denied")


async def open_database(path: Path, *, read_only: bool = False, may_make: bool = True) -> aiosqlite.Connection:
    """Open a store, and make one in a new or empty file unless ``read_only`` or not ``may_make``.

    The caller must close the connection: its thread keeps the process alive.

    Raises :class:`UsageError` if there is no store to read, :class:`StoreVersionError` for a store with another schema,
    :class:`StoreError` for a damaged file and for a file of another kind.
    """
    target = _read_only_uri(path) if read_only else str(path)
    opening = asyncio.ensure_future(aiosqlite.connect(target, uri=read_only, isolation_level=None))
    try:
        db = await asyncio.shield(opening)
    except sqlite3.Error as error:
        raise StoreError(f"{path}: cannot be opened: {error}") from error
    except asyncio.CancelledError:
        with suppress(sqlite3.Error):
            await (await opening).close()  # or its thread might tell a loop that is closed by then
        raise
    try:
        is_made = await _is_made(db, path)
        if not is_made and (read_only or not may_make):
            raise UsageError(f"{path}: an empty file, no crawl store; choose another ", Setting("store.db"))
        if not read_only:
            await db.executescript(_PRAGMAS)
        if not is_made:
            version = f"PRAGMA user_version = {SCHEMA_VERSION};"
            await db.executescript(f"BEGIN IMMEDIATE;\n{schema('sqlite')}\n{version}\nCOMMIT;")
        await db.create_function("zstd", 1, compress, deterministic=True)
        if read_only:
            await db.set_authorizer(_may_read)
    except sqlite3.Error as error:
        await db.close()
        raise StoreError(_explain(path, error)) from error
    except BaseException:
        await db.close()
        raise
    return db


async def open_with_ear(path: Path, *, read_only: bool = False) -> tuple[aiosqlite.Connection, aiosqlite.Connection]:
    """The same, and a connection that hears what others commit while the first is in the midst of a long turn: one of
    its own, with a thread of its own, where the store is written to."""
    db = await open_database(path, read_only=read_only)
    if read_only:
        return db, db
    try:
        return db, await open_database(path, read_only=True)
    except BaseException:
        await db.close()
        raise


def _may_read(action: int, name: str | None, value: str | None, database: str | None, within: str | None) -> int:
    """An authorizer: of what a file open to read lets pass, it denies other files and the setting of pragmas."""
    sets = action == sqlite3.SQLITE_PRAGMA and value is not None and name not in _PRAGMAS_THAT_READ
    denied = sets or action in (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH)
    return sqlite3.SQLITE_DENY if denied else sqlite3.SQLITE_OK


async def close_reader(db: aiosqlite.Connection) -> None:
    """Close a connection that only reads; what it still looks for is given up, for nobody waits for it any more."""
    closing = asyncio.ensure_future(db.close())
    while not closing.done():
        with suppress(ValueError, sqlite3.ProgrammingError):  # it is closed by now
            await db.interrupt()
        await asyncio.wait([closing], timeout=_INTERRUPT_AGAIN_S)  # a statement may have begun only then
    await closing


async def close_with_ear(db: aiosqlite.Connection, ear: aiosqlite.Connection) -> None:
    """Close what :func:`open_with_ear` opened."""
    if ear is db:
        await close_reader(db)
    else:
        await ear.close()
        await db.close()


async def rows_of(db: aiosqlite.Connection, sql: str, parameters: Parameters) -> AsyncGenerator[Any, None]:
    """The rows of a query as named tuples. A cancellation waits for nothing: the cursor ends with the connection."""
    cursor = await db.execute(sql, parameters)
    make = row_class(tuple([column[0] for column in cursor.description or ()]))._make
    try:
        while batch := await cursor.fetchmany(_ROWS_AT_ONCE):
            for row in batch:
                yield make(row)
    except asyncio.CancelledError:
        raise
    except BaseException:
        await cursor.close()
        raise
    await cursor.close()


def _read_only_uri(path: Path) -> str:
    """SQLite makes a file beside the store to read it; where it may not, and nobody writes, it can do without."""
    alone = not os.access(path.parent, os.W_OK) and not Path(f"{path}-wal").exists()
    return f"{path.absolute().as_uri()}?mode=ro" + ("&immutable=1" if alone else "")


async def _is_made(db: Database, path: Path) -> bool:
    """Whether the file holds a store that this crawler can use. Changes nothing."""
    (version,) = await one(db, "PRAGMA user_version")
    tables = {name for (name,) in await every(db, "SELECT name FROM sqlite_master")}
    return has_store(str(path), tables, version)


@asynccontextmanager
async def transaction(db: aiosqlite.Connection, path: Path) -> AsyncIterator[None]:
    """One write transaction, rolled back whole if anything goes wrong inside it, or the caller is cancelled."""
    try:
        try:
            await db.execute("BEGIN IMMEDIATE")
            yield
            await db.execute("COMMIT")
        except BaseException:
            # A statement that was cancelled is still carried out, before this one: there may be no transaction to end.
            with suppress(sqlite3.OperationalError):
                await db.execute("ROLLBACK")
            raise
    except sqlite3.Error as error:
        raise StoreError(_explain(path, error)) from error


@asynccontextmanager
async def reading(path: Path) -> AsyncIterator[None]:
    """Turns a failure to read into the error that tells the user."""
    try:
        yield
    except sqlite3.Error as error:
        if "readonly database" in str(error) or getattr(error, "sqlite_errorname", "") == "SQLITE_AUTH":
            raise UsageError(f"{path}: a query only reads the store; begin it with SELECT") from None
        kind = StatementError if getattr(error, "sqlite_errorname", "SQLITE_ERROR") == "SQLITE_ERROR" else StoreError
        raise kind(_explain(path, error)) from error


def reader(db: Database, path: Path) -> Read:
    """What reads the store at ``path`` over a connection."""

    async def read(sql: str, parameters: Parameters = ()) -> list[Any]:
        async with reading(path):
            return list(await every(db, sql, parameters))

    return read


def _explain(path: Path, error: sqlite3.Error) -> str:
    text = str(error)
    if "disk is full" in text or "disk I/O" in text:
        return f"{path}: {text}; what was committed is kept, make room and run the same command again"
    if "malformed" in text or "not a database" in text:
        return f"{path}: {text}; the file is damaged or no SQLite store, `sqlite3 {path} .recover` may save it"
    return f"{path}: {text}"


async def fit_cache(db: Database, file_bytes: int, now_kib: int) -> int:
    """Let SQLite's cache follow the size of the store: a sixteenth of it, within 1 and 8 MB, ``now_kib`` before. What a
    small store reads anew, the system has in memory. Returns what it may take now, in KiB."""
    kib = min(8 << 10, max(1 << 10, file_bytes >> 24 << 10))  # in whole MB
    if kib != now_kib:
        await db.execute(f"PRAGMA cache_size = -{kib}")
    return kib


async def one(db: Database, sql: str, parameters: Sequence[Any] = ()) -> Any:
    """The first row, or ``None``."""
    rows = await db.execute_fetchall(sql, parameters)
    return next(iter(rows), None)


async def every(db: Database, sql: str, parameters: Parameters = ()) -> Iterable[Any]:
    """All rows."""
    return await db.execute_fetchall(sql, parameters)


def require_whole(unfinished: Iterable[Any], name: str) -> None:
    """Raise :class:`UsageError` where :data:`UNFINISHED` found something in the store that errors call ``name``."""
    for (source,) in unfinished:
        command = f"crawler store copy {quote(source)} {quote(name)}"
        raise UsageError(f"{name}: a copy that is not finished; `{command}` goes on with it")


def is_held(path: Path) -> bool:
    """Whether a process may be writing to the store at ``path``: True too where that cannot be told.

    Asks for the lock as one of many who may read, gives it back at once, and writes nothing.
    """
    try:
        import fcntl

        with open(f"{path}.lock", "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # closing the file gives it back
    except FileNotFoundError:
        return False
    except (ImportError, OSError):
        return True
    return False


def lock_store(path: Path) -> FileLock:
    """The lock of the one process that may write; the system drops it when that process dies."""
    if not path.parent.is_dir():
        raise UsageError(f"{path}: the folder {path.parent} does not exist; make it first")
    lock = FileLock(f"{path}.lock", timeout=0.2, poll_interval=0.02)  # is_held may have it for an instant
    try:
        lock.acquire()
    except Timeout:
        if not Path(lock.lock_file).exists():
            raise UsageError(f"{path}: cannot be written: no file can be made in {path.parent}") from None
        raise StoreInUse(
            f"{path}: another `crawler run` is crawling into this store; wait for it, stop it, or choose another ",
            Setting("store.db"),
        ) from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
    return lock
