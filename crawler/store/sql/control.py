"""Orders of the operator in a SQLite store: given beside the running crawl, and taken by it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from crawler.clock import Clock
from crawler.errors import UsageError
from crawler.frontier.operator import Command, Order, name_ranges, standing, still_blocks
from crawler.reasons import ReasonCode
from crawler.store.protocols import Beat
from crawler.store.retrying import Again, lasting
from crawler.store.sql.statements import load_queries
from crawler.store.sqlite.connection import (
    UNFINISHED,
    Database,
    Read,
    every,
    one,
    open_database,
    require_usable,
    require_whole,
    transaction,
)


class SqliteControl:
    """See :class:`crawler.store.protocols.Control`."""

    def __init__(
        self,
        db: Database,
        queries: Mapping[str, str],
        read: Read,
        writing: Callable[[], AbstractAsyncContextManager[None]],
        again: Again,
        hear: Read,
    ) -> None:
        """``hear`` reads what has been committed, without waiting for a transaction or a statement of ours."""
        self._db, self._sql, self._read, self._writing, self._again = db, queries, read, writing, again
        self._hear = hear

    async def orders(self, after: int = 0) -> list[Order]:
        return [
            Order(number, asked_at, Command(command), *rest)
            for number, asked_at, command, *rest in await self._hear(self._sql["orders"], (after,))
        ]

    async def give(self, command: Command, name: str, clock: Clock) -> Order:
        """Ask something of the crawl. Raises :class:`UsageError` where there is no run to stop, no block to lift."""
        async with self._writing():
            return await _give(self._db, self._sql, command, name, clock)

    @lasting
    async def done(self, order: Order, now: float) -> None:
        async with self._writing():
            await self._db.execute("UPDATE control SET done_at = ? WHERE id = ?", (now, order.id))

    async def queued_on(self, name: str, limit: int) -> list[int]:
        rows = await self._read(self._sql["queued_on"], (json.dumps(name_ranges(name)), limit))
        return [row[0] for row in rows]

    async def blocked_on(self, name: str, limit: int, after: int = 0) -> list[int]:
        found: list[int] = []
        for first, last in await self._read(self._sql["numbers_on"], (json.dumps(name_ranges(name)), after)):
            rows = await self._read(
                self._sql["blocked_within"], (max(first, after + 1), last, ReasonCode.BLOCKED, limit - len(found))
            )
            found += [row[0] for row in rows]
            if len(found) >= limit:
                break
        return found

    async def beat(self, beat: Beat) -> None:
        async with self._writing():
            await self._db.execute("DELETE FROM heartbeat WHERE run_id < ?", (beat.run_id,))
            await self._db.execute(
                self._sql["beat"], (beat.run_id, beat.pid, beat.seen_at, beat.memory_bytes, beat.lag_s)
            )

    async def beats(self) -> list[Beat]:
        return [
            Beat(*row) for row in await self._read("SELECT run_id, pid, seen_at, memory_bytes, lag_s FROM heartbeat")
        ]


async def _give(db: Database, queries: Mapping[str, str], command: Command, name: str, clock: Clock) -> Order:
    """Within a transaction, at the time of which it is asked: a crawl cannot know of it while it writes itself."""
    run_id = None
    if command is Command.STOP:
        row = await one(db, queries["last_run"])
        if row is None or row[1] is not None:
            raise UsageError("no crawl is running on this store, there is nothing to stop")
        run_id = row[0]
    if command is Command.UNBLOCK:
        await _require_blocked(db, queries, name)
    now = clock.now()
    await db.execute(queries["give_order"], (now, command, name, run_id))
    (number,) = await one(db, "SELECT max(id) FROM control WHERE asked_at = ? AND command = ?", (now, command))
    return Order(int(number), now, command, name, run_id)


async def give_order(path: Path, command: Command, name: str, clock: Clock) -> Order:
    """Write an order into the store at ``path``, in one short transaction beside the crawl that may be running.

    It is asked at the time of the transaction: a crawl cannot know of it while it writes itself.

    Raises :class:`UsageError` for a store that is not there or cannot be written, and where there is no run to stop or
    no such block to lift.
    """
    require_usable(path, read_only=True)
    require_usable(path, read_only=False)
    db = await open_database(path, may_make=False)
    try:
        require_whole(await every(db, UNFINISHED), str(path))
        async with transaction(db, path):
            return await _give(db, load_queries("sqlite"), command, name, clock)
    except UsageError as error:
        parts = error.args if str(path) in str(error) else (f"{path}: ", *error.args)
        raise UsageError(*parts) from None
    finally:
        await db.close()


async def _require_blocked(db: Database, queries: Mapping[str, str], name: str) -> None:
    """Raise :class:`UsageError` where lifting the block of ``name`` would change nothing."""
    orders = [
        Order(number, asked_at, Command(command), *rest)
        for number, asked_at, command, *rest in await every(db, queries["orders"], (0,))
    ]
    blocked = standing(orders).blocked
    if name in blocked:
        return
    others = still_blocks(name, blocked)
    if others:
        raise UsageError(f"{name} is not blocked by that name: unblock {' and '.join(others)}")
    shown = f"blocked: {', '.join(list(blocked)[:10])}" if blocked else "nothing is blocked"
    raise UsageError(f"{name} is not blocked, there is no block to lift; {shown}")
