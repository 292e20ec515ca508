"""Opening a SQLite file: pragmas, the schema, the lock, and the errors that a user sees."""

from __future__ import annotations

import asyncio
import math
import os
import re
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from functools import cache
from itertools import pairwise
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, cast

import aiosqlite

from crawler.clock import monotonic_s
from crawler.errors import (
    Action,
    NoStore,
    QueryInterrupted,
    Setting,
    StatementError,
    StoreError,
    StoreFull,
    StoreInUse,
    UsageError,
)
from crawler.private_files import PRIVATE, make_private
from crawler.store.location import db_argument
from crawler.store.named_rows import named_rows
from crawler.store.sql.schema import SCHEMA_VERSION, migration, own_views, schema, version_in
from crawler.store.sqlite.on_thread import OnThread
from crawler.store.sqlite.read_only import ReadOnlyConnection
from crawler.store.statements import ONLY_READS, Database

if TYPE_CHECKING:
    from filelock import FileLock

_PRAGMAS = """
PRAGMA page_size = 8192;
PRAGMA cache_size = -8192;
PRAGMA temp_store = MEMORY;
"""
_SHARED = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 4000;"
#: Of a file that one process has alone, and may lose. It is kept packed: rows that are deleted leave zeros.
_ALONE = """
PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA secure_delete = ON;
"""
#: How long a statement waits for another process that holds the lock which it needs.
PATIENCE_MS = 10_000
_INTERRUPT_EVERY_S = 0.05
#: The result codes of a disk without room, in the file, its WAL and the index of that.
_NO_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE)
_STEPS_BETWEEN_CHECKS = 20_000  # instructions of SQLite's virtual machine, less than a millisecond
_MAGIC = b"SQLite format 3\0"  # the first bytes of every SQLite file


def require_usable(path: Path, read_only: bool) -> None:
    """Raise :class:`UsageError` if there can be no store at ``path``, or no access to it."""
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
        raise NoStore(f"{path}: an empty file, no crawl store; choose another ", Setting("store.db"))
    if path.exists() and not os.access(path, os.R_OK if read_only else os.R_OK | os.W_OK):
        raise UsageError(f"{path}: cannot be {'read' if read_only else 'written'}: Permission denied")


async def open_database(
    path: Path, *, read_only: bool = False, may_make: bool = True, alone: bool = False
) -> aiosqlite.Connection:
    """Open a store, and make one in a new or empty file unless ``read_only`` or not ``may_make``.

    The caller must close the connection: its thread keeps the process alive.

    Raises :class:`UsageError` if there is no store to read, :class:`StoreVersionError` for a store with another schema,
    :class:`StoreError` for a damaged file and for a file of another kind.
    """
    target = read_only_uri(path) if read_only else str(path)
    if not read_only and may_make:
        make_private(path)
        if alone and not path.stat().st_size:
            path.write_bytes(_empty_store())
    factory = ReadOnlyConnection if read_only else sqlite3.Connection
    opening = asyncio.ensure_future(aiosqlite.connect(target, uri=read_only, isolation_level=None, factory=factory))
    try:
        db = await asyncio.shield(opening)
    except sqlite3.Error as error:
        raise StoreError(f"{path}: cannot be opened: {error}") from error
    except asyncio.CancelledError:
        with suppress(sqlite3.Error):
            await (await opening).close()  # its thread must not call a loop that is closed
        raise
    db.row_factory = cast(Any, named_rows())  # aiosqlite declares a type, SQLite calls any callable
    try:
        version = await _version(db, path)
        if version is None and (read_only or not may_make):
            raise NoStore(f"{path}: an empty file, no crawl store; choose another ", Setting("store.db"))
        if not read_only:
            await db.executescript(f"PRAGMA busy_timeout = {PATIENCE_MS};\n{_PRAGMAS}{_ALONE if alone else _SHARED}")
            if version != SCHEMA_VERSION:
                await _bring_up(db, path)
        elif version != SCHEMA_VERSION:
            await _bring_up_to_read(path)
    except sqlite3.Error as error:
        await db.close()
        raise StoreError(_explain(path, error)) from error
    except BaseException:
        await db.close()
        raise
    return db


async def open_with_control(
    path: Path, *, read_only: bool = False, may_make: bool = True, alone: bool = False
) -> tuple[aiosqlite.Connection, aiosqlite.Connection]:
    """Open a store, and a control connection to it.

    The control connection reads the commits of other processes while a long transaction is open on the first. It has a
    thread of its own. A store that is only read, or that this process has alone, uses one connection for both.
    """
    db = await open_database(path, read_only=read_only, may_make=may_make, alone=alone)
    if read_only or alone:
        return db, db
    try:
        return db, await open_database(path, read_only=True)
    except BaseException:
        await db.close()
        raise


