"""The slots of the gate: how many requests are in flight, and which one is sent next.

The servers of a stranger may hold a slot for as long as a request may take, and a slot is not taken back. So the slots
are shared by registered domain when they are taken, by the dynamic threshold of A. Choudhury and E. Hahne, "Dynamic
Queue Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM Transactions on Networking 6(2), 1998.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from crawler.clock import Clock
from crawler.engine.addresses import Address

#: A domain may take a slot while it holds fewer than the free slots divided by this number. If a domain is alone, that
#: ends at a quarter of all slots.
_FREE_PER_HELD = 3

_Waiter = asyncio.Future[None]


class Slots:
    """A number of slots, shared by registered domain. A slot may be taken together with a place at an address.

    Invariants:

    1. No more slots are held than there are.
    2. A domain that holds no slot, and none of whose answers is being read, waits only if no slot is free, or for an
       address.
    3. A domain holds at most a quarter of the slots (one, if there are fewer than four), and less if others hold many:
       n domains that take all they can leave 3 of n + 3 slots free, as long as there are more slots than domains.
    4. An answer that is being read (:meth:`reading`) counts as a slot that its domain holds, although its slot is free
       again. A domain takes no further slot while it has a third of the slots in answers that are being read.
    5. Domains that wait take turns, for slots and for each address, and so do the addresses that one domain waits for.
       The requests of one domain that wait for the same address are served in the order in which they came.
    6. A slot and its place are taken at once. So no request holds the one while it waits for the other.
    7. No address has more requests in flight than its limit, and the starts of requests to a paced address are its
       pause apart (:class:`Address`).

    The third invariant holds for a domain that is alone, too: its slots could not be taken back for another one.
    """

    def __init__(self, slots: int, clock: Clock) -> None:
        self._free = slots
        self._clock = clock
        self._held: Counter[str] = Counter()  # slots held and answers being read, by domain
        self._waiting: dict[str, dict[Address | None, deque[_Waiter]]] = {}  # by domain, in the order of their turns

    def take(self, domain: str, address: Address | None = None) -> bool:
        """Take a slot, and a place at ``address``, if ``domain`` may have them now; returns whether it did.

        Pair it with :meth:`release`.
        """
        return self._take(domain, address, self._clock.now())

    def _take(self, domain: str, address: Address | None, now: float) -> bool:
        if not self._may_take(domain):
            return False
        if address is not None:
            if not address.is_open(now):
                return False
            address.begin(now)
            if address.waiting:
                self._wake_when_open(address)
        self._free -= 1
        self._held[domain] += 1
        return True

    async def wait(self, domain: str, address: Address | None = None) -> None:
        """Wait for a slot, and for a place at ``address``, and take both. Cancellation takes none."""
        waiter: _Waiter = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(domain, {}).setdefault(address, deque()).append(waiter)
        if address is not None:
            address.waiting += 1
            address.of_domain[domain] = address.of_domain.get(domain, 0) + 1
            self._wake_when_open(address)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.cancelled():
                self._leave(domain, address, waiter)
            else:  # the slot was given just before
                self.release(domain, address)
            raise

    def release(self, domain: str, address: Address | None = None) -> None:
        """Give a slot back, and the place at ``address``. They go to the next requests that may take them."""
        self._free += 1
        if address is not None:
            address.in_flight -= 1
        self._end(domain)

    def release_places(self, addresses: Iterable[Address]) -> None:
        """Give back places that were taken without a slot."""
        for address in addresses:
            address.in_flight -= 1
        self._serve()

    @contextmanager
    def reading(self, domain: str) -> Iterator[None]:
        """A context in which an answer is being read. It counts as a slot that ``domain`` holds, but takes none."""
        self._held[domain] += 1
        try:
            yield
        finally:
            self._end(domain)

    def _end(self, domain: str) -> None:
        self._held[domain] -= 1
        if not self._held[domain]:
            del self._held[domain]
        self._serve()

    def _may_take(self, domain: str) -> bool:
        return self._free > 0 and self._held[domain] < max(1, self._free // _FREE_PER_HELD)

    def _serve(self) -> None:
        now = self._clock.now()  # the same for the choice and for the place: the clock may be set back in between
        while self._free and (turn := self._next_turn(now)) is not None:
            domain, address = turn
            waiter = self._waiting[domain][address][0]
            self._leave(domain, address, waiter)
            if (queues := self._waiting.pop(domain, None)) is not None:
                self._waiting[domain] = queues  # behind all others
                if address in queues:
                    queues[address] = queues.pop(address)
            if not waiter.cancelled():  # else its task goes on in a moment, and finds that it has left
                taken = self._take(domain, address, now)
                assert taken, "the turn was chosen because they may be taken"
                waiter.set_result(None)

    def _next_turn(self, now: float) -> tuple[str, Address | None] | None:
        """The next domain that may take a slot, and the address that it may take it for.

        This passes over domains that hold slots or whose answers are being read, and over closed addresses, each of
        which a bounded number of requests waits for (:meth:`Address.admits`).
        """
        for domain, queues in self._waiting.items():
            if self._may_take(domain):
                for address in queues:
                    if address is None or address.is_open(now):
                        return domain, address
        return None

    def _leave(self, domain: str, address: Address | None, waiter: _Waiter) -> None:
        queues = self._waiting.get(domain, {})
        queue = queues.get(address, deque())
        if waiter not in queue:
            return
        queue.remove(waiter)
        if not queue:
            del queues[address]
        if not queues:
            del self._waiting[domain]
        if address is not None:
            address.waiting -= 1
            address.of_domain[domain] -= 1
            if not address.of_domain[domain]:
                del address.of_domain[domain]

    def _wake_when_open(self, address: Address) -> None:
        """Serve the requests that wait for ``address`` when its pause is over."""
        wait_s = address.next_at - self._clock.now()
        if wait_s > 0 and address.timer is None:
            address.timer = asyncio.get_running_loop().call_later(wait_s, self._open, address)

    def _open(self, address: Address) -> None:
        address.timer = None
        self._serve()
        if address.waiting:
            self._wake_when_open(address)
