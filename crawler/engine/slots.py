"""The slots of the gate: how many requests are in flight, and which one is sent next.

The servers of a stranger may hold a slot for as long as a request may take, and a slot is not taken back. So the slots
are shared by registered domain when they are taken, by the dynamic threshold of A. Choudhury and E. Hahne, "Dynamic
Queue Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM Transactions on Networking 6(2), 1998.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from heapq import merge
from itertools import count
from operator import attrgetter

from crawler.clock import Clock
from crawler.engine.addresses import Address
from crawler.engine.limiter import Limiter, Waiter, forget_some

#: A domain may take a slot while it holds fewer than the free slots divided by this number. If a domain is alone, that
#: ends at a quarter of all slots.
_FREE_PER_HELD = 3
_MOST_WAITING = 16

#: A domain is slow if a request has held a slot for longer than this: for ``_SLOW_FOR`` times that request's duration.
_SLOW_AFTER_S = 5.0
_SLOW_FOR = 20
#: A domain is proven when this many requests in a row have not been slow: its robots.txt and three pages.
_PROVEN_BY = 4


class _Kind(IntEnum):
    """For how long a request of a domain is likely to hold its slot."""

    PROVEN = 0  # not for long, judging by several requests
    QUICK = 1  # not for long, judging by few requests
    NEW = 2  # nobody knows: none of its requests has ended
    SLOW = 3  # for long, judging by one of its recent requests


@dataclass(slots=True, eq=False)
class _Domain(Limiter):
    """A registered domain. Of its requests, those in flight hold slots, and those whose answers are read count too."""

    kind: _Kind = _Kind.NEW
    slow_until: float = 0.0  # in seconds since the epoch
    quick: int = 0  # requests in a row that were not slow
    held: int = 0  # slots
    turn: int = 0  # while it waits: domains with lower numbers are served first
    by_address: dict[Address | None, deque[Waiter]] = field(default_factory=dict)  # in the order of their turns

    @property
    def kind_if_not_slow(self) -> _Kind:
        """Its kind, if one of its requests has ended, and none was slow lately."""
        return _Kind.PROVEN if self.quick >= _PROVEN_BY else _Kind.QUICK


class Slots:
    """A number of slots, shared by registered domain. A slot may be taken together with a place at an address.

    Invariants:

    1. No more slots are held than there are.
    2. A domain that holds no slot, and none of whose answers is being read, waits only if no slot is free for domains
       of its kind (10.), for an address, or between two starts (8.).
    3. A domain holds at most a quarter of the slots (one, if there are fewer than four), and less if others hold many:
       n domains that take all they can leave 3 of n + 3 slots free, as long as there are more slots than domains.
    4. An answer that is being read (:meth:`reading`) counts as a slot that its domain holds, although its slot is free
       again. A domain takes no further slot while it has a third of the slots in answers that are being read.
    5. Domains that wait take turns, for slots and for each address, and so do the addresses that one domain waits for.
       The requests of one domain that wait for the same address are served in the order in which they came.
    6. A slot and its place are taken at once. So no request holds the one while it waits for the other.
    7. No address has more requests in flight than its limit, and the starts of requests to a paced address are its
       pause apart (:class:`Address`).
    8. The starts of requests of a domain to addresses with a limit are ``delay_s`` seconds, divided by the slots that a
       domain may hold, apart. So a domain gets as many requests as that many hosts, however many it has.
    9. No more than 16 requests of a domain, and 64 to an address, wait, if :meth:`full` is asked before each wait.
    10. Slow domains hold at most half of the slots, slow and new ones together three quarters, and all that are not
        proven seven eighths. So a quarter of the slots is left to domains whose recent requests held a slot for 5 s at
        most, even if many others never answer, and an eighth to those with several such requests, even if many others
        answer once and then no more.

    The third invariant holds for a domain that is alone, too: its slots could not be taken back for another one.
    """

    def __init__(self, slots: int, clock: Clock, delay_s: float = 0.0) -> None:
        self._free = slots
        self._held = [0] * len(_Kind)  # by kind
        self._most = (slots, slots - slots // 8, slots - slots // 4, slots - slots // 2)  # of a kind and those below it
        self._clock = clock
        self._pause_s = delay_s / max(1, slots // (_FREE_PER_HELD + 1))
        self._domains: dict[str, _Domain] = {}  # those of late
        self._waiting: tuple[dict[str, _Domain], ...] = ({}, {}, {}, {})  # by kind, in the order of their turns
        self._turns = count()

    def take(self, domain: str, address: Address | None = None) -> bool:
        """Take a slot, and a place at ``address``, if ``domain`` may have them now; returns whether it did.

        Pair it with :meth:`release`.
        """
        now = self._clock.now()
        return self._take(self._domain(domain, now), address, now)

    def _domain(self, name: str, now: float) -> _Domain:
        if (domain := self._domains.get(name)) is None:
            forget_some(self._domains, now)
            domain = self._domains[name] = _Domain(name, _MOST_WAITING, self._pause_s)
        elif domain.kind is _Kind.SLOW and now >= domain.slow_until:
            self._sort(domain, domain.kind_if_not_slow)
        return domain

    def _take(self, domain: _Domain, address: Address | None, now: float) -> bool:
        if not self._may_take(domain, address, now):
            return False
        self._free -= 1
        self._held[domain.kind] += 1
        domain.held += 1
        domain.begin(now, is_paced=address is not None)
        if address is not None:
            address.take(now)
        return True

    def full(self, domain: str, address: Address | None = None) -> Limiter | None:
        """The limiter whose queue is full, so no other request may wait: the address, the domain, or ``None``."""
        if address is not None and address.is_full:
            return address
        known = self._domain(domain, self._clock.now())
        return known if known.is_full else None

    async def wait(self, domain: str, address: Address | None = None) -> None:
        """Wait for a slot, and for a place at ``address``, and take both. Cancellation takes none."""
        now = self._clock.now()
        waiting = self._domain(domain, now)
        if not waiting.by_address:
            self._line_up(waiting)
        waiter: Waiter = asyncio.get_running_loop().create_future()
        waiting.by_address.setdefault(address, deque()).append(waiter)
        for limiter in (waiting,) if address is None else (waiting, address):
            limiter.join(waiter, domain, now)
        self._serve()  # a pause may have ended since the caller tried to take a slot; else this sets a timer
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.cancelled():
                self._leave(waiting, address, waiter)
            else:  # the slot was given just before
                self.release(domain, address)
            raise

    def release(self, domain: str, address: Address | None = None) -> None:
        """Give a slot back, and the place at ``address``. They go to the next requests that may take them."""
        known = self._domains[domain]  # a domain with requests in flight is not forgotten
        self._free += 1
        self._held[known.kind] -= 1
        known.held -= 1
        if address is not None:
            address.in_flight -= 1
        self._end(domain)

    def learn(self, domain: str, took_s: float) -> None:
        """A request of ``domain`` has held its slot for ``took_s`` seconds."""
        now = self._clock.now()
        known = self._domain(domain, now)
        if took_s > _SLOW_AFTER_S:
            known.slow_until, known.quick = max(known.slow_until, now + _SLOW_FOR * took_s), 0
            self._sort(known, _Kind.SLOW)
        else:
            known.quick += 1
            if now >= known.slow_until:
                self._sort(known, known.kind_if_not_slow)
        self._serve()

    def _sort(self, domain: _Domain, kind: _Kind) -> None:
        """The domain is of this kind from now on, with the slots that it holds and the requests that wait."""
        if kind is domain.kind:
            return
        self._held[domain.kind] -= domain.held
        self._held[kind] += domain.held
        waits = self._waiting[domain.kind].pop(domain.name, None) is not None
        domain.kind = kind
        if waits:
            self._line_up(domain)  # each line is in the order of turns

    def _line_up(self, domain: _Domain) -> None:
        """The domain waits behind all others."""
        domain.turn = next(self._turns)
        self._waiting[domain.kind][domain.name] = domain

    def release_places(self, addresses: Iterable[Address]) -> None:
        """Give back places that were taken without a slot."""
        for address in addresses:
            address.in_flight -= 1
        self._serve()

    @contextmanager
    def reading(self, domain: str) -> Iterator[None]:
        """A context in which an answer is being read. It counts as a slot that ``domain`` holds, but takes none."""
        self._domain(domain, self._clock.now()).in_flight += 1
        try:
            yield
        finally:
            self._end(domain)

    def _end(self, name: str) -> None:
        self._domains[name].in_flight -= 1
        self._serve()

    def _may_take(self, domain: _Domain, address: Address | None, now: float) -> bool:
        return self._has_share(domain) and (address is None or (now >= domain.next_at and address.is_open(now)))

    def _has_share(self, domain: _Domain) -> bool:
        return self._is_open(domain.kind) and domain.in_flight < max(1, self._free // _FREE_PER_HELD)

    def _is_open(self, kind: _Kind) -> bool:
        """Whether a slot is free for domains of this kind."""
        return all(sum(self._held[upper:]) < self._most[upper] for upper in range(kind + 1))

    def _serve(self) -> None:
        if not any(self._waiting):
            return
        now = self._clock.now()  # the same for the choice and for the place: the clock may be set back in between
        while (turn := self._next_turn(now)) is not None:
            domain, address = turn
            waiter = domain.by_address[address][0]
            self._leave(domain, address, waiter)
            if self._waiting[domain.kind].pop(domain.name, None) is not None:
                self._line_up(domain)
                if address in domain.by_address:
                    domain.by_address[address] = domain.by_address.pop(address)
            if not waiter.cancelled():  # else its task goes on in a moment, and finds that it has left
                taken = self._take(domain, address, now)
                assert taken, "the turn was chosen because they may be taken"
                waiter.set_result(None)

    def _next_turn(self, now: float) -> tuple[_Domain, Address | None] | None:
        """The next domain that may take a slot, and the address that it may take it for.

        This passes over domains that hold slots or whose answers are being read, which are served when they release
        them, and over closed addresses, each of which a bounded number of requests waits for. A timer is set for each
        pause that it passes over, by the same ``now``: so no request waits without an event that serves it.
        """
        lines = (line.values() for kind, line in zip(_Kind, self._waiting, strict=True) if line and self._is_open(kind))
        for domain in merge(*lines, key=attrgetter("turn")):
            if not self._has_share(domain):
                continue
            for address in domain.by_address:
                if self._may_take(domain, address, now):
                    return domain, address
                assert address is not None, "a request without an address needs a slot only"
                self._wake_when_open(domain, now)
                self._wake_when_open(address, now)
        return None

    def _leave(self, domain: _Domain, address: Address | None, waiter: Waiter) -> None:
        if waiter not in domain.queue:
            return
        queue = domain.by_address[address]
        queue.remove(waiter)
        if not queue:
            del domain.by_address[address]
        if not domain.by_address:
            del self._waiting[domain.kind][domain.name]
        now = self._clock.now()
        for limiter in (domain,) if address is None else (domain, address):
            limiter.leave(waiter, now)

    def _wake_when_open(self, limiter: Limiter, now: float) -> None:
        """Serve the requests that wait for ``limiter`` when its pause is over."""
        if limiter.next_at > now and limiter.timer is None:
            limiter.timer = asyncio.get_running_loop().call_later(limiter.next_at - now, self._open, limiter)

    def _open(self, limiter: Limiter) -> None:
        limiter.timer = None  # the event loop may call this a little early: serving sets the timer again then
        self._serve()
