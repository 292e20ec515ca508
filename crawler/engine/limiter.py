"""Limits that many politeness groups share: those of a registered domain, and those of the address of a server."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

_SHORTEST_TURN_S, _LONGEST_TURN_S = 0.004, 1.0  # bounds on the measured time between turns
_LONGEST_BOOKING_S = 60.0  # a group that is given back is claimed again within this time
_BOOKED_PER_TURN = 2  # groups: so the queue does not run empty if the turns are shorter than they were
_KEPT = 10_000
_EVICTED_AT_ONCE = 1_000

Waiter = asyncio.Future[None]


class QueuedRequest(NamedTuple):
    """A request in the queue of a limiter: its registered domain, and since when it waits (epoch seconds)."""

    domain: str
    since: float


@dataclass(slots=True, eq=False)
class Limiter:
    """The requests to many groups, in flight and in a bounded queue.

    A group that finds the queue full is given back, and is claimed again when its turn is likely to come: claims are
    for groups that can be asked (``docs/decisions/0032-give-back-behind-full-queues.md``).
    """

    name: str
    most_waiting: int
    pause_s: float  # between the starts of requests that are paced
    in_flight: int = 0
    next_at: float = 0.0  # when the next request may start, in seconds since the epoch
    timer: asyncio.TimerHandle | None = None  # of the slots: set while requests wait for next_at
    queue: dict[Waiter, QueuedRequest] = field(default_factory=dict)  # the one that came first is first
    waited_s: float = 0.0  # by the request that was served last, if others wait since
    booked: dict[str, float] = field(default_factory=dict)  # by domain, when its last group that was given back is due

    def begin(self, now: float, *, is_paced: bool) -> None:
        """A request starts."""
        self.in_flight += 1
        if is_paced:
            self.next_at = now + self.pause_s

    @property
    def is_full(self) -> bool:
        """Whether no further request may wait."""
        return len(self.queue) >= self.most_waiting

    def join(self, waiter: Waiter, domain: str, now: float) -> None:
        """A request of ``domain`` waits from now on."""
        self.queue[waiter] = QueuedRequest(domain, now)

    def leave(self, waiter: Waiter, now: float) -> None:
        """A request waits no longer: its turn has come, or it was cancelled."""
        since = self.queue.pop(waiter).since
        self.waited_s = max(0.0, now - since) if self.queue else 0.0

    def turn_s(self, now: float) -> float:
        """The time from one turn to the next, in seconds: how long a request waits, divided by how many wait.

        Until a request has waited, the turns are taken to be a pause apart.
        """
        waiting = max(1, len(self.queue))
        oldest = next(iter(self.queue.values()), None)
        so_far_s = 0.0 if oldest is None else (now - oldest.since) / waiting
        measured_s = self.waited_s / waiting if self.waited_s else self.pause_s
        return min(max(measured_s, so_far_s, _SHORTEST_TURN_S), max(self.pause_s, _LONGEST_TURN_S))

    def book(self, domain: str, now: float) -> float:
        """When to claim a group of ``domain`` again that finds the queue full, in seconds since the epoch.

        The domains that wait take turns. So each has its own sequence of bookings, and a new sequence begins
        behind the existing ones. If turns are long, a sequence reaches far into the future. Its times are therefore
        taken modulo one minute: the groups come back soon if turns get shorter, and evenly spread if they do not.
        """
        domains = {waiting.domain for waiting in self.queue.values()} | {domain}
        turn_s = self.turn_s(now) / _BOOKED_PER_TURN
        after = max(self.booked.get(domain, 0.0), now + (len(self.queue) + len(self.booked)) * turn_s)
        if len(self.booked) > _KEPT:
            self.booked.clear()
        self.booked[domain] = after + len(domains) * turn_s
        return now + (self.booked[domain] - now) % _LONGEST_BOOKING_S

    def is_idle(self, now: float) -> bool:
        """Whether nothing is lost if the limiter is forgotten."""
        return not self.in_flight and not self.queue and self.next_at <= now


L = TypeVar("L", bound=Limiter | None)


def forget_some(known: dict[str, L], now: float) -> None:
    """If very many limiters are known, forget the oldest ones that are idle. ``None`` stands for a name without any."""
    if len(known) < _KEPT:
        return
    for name in list(known)[:_EVICTED_AT_ONCE]:
        limiter = known.pop(name)
        if limiter is not None and not limiter.is_idle(now):
            known[name] = limiter  # behind all others
