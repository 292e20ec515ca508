"""The address guard: decides which IP addresses the crawler may connect to. Pure.

A stranger can point a name at a machine that only the crawler can reach. So the guard checks the address just before
the connection, and never a name. Sources: the IANA registries of special-purpose IPv4 and IPv6 addresses (RFC 6890 and
its successors), RFC 6052 (``64:ff9b::/96``), RFC 7526 (``192.88.99.0/24``), RFC 3879 (``fec0::/10``). The platform
address is that of Azure's internal services: any virtual machine there reaches it, and nobody else does
(https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from itertools import chain

from crawler.url import foreign_port, is_loopback, literal_address

Address = IPv4Address | IPv6Address

#: No web server can have these addresses, so no setting permits them.
_NEVER = {
    "an unspecified": ("0.0.0.0/8", "::/128"),
    "a multicast": ("224.0.0.0/4", "ff00::/8"),
    "a broadcast": ("255.255.255.255/32",),
}
_SPECIAL = {
    "a loopback": ("127.0.0.0/8", "::1/128"),
    "a private": ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10"),
    "a link-local": ("169.254.0.0/16", "fe80::/10"),
    "a carrier-grade NAT": ("100.64.0.0/10",),
    "a 6to4": ("192.88.99.0/24", "2002::/16"),
    "a NAT64": ("64:ff9b::/96", "64:ff9b:1::/48"),
    "a cloud platform's": ("168.63.129.16/32",),
}
_RESERVED_V4 = ("192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4")
_RESERVED_V6 = ("2001::/23", "2001:db8::/32", "3fff::/20")

_never = [(kind, ip_network(text)) for kind, texts in _NEVER.items() for text in texts]
_special = [(kind, ip_network(text)) for kind, texts in _SPECIAL.items() for text in texts]
_reserved = [ip_network(text) for text in chain(_RESERVED_V4, _RESERVED_V6)]
#: The range that IANA has assigned to hosts; other addresses are reserved (RFC 4291, 2.4).
_GLOBAL_UNICAST_V6 = IPv6Network("2000::/3")


def refusal(
    address: str,
    *,
    allow_private: bool,
    loopback_only: bool,
    is_own: Callable[[Address], bool] = lambda _: False,
    nat64: Collection[IPv6Network] = (),
) -> str | None:
    """Why the crawler must not connect to ``address`` (an IP address in text), or ``None`` if it may.

    ``allow_private`` permits every address that a web server can have. ``loopback_only``, for a crawl without a
    contact, permits loopback only. ``is_own`` says whether this machine has an address, and ``nat64`` are the prefixes
    with which its network reaches IPv4; both are private. An IPv4-mapped IPv6 address is treated as the IPv4 address.
    """
    bare = address.partition("%")[0]  # fe80::1%eth0
    try:
        ip = _unmapped(ip_address(bare))
    except ValueError:
        return f"{bare!r} is not an IP address"
    if loopback_only and not ip.is_loopback:
        return f"{bare} is not loopback, and a crawl without identity.contact stays on loopback"
    never = next((kind for kind, network in _never if ip in network), None)
    if never:
        return f"{bare} is {never} address, which no web server can have"
    kind = None if allow_private else _kind(ip) or _kind_here(ip, is_own, nat64)
    return f"{bare} is {kind} address; fetch.allow_private permits it" if kind else None


def refusal_behind_proxy(host: str, *, allow_private: bool, loopback_only: bool) -> str | None:
    """Why ``host`` must not be requested through a proxy, or ``None`` if it may, as far as its name says.

    Only the proxy knows the address that it connects to, so a crawl without a contact cannot use one.
    """
    if loopback_only:
        return f"{host} is behind a proxy, and a crawl without identity.contact stays on loopback"
    if literal_address(host) is not None:
        return refusal(host, allow_private=allow_private, loopback_only=False)
    if is_loopback(host) and not allow_private:
        return f"{host} is a loopback name; fetch.allow_private permits it"
    return None


def refusal_of_port(site: str) -> str | None:
    """Why no request may be sent to the port of ``site``, whatever its address is; ``None`` if it may."""
    port = foreign_port(site)
    return None if port is None else f"port {port} is that of another service than the web"


def _unmapped(ip: Address) -> Address:
    return ip.ipv4_mapped or ip if isinstance(ip, IPv6Address) else ip


def _kind(ip: Address) -> str | None:
    """The kind of a special address, with its article; ``None`` for an address of the public Internet."""
    special = next((kind for kind, network in _special if ip in network), None)
    if special:
        return special
    unassigned = isinstance(ip, IPv6Address) and ip not in _GLOBAL_UNICAST_V6
    # ``is_global`` alone does not suffice: before Python 3.11.9 it is true for several reserved ranges.
    return "a reserved" if unassigned or any(ip in network for network in _reserved) or not ip.is_global else None


def _kind_here(ip: Address, is_own: Callable[[Address], bool], nat64: Collection[IPv6Network]) -> str | None:
    """The kind of an address that is special on this machine only."""
    if any(ip in prefix for prefix in nat64):
        return "a NAT64"
    return "this machine's own" if is_own(ip) else None
