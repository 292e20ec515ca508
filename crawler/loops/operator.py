"""Heeding the operator: what `crawler control` and the dashboard ask of a crawl, while it runs and as it begins."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from crawler.clock import Clock
from crawler.frontier.operator import BLOCKED, Blocks, Command, Order, standing
from crawler.loops.crawl import Crawl
from crawler.sample.design import Method
from crawler.store.interface import Beat, Store

_LOOK_EVERY_S = 0.5
_BEAT_EVERY_S = 5.0
_BATCH = 2000


async def take_up(store: Store, blocks: Blocks, now: float) -> None:
    """As a run begins: which sites are blocked, and what was asked of no crawl or of one that was killed over it."""
    orders = await store.control.orders()
    blocks.names = frozenset(standing(orders).blocked)
    last = {order.name: order for order in orders if order.command in (Command.BLOCK, Command.UNBLOCK)}
    for order in last.values():
        if order.done_at is None:
            await _carry_out(store, order, now)


async def _carry_out(store: Store, order: Order, now: float) -> None:
    """Take what is queued on a blocked site out of the frontier, or put it back. Killed over it, it is done again."""
    if order.command is Command.BLOCK:
        while numbers := await store.control.queued_on(order.name, _BATCH):
            await store.exclude([(number, BLOCKED) for number in numbers])
    else:
        if await _grows_frame(store, order):
            await _reopen_sample(store)
        while numbers := await store.control.blocked_on(order.name, _BATCH):
            await store.requeue(numbers)
    await store.control.done(order, now)


async def _grows_frame(store: Store, order: Order) -> bool:
    """Whether this lifts a block under which the sample was drawn. What was blocked since was in its frame before."""
    draw = await store.sample_draw()
    if draw is None or draw.method == Method.STRATIFIED or not await store.control.blocked_on(order.name, 1):
        return False
    before = standing(earlier for earlier in await store.control.orders() if earlier.id < order.id)
    return before.blocked.get(order.name, 0.0) <= draw.drawn_at


async def _reopen_sample(store: Store) -> None:
    """All that was not drawn may be drawn now. Killed over it, it is done again."""
    await store.reopen_sample()
    after = -1
    while rows := await store.excluded(after, _BATCH):
        after = rows[-1][0]
        await store.requeue([number for number, _, reason, *_ in rows if reason.startswith("sample:")])


@asynccontextmanager
async def heeded(crawl: Crawl, store: Store, clock: Clock) -> AsyncIterator[None]:
    """While inside, the crawl does what the operator asks within half a second, and gives signs of life.

    A pause that was asked before holds from the first request on.
    """
    ear = _Ear(crawl, store, clock)
    await ear.listen()
    task = asyncio.create_task(ear.keep_listening())
    task.add_done_callback(lambda done: _told(crawl, done))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _told(crawl: Crawl, task: asyncio.Task[None]) -> None:
    """A crawl that cannot hear its operator any more must not go on."""
    if not task.cancelled() and (error := task.exception()) is not None:
        crawl.fail(error)


class _Ear:
    def __init__(self, crawl: Crawl, store: Store, clock: Clock) -> None:
        self._crawl, self._store, self._clock = crawl, store, clock
        self._heard: list[Order] = []
        self._beat_at = 0.0

    async def keep_listening(self) -> None:
        while True:
            await self._clock.sleep(_LOOK_EVERY_S)
            for order in await self.listen():
                await self._do(order)

    async def listen(self) -> list[Order]:
        """Take in what was asked since the last time; pauses and blocks hold at once. Returns what is still to do."""
        now = self._clock.now()
        if now >= self._beat_at:
            self._beat_at = now + _BEAT_EVERY_S
            lag_s = self._crawl.progress.take_lag()
            await self._store.control.beat(Beat(self._store.run_id, os.getpid(), now, memory_bytes(), lag_s))
        news = await self._store.control.orders(self._heard[-1].id if self._heard else 0)
        if not news:
            return []
        self._heard += news
        now_so = standing(self._heard)
        self._crawl.gate.blocks.names = frozenset(now_so.blocked)
        self._crawl.progress.paused_since = now_so.paused_since
        self._crawl.gate.hold(now_so.paused_since is not None)
        return [order for order in news if order.done_at is None]

    async def _do(self, order: Order) -> None:
        """The rest of what an order asks, and that it was done."""
        now = self._clock.now()
        match order.command:
            case Command.STOP if order.run_id == self._store.run_id:
                await self._store.control.done(order, now)
                self._crawl.progress.stopped_by_operator = True
                self._crawl.stop("stopped by the operator; the same command goes on")
            case Command.PAUSE | Command.RESUME:
                await self._store.control.done(order, now)
            case Command.BLOCK | Command.UNBLOCK if self._holds(order):
                await self._crawl.settle()  # what workers had decided on before is in the store then
                await self._carry_out(order, now)
                await self._crawl.settle()  # with a look at what there is to claim
            case _:
                pass  # meant for another run, or overtaken by a later order

    async def _carry_out(self, order: Order, now: float) -> None:
        frame = self._crawl.frame
        lifts = order.command is Command.UNBLOCK
        if frame is not None and lifts and (not frame.is_closed or await _grows_frame(self._store, order)):
            async with frame.growing():
                await _carry_out(self._store, order, now)
        else:
            await _carry_out(self._store, order, now)

    def _holds(self, order: Order) -> bool:
        return all(later.name != order.name or later.id <= order.id for later in self._heard)


def memory_bytes() -> int | None:
    """The resident memory of this process; ``None`` where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return None