async def close_reader(db: aiosqlite.Connection) -> None:
    """Close a connection that only reads, and interrupt the statement that it is executing."""
    closed = asyncio.ensure_future(db.close())
    while not closed.done():
        with suppress(ValueError, sqlite3.ProgrammingError):  # closed meanwhile
            await db.interrupt()
        await asyncio.wait([closed], timeout=_INTERRUPT_EVERY_S)  # a statement may have begun only now
    await closed


async def close_with_control(db: aiosqlite.Connection, control_db: aiosqlite.Connection) -> None:
    """Close what :func:`open_with_control` opened."""
    if control_db is db:
        await close_reader(db)
    else:
        await control_db.close()
        await db.close()


async def fetch_rows(db: aiosqlite.Connection, path: Path, sql: str, parameters: Any = None) -> list[Any]:
    """All rows of a query outside of a transaction, with the errors of :func:`read_errors`."""
    async with read_errors(path):
        return list(await db.execute_fetchall(sql, parameters))


@asynccontextmanager
async def interrupting(db: aiosqlite.Connection, seconds: float) -> AsyncIterator[None]:
    """See :meth:`crawler.store.sql.store.Store.deadline`."""
    until = monotonic_s() + seconds
    await db.set_progress_handler(lambda: monotonic_s() >= until, _STEPS_BETWEEN_CHECKS)
    try:
        yield
    finally:
        until = -math.inf  # a statement that was cancelled is still being executed
        await asyncio.shield(asyncio.ensure_future(db.set_progress_handler(cast(Any, None), 0)))


def read_only_uri(path: Path) -> str:
    """The URI to read a store. In a folder that is not writable, and without a writer, SQLite must make no file."""
    alone = not os.access(path.parent, os.W_OK) and not Path(f"{path}-wal").exists()
    return f"{path.absolute().as_uri()}?mode=ro" + ("&immutable=1" if alone else "")


async def _version(db: Database, path: Path) -> int | None:
    """See :func:`version_in`. Changes nothing."""
    (version,) = await db.execute_fetchall("SELECT user_version FROM pragma_user_version")
    tables = {row.name for row in await db.execute_fetchall("SELECT name FROM sqlite_master")}
    return version_in(str(path), tables, version.user_version)


@cache
def _empty_store() -> bytes:
    """The file of a new store: SQLite takes long to execute the schema, and a worker of rounds makes many stores."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(f"{_PRAGMAS}{schema('sqlite')};\nPRAGMA user_version = {SCHEMA_VERSION};")
        return db.serialize()


async def _bring_up(db: aiosqlite.Connection, path: Path) -> None:
    """Make the schema in an empty file, or bring an earlier one to this version's, in one transaction."""
    thread = OnThread(db)

    async def change() -> None:
        async with transaction(thread):
            version = await _version(thread, path)  # another process may have been faster
            if version == SCHEMA_VERSION:
                return
            if version is None:
                statements = schema("sqlite")
            else:
                dropped = "".join(f"DROP VIEW IF EXISTS {view};\n" for view in own_views())
                statements = dropped + migration("sqlite", version)
            for statement in split_script(f"{statements};\nPRAGMA user_version = {SCHEMA_VERSION};"):
                await thread.execute(statement)

    await thread.run(change)


def split_script(sql: str) -> Iterator[str]:
    """The statements of a script: ``executescript`` would commit the transaction that it is called in."""
    statement = ""
    for line in sql.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


async def _bring_up_to_read(path: Path) -> None:
    """Bring a file of an earlier schema to this version's, for a process that only reads it.

    Raises :class:`UsageError` if the file cannot be written, and :class:`StoreInUse` if another process writes to it.
    """
    require_usable(path, read_only=False)
    lock = lock_store(path)
    try:
        await (await open_database(path, may_make=False)).close()
    finally:
        lock.release()


