"""The orders of the operator: given by another process beside the running crawl, and read by the crawl."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from crawler.clock import Clock
from crawler.errors import UsageError
from crawler.frontier.operator import Command, Order, name_ranges, standing, still_blocks
from crawler.reasons import ReasonCode
from crawler.store.keys import site_of
from crawler.store.retrying import retrying
from crawler.store.rows import Beat
from crawler.store.sql.section import StoreSection, in_transaction


class Control(StoreSection):
    """The orders of the operator. ``name`` is as :func:`crawler.frontier.operator.blockable` returns it."""

    async def orders(self, after: int = 0) -> list[Order]:
        """The orders after the one with this number, in sequence."""
        return [_order(row) for row in await self._control_read.fetch("orders", after=after)]

    @in_transaction
    async def give(self, command: Command, name: str, clock: Clock, because: str = "") -> Order:
        """Give an order, dated with the time of the transaction: the crawl sees no order before its date.

        Raises :class:`UsageError` if there is no run to stop, no pause to end, or no such block to lift.
        """
        run_id = None
        if command is Command.STOP:
            run = await self._sql.fetch_one("last_run")
            if run is None or run.finished_at is not None:
                raise UsageError("no crawl is running on this store, there is nothing to stop")
            run_id = run.id
        before = standing([_order(row) for row in await self._sql.fetch("orders", after=0)])
        if command is Command.RESUME and before.paused_since is None:
            raise UsageError("the crawl on this store is not paused, there is nothing to resume")
        if command is Command.UNBLOCK:
            _require_blocked(name, before.blocked)
        now = clock.now()
        row = {"asked_at": now, "command": command, "name": name, "run_id": run_id, "because": because}
        await self._sql.insert("control", [row])
        given = await self._sql.fetch_one("newest_order", now=now, command=command)
        return Order(int(given.id), now, command, name, run_id, because=because)

    @retrying
    @in_transaction
    async def done(self, order: Order, now: float) -> None:
        """Note that an order was carried out."""
        await self._sql.execute("order_carried_out", now=now, id=order.id)

    async def queued_on(self, name: str, limit: int) -> list[int]:
        """The numbers of queued URLs on the sites that are blocked under ``name``."""
        rows = await self._read.fetch("queued_on", ranges=json.dumps(name_ranges(name)), limit=limit)
        return [row.url_id for row in rows]

    async def blocked_on(self, name: str, limit: int, after: int = 0) -> list[int]:
        """The numbers beyond ``after`` of URLs excluded because ``name`` was blocked, in ascending order."""
        found: list[int] = []
        for site in await self._read.fetch("numbers_on", ranges=json.dumps(name_ranges(name)), least=site_of(after)):
            rows = await self._read.fetch(
                "blocked_within",
                first=max(site.first, after + 1),
                last=site.last,
                reason_code=ReasonCode.BLOCKED,
                limit=limit - len(found),
            )
            found += [row.id for row in rows]
            if len(found) >= limit:
                break
        return found

    @in_transaction
    async def beat(self, beat: Beat) -> None:
        """Store a heartbeat; those of earlier runs, and of workers that have ended, are deleted."""
        await self._sql.execute("forget_beats", run_id=beat.run_id)
        row = {"worker": self._workers.id, **beat._asdict()}
        await self._sql.insert("heartbeat", [row], known="replaced")

    async def beats(self) -> list[Beat]:
        return [Beat(**row._asdict()) for row in await self._read.fetch("beats")]


def _require_blocked(name: str, blocked: Collection[str]) -> None:
    """Raise :class:`UsageError` if to lift the block of ``name`` would change nothing."""
    if name in blocked:
        return
    others = still_blocks(name, blocked)
    if others:
        raise UsageError(f"{name} is not blocked by that name: unblock {' and '.join(others)}")
    shown = f"blocked: {', '.join(list(blocked)[:10])}" if blocked else "nothing is blocked"
    raise UsageError(f"{name} is not blocked, there is no block to lift; {shown}")


def _order(row: Any) -> Order:
    return Order(row.id, row.asked_at, Command(row.command), row.name, row.run_id, row.done_at, row.because)
