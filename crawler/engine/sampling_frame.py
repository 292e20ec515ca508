"""The part that a sample has in a crawl, and the sampling frame: the URLs that a sample is drawn from, as it grows."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crawler.frontier.operator import Command, Order, standing
from crawler.frontier.sample_design import Method
from crawler.model import Purpose
from crawler.reasons import ReasonCode
from crawler.store.rows import RequestRow

if TYPE_CHECKING:
    from crawler.store.sections import Store

_LEFT_OUT = (ReasonCode.SAMPLE, ReasonCode.FRAME)
_BATCH = 500  # URLs in one transaction: commits of the crawl wait no longer than for one


class Sample:
    """All that the engine asks of a sample. This class stands for none: no page is held back."""

    @property
    def held_from(self) -> int | None:
        """From which depth on pages may not be requested now; ``None``: all may be."""
        return None

    @property
    def adds_work_at(self) -> float:
        """When :meth:`add_work` is due although groups wait, in seconds since the epoch."""
        return math.inf

    @property
    def admits_sitemaps(self) -> bool:
        """Whether sitemaps of new sites are requested."""
        return True

    def committed(self, requests: Iterable[RequestRow], now: float) -> None:
        """A commit has stored these requests."""

    async def add_work(self) -> bool:
        """Release the pages that are held back, when nothing else can be requested. False if there are none."""
        return False

    @asynccontextmanager
    async def growing(self, order: Order, now: float) -> AsyncIterator[None]:
        """A context in which the URLs are queued that ``order`` has unblocked, or named."""
        yield


@dataclass(slots=True)
class SamplingFrame(Sample):
    """The frame is open until everything nearer to the seeds than ``depth`` has been visited (``None``: everything).

    Pages at that depth lead to nothing that belongs to the frame. They are held back until ``draw`` has drawn the
    sample, and then only those drawn are requested. When the frame is closed, sitemaps of new sites are not requested.
    ``draw`` is ``None`` if the frame is a list of seeds: the sample was drawn before the crawl, and the frame does not
    grow.

    A site that fails does not hold the frame open for ever: it is closed when nothing can be requested now and no page
    has been answered since ``answered_at`` for ``patience_s``. Times in seconds since the epoch.
    """

    store: Store
    depth: int | None
    draw: Callable[[], Awaitable[None]] | None
    is_closed: bool = False
    patience_s: float = math.inf
    answered_at: float = 0.0
    _changing: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def held_from(self) -> int | None:
        return None if self.is_closed else self.depth

    @property
    def adds_work_at(self) -> float:
        return math.inf if self.is_closed else self.answered_at + self.patience_s

    @property
    def admits_sitemaps(self) -> bool:
        return not self.is_closed

    def committed(self, requests: Iterable[RequestRow], now: float) -> None:
        if any(map(_is_answer, requests)):
            self.answered_at = now

    async def add_work(self) -> bool:
        """Draw the sample and close the frame; if the frame is growing, only wait until it has grown."""
        if self.is_closed:
            return False
        grows = self._changing.locked()
        async with self._changing:
            if not grows and self.draw is not None:
                await self.draw()
                self.is_closed = True
        return True

    @asynccontextmanager
    async def growing(self, order: Order, now: float) -> AsyncIterator[None]:
        """A frame that grows by the URLs is open, and is not closed meanwhile."""
        if self.is_closed and not await self._grows_by(order):
            yield
            return
        async with self._changing:
            self.answered_at = now
            self.is_closed = self.draw is None
            if await self._grows_by(order):
                await self._reopen()
            yield

    async def _grows_by(self, order: Order) -> bool:
        """Whether an order names a new seed, or lifts a block that was in force when the sample was drawn."""
        control, draw = self.store.control, await self.store.samples.drawn()
        if draw is None or draw.method == Method.STRATIFIED:
            return False
        if order.command is Command.QUEUE:
            return order.name not in await self.store.seeds()
        if not await control.blocked_on(order.name, 1):
            return False
        before = standing(earlier for earlier in await control.orders() if earlier.id < order.id)
        return before.blocked.get(order.name, 0.0) <= draw.drawn_at

    async def _reopen(self) -> None:
        """Queue again all that was not drawn. If the process is killed meanwhile, the next run does it again."""
        await self.store.samples.reopen()
        after = -1
        while rows := await self.store.excluded(after, _BATCH):
            after = rows[-1][0]
            await self.store.requeue([number for number, _, code, *_ in rows if code in _LEFT_OUT])


def _is_answer(request: RequestRow) -> bool:
    """Whether a page or sitemap was answered by more than a temporary failure."""
    is_robots = request.purpose is Purpose.ROBOTS
    return not is_robots and request.status is not None and request.status < 500 and request.status != 429
