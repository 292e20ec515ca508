"""What a store is asked by workers of whom there may be several: who is at work, and until when."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from crawler.store.protocols import CommitBatch


@dataclass(frozen=True, slots=True)
class PageGrant:
    """Of the pages under a limit of all workers."""

    pages: int  # that this worker may still take
    fair: int  # what its share of those that are left would be
    none_left: bool  # others have the rest
    reached: bool


class Awaited(Protocol):
    """A database that may be away, or who waits for it."""

    @property
    def away_s(self) -> float | None:
        """Since when it has not answered, and is waited for, in seconds; ``None`` where it does."""
        ...

    def give_up(self) -> None:
        """Wait no longer: what waits for it fails at once with :class:`crawler.errors.ConnectionLost`."""
        ...


class Shared(Awaited, Protocol):
    """A part of :class:`crawler.store.protocols.Store`."""

    @property
    def dialect(self) -> str:
        """Whose SQL it takes: ``sqlite`` or ``postgres``."""
        ...

    @property
    def lease_s(self) -> float | None:
        """How long a lease of a worker holds, in seconds; ``None`` where nobody else can be at work."""
        ...

    def beginning(self) -> AbstractAsyncContextManager[None]:
        """Within it, one process at a time begins a run, or joins one."""
        ...

    @property
    def run_id(self) -> int:
        """The number of the run that :meth:`start_run` began, or that this process is a worker of; 0 before."""
        ...

    @property
    def worker_id(self) -> int:
        """The number of this process among the workers."""
        ...

    async def join_run(self, run_id: int, now: float) -> None:
        """Be a worker of a run from now on; with it, what this process had claimed as another worker is released."""
        ...

    async def rejoin(self, now: float) -> bool:
        """Join our run once more, where we were not heard of for too long; False where another one was begun since."""
        ...

    async def run_under_way(self, now: float) -> tuple[int, dict[str, Any]] | None:
        """Number and settings of the run that others are at work on; auxiliary runs are passed over."""
        ...

    async def last_run(self) -> dict[str, Any] | None:
        """The row of ``run`` of the last crawl; auxiliary runs are passed over."""
        ...

    async def renew(self, now: float) -> None:
        """Begin this worker's lease anew, and release what workers have left behind whose lease ended.

        Raises :class:`crawler.errors.LeaseLost` where it was taken away.
        """
        ...

    async def commit_late(self, late: CommitBatch) -> None:
        """Log the requests of a worker that has lost its lease, and keep the paces that it knows: of those of a group
        that another worker has asked since, the longer one. Nothing else is taken in."""
        ...

    async def bury(self, worker: int, ended_by: str, now: float) -> None:
        """Release at once what a worker has left behind that is known to be dead."""
        ...

    async def known_dead(self) -> set[int]:
        """The workers that nobody has noted the end of, and whose processes are known to be no more."""
        ...

    async def others_at_work(self) -> bool:
        """Whether other workers hold groups, whose pages may still lead to new URLs, or have just given one back, or
        what pages say of other groups is still on its way there."""
        ...

    def on_news(self, wake: Callable[[], None]) -> None:
        """Call ``wake`` where another worker may have made work for this one."""
        ...

    def is_held(self) -> bool:
        """Whether a process may be writing to the store now; False: surely none."""
        ...

    async def begin_notes(self) -> None:
        """Begin to read one moment of the store, with temporary tables of one's own, until ``ROLLBACK``."""
        ...
