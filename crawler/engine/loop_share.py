"""The time of the event loop that answers took, by registered domain: a domain that took much waits."""

from __future__ import annotations

from typing import Protocol

from crawler.clock import Clock
from crawler.engine import operator_log

#: The loop's time for the octets of one answer that is not charged, in seconds: a hundred ordinary pages take as much.
FREE_S = 0.005
#: A domain waits for so many times the time that it is charged. So all its hosts together take a twentieth of the loop.
WAIT_PER_SECOND = 20.0
_MOST_DOMAINS = 1_000  # that are kept before those are forgotten whose wait is over


class Room(Protocol):
    """Says whether another answer of a registered domain may be fetched, and waits until it may."""

    def has_room(self, domain: str) -> bool: ...

    async def room(self, domain: str) -> None: ...


class LoopShares:
    """Room for answers: ``room``, and a wait for the domains whose answers took much of the event loop.

    An answer costs by its octets, which are bounded, and by the pieces that they come in: a server can send each octet
    in a chunk of its own. No single piece holds the loop up, so the lag of the loop does not show the cost.
    """

    def __init__(self, room: Room, clock: Clock) -> None:
        self._room = room
        self._clock = clock
        self._waits_until: dict[str, float] = {}  # by domain, in seconds since the epoch

    def charge(self, domain: str, loop_s: float) -> None:
        """An answer of ``domain`` took ``loop_s`` seconds of the event loop."""
        if loop_s <= FREE_S:
            return
        now = self._clock.now()
        if len(self._waits_until) >= _MOST_DOMAINS:
            self._waits_until = {name: until for name, until in self._waits_until.items() if until > now}
        wait_s = WAIT_PER_SECOND * (loop_s - FREE_S)
        self._waits_until[domain] = until = max(now, self._waits_until.get(domain, now)) + wait_s
        operator_log.loop_taken(domain, loop_s, until - now)

    def has_room(self, domain: str) -> bool:
        """Whether another answer of ``domain`` may be fetched now."""
        return self._wait_s(domain) <= 0 and self._room.has_room(domain)

    async def room(self, domain: str) -> None:
        """Wait until :meth:`has_room` is true, or was a moment ago."""
        while (wait_s := self._wait_s(domain)) > 0:
            await self._clock.sleep(wait_s)
        await self._room.room(domain)

    def _wait_s(self, domain: str) -> float:
        until = self._waits_until.get(domain)
        return 0.0 if until is None else until - self._clock.now()