@asynccontextmanager
async def transaction(db: Database) -> AsyncIterator[None]:
    """One write transaction, rolled back whole if anything fails inside it or the caller is cancelled."""
    try:
        await db.execute("BEGIN IMMEDIATE")
        yield
        await db.execute("COMMIT")
    except BaseException:
        # A cancelled statement is still executed before this one: the transaction may have ended.
        with suppress(sqlite3.OperationalError):
            await db.execute("ROLLBACK")
        raise


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn an error of SQLite in a transaction into the error that a user sees."""
    try:
        yield
    except sqlite3.Error as error:
        kind = StoreFull if getattr(error, "sqlite_errorcode", None) in _NO_ROOM else StoreError
        raise kind(_explain(path, error)) from error


@asynccontextmanager
async def read_errors(path: Path) -> AsyncIterator[None]:
    """Turn an error of SQLite in a query into the error that a user sees."""
    try:
        yield
    except sqlite3.Error as error:
        if _result_code(error) == sqlite3.SQLITE_INTERRUPT:
            raise QueryInterrupted(f"{path}: a query took too long") from None
        if _result_code(error) in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_AUTH):
            raise UsageError(f"{path}: {ONLY_READS}") from None
        kind = StatementError if _result_code(error) == sqlite3.SQLITE_ERROR else StoreError
        raise kind(_explain(path, error)) from error


def _result_code(error: sqlite3.Error) -> int:
    """The primary result code of SQLite. An error that the Python module raised itself counts as SQLITE_ERROR."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def _begins_as_sqlite(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return True  # unknown


def _explain(path: Path, error: sqlite3.Error) -> str:
    text, code = str(error), _result_code(error)
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return f"{path}: {text}; what was committed is kept, make room and run the same command again"
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        if not _begins_as_sqlite(path):
            return f"{path}: this file is not a store; choose another file, or the name of a new one"
        return f"{path}: {text}; the file is damaged, `sqlite3 {path} .recover` may save it"
    return f"{path}: {text}"


def is_held(path: Path) -> bool:
    """Whether a process may be writing to the store at ``path``; True if that cannot be determined.

    Takes a shared lock, releases it at once, and writes nothing.
    """
    try:
        import fcntl

        with open(f"{path}.lock", "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # closing the file releases the lock
    except FileNotFoundError:
        return False
    except (ImportError, OSError):
        return True
    return False


def holder(lock: Path) -> str:
    """The holder of the lock file, such as `` (crawler run, process 1234)``; "" if the system does not report it.

    The lock file itself cannot name its holder: each process that tries to lock it empties it.
    """
    try:
        inode = lock.stat().st_ino
        held = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        pid = next(words[4] for words in held if words[1:2] == ["FLOCK"] and words[5].endswith(f":{inode}"))
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except (OSError, StopIteration, IndexError):
        return ""
    return f" ({command_of(words)}process {pid})"


def command_of(words: list[str]) -> str:
    """The command in the arguments of a process, such as ``crawler run, ``; "" if it is none of the crawler.

    A word after an option is perhaps its value.
    """
    pairs = list(pairwise(words)) if any("crawler" in word for word in words) else []
    named = (word for before, word in pairs if re.fullmatch("[a-z][a-z-]*", word) and not before.startswith("--"))
    name = next((word for word in named if word != "crawler"), None)
    return "" if name is None else f"crawler {name}, "


def lock_store(path: Path) -> FileLock:
    """Take the lock of the one process that may write. The system releases it when the process dies."""
    if not path.parent.is_dir():
        raise UsageError(f"{path}: the folder {path.parent} does not exist; make it first")
    from filelock import FileLock, Timeout  # not loaded by commands that only read

    lock = FileLock(f"{path}.lock", timeout=0.2, mode=PRIVATE, poll_interval=0.02)  # is_held may hold it for an instant
    _give_to_owner(path, lock.lock_file)
    try:
        lock.acquire()
    except Timeout:
        if not Path(lock.lock_file).exists():
            raise UsageError(f"{path}: cannot be written: no file can be made in {path.parent}") from None
        argument = db_argument(str(path))
        raise StoreInUse(
            f"{path}: another command writes to this store{holder(Path(lock.lock_file))}; wait for it, or if it is a "
            f"crawl, stop it (`crawler control stop{argument}`) or give it URLs "
            f"(`crawler control queue URL{argument}`), or choose another ",
            Setting("store.db"),
        ) from None
    except OSError as error:
        raise UsageError(f"{lock.lock_file}: cannot be written: {error.strerror}") from None
    return lock


def _give_to_owner(path: Path, lock_file: str) -> None:
    """Make a missing lock file for the owner of the store, as SQLite does with its files, if this process may."""
    with suppress(OSError):
        owner = path.stat()
        if not os.path.exists(lock_file):
            make_private(Path(lock_file))
            os.chown(lock_file, owner.st_uid, owner.st_gid)
