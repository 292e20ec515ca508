"""Addresses that look public, but lead to the machine itself or through its network's translator to IPv4.

A service that listens on a public address of this machine often trusts the machine itself. A translator (NAT64) may
reach private IPv4 addresses, which the last 32 bits of an IPv6 address name (RFC 6052, 2.2).
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

#: The name whose IPv6 addresses reveal the prefixes of NAT64, and the IPv4 addresses that they contain (RFC 7050, 3).
NAT64_NAME = "ipv4only.arpa"
_NAT64_KNOWN = (IPv4Address("192.0.0.170"), IPv4Address("192.0.0.171"))
#: The places of the four IPv4 octets behind a prefix of so many bits (RFC 6052, 2.2). Octet 8 is always 0.
_NAT64_OCTETS = {
    32: (4, 5, 6, 7),
    40: (5, 6, 7, 9),
    48: (6, 7, 9, 10),
    56: (7, 9, 10, 11),
    64: (9, 10, 11, 12),
    96: (12, 13, 14, 15),
}
#: Addresses for documentation, which no machine has (RFC 5737, RFC 3849).
_NOBODYS = {4: "192.0.2.1", 6: "2001:db8::1"}


def is_own(address: IPv4Address | IPv6Address) -> bool:
    """Whether this machine has the address: then a socket can be bound to it, at this moment.

    Where the system lets a socket be bound to any address (``ip_nonlocal_bind``), the answer is always no.
    """
    return _can_bind(str(address)) and not _can_bind(_NOBODYS[address.version])


def _can_bind(address: str) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as trial:
            trial.bind((address, 0))
    except OSError:
        return False
    return True


def nat64_prefixes(addresses: Iterable[str]) -> frozenset[IPv6Network]:
    """The prefixes of NAT64 that the IPv6 addresses of :data:`NAT64_NAME` reveal (RFC 7050, 3)."""
    return frozenset(prefix for address in addresses for prefix in _prefixes(ip_address(address.partition("%")[0])))


def _prefixes(address: IPv4Address | IPv6Address) -> Iterator[IPv6Network]:
    for bits, places in _NAT64_OCTETS.items():
        if address.version == 6 and IPv4Address(bytes(address.packed[place] for place in places)) in _NAT64_KNOWN:
            yield IPv6Network((address.packed, bits), strict=False)
