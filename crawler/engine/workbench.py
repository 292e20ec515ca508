"""The workbench: decides when a request may be sent. It does no I/O, reads no clock and starts no task.

Three nouns: an *address* serves *politeness groups*, and a group has *requests*. Each request is a :class:`Ticket`. The
*registered domain* of a group is the unit by which requests share the slots. Everything that makes a request wait is
here; the gate (:mod:`crawler.engine.gate`) is the shell around it.

The shares are the dynamic threshold of A. Choudhury and E. Hahne, "Dynamic Queue Length Thresholds for Shared-Memory
Packet Switches", IEEE/ACM Transactions on Networking 6(2), 1998. The order, by addresses that are due, is that of the
workbench of P. Boldi, A. Marino, M. Santini and S. Vigna, "BUbiNG: Massive Crawling for the Masses", ACM Transactions
on the Web 12(2), 2018.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum, IntEnum, auto
from functools import lru_cache
from heapq import heapify, heappop, heappush
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from itertools import count, islice
from typing import NamedTuple, TypeVar

import msgspec

from crawler.frontier.hours import window
from crawler.frontier.politeness import Pace, PauseFacts, PolitenessSettings, after_answer, with_crawl_delay
from crawler.reasons import WaitCode, WaitReason
from crawler.store.rows import HORIZON_S
from crawler.url import registered_domain

#: A domain may take a slot while it holds fewer than the free slots divided by this number. If a domain is alone, that
#: ends at a quarter of all slots.
_FREE_PER_HELD = 3
_MOST_WAITING = 16  # requests of one domain
#: This many of the domains that wait for room are looked at whenever an answer has been read, and this often: room may
#: also come without one.
_LOOKED_AT_ONCE, _LOOK_AGAIN_S = 4, 0.02
_FEW_OUTDATED = 64  # entries of domains in heaps, beside twice as many as requests wait: they may stay

#: A domain is slow if a request has held a slot for longer than this: for ``_SLOW_FOR`` times that request's duration.
_SLOW_AFTER_S = 5.0
_SLOW_FOR = 20
#: A domain is proven when this many requests in a row have not been slow: its robots.txt and three pages.
_PROVEN_BY = 4

#: From more groups than this on, the starts of requests to an address are a pause apart.
UNPACED_GROUPS = 4
#: Requests wait here for an address, or for a domain that was charged, if their turn comes within so many seconds:
#: until the commit that claims others.
_SOON_S = 2.0
_FEWEST_WAITING_AT_ADDRESS, _MOST_WAITING_AT_ADDRESS = 2, 64
_LOOPBACK = ("127.0.0.0/8", "::1/128")

#: Look-ups of names under way. Only those of the last seconds count.
_LOOK_UPS = 256
#: A request does not wait longer for a look-up. Its group is then given back for as long again; resolvers keep the
#: answer for longer than that.
LOOK_UP_S = 2.0

_SHORTEST_TURN_S, _LONGEST_TURN_S = 0.004, 1.0  # bounds on the measured time between turns
_LONGEST_BOOKING_S = 60.0  # by turns that were measured: they may get shorter
_BOOKED_PER_TURN = 2  # groups, if turns were measured: so the queue does not run empty when they get shorter

#: The event loop's time for the octets of one answer that is not charged to its domain, in seconds: a hundred ordinary
#: pages take as much.
FREE_LOOP_S = 0.005
#: A domain waits for so many times the time that it is charged. So all its hosts together take a twentieth of the loop.
WAIT_PER_LOOP_SECOND = 20.0

_READING_S = 1.0  # how long the reading of a large robots.txt is taken to last

#: How long a claimed group may wait for its next request, in seconds. One that must wait longer is given back.
_HOLD_S = 10.0
#: There is a backlog while more groups are ready than may be claimed. Groups are then held for a moment only: one that
#: waits for its pause keeps another group from being claimed.
_BACKLOG_HOLD_S = 0.1
_BACKLOG_S = 60.0  # a backlog is assumed for so long after it was last seen
#: How many URLs of a group are claimed with it: during a backlog it is hardly asked more often, and with short pauses
#: it is asked often.
_BACKLOG_URLS, _URLS, _MANY_URLS, _SHORT_PAUSE_S = 2, 10, 50, 0.5

_KEPT = 10_000  # domains, and addresses
_EVICTED_AT_ONCE = 1_000


# --- what the workbench is asked, and what it answers -----------------------------------------


class Ticket(msgspec.Struct, eq=False):
    """One request at the workbench, from :meth:`Workbench.open` to :meth:`Workbench.close`."""

    group: str
    host: str
    domain: str
    address: Address | None = None  # with a limit
    target: str = ""  # the address in text, with which the request began to wait for a slot
    waits_in: Shares | None = None
    holds: Shares | None = None  # a slot of these, and of the address if these are the slots of requests
    has_turn: bool = False  # its group has waited in the store for its turn at the address
    has_slot: bool = False  # False: it has given up the slot, and holds the place at its address
    since: float = 0.0  # when it began to wait, in seconds since the epoch
    waiter: object = None  # for the shell


class Go(msgspec.Struct, frozen=True):
    """Send the request now. It holds a slot, and a place at its address, until :meth:`Workbench.done`."""


class Wait(msgspec.Struct, frozen=True):
    """Ask again at ``until`` (seconds since the epoch); if that is infinite, when the ticket is woken."""

    until: float = math.inf


class LookUp(msgspec.Struct, frozen=True):
    """Look the host up, for :data:`LOOK_UP_S` at most, and say so to :meth:`Workbench.looked_up`."""


class GiveBack(msgspec.Struct, frozen=True):
    """Give the group back to the store: it can be asked ``until`` then at the earliest (seconds since the epoch)."""

    until: float
    why: WaitReason


Reply = Go | Wait | LookUp | GiveBack
_GO, _WAIT = Go(), Wait()


class Hold(Enum):
    """A cause that holds the whole crawl back."""

    OPERATOR = auto()
    DISK = auto()  # a disk has too little free space


# --- limits that many groups share ------------------------------------------------------------


class _Limiter(msgspec.Struct, eq=False):
    """The requests to many groups that share a registered domain or an address: in flight, and in a bounded queue.

    A group that finds the queue full is given back with the time at which its turn is likely to come (:meth:`book`). It
    has its turn then, in whatever process: the reason for its wait in the store says so.
    """

    name: str
    pause_s: float  # between the starts of requests that are paced
    in_flight: int = 0
    next_at: float = 0.0  # when the next request may start, in seconds since the epoch
    has_timer: bool = False
    queue: dict[Ticket, None] = msgspec.field(default_factory=dict)  # the one that came first is first
    waited_s: float = 0.0  # by the request that was served last, if others wait since
    #: By domain, when its last group that was given back is due.
    booked: dict[str, float] = msgspec.field(default_factory=dict)
    bookings: list[tuple[float, str]] = msgspec.field(default_factory=list)  # a heap of all that are due later

    def begin(self, now: float, *, is_paced: bool) -> None:
        """A request starts."""
        self.in_flight += 1
        if is_paced:
            self.next_at = now + self.pause_s

    def leave(self, ticket: Ticket, now: float) -> None:
        """A request waits no longer: its turn has come, or it was cancelled."""
        del self.queue[ticket]
        self.waited_s = max(0.0, now - ticket.since) if self.queue else 0.0

    def is_full(self, ticket: Ticket, now: float) -> bool:
        """Whether ``ticket`` may not wait, because too many others do."""
        return len(self.queue) >= _MOST_WAITING

    def turn_s(self, now: float) -> float:
        """The time from one turn to the next, in seconds: how long a request waits, divided by how many wait.

        Until a request has waited, the turns are taken to be a pause apart.
        """
        waiting = max(1, len(self.queue))
        oldest = next(iter(self.queue), None)
        so_far_s = 0.0 if oldest is None else (now - oldest.since) / waiting
        measured_s = self.waited_s / waiting if self.waited_s else self.pause_s
        return min(max(measured_s, so_far_s, self.least_turn_s), max(self.pause_s, _LONGEST_TURN_S))

    @property
    def least_turn_s(self) -> float:
        """The time from one turn to the next that no measurement goes below, in seconds."""
        return _SHORTEST_TURN_S

    def book(self, domain: str, now: float) -> float:
        """When to claim a group of ``domain`` again that finds the queue full, in seconds since the epoch.

        The domains that wait or have bookings take turns: each has a sequence of bookings of its own. Turns that are a
        pause apart cannot get shorter, so a booking is as far away as the sequence is long. Turns that were measured
        can: their bookings are laid in circles over a minute.
        """
        self.forget_past(now)
        booked = len(self.booked) + (domain not in self.booked)
        waiting = {ticket.domain for ticket in self.queue}  # few: the queue is bounded
        sharing = booked + sum(name != domain and name not in self.booked for name in waiting)
        turn_s = self.turn_s(now)
        if turn_s > self.least_turn_s:
            turn_s, longest_s = turn_s / _BOOKED_PER_TURN, _LONGEST_BOOKING_S
        else:
            longest_s = math.inf
        first = now + len(self.queue) * turn_s
        last = self.booked.get(domain, 0.0)
        at = last + sharing * turn_s if last > first else first + booked * turn_s
        if at - now > longest_s:
            at = now + (at - now) % longest_s
        self.booked[domain] = at
        heappush(self.bookings, (at, domain))
        return at

    def forget_past(self, now: float) -> None:
        """Forget the bookings whose time has come: the groups know that they have their turns."""
        while self.bookings and self.bookings[0][0] <= now:
            at, name = heappop(self.bookings)
            if self.booked.get(name) == at:
                del self.booked[name]

    def is_idle(self, now: float) -> bool:
        """Whether nothing is lost if the limiter is forgotten."""
        self.forget_past(now)
        return not (self.in_flight or self.queue or self.bookings) and self.next_at <= now


class Address(_Limiter, eq=False):
    """An IPv4 address, or the /64 of an IPv6 address, with the requests to it."""

    limit: int = 1  # requests in flight
    groups: set[str] = msgspec.field(default_factory=set)  # at most UNPACED_GROUPS + 1

    @property
    def least_turn_s(self) -> float:
        """See :class:`_Limiter`."""
        return max(_SHORTEST_TURN_S, self.pause_s)

    def is_behind_bookings(self, ticket: Ticket, now: float) -> bool:
        """Whether groups have bookings, and that of ``ticket`` has not waited for its turn: they come first."""
        if ticket.has_turn or not self.pause_s or not self.is_paced:
            return False
        self.forget_past(now)
        return bool(self.bookings)

    def is_full(self, ticket: Ticket, now: float) -> bool:
        """Whether ``ticket`` may not wait: its turn does not come soon, or others come before it.

        If the starts are paced, those wait whose turn comes within two seconds at a pause for each. A group that has
        waited for its turn may find others before it.
        """
        if not self.pause_s or not self.is_paced:
            return len(self.queue) >= _MOST_WAITING_AT_ADDRESS
        soon = min(max(_FEWEST_WAITING_AT_ADDRESS, math.ceil(_SOON_S / self.pause_s)), _MOST_WAITING_AT_ADDRESS)
        return len(self.queue) >= (2 * soon if ticket.has_turn else soon) or self.is_behind_bookings(ticket, now)

    def is_open(self, now: float) -> bool:
        """Whether a request may start at ``now``."""
        return self.in_flight < self.limit and now >= self.next_at

    @property
    def is_paced(self) -> bool:
        """Whether so many groups share the address that the starts of requests are a pause apart."""
        return len(self.groups) > UNPACED_GROUPS


class _Kind(IntEnum):
    """For how long a request of a domain is likely to hold its slot."""

    PROVEN = 0  # not for long, judging by several requests
    QUICK = 1  # not for long, judging by few requests
    NEW = 2  # nobody knows: none of its requests has ended
    SLOW = 3  # for long, judging by one of its recent requests


class _Domain(_Limiter, eq=False):
    """A registered domain. Of its requests, those in flight hold slots, and those whose answers are read count too."""

    kind: _Kind = _Kind.NEW
    slow_until: float = 0.0  # in seconds since the epoch
    quick: int = 0  # requests in a row that were not slow
    charged_until: float = 0.0  # no request before: answers took much of the event loop; in seconds since the epoch
    held: int = 0  # slots
    turn: int = 0  # while it waits: domains with lower numbers are served first
    ready: _Ready | None = None  # its entry in Shares, if it may be served as far as is known
    by_address: dict[Address | None, deque[Ticket]] = msgspec.field(default_factory=dict)  # in the order of their turns

    def is_idle(self, now: float) -> bool:
        """See :class:`_Limiter`."""
        return self.charged_until <= now and _Limiter.is_idle(self, now)

    @property
    def kind_if_not_slow(self) -> _Kind:
        """Its kind, if one of its requests has ended, and none was slow lately."""
        return _Kind.PROVEN if self.quick >= _PROVEN_BY else _Kind.QUICK


class _Ready(NamedTuple):
    """The entry of a domain in a heap of :class:`Shares`. It is outdated if it is not the domain's ``ready``."""

    turn: int
    number: int  # no two entries have the same
    heap: tuple[int, int]  # the kind of the domain, and its number of requests in flight
    domain: _Domain


