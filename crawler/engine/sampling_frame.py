"""The sampling frame of a crawl: the URLs that its sample is drawn from, as the crawl finds them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from crawler.model import Purpose
from crawler.store.rows import RequestRow


@dataclass(slots=True)
class SamplingFrame:
    """The frame is open until everything nearer to the seeds than ``depth`` has been visited (``None``: everything).

    Pages at that depth lead to nothing that belongs to the frame. They are held back until ``draw`` has drawn the
    sample, and then only those drawn are requested. When the frame is closed, sitemaps of new sites are not requested.
    ``draw`` is ``None`` if the frame is a list of seeds: the sample was drawn before the crawl, and the frame does not
    grow.

    A site that fails does not hold the frame open for ever: it is closed when nothing can be requested now and no page
    has been answered since ``answered_at`` for ``patience_s``. Times in seconds since the epoch.
    """

    depth: int | None
    draw: Callable[[], Awaitable[None]] | None
    is_closed: bool = False
    patience_s: float = math.inf
    answered_at: float = 0.0
    _changing: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def held_from(self) -> int | None:
        """From which depth on pages may not be requested now; ``None``: all may be."""
        return None if self.is_closed else self.depth

    @property
    def held_until(self) -> float | None:
        """When the frame is closed if no page is answered until then; ``None`` if it is closed."""
        return None if self.is_closed else self.answered_at + self.patience_s

    def committed(self, requests: Iterable[RequestRow], now: float) -> None:
        """A commit has stored these requests."""
        if any(map(_is_answer, requests)):
            self.answered_at = now

    async def release(self) -> None:
        """Draw the sample and close the frame; if the frame is growing, only wait until it has grown."""
        grows = self._changing.locked()
        async with self._changing:
            if not grows and self.draw is not None:
                await self.draw()
                self.is_closed = True

    @asynccontextmanager
    async def growing(self, now: float) -> AsyncIterator[None]:
        """A context in which URLs of the frame are queued: the frame is open, and is not closed meanwhile."""
        async with self._changing:
            self.answered_at = now
            self.is_closed = self.draw is None
            yield


def _is_answer(request: RequestRow) -> bool:
    """Whether a page or sitemap was answered by more than a temporary failure."""
    is_robots = request.purpose is Purpose.ROBOTS
    return not is_robots and request.status is not None and request.status < 500 and request.status != 429
