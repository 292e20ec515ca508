"""Heeding the operator: what `crawler control` and the dashboard ask of a crawl, while it runs and as it begins."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from crawler.clock import Clock
from crawler.engine.crawl import Crawl
from crawler.engine.tasks import background_task
from crawler.errors import StoreError
from crawler.frontier.operator import BLOCKED, Command, Order, standing
from crawler.frontier.sample_design import Method
from crawler.reasons import SAMPLE, EndCode, RunEnd
from crawler.store.protocols import Beat, Store

_LOOK_EVERY_S = 0.25  # so that what is asked holds within half a second, the reading of it included
_BEAT_EVERY_S = 5.0
_BATCH = 500  # URLs in one transaction: the crawl's turns and its operator wait no longer than for one


async def blocked_sites(store: Store) -> frozenset[str]:
    """The names that are blocked by all that was asked so far."""
    return frozenset(standing(await store.control.orders()).blocked)


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
        await store.requeue([number for number, _, reason, *_ in rows if reason.startswith(SAMPLE)])


@asynccontextmanager
async def heeded(crawl: Crawl, store: Store, clock: Clock) -> AsyncIterator[None]:
    """While inside, the crawl does what the operator asks within half a second, and gives signs of life.

    A pause that was asked before holds from the first request on. What was asked of no crawl, or of one that was
    killed over it, is carried out first; so it takes its time to get inside.
    """
    ear = _Ear(crawl, store, clock)
    await ear.listen()
    async with (
        background_task(ear.keep_listening(), crawl.fail),  # one that cannot hear its operator any more must not go on
        background_task(ear.keep_noting(), crawl.fail),
        background_task(ear.keep_beating(), crawl.fail),
    ):
        await ear.catch_up()
        async with background_task(ear.keep_working(), crawl.fail):
            yield


class _Ear:
    """Listens, notes and works, each in a task of its own: a large block takes long, and so may a turn of the crawl
    that the store is busy with, but listening only reads, and waits for neither."""

    def __init__(self, crawl: Crawl, store: Store, clock: Clock) -> None:
        self._crawl, self._store, self._clock = crawl, store, clock
        self._heard: list[Order] = []
        self._todo: asyncio.Queue[tuple[Order, float]] = asyncio.Queue()  # with the time since when each holds
        self._done: asyncio.Queue[tuple[Order, float]] = asyncio.Queue()  # to be noted as such

    async def keep_listening(self) -> None:
        while True:
            await self._clock.sleep(_LOOK_EVERY_S)
            await self.listen()

    async def listen(self) -> None:
        """Take in what was asked since the last time; pauses and blocks hold at once."""
        if news := await self._store.control.orders(self._heard[-1].id if self._heard else 0):
            self._heard += news
            now_so = standing(self._heard)
            self._crawl.gate.blocks.names = frozenset(now_so.blocked)
            self._crawl.progress.paused_since = now_so.paused_since
            self._crawl.gate.hold(now_so.paused_since is not None)
            since = self._clock.now()
            for order in news:
                if order.command is Command.STOP and order.run_id == self._store.run_id:
                    self._stop()  # each worker for itself, whoever was the first to do so
                if order.done_at is None:
                    self._take(order, since)

    def _stop(self) -> None:
        self._crawl.progress.stopped_by_operator = True
        self._crawl.stop(RunEnd(EndCode.OPERATOR))

    def _take(self, order: Order, since: float) -> None:
        """The rest of what an order asks, or the note that it is still to do."""
        match order.command:
            case Command.BLOCK | Command.UNBLOCK:
                self._todo.put_nowait((order, since))
            case Command.STOP if order.run_id != self._store.run_id:
                pass  # meant for another run
            case _:
                self._done.put_nowait((order, since))

    async def keep_noting(self) -> None:
        while True:
            await self._store.control.done(*await self._done.get())

    async def keep_beating(self) -> None:
        while True:
            now, lag_s = self._clock.now(), self._crawl.progress.take_lag()
            with suppress(StoreError):  # one that is missed is followed by others
                await self._store.control.beat(Beat(self._store.run_id, os.getpid(), now, memory_bytes(), lag_s))
            await self._clock.sleep(_BEAT_EVERY_S)

    async def catch_up(self) -> None:
        """Before the crawl runs: carry out what is to do."""
        while not self._todo.empty():
            await self._carry_out(*self._todo.get_nowait())

    async def keep_working(self) -> None:
        """While it runs: carry out what is asked, one after the other."""
        while True:
            order, since = await self._todo.get()
            await self._crawl.settle()  # what workers had decided on before is in the store then
            await self._carry_out(order, since)
            await self._crawl.settle()  # with a look at what there is to claim

    async def _carry_out(self, order: Order, since: float) -> None:
        """What an order about a block asks; a frame grows by what is unblocked, and may have to be opened for it."""
        frame = self._crawl.frame
        lifts = order.command is Command.UNBLOCK and self._holds(order)
        if frame is None or not lifts or (frame.is_closed and not await _grows_frame(self._store, order)):
            await self._go_through(order, since)
            return
        async with frame.growing():
            if await _grows_frame(self._store, order):
                await _reopen_sample(self._store)
            await self._go_through(order, since)

    async def _go_through(self, order: Order, since: float) -> None:
        """Take what is queued on a blocked site out of the frontier, or put it back. Killed over it, it is done again;
        overtaken by a later order about the same, it is left to that."""
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
        return not self._crawl.stopped and all(
            later.name != order.name or later.id <= order.id for later in self._heard
        )


def memory_bytes() -> int | None:
    """The resident memory of this process; ``None`` where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return None
