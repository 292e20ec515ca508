"""Reservations: requests to a politeness group that a robots.txt redirect leads to, and that nobody has claimed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager

from crawler.clock import Clock
from crawler.engine.claim_capacity import HOLD_S
from crawler.engine.gate import Gate
from crawler.engine.outbox import Outbox
from crawler.frontier.politeness import Pace
from crawler.reasons import WaitCode
from crawler.store.protocols import Frontier

#: Waits that an answer has asked for. A task does not wait for them within its claim, not even for its own group.
_ASKED_FOR = frozenset({WaitCode.RETRY_AFTER, WaitCode.BACKOFF})


class NotAsked(Exception):
    """A site is not asked. There is no use in trying again before ``until`` (epoch seconds, 0 if unknown)."""

    def __init__(self, why: str, until: float = 0.0) -> None:
        super().__init__(why)
        self.until = until


class Busy(NotAsked):
    """A site is not asked because of another task, which may be done in a moment."""


class Reservations:
    """Admits the tasks of this process to groups that they have not claimed.

    Invariants:

    1. A group is claimed, or reserved by one task, and never both.
    2. A group is reserved only if it has no URL of its own that is ready now, or ready when its pause is over. So the
       request of another site never stands before the pages of the group.
    3. A task that has reserved a group waits for it no longer than a claimed group may wait (``hold_s``, in seconds).
       If the pause is longer, the reservation ends with :class:`NotAsked`, and the task gives its own claim back.
    """

    def __init__(
        self, gate: Gate, store: Frontier, clock: Clock, outbox: Outbox, hold_s: Callable[[], float] = lambda: HOLD_S
    ) -> None:
        self._gate = gate
        self._store = store
        self._clock = clock
        self._outbox = outbox
        self._hold_s = hold_s

    @property
    def patience_s(self) -> float:
        """How long a task may wait for a group that it has not claimed, in seconds."""
        return self._hold_s()

    @asynccontextmanager
    async def reserved(self, site: str, group: str, held: Collection[str]) -> AsyncIterator[None]:
        """A context in which this task may send requests to ``site``, of the politeness group ``group``.

        ``held`` are the groups that this task works on already. The store knows the site inside the context. Raises
        :class:`NotAsked` if the group is not free, and :class:`crawler.errors.StoreError`.
        """
        is_held = group in held
        if not is_held and self._gate.is_entered(group):
            raise Busy(f"{site} is held by another worker")
        self._gate.enter(group, Pace())  # before the store is asked: the gate must not forget the group meanwhile
        self._outbox.begin_reservation(group)
        try:
            if await self._store.reserve(site, None if is_held else self._clock.now()) is None:
                raise Busy(f"{site} is held by another worker")
            self._gate.keep(group, await self._store.group_pace(group))
            self.require_free(site, group, held)
            yield
        finally:
            self._gate.leave(group)
            self._outbox.end_reservation(group)

    def require_free(self, site: str, group: str, held: Collection[str]) -> None:
        """Raise :class:`NotAsked` if the pause of an entered group is longer than this task may wait for it.

        A task waits out the pause of a group that it holds, unless an answer has asked for that pause.
        """
        pace = self._gate.pace(group)
        if group in held and pace.waits_for.code not in _ASKED_FOR:
            return
        if (wait_s := self._gate.wait_s(group)) > self.patience_s:
            raise NotAsked(f"{site} gets no request now: its pause lasts for {wait_s:.0f} s more", pace.next_at)
