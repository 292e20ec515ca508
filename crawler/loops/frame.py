"""What a sample is drawn of, as the crawl gets to know it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(slots=True)
class Frame:
    """Open until everything nearer to the seeds than ``depth`` has been visited (``None``: everything).

    Pages as deep as that lead to nothing that belongs to the frame: they are held back until ``draw`` has said which of
    them are in the sample, and only these are asked for. Once it is closed, sitemaps of sites met only now are not
    asked for.
    """

    depth: int | None
    draw: Callable[[], Awaitable[None]]
    is_closed: bool = False

    @property
    def held_from(self) -> int | None:
        """How deep the pages are that may not be asked for now."""
        return None if self.is_closed else self.depth

    async def close(self) -> None:
        await self.draw()
        self.is_closed = True
