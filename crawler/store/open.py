"""Opening the store that a user names: a SQLite file's path, or a PostgreSQL database's URL."""

from __future__ import annotations

from pathlib import Path

from crawler.clock import SystemClock
from crawler.errors import UsageError
from crawler.frontier.politeness import PolitenessSettings
from crawler.store.sqlite import SqliteStore, SqlStore


def is_url(db: str) -> bool:
    """Whether ``--db`` names a database by its URL, and not a file."""
    return "://" in db


async def open_store_at(
    db: str,
    politeness: PolitenessSettings,
    *,
    read_only: bool = False,
    lease_s: float | None = None,
    locked: bool = False,
    clock: SystemClock | None = None,
) -> SqlStore:
    """The store at ``db``; for what the options mean see the two kinds.

    A SQLite file has leases of ``lease_s`` where it is ``locked`` by the process above several workers. Raises
    :class:`UsageError` where it cannot be opened, or asyncpg is not installed.
    """
    if not is_url(db):
        own = lease_s if locked else None
        return await SqliteStore.open(Path(db), politeness, read_only=read_only, lease_s=own, locked=locked)
    try:
        from crawler.store.postgres import PostgresStore
        from crawler.store.postgres_connection import require_url
    except ImportError:
        raise UsageError(
            "a PostgreSQL store needs asyncpg: pip install 'polite-crawler[postgres]'"
        ) from None
    require_url(db)
    if lease_s is None:
        return await PostgresStore.open(db, politeness, read_only=read_only, clock=clock)
    return await PostgresStore.open(db, politeness, read_only=read_only, lease_s=lease_s, clock=clock)


def shown(db: str) -> str:
    """``--db`` as it may be shown: a URL without its password."""
    if not is_url(db):
        return db
    from crawler.store.location import without_password

    return without_password(db)
