"""The addresses of servers: how many requests are in flight at each of them, and when the next one may start.

Any number of politeness groups may be names of one server. The gate counts the requests to its address, whatever the
names: see ``docs/decisions/0033-requests-by-address.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Protocol

from crawler.clock import Clock
from crawler.engine.limiter import Limiter, forget_some
from crawler.frontier.politeness import PolitenessSettings

#: From more groups than this on, the starts of requests to an address are a pause apart.
UNPACED_GROUPS = 4
_MOST_WAITING = 64
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

    def extend(self, host: str) -> bool:
        """Let the request that is sent next use the address that was known when it began to wait, even if outdated.

        Returns false if that address has been forgotten meanwhile.
        """
        ...

    async def look_up(self, host: str) -> str:
        """As :meth:`cached`, looked up if necessary. A look-up goes on if the task that waits for it is cancelled."""
        ...

    def look_ups(self) -> str:
        """How many look-ups there were, with their seconds, by outcome, as JSON. For the heartbeat."""
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

    def extend(self, host: str) -> bool:
        return True

    async def look_up(self, host: str) -> str:
        return ""

    def look_ups(self) -> str:
        return "{}"

    def prefer(self, host: str, address: str) -> None:
        return None


@dataclass(slots=True, eq=False)
class Address(Limiter):
    """An IPv4 address, or the /64 of an IPv6 address, with the requests to it."""

    limit: int = 1  # requests in flight
    groups: set[str] = field(default_factory=set)  # at most UNPACED_GROUPS + 1

    def is_open(self, now: float) -> bool:
        """Whether a request may start at ``now``."""
        return self.in_flight < self.limit and now >= self.next_at

    def take(self, now: float) -> None:
        """A request takes a place. If many groups share the address, the next one may start a pause later."""
        self.begin(now, is_paced=len(self.groups) > UNPACED_GROUPS)


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
            forget_some(self._known, now)
            self._known[name] = self._new(name)
        address = self._known[name]
        if address is not None and len(address.groups) <= UNPACED_GROUPS:
            address.groups.add(group)
        return address

    def _new(self, name: str) -> Address | None:
        network = ip_network(name)
        if any(_contains(exempt, network) for exempt in self._exempt):
            return None
        return Address(name, _MOST_WAITING, self._delay_s, limit=self._limit)


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
        address.take(now)
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
