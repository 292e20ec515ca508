"""The slots of the gate: how many requests are in flight, and which one is sent next.

The servers of a stranger may hold a slot for as long as a request may take, and a slot is not taken back. So the slots
are shared by registered domain when they are taken, by the dynamic threshold of A. Choudhury and E. Hahne, "Dynamic
Queue Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM Transactions on Networking 6(2), 1998.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque

#: A domain may take a slot while it holds fewer than the free slots divided by this number. If a domain is alone, that
#: ends at a quarter of all slots.
_FREE_PER_HELD = 3

_Waiter = asyncio.Future[None]


class Slots:
    """A number of slots, shared by registered domain.

    Invariants:

    1. No more slots are held than there are.
    2. A domain without a slot waits only if no slot is free.
    3. A domain holds at most a quarter of the slots (one, if there are fewer than four), and less if others hold many:
       n domains that take all they can leave 3 of n + 3 slots free, as long as there are more slots than domains.
    4. Domains that wait take turns, and the requests of one domain are served in the order in which they came.

    The third invariant holds for a domain that is alone, too: its slots could not be taken back for another one.
    """

    def __init__(self, slots: int) -> None:
        self._free = slots
        self._held: Counter[str] = Counter()  # by domain
        self._waiting: dict[str, deque[_Waiter]] = {}  # by domain, in the order of their turns

    def take(self, domain: str) -> bool:
        """Take a slot if ``domain`` may have one now; returns whether it did. Pair it with :meth:`release`."""
        if not self._may_take(domain):
            return False
        self._free -= 1
        self._held[domain] += 1
        return True

    async def wait(self, domain: str) -> None:
        """Wait for a slot and take it. Cancellation takes none."""
        waiter: _Waiter = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(domain, deque()).append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.cancelled():
                self._leave(domain, waiter)
            else:  # the slot was given just before
                self.release(domain)
            raise

    def release(self, domain: str) -> None:
        """Give a slot back. It goes to the next domain that may take it."""
        self._free += 1
        self._held[domain] -= 1
        if not self._held[domain]:
            del self._held[domain]
        self._serve()

    def _may_take(self, domain: str) -> bool:
        return self._free > 0 and self._held[domain] < max(1, self._free // _FREE_PER_HELD)

    def _serve(self) -> None:
        # Only domains that hold slots are passed over, so this looks at no more domains than there are slots.
        while self._free and (domain := next(filter(self._may_take, self._waiting), None)) is not None:
            queue = self._waiting.pop(domain)
            waiter = queue.popleft()
            if not waiter.cancelled():  # else its task goes on in a moment, and finds that it has left
                self.take(domain)
                waiter.set_result(None)
            if queue:
                self._waiting[domain] = queue  # behind all others

    def _leave(self, domain: str, waiter: _Waiter) -> None:
        queue = self._waiting.get(domain, deque())
        if waiter in queue:
            queue.remove(waiter)
            if not queue:
                del self._waiting[domain]
