"""What a sample is drawn of, as the crawl gets to know it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class SamplingFrame:
    """Open until everything nearer to the seeds than ``depth`` has been visited (``None``: everything).

    Pages as deep as that lead to nothing that belongs to the frame: they are held back until ``draw`` has said which of
    them are in the sample, and only these are asked for. Once it is closed, sitemaps of sites met only now are not
    asked for. ``draw`` is ``None`` where the frame is a list of seeds, drawn of before the crawl: it does not grow.
    """

    depth: int | None
    draw: Callable[[], Awaitable[None]] | None
    is_closed: bool = False
    _changing: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def held_from(self) -> int | None:
        """How deep the pages are that may not be asked for now."""
        return None if self.is_closed else self.depth

    async def close(self) -> None:
        """Draw; where the frame is growing, only wait until it has."""
        grows = self._changing.locked()
        async with self._changing:
            if not grows and self.draw is not None:
                await self.draw()
                self.is_closed = True

    @asynccontextmanager
    async def growing(self) -> AsyncIterator[None]:
        """Inside, more is queued that belongs to the frame: it is open, and is not closed meanwhile."""
        async with self._changing:
            self.is_closed = self.draw is None
            yield
