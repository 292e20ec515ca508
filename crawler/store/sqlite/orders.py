"""Giving an order to a crawl that may be running on a SQLite store, from another process."""

from __future__ import annotations

from pathlib import Path

from crawler.clock import Clock
from crawler.errors import UsageError
from crawler.frontier.operator import Command, Order
from crawler.store.sql.control import give
from crawler.store.sql.schema import require_whole
from crawler.store.sql.tables import StoreStatements
from crawler.store.sqlite.connection import open_database, require_usable, transaction, write_errors
from crawler.store.sqlite.on_thread import OnThread


async def give_order(path: Path, command: Command, name: str, clock: Clock, because: str = "") -> Order:
    """Write an order into the store at ``path``, in one short transaction beside the crawl.

    The order is dated with the time of the transaction: the crawl sees no order before its date.

    Raises :class:`UsageError` for a store that does not exist or cannot be written, if there is no run to stop, and if
    there is no such block to lift.
    """
    require_usable(path, read_only=True)
    require_usable(path, read_only=False)
    db = await open_database(path, may_make=False)
    thread = OnThread(db)
    sql = StoreStatements(thread, "sqlite")
    try:
        await require_whole(sql, str(path))
        with write_errors(path):
            async with transaction(thread):
                return await give(sql, command, name, clock, because)
    except UsageError as error:
        parts = error.args if str(path) in str(error) else (f"{path}: ", *error.args)
        raise UsageError(*parts) from None
    finally:
        await db.close()