class Shares:
    """A number of slots, shared by registered domain. A slot is acquired together with a place at an address.

    A domain that waits is in one of three structures, and each event touches only those that it may serve. *Ready*
    domains may be served as far as is known: a heap by turn for each kind and number of requests in flight, because
    these say how many slots must be free. Those *without room* for another answer are looked at when one has been read.
    All others wait for an address, or between two starts: the release of a place, or a timer, makes them ready.

    A domain that moves to another heap leaves an outdated entry behind. A heap whose domains hold too many slots is not
    read, so the outdated entries of all heaps are dropped when most entries are outdated: O(1) an event on average.
    """

    def __init__(self, slots: int, pause_s: float = 0.0, has_room: Callable[[str], bool] = lambda domain: True) -> None:
        self._free = slots
        self._held = [0] * len(_Kind)  # by kind
        self._most = (slots, slots - slots // 8, slots - slots // 4, slots - slots // 2)  # of a kind and those below it
        self._pause_s = pause_s / max(1, slots // (_FREE_PER_HELD + 1))
        self._has_room = has_room
        self._domains: dict[str, _Domain] = {}  # those of late
        self._ready: dict[tuple[int, int], list[_Ready]] = {}
        self._entries = 0  # in these heaps
        self._without_room: dict[_Domain, None] = {}  # the one that has waited longest is first
        self._look_at = math.inf  # when these are looked at next
        self._timers: list[tuple[float, int, _Limiter]] = []
        self._numbers = count()
        self._waiting = 0  # requests
        self.granted: list[Ticket] = []  # those that were served after they had waited

    def acquire(self, ticket: Ticket, now: float) -> bool:
        """Acquire a slot, and a place at the address of ``ticket``, if it may have them now; returns whether it did.

        Those that wait come first, also if their domain has just ceased to be slow, or waits for room until it is
        looked at again.
        """
        domain, address = self.domain(ticket.domain, now), ticket.address
        self.serve(now)
        is_behind = address is not None and address.is_behind_bookings(ticket, now)
        if is_behind or not self._has_share(domain) or not self._may_acquire(ticket, now):
            return False
        if domain in self._without_room or not self._has_room(ticket.domain):
            return False
        self._grant(domain, ticket, now)
        return True

    def full(self, ticket: Ticket, now: float) -> _Limiter | None:
        """The limiter whose queue is full, so no other request may wait: the address, the domain, or ``None``.

        While no slot is free, one request waits for each address, beside those that have waited for their turns. So
        the requests that wait are of many addresses, and the names of a crowded one are soon known.
        """
        domain, address = self.domain(ticket.domain, now), ticket.address
        if address is not None:
            may_be_second = ticket.has_turn or not address.pause_s or domain.kind < self._open_kinds
            if (address.queue and not may_be_second) or address.is_full(ticket, now):
                return address
        return domain if domain.is_full(ticket, now) else None

    def join(self, ticket: Ticket, now: float) -> None:
        """Let ``ticket`` wait for a slot, and for a place at its address."""
        domain = self.domain(ticket.domain, now)
        if not domain.by_address:
            domain.turn = next(self._numbers)
        domain.by_address.setdefault(ticket.address, deque()).append(ticket)
        ticket.waits_in, ticket.since = self, now
        self._waiting += 1
        for limiter in _limiters(domain, ticket.address):
            limiter.queue[ticket] = None
        self._consider(domain)
        self.serve(now)

    def leave(self, ticket: Ticket, now: float) -> None:
        """``ticket`` waits no longer."""
        domain = self._domains[ticket.domain]
        line = domain.by_address[ticket.address]
        line.remove(ticket)
        if not line:
            del domain.by_address[ticket.address]
        for limiter in _limiters(domain, ticket.address):
            limiter.leave(ticket, now)
        ticket.waits_in = None
        self._waiting -= 1
        if not domain.by_address:
            domain.ready = None
            self._without_room.pop(domain, None)

    def release(self, ticket: Ticket, now: float) -> None:
        """Give the slot of ``ticket`` back, and its place. They go to the next requests that may take them."""
        domain = self._domains[ticket.domain]  # a domain with requests in flight is not forgotten
        ticket.holds = None
        if ticket.address is not None:
            ticket.address.in_flight -= 1
            self._consider_waiting(ticket.address)
        self._free_slot(ticket, domain)
        self._end(domain, now)

    def free_slot(self, ticket: Ticket, now: float) -> None:
        """Give the slot of ``ticket`` to others. Its request goes on, and counts at its address and for its domain."""
        self._free_slot(ticket, self._domains[ticket.domain])
        self.serve(now)

    def learn(self, name: str, took_s: float, now: float) -> None:
        """A request of the domain ``name`` has held its slot for ``took_s`` seconds."""
        domain = self.domain(name, now)
        if took_s > _SLOW_AFTER_S:
            domain.slow_until, domain.quick = max(domain.slow_until, now + _SLOW_FOR * took_s), 0
            self._sort(domain, _Kind.SLOW)
        else:
            domain.quick += 1
            if now >= domain.slow_until:
                self._sort(domain, domain.kind_if_not_slow)
        self.serve(now)

    def charge(self, name: str, loop_s: float, now: float) -> float:
        """An answer of the domain ``name`` took ``loop_s`` seconds of the event loop. Returns until when it waits."""
        domain = self.domain(name, now)
        domain.charged_until = max(now, domain.charged_until) + WAIT_PER_LOOP_SECOND * (loop_s - FREE_LOOP_S)
        return domain.charged_until

    def charged_until(self, name: str) -> float:
        """No request to the domain ``name`` may begin before, in seconds since the epoch."""
        domain = self._domains.get(name)
        return 0.0 if domain is None else domain.charged_until

    def begin_reading(self, name: str, now: float) -> None:
        """An answer of the domain ``name`` is being read: it counts as a slot that the domain holds, but takes none."""
        self.domain(name, now).in_flight += 1

    def end_reading(self, name: str, now: float) -> None:
        """An answer of the domain ``name`` has been read."""
        self._look_for_room(now)
        self._end(self._domains[name], now)

    @property
    def next_at(self) -> float:
        """When to call :meth:`serve` next, if nothing else happens before, in seconds since the epoch."""
        return min(self._timers[0][0], self._look_at) if self._timers else self._look_at

    def serve(self, now: float) -> None:
        """Let all waiting requests take slots that may, and put them into :attr:`granted`."""
        while self._timers and self._timers[0][0] <= now:
            limiter = heappop(self._timers)[2]
            limiter.has_timer = False
            if isinstance(limiter, _Domain):
                self._consider(limiter)
            else:
                self._consider_waiting(limiter)
        if self._look_at <= now:
            self._look_for_room(now)
        while self._waiting and (domain := self._next_domain()) is not None:
            if not self._has_share(domain):  # more of it is in flight, or being read, than when it was ready
                self._consider(domain)
                continue
            if not self._has_room(domain.name):
                self._without_room[domain] = None
                self._look_at = min(self._look_at, now + _LOOK_AGAIN_S)
                continue
            ticket = next((line[0] for line in domain.by_address.values() if self._may_acquire(line[0], now)), None)
            if ticket is None:
                self._wake_when_over(domain, now)
                for closed in domain.by_address:
                    self._wake_when_over(closed, now)
                continue
            self.leave(ticket, now)
            self._grant(domain, ticket, now)
            self.granted.append(ticket)
            if domain.by_address:
                domain.turn = next(self._numbers)
                if ticket.address in domain.by_address:  # its other addresses come first
                    domain.by_address[ticket.address] = domain.by_address.pop(ticket.address)
                self._consider(domain)

    # --- inside -------------------------------------------------------------------------------

    def _free_slot(self, ticket: Ticket, domain: _Domain) -> None:
        if not ticket.has_slot:
            return
        ticket.has_slot = False
        self._free += 1
        self._held[domain.kind] -= 1
        domain.held -= 1

    def domain(self, name: str, now: float) -> _Domain:
        """The registered domain ``name``."""
        if (domain := self._domains.get(name)) is None:
            _forget_some(self._domains, now)
            domain = self._domains[name] = _Domain(name, self._pause_s)
        elif domain.kind is _Kind.SLOW and now >= domain.slow_until:
            self._sort(domain, domain.kind_if_not_slow)
        return domain

    def _may_acquire(self, ticket: Ticket, now: float) -> bool:
        """Whether nothing but its share keeps the domain of ``ticket`` from a slot for it."""
        address = ticket.address
        return address is None or (now >= self._domains[ticket.domain].next_at and address.is_open(now))

    def _has_share(self, domain: _Domain) -> bool:
        return domain.kind < self._open_kinds and domain.in_flight < self._share

    @property
    def _open_kinds(self) -> int:
        """Of so many kinds, from the first on, a slot is free: no kind, with those below it, holds its most."""
        held, opened = 0, len(_Kind)
        for kind in reversed(range(len(_Kind))):
            held += self._held[kind]
            if held >= self._most[kind]:
                opened = kind
        return opened

    @property
    def _share(self) -> int:
        """A domain with fewer requests in flight may acquire a further slot."""
        return max(1, self._free // _FREE_PER_HELD)

    def _grant(self, domain: _Domain, ticket: Ticket, now: float) -> None:
        ticket.holds, ticket.has_slot = self, True
        self._free -= 1
        self._held[domain.kind] += 1
        domain.held += 1
        domain.begin(now, is_paced=ticket.address is not None)
        if ticket.address is not None:
            ticket.address.begin(now, is_paced=ticket.address.is_paced)

    def _end(self, domain: _Domain, now: float) -> None:
        domain.in_flight -= 1
        self._consider(domain)
        self.serve(now)

    def _sort(self, domain: _Domain, kind: _Kind) -> None:
        """The domain is of this kind from now on, with the slots that it holds and the requests that wait."""
        if kind is domain.kind:
            return
        self._held[domain.kind] -= domain.held
        self._held[kind] += domain.held
        domain.kind = kind
        self._consider(domain)

    def _consider(self, domain: _Domain) -> None:
        """The domain may be served, as far as is known. One without room waits on until it is looked at."""
        if not domain.by_address or domain in self._without_room:
            return
        known, heap = domain.ready, (domain.kind, domain.in_flight)
        if known is None or known.heap[0] != domain.kind or known.heap[1] > domain.in_flight:
            domain.ready = _Ready(domain.turn, next(self._numbers), heap, domain)
            heappush(self._ready.setdefault(heap, []), domain.ready)
            self._entries += 1
            if self._entries > _FEW_OUTDATED + 2 * self._waiting:
                self._drop_outdated()

    def _drop_outdated(self) -> None:
        """Keep one entry for each domain that is ready."""
        for key, heap in list(self._ready.items()):
            heap[:] = [entry for entry in heap if entry.domain.ready is entry]
            heapify(heap)
            if not heap:
                del self._ready[key]
        self._entries = sum(map(len, self._ready.values()))

    def _look_for_room(self, now: float) -> None:
        """Consider a few of the domains without room, those first that have waited longest.

        Thousands may wait, and an answer that has been read makes room for one.
        """
        for domain in list(islice(self._without_room, _LOOKED_AT_ONCE)):
            del self._without_room[domain]
            self._consider(domain)
        self._look_at = now + _LOOK_AGAIN_S if self._without_room else math.inf

    def _consider_waiting(self, limiter: _Limiter) -> None:
        """Whoever waits for an address may be served: it has a place again, or its pause is over."""
        for ticket in limiter.queue:
            self._consider(self._domains[ticket.domain])

    def _next_domain(self) -> _Domain | None:
        """Remove the domain whose turn is first, of those that may be served as far as is known."""
        open_kinds, share = self._open_kinds, self._share
        first: list[_Ready] | None = None
        for (kind, in_flight), heap in self._ready.items():
            if kind < open_kinds and in_flight < share:
                while heap and heap[0].domain.ready is not heap[0]:
                    heappop(heap)
                    self._entries -= 1
                if heap and (first is None or heap[0] < first[0]):
                    first = heap
        if first is None:
            return None
        domain = heappop(first).domain
        self._entries -= 1
        domain.ready = None
        return domain

    def _wake_when_over(self, limiter: _Limiter | None, now: float) -> None:
        """Consider the requests that wait for ``limiter`` when its pause is over."""
        if limiter is not None and limiter.next_at > now and not limiter.has_timer:
            limiter.has_timer = True
            heappush(self._timers, (limiter.next_at, next(self._numbers), limiter))


def _limiters(domain: _Domain, address: Address | None) -> Iterable[_Limiter]:
    return (domain,) if address is None else (domain, address)


L = TypeVar("L", bound=_Limiter | None)


def _forget_some(known: dict[str, L], now: float) -> None:
    """If very many limiters are known, forget the oldest ones that are idle. ``None`` stands for a name without any."""
    if len(known) < _KEPT or len(known) % _EVICTED_AT_ONCE:
        return
    for name in list(known)[:_EVICTED_AT_ONCE]:
        limiter = known.pop(name)
        if limiter is not None and not limiter.is_idle(now):
            known[name] = limiter  # behind all others


# --- the workbench ----------------------------------------------------------------------------


class _Answered(NamedTuple):
    """What the pace after an answer follows from."""

    before: Pace
    answer: PauseFacts
    crawl_delay_s: float | None
    settings: PolitenessSettings


class _Group(msgspec.Struct):
    """A politeness group that a task of this process works on."""

    pace: Pace
    domain: str
    in_vain: bool = True  # since it was entered, no request was answered and no address was found
    ticket: Ticket | None = None  # its request
    answered: _Answered | None = None  # the last answer


class Workbench:
    """Decides when each request may be sent, and how many groups may be claimed.

    Invariants, for every request that it lets go:

    1. Its group has no other request in flight, and the group's pause and the loop time charged to its domain are over.
    2. Nothing holds the crawl, the hours of its host permit it, and there is room for its answer.
    3. It acquires its slot and a place at its address together, and a look-up has a slot of its own kind.
    4. A registered domain acquires a slot only while it holds fewer than a third of the free ones, answers that are
       being read included, and it starts requests to limited addresses no faster than a quarter of the slots could.
    5. Slow domains hold at most half of the slots, slow and new ones three quarters, and all that are not proven seven
       eighths.
    6. An address has at most ``per_address`` requests in flight, and if more than four groups share it, requests to it
       start a pause apart. The workers of a command share both.
    7. Domains that wait take turns, and the requests of one domain to one address go in the order in which they came.
    8. A group whose request would wait behind too many others is given back with the time at which its turn is likely
       to come.
    9. Of the groups that may be claimed, at most half, or as many as there are slots, do not wait for their pauses.
    10. Whatever waits is woken by the event that ends its wait, or at :meth:`next_at`.

    An event costs O(log n) in what waits, times the bounded number of requests that wait for one address or domain.
    """

    def __init__(
        self,
        settings: PolitenessSettings,
        slots: int,
        has_room: Callable[[str], bool] = lambda domain: True,
        most_groups: int = 1,
    ) -> None:
        """At most ``most_groups`` are claimed.

        ``has_room`` says whether another answer of a registered domain may be fetched, by what waits to be read.
        """
        self._settings = settings
        self._has_room = has_room
        self._most_groups = most_groups
        self._most_awake = max((most_groups + 1) // 2, slots)
        self._asleep = 0  # groups whose tasks wait for a time
        self._own_share: int | None = None  # groups of this process; None: no other process takes part
        self._backlog_until = 0.0
        self.vain_claims = 0  # claims that were given back with neither a request nor the address of a host
        self.others_wait = False  # groups that are ready, and were when this process last claimed some
        self._slots = Shares(slots, settings.delay_s, has_room)
        self._look_ups = Shares(_LOOK_UPS)
        self._readings = _Limiter("readings", _READING_S)
        self._exempt = exempt_networks(settings)
        self._addresses: dict[str, Address | None] = {}  # by network; None: exempt
        self._groups: dict[str, _Group] = {}
        self._holds = set[Hold]()
        self._held_back: dict[Ticket, None] = {}
        self._woken: list[Ticket] = []

    # --- requests -----------------------------------------------------------------------------

    def open(self, group: str, host: str) -> Ticket:
        """A request to ``host``, of a group that was entered and has no other request."""
        known = self._groups[group]
        assert known.ticket is None, "a group has one request at a time"
        known.ticket = Ticket(group, host, known.domain, has_turn=known.pace.waits_for.code is WaitCode.ADDRESS)
        return known.ticket

    def ask(self, ticket: Ticket, now: float, address: str | None) -> Reply:
        """Whether the request may be sent ``now``, in seconds since the epoch.

        ``address`` is the text of the address that it goes to: empty for one without a limit, ``None`` if it has to be
        looked up. The request goes to the address with which it began to wait for a slot, even if that is outdated
        when its turn comes: else requests behind a long queue would be looked up again and again.

        The order: the pause, the hours, a hold, the charge of the domain, the look-up, a slot with a place at the
        address and room for the answer.
        """
        group = self._groups[ticket.group]
        if ticket.waits_in is not None:
            return _WAIT
        other = self._before_the_slot(ticket, group, now)
        if other is not None:
            self.put_back(ticket, now)
            return other
        if ticket.holds is self._slots:
            return _GO
        if address is None:
            if ticket.holds:
                return LookUp()
            ticket.address = None  # a look-up needs no place at the address that was known before
            return self._share(self._look_ups, ticket, group, now, LookUp())
        self.put_back(ticket, now)  # a slot for a look-up that another request has made
        ticket.target, ticket.address = address, self.address(address, ticket.group, now)
        known = ticket.address
        if known is not None and known.next_at > group.pace.next_at:
            self._wait_in_store(group, known.next_at, WaitReason(WaitCode.ADDRESS, known.name))
        return self._share(self._slots, ticket, group, now, _GO)

    def _before_the_slot(self, ticket: Ticket, group: _Group, now: float) -> Reply | None:
        if group.pace.next_at > now:
            return Wait(group.pace.next_at)
        hours = next((text for text in self._settings.of(ticket.host).hours if window(text).covers(ticket.host)), None)
        if hours is not None and not window(hours).is_open(now):
            return self._give_back(group, window(hours).opens_at(now), WaitReason(WaitCode.HOURS, hours))
        if self._holds:
            self._held_back[ticket] = None
            return _WAIT
        if (until := self._slots.charged_until(group.domain)) > now:
            is_soon = until <= now + _SOON_S
            return Wait(until) if is_soon else self._give_back(group, until, WaitReason(WaitCode.LOOP, group.domain))
        return None

    def _share(self, shares: Shares, ticket: Ticket, group: _Group, now: float, granted: Reply) -> Reply:
        """Take a slot of ``shares``, or wait for it, or give the group back if too many wait."""
        if shares.acquire(ticket, now):
            return granted
        if (full := shares.full(ticket, now)) is not None:
            wait, address = WaitReason(WaitCode.DOMAIN, group.domain), ticket.address
            if address is not None and (full is address or not address.is_open(now)):
                wait = WaitReason(WaitCode.ADDRESS, address.name)
            until = full.book(group.domain, now)
            return self._give_back(group, until if self._has_room(group.domain) else max(until, now + _SOON_S), wait)
        shares.join(ticket, now)
        return granted if ticket.holds is shares else _WAIT

    def looked_up(self, ticket: Ticket, now: float, *, in_time: bool) -> GiveBack | None:
        """The look-up of the host is over, or takes long and goes on; then the group is to be given back."""
        self._look_ups.release(ticket, now)
        self._groups[ticket.group].in_vain = False
        if in_time:
            return None
        why = WaitReason(WaitCode.LOOK_UP, ticket.host)
        return self._give_back(self._groups[ticket.group], now + LOOK_UP_S, why)

    def address_taken(self, ticket: Ticket, now: float, network: str, until: float) -> GiveBack:
        """Another process asks the address of the host until a time: the group is to be given back.

        The answer may have come after that time. The group waits all the same, because it would be claimed at once.
        """
        self._look_ups.release(ticket, now)
        until = max(until, now + LOOK_UP_S)
        return self._give_back(self._groups[ticket.group], until, WaitReason(WaitCode.ADDRESS, network))

    def put_back(self, ticket: Ticket, now: float) -> None:
        """Nothing was sent: the request gives back the slot that it holds, and may ask again."""
        if ticket.holds is not None:
            ticket.holds.release(ticket, now)

    def unsent(self, ticket: Ticket, now: float, took_s: float) -> None:
        """No connection to the address was possible within ``took_s`` seconds. The request may ask for another one."""
        self.put_back(ticket, now)
        self._slots.learn(ticket.domain, took_s, now)

    def done(self, ticket: Ticket, now: float, answer: PauseFacts, crawl_delay_s: float | None) -> Pace:
        """The request was answered, or failed. Returns the pace of its group from now on.

        ``crawl_delay_s`` is the ``Crawl-delay`` of the robots.txt that it was sent under.
        """
        group = self._groups[ticket.group]
        self.put_back(ticket, now)
        self._slots.learn(group.domain, answer.took_s, now)
        group.answered = known = _Answered(group.pace, answer, crawl_delay_s, self._settings.of(ticket.host))
        group.pace = after_answer(*known)
        group.in_vain = False
        return group.pace

    def unreadable(self, name: str, error_kind: str) -> None:
        """The body of the last answer to a group cannot be decoded, so its pace is that after trouble.

        To be called before its next request.
        """
        group = self._groups[name]
        assert group.answered is not None, "its last request was answered"
        known = group.answered._replace(answer=group.answered.answer._replace(error_kind=error_kind))
        pace = after_answer(*known)
        if pace.next_at > group.pace.next_at:
            group.pace = pace

    def close(self, ticket: Ticket, now: float) -> None:
        """The request is over, or was given up: the group may have another one."""
        if ticket.waits_in is not None:
            ticket.waits_in.leave(ticket, now)
        self.put_back(ticket, now)
        self._held_back.pop(ticket, None)
        self._groups[ticket.group].ticket = None

    def charge(self, domain: str, loop_s: float, now: float) -> float:
        """An answer of ``domain`` took ``loop_s`` seconds of the event loop. Returns for how long its hosts wait.

        An answer costs by its octets, which are bounded, and by the pieces that they come in: a server can send each
        octet in a chunk of its own. No single piece holds the loop up, so the lag of the loop does not show the cost.
        """
        return 0.0 if loop_s <= FREE_LOOP_S else self._slots.charge(domain, loop_s, now) - now

    def begin_reading(self, group: str, now: float) -> None:
        """An answer of ``group`` is being read until :meth:`end_reading`. It counts as a slot of its domain."""
        self._slots.begin_reading(self._groups[group].domain, now)

    def end_reading(self, group: str, now: float) -> None:
        """The answer of ``group`` has been read."""
        self._slots.end_reading(self._groups[group].domain, now)

    def body_waits(self, group: str, now: float) -> None:
        """The body of the answer to ``group`` waits for memory, which bounds such bodies: others may have its slot."""
        known = self._groups.get(group)
        if known is not None and known.ticket is not None and known.ticket.holds is self._slots:
            self._slots.free_slot(known.ticket, now)

    def next_at(self) -> float:
        """When to call :meth:`woken` next, if nothing else happens before, in seconds since the epoch."""
        return self._slots.next_at  # a look-up waits for no pause

    def woken(self, now: float) -> list[Ticket]:
        """The tickets that should ask again now. To be called after each event, and at :meth:`next_at`."""
        slots, look_ups = self._slots, self._look_ups
        if slots.next_at <= now:
            slots.serve(now)
        if not (self._woken or slots.granted or look_ups.granted):
            return []
        woken = self._woken + slots.granted + look_ups.granted
        self._woken, slots.granted, look_ups.granted = [], [], []
        return woken

    def hold(self, held: bool, by: Hold = Hold.OPERATOR) -> None:
        """Let nothing go while ``held`` by any of :class:`Hold`. Pauses run on."""
        if held:
            self._holds.add(by)
            return
        self._holds.discard(by)
        if not self._holds:
            self._woken += self._held_back
            self._held_back.clear()

    # --- claims -------------------------------------------------------------------------------

    @property
    def held(self) -> int:
        """The number of groups that tasks work on."""
        return len(self._groups)

    def may_claim(self) -> int:
        """How many more groups may be claimed.

        More groups that do not wait for their pauses would wait for the same slots, answers and processor, and each of
        them needs memory and an idle connection.
        """
        awake = self.held - self._asleep
        return max(0, min(self._most_groups - self.held, self._most_awake - awake))

    def note_claims(self, claimed: int, asked: int, share: int | None, now: float) -> None:
        """A commit has ``claimed`` groups of the ``asked`` for. The tasks have entered them.

        ``share`` is the number of groups that are this process's share; ``None``: no other process takes part. If a
        commit has claimed all that it asked for, others are ready, and a group whose claim ends has its next turn after
        theirs.
        """
        self._own_share = share
        if asked:
            self.others_wait = claimed == asked
            if self.others_wait and self.held >= self._most_groups:
                self._backlog_until = now + _BACKLOG_S

    def horizon_s(self, now: float) -> float:
        """How long before its time a group may be claimed, in seconds."""
        return min(HORIZON_S, self._hold_s(now))

    def urls_per_group(self, now: float) -> int:
        """How many URLs of a group are claimed with it."""
        if now < self._backlog_until:
            return _BACKLOG_URLS
        return _MANY_URLS if self._settings.delay_s < _SHORT_PAUSE_S else _URLS

    def should_release(self, group: str, now: float) -> bool:
        """Whether a group is better given back: this process holds more than its share, or the pause lasts long."""
        exceeds_share = self._own_share is not None and self.held > self._own_share
        return exceeds_share or self._groups[group].pace.next_at - now > self._hold_s(now)

    def pauses_long(self, group: str, now: float) -> bool:
        """Whether the pause of a group lasts longer than any group is held."""
        return self._groups[group].pace.next_at - now > _HOLD_S

    def fall_asleep(self) -> None:
        """The task of a group waits for a time, until :meth:`wake_up`. Another group may be claimed meanwhile."""
        self._asleep += 1

    def wake_up(self) -> None:
        """See :meth:`fall_asleep`."""
        self._asleep -= 1

    def _hold_s(self, now: float) -> float:
        return _BACKLOG_HOLD_S if now < self._backlog_until else _HOLD_S

    # --- groups -------------------------------------------------------------------------------

    def enter(self, group: str, pace: Pace) -> None:
        """Begin to work on a claimed group whose stored pace is ``pace``. Every ``enter`` needs a ``leave``."""
        assert group not in self._groups, "a group is claimed by one task"
        self._groups[group] = _Group(pace, registered_domain(group))

    def leave(self, group: str) -> Pace:
        """End the work on a group. Returns its pace: the commit that releases the group stores it."""
        return self._groups.pop(group).pace

    def pace(self, group: str) -> Pace:
        """The pace of a group that was entered."""
        return self._groups[group].pace

    def slowest(self) -> tuple[str, Pace] | None:
        """The group with the latest next request among those worked on."""
        paces = ((name, known.pace) for name, known in self._groups.items())
        return max(paces, key=lambda item: item[1].next_at, default=None)

    def apply_crawl_delay(self, group: str, ended_at: float, crawl_delay_s: float | None) -> None:
        """Apply the ``Crawl-delay`` of a robots.txt that was just read, in seconds.

        It counts from the end of that answer on.
        """
        known = self._groups[group]
        known.pace = with_crawl_delay(known.pace, ended_at, crawl_delay_s, self._settings)

    def behind_readings(self, group: str, now: float) -> GiveBack:
        """Let a group that was entered wait in the store, because other large robots.txt files are being read."""
        known = self._groups[group]
        return self._give_back(known, self._readings.book(known.domain, now), WaitReason(WaitCode.READING))

    def _give_back(self, group: _Group, until: float, why: WaitReason) -> GiveBack:
        """Let a group wait in the store.

        It keeps its turn at an address until a request is sent, whatever else it waits for. Otherwise a group that may
        be asked for a few minutes a day would lose each turn to names without hours.
        """
        self.vain_claims += group.in_vain
        group.in_vain = False
        has_turn = group.pace.waits_for.code is WaitCode.ADDRESS
        self._wait_in_store(group, max(until, group.pace.next_at), group.pace.waits_for if has_turn else why)
        return GiveBack(until, why)

    def _wait_in_store(self, group: _Group, until: float, why: WaitReason) -> None:
        group.pace = msgspec.structs.replace(group.pace, next_at=until, waits_for=why)

    # --- addresses ----------------------------------------------------------------------------

    def address(self, text: str, group: str, now: float) -> Address | None:
        """The address ``text``, which ``group`` is about to ask; ``None`` if there is none, or if it has no limit."""
        if not text:
            return None
        name = network_of(text)
        if name not in self._addresses:
            _forget_some(self._addresses, now)
            limit, pause_s = self._settings.per_address, self._settings.delay_s * self._settings.workers
            self._addresses[name] = None if is_exempt(name, self._exempt) else Address(name, pause_s, limit=limit)
        address = self._addresses[name]
        if address is not None and len(address.groups) <= UNPACED_GROUPS:
            address.groups.add(group)
        return address


@lru_cache(maxsize=4096)
def network_of(text: str) -> str:
    """The network that counts as one server: an IPv4 address itself, of an IPv6 address its first 64 bits."""
    if ":" not in text:
        return text
    address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ip_network((int(address) >> 64 << 64, 64)))


def exempt_networks(settings: PolitenessSettings) -> tuple[IPv4Network | IPv6Network, ...]:
    """The networks whose addresses have no limit."""
    return tuple(ip_network(text) for text in (*_LOOPBACK, *settings.large_hosts))


def is_exempt(name: str, exempt: Iterable[IPv4Network | IPv6Network]) -> bool:
    """Whether the network ``name``, as :func:`network_of` names it, is one of those without a limit, or contains one.

    One address of a /64 may be exempt.
    """
    network = ip_network(name)
    return any(network.version == each.version and network.overlaps(each) for each in exempt)
