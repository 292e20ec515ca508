"""The addresses of servers: how many requests are in flight at each of them, and when the next one may start.

Any number of politeness groups may be names of one server. The gate counts the requests to its address, whatever the
names: see ``docs/decisions/0033-requests-by-address.md``.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Protocol

from crawler.clock import Clock
from crawler.frontier.politeness import PolitenessSettings

#: From more groups than this on, the starts of requests to an address are a pause apart.
UNPACED_GROUPS = 4
# Requests that wait for one address, of one registered domain and in all. Further groups are given back meanwhile.
_MOST_OF_DOMAIN = 16
_MOST_WAITING = 64
_KEPT = 10_000
_EVICTED_AT_ONCE = 1_000
_LEAST_BOOKING_S = 0.1
_LOOPBACK = ("127.0.0.0/8", "::1/128")


class AddressBook(Protocol):
    """Knows the addresses of hosts."""

    def is_limited(self, host: str) -> bool:
        """Whether requests to ``host`` count at their addresses; not if the operator has chosen where they go."""
        ...

    def cached(self, host: str) -> str | None:
        """The address that the next request to ``host`` goes to, in text; ``None`` if it must be looked up.

        It is empty if the operator has chosen the address, and if ``host`` has none.
        """
        ...

    async def look_up(self, host: str) -> str:
        """The same, looked up if necessary."""
        ...

    def prefer(self, host: str, address: str) -> None:
        """Let the next requests to ``host`` go to ``address``, one of its addresses."""
        ...


class _NoAddresses:
    """For fetchers without addresses, and for a proxy."""

    def is_limited(self, host: str) -> bool:
        return False

    def cached(self, host: str) -> str | None:
        return ""

    async def look_up(self, host: str) -> str:
        return ""

    def prefer(self, host: str, address: str) -> None:
        return None


@dataclass(slots=True, eq=False)
class Address:
    """An IPv4 address, or the /64 of an IPv6 address, with the requests to it."""

    name: str
    limit: int  # requests in flight
    delay_s: float  # between starts, once more than UNPACED_GROUPS groups are known
    in_flight: int = 0
    waiting: int = 0
    next_at: float = 0.0  # when the next request may start, in seconds since the epoch
    timer: asyncio.TimerHandle | None = None  # of the slots: set while requests wait for next_at
    groups: set[str] = field(default_factory=set)  # at most UNPACED_GROUPS + 1
    of_domain: dict[str, int] = field(default_factory=dict)  # requests that wait, by registered domain
    booked: dict[str, float] = field(default_factory=dict)  # by domain, when its last group that was given back is due

    def is_open(self, now: float) -> bool:
        """Whether a request may start at ``now``."""
        return self.in_flight < self.limit and now >= self.next_at

    def begin(self, now: float) -> None:
        """A request starts."""
        self.in_flight += 1
        if self.is_paced:
            self.next_at = now + self.delay_s

    @property
    def is_paced(self) -> bool:
        """Whether so many groups share the address that the starts of requests are a pause apart."""
        return len(self.groups) > UNPACED_GROUPS

    def admits(self, domain: str) -> bool:
        """Whether another request of ``domain`` may wait for the address."""
        return self.waiting < _MOST_WAITING and self.of_domain.get(domain, 0) < _MOST_OF_DOMAIN

    def book(self, domain: str, now: float) -> float:
        """When another group of ``domain`` should be claimed again that may not wait here, in seconds since the epoch.

        The groups of a domain that come back in this way find the address as often as the turns of the domain permit.
        """
        turn_s = max(self.delay_s, _LEAST_BOOKING_S)
        ahead_at = now + self.waiting * turn_s
        due_at = max(self.booked.get(domain, 0.0), ahead_at) + turn_s * max(1, len(self.of_domain))
        if len(self.booked) > _KEPT:
            self.booked.clear()
        self.booked[domain] = due_at
        return due_at


class Addresses:
    """The addresses that were asked lately. Only those with requests or with a pause are never forgotten."""

    def __init__(self, settings: PolitenessSettings, book: AddressBook | None) -> None:
        self.book: AddressBook = book or _NoAddresses()
        self._limit = settings.per_address
        self._delay_s = settings.delay_s
        self._exempt = tuple(ip_network(text) for text in (*_LOOPBACK, *settings.large_hosts))
        self._known: dict[str, Address | None] = {}  # by network; None: exempt

    def at(self, text: str, group: str, now: float) -> Address | None:
        """The address ``text``, which ``group`` is about to ask; ``None`` if there is none, or if it has no limit."""
        if not text:
            return None
        name = network_of(text)
        if name not in self._known:
            self._forget_some(now)
            self._known[name] = self._new(name)
        address = self._known[name]
        if address is not None and len(address.groups) <= UNPACED_GROUPS:
            address.groups.add(group)
        return address

    def _new(self, name: str) -> Address | None:
        network = ip_network(name)
        if any(_contains(exempt, network) for exempt in self._exempt):
            return None
        return Address(name, self._limit, self._delay_s)

    def _forget_some(self, now: float) -> None:
        if len(self._known) < _KEPT:
            return
        for name in list(self._known)[:_EVICTED_AT_ONCE]:
            address = self._known.pop(name)
            if address is not None and (address.in_flight or address.waiting or address.next_at > now):
                self._known[name] = address  # behind all others


@dataclass(slots=True)
class Places:
    """The addresses that one request of ``group`` has a place at.

    The request has waited for its place at ``first``; ``None`` if the first address of the host has no limit, or if the
    host had no address. The connection may be tried with other addresses. Each needs a place, unless it has no limit,
    and is passed over if it has no room at that moment. ``taken`` are those places, and ``full`` are the addresses that
    were passed over, by the text of one address.
    """

    addresses: Addresses
    clock: Clock
    host: str
    group: str
    first: Address | None
    taken: list[Address] = field(default_factory=list)
    full: dict[str, Address] = field(default_factory=dict)

    def may_connect(self, text: str) -> bool:
        """Whether the request may connect to the address ``text``. Takes a place there."""
        now = self.clock.now()
        address = self.addresses.at(text, self.group, now)
        if address is None or address is self.first or address in self.taken:
            return True
        if not address.is_open(now):
            self.full[text] = address
            return False
        address.begin(now)
        self.taken.append(address)
        self.addresses.book.prefer(self.host, text)
        return True


@lru_cache(maxsize=4096)
def network_of(text: str) -> str:
    """The network that counts as one server: an IPv4 address itself, of an IPv6 address its first 64 bits."""
    if ":" not in text:
        return text
    address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ip_network((int(address) >> 64 << 64, 64)))


def _contains(exempt: IPv4Network | IPv6Network, network: IPv4Network | IPv6Network) -> bool:
    """Whether ``network`` lies in ``exempt``, or contains it: one address of a /64 may be exempt."""
    return network.version == exempt.version and network.overlaps(exempt)
