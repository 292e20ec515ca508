"""Carries out the orders of the operator, which `crawler control` and the dashboard write into the store."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from crawler.engine.readmission import WIDENED, decide_again, readmit, visit_again
from crawler.engine.tasks import background_task
from crawler.errors import StoreError
from crawler.frontier.operator import BLOCKED, Command, Order, standing
from crawler.reasons import EndCode, RunEnd
from crawler.store.rows import Beat
from crawler.url import split

if TYPE_CHECKING:
    from crawler.engine.crawl import Crawl
    from crawler.store.sections import Store

#: The time within which a pause, a block or a stop holds, in seconds: the audit judges by it.
_HOLDS_WITHIN_S = 0.5
#: How long after a reading requests rely on it, in seconds. The reading itself may take the rest of the time above.
_KNOWN_FOR_S = 0.25
_POLL_EVERY_S = 0.2  # from the start of one reading to that of the next
_BEAT_EVERY_S = 5.0
_BATCH = 500  # URLs in one transaction: commits of the crawl wait no longer than for one


async def blocked_sites(store: Store) -> frozenset[str]:
    """The names that are blocked by all orders so far."""
    return frozenset(standing(await store.control.orders()).blocked)


class OperatorListener:
    """Carries out the orders of the operator while a crawl runs.

    Four tasks each do one thing, because a large block takes long, and so may a commit that the store is busy with:
    reading orders waits for neither. Pauses, blocks and stops hold from the moment when an order is read. If the last
    reading is too old when a request is about to be sent, as on a late event loop, the gate waits for the next one.

    Invariants: orders are carried out one after the other, in the order of their numbers. An order is noted as done
    after its last transaction. If the process is killed before, the next run carries it out again.
    """

    def __init__(self, context: Crawl) -> None:
        self._context = context
        self._store = context.store
        self._progress = context.progress
        self._orders: list[Order] = []
        self._is_scope_wider = False  # than when the excluded URLs were decided on
        self._may_have_sent = False  # requests that an order new to this worker forbids
        self._todo: asyncio.Queue[tuple[Order, float]] = asyncio.Queue()  # with the time since when each holds
        self._done: asyncio.Queue[tuple[Order, float]] = asyncio.Queue()  # to be noted in the store

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Carry out orders inside the context, and give signs of life. A task that fails ends the crawl.

        Orders that no crawl has carried out come first, so entering the context may take long. A pause that was asked
        for before holds from the first request on.
        """
        await self._listen()
        async with (
            background_task(self._keep_listening(), self._context.shutdown.fail),
            background_task(self._keep_noting(), self._context.shutdown.fail),
            background_task(self._keep_beating(), self._context.shutdown.fail),
        ):
            while not self._todo.empty():
                await self._carry_out(*self._todo.get_nowait())
            async with background_task(self._keep_working(), self._context.shutdown.fail):
                yield

    # --- the tasks ----------------------------------------------------------------------------

    async def _keep_listening(self) -> None:
        loop, took_s = asyncio.get_running_loop(), 0.0  # the clock may step back when it follows that of the database
        while True:
            await self._context.clock.sleep(max(0.0, _POLL_EVERY_S - took_s))
            began_at = loop.time()
            await self._listen()
            took_s = loop.time() - began_at

    async def _keep_noting(self) -> None:
        while True:
            await self._store.control.done(*await self._done.get())

    async def _keep_beating(self) -> None:
        while True:
            now, lag_s, disk = self._context.clock.now(), self._progress.pop_lag(), self._progress.low_disk
            with suppress(StoreError):  # others follow
                look_ups, vain_claims = self._context.gate.look_ups, self._context.gate.bench.vain_claims
                beat = Beat(self._store.run_id, os.getpid(), now, memory_bytes(), lag_s, disk, look_ups, vain_claims)
                await self._store.control.beat(beat)
            await self._context.clock.sleep(_BEAT_EVERY_S)

    async def _keep_working(self) -> None:
        while True:
            order, since = await self._todo.get()
            await self._context.outbox.flush()  # now the store has the outcomes that were decided before the order
            await self._carry_out(order, since)
            await self._context.outbox.flush()  # and the commit claims the groups that the order has made ready

    # --- orders -------------------------------------------------------------------------------

    async def _listen(self) -> None:
        """Read the orders that were given until now."""
        self._obey(await self._store.control.orders(self._orders[-1].id if self._orders else 0))
        self._context.gate.knows_orders(self._context.clock.now() + _KNOWN_FOR_S)

    def _obey(self, news: Sequence[Order]) -> None:
        """Pauses, blocks and stops hold at once; the rest of each order is queued."""
        if news:
            self._orders += news
            now_standing = standing(self._orders)
            self._context.scope.blocks.replace(now_standing.blocked)
            queued = {order.name: order.asked_at for order in news if order.command is Command.QUEUE}
            self._is_scope_wider |= self._context.scope.widen(queued)
            # In memory, because requests are sent under the copies that tasks hold: these stay in force until then.
            self._context.robots_cache.wanted_anew |= {split(url).site: at for url, at in queued.items()}
            self._progress.paused_since = now_standing.paused_since
            self._context.gate.hold(now_standing.paused_since is not None)
            since = self._context.clock.now()
            for order in news:
                if order.command is Command.STOP and order.run_id == self._store.run_id:
                    # Each worker stops, also if another one has noted the order as done.
                    self._context.shutdown.request(RunEnd(EndCode.OPERATOR))
                if order.done_at is None:
                    self._queue(order, since)
                elif order.command is Command.BLOCK and self._may_have_sent:  # another worker was first
                    self._done.put_nowait((order, since))
        self._may_have_sent = True

    def _queue(self, order: Order, since: float) -> None:
        """Queue the part of an order that takes time, or the note that the order is done."""
        match order.command:
            case Command.QUEUE if not self._is_newest(order):
                self._done.put_nowait((order, since))
            case Command.BLOCK | Command.UNBLOCK | Command.QUEUE:
                self._todo.put_nowait((order, since))
                self._progress.open_orders += 1
            case Command.STOP if order.run_id != self._store.run_id:
                pass  # meant for another run
            case _:
                self._done.put_nowait((order, since))

    async def _carry_out(self, order: Order, since: float) -> None:
        """Carry out an order about a site or a URL."""
        try:
            work = self._add if order.command is Command.QUEUE else self._go_through
            if order.command is Command.BLOCK or not self._holds(order):
                await work(order, since)
                return
            async with self._context.sample.growing(order, self._context.clock.now()):
                await work(order, since)
        finally:
            self._progress.open_orders -= 1

    async def _add(self, order: Order, since: float) -> None:
        """Make a URL a seed, and queue it, also if it failed, was visited or was closed before.

        The new seed may widen the scope.
        """
        # By then the scope of each worker is wider.
        await self._context.clock.sleep(since + _HOLDS_WITHIN_S - self._context.clock.now())
        if not self._holds(order):
            return
        store, scope, url, policy = self._store, self._context.scope, order.name, self._context.policy
        if self._is_scope_wider:
            self._is_scope_wider = False
            await readmit(store, scope, WIDENED)
        number = await store.find(url)
        await store.add_seeds([(url, scope.refusal(url, 0, is_seed=True))])
        if number is not None:  # as of the time of the order: another worker may have carried it out
            per_site = policy.limits.max_pages_per_site
            await visit_again(store, scope, [url], policy.revisit, per_site, order.asked_at)
            await decide_again(store, scope, number)
        await store.control.done(order, since)

    async def _go_through(self, order: Order, since: float) -> None:
        """Exclude the queued URLs of a blocked site, or queue them again, batch by batch, while the order holds."""
        control, after = self._store.control, 0
        while self._holds(order):
            if order.command is Command.BLOCK:
                numbers = await control.queued_on(order.name, _BATCH)
                await self._store.exclude([(number, BLOCKED) for number in numbers])
            else:
                numbers = await control.blocked_on(order.name, _BATCH, after)
                await self._store.requeue(numbers)
            if not numbers:
                await control.done(order, since)
                return
            after = numbers[-1]

    def _holds(self, order: Order) -> bool:
        """Whether an order is still to be carried out: no later one is about its name, and no stop was requested."""
        return not self._context.shutdown.requested and self._is_newest(order)

    def _is_newest(self, order: Order) -> bool:
        return all(later.name != order.name or later.id <= order.id for later in self._orders)


def memory_bytes() -> int | None:
    """The resident memory of this process in bytes; ``None`` if the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return None
