"""Opening the store that a user names."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

from crawler.clock import Clock, SystemClock
from crawler.errors import UsageError, requiring
from crawler.frontier.operator import Command, Order
from crawler.frontier.politeness import PolitenessSettings
from crawler.store.location import is_url, require_no_dataset, require_no_password, require_postgres
from crawler.store.sql.store import Store
from crawler.store.sqlite.connection import require_usable
from crawler.store.sqlite.store import SqliteStore

S = TypeVar("S", bound=Store)


def _path(db: str) -> Path:
    """Raises :class:`UsageError` for a path that the system rejects."""
    path = Path(db)
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return path
    except OSError as error:
        raise UsageError(f"{db[:200]}: no place for a store: {error.strerror}") from None
    return path


def _on_postgres(db: str) -> AbstractContextManager[None]:
    """A context to load the modules for the database at the URL ``db``, which it checks."""
    require_postgres(db)
    require_no_password(db)
    return requiring("postgres", "a store on PostgreSQL")


async def is_there(db: str) -> bool:
    """Whether there is a store at ``db``, a path or URL; False for an empty file. Makes nothing."""
    if not is_url(db):
        path = _path(db)
        return path.exists() and path.stat().st_size > 0
    with _on_postgres(db):
        from crawler.store.postgres.connection import holds_store
    return await holds_store(db)


async def open_store_at(
    db: str,
    politeness: PolitenessSettings,
    *,
    read_only: bool = False,
    may_make: bool = True,
    lease_s: float,
    reconnect_s: float,
    for_worker: bool = False,
    clock: Clock | None = None,
    to_copy_into: bool = False,
) -> Store:
    """Open the store at ``db``, a path or URL; the classes of the stores describe the options.

    ``for_worker``: another process has opened the store just before, locked it if it is a SQLite file, and started this
    one. Only then has this process a lease on a SQLite file.

    Raises :class:`UsageError` if the store cannot be opened, if asyncpg is missing, and for an incomplete copy, unless
    it is opened ``to_copy_into`` it.
    """
    require_no_dataset(db)
    store: Store
    if is_url(db):
        with _on_postgres(db):
            from crawler.store.postgres.store import PostgresStore
        store = await PostgresStore.open(
            db,
            politeness,
            read_only=read_only,
            may_make=may_make,
            lease_s=lease_s,
            reconnect_s=reconnect_s,
            waits_at_start=for_worker,
            clock=clock if isinstance(clock, SystemClock) else None,
        )
    else:
        path, own_lease_s = _path(db), lease_s if for_worker else None
        if not may_make:
            require_usable(path, read_only=True)  # or opening it to write would make one
        store = await SqliteStore.open(path, politeness, read_only=read_only, lease_s=own_lease_s, locked=for_worker)
    return await _prepared(store, reconnect_s, may_be_incomplete=to_copy_into)


async def open_working_copy(path: Path, politeness: PolitenessSettings, reconnect_s: float) -> SqliteStore:
    """Open a file that this task alone knows and may lose, and make a store in a new one."""
    return await _prepared(await SqliteStore.open(path, politeness, alone=True), reconnect_s, may_be_incomplete=True)


async def _prepared(store: S, reconnect_s: float, *, may_be_incomplete: bool) -> S:
    """Prepare an open store for use, and return it. Close it if that fails."""
    try:
        if not may_be_incomplete:
            await store.require_whole()
        await store.open_bucket()
        await store.bodies.open(reconnect_s)
    except BaseException:
        await store.close()
        raise
    return store


async def give_order_to_file(db: str, command: Command, name: str, clock: Clock, because: str = "") -> Order:
    """Give an order to the crawl on the SQLite file at ``db``, which another process may have locked.

    Raises :class:`UsageError` for a store that does not exist or cannot be written, and for an incomplete copy; see
    also :meth:`crawler.store.sql.control.Control.give`.
    """
    require_no_dataset(db)
    path = _path(db)
    require_usable(path, read_only=True)
    store = await SqliteStore.open(path, locked=True)
    try:
        await store.require_whole()
        return await store.control.give(command, name, clock, because)
    finally:
        await store.close()


async def grant_reader_at(db: str, role: str, password: str | None) -> bool:
    """Let ``role`` read the store at the URL ``db``; returns whether the role is new.

    Raises what :func:`crawler.store.postgres.reader.grant_reader` raises, and :class:`UsageError` for a file.
    """
    if not is_url(db):
        raise UsageError(f"{db}: a file has no roles; the permissions of the file decide its readers")
    with _on_postgres(db):
        from crawler.store.postgres.reader import grant_reader
    return await grant_reader(db, role, password)
