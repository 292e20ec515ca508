"""The addresses of a domain that a rank list names, and which of them is tried after another (pure).

A rank list has domains without a scheme. The crawler tries ``https://domain/``, ``http://domain/``,
``https://www.domain/`` and ``http://www.domain/`` in this order, until one of them gives an answer in HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable

from crawler.model import RobotsAction, RobotsCopy
from crawler.reasons import DNS_KINDS, ErrorKind

#: How many times each address is tried before the crawler stays with the first. The pauses of a robots.txt that cannot
#: be fetched double, so this takes some seven minutes.
ROUNDS = 4

_SILENT = frozenset({RobotsAction.DEFER, RobotsAction.GIVEN_UP, RobotsAction.UNREACHABLE, RobotsAction.UNTRUSTED})
_UNANSWERED = DNS_KINDS | {
    ErrorKind.CONNECT,
    ErrorKind.CLOSING,
    ErrorKind.TLS,
    ErrorKind.CERTIFICATE,
    ErrorKind.TIMEOUT,
    ErrorKind.ADDRESS,
}


def addresses(first: str) -> tuple[str, ...]:
    """The addresses of the domain whose first address is ``first``, in the order in which they are tried.

    A domain that begins with ``www.``, and an IP address, have two of them.
    """
    host = first.partition("://")[2]
    hosts = (host,) if host.startswith("www.") or _is_ip(host) else (host, f"www.{host}")
    return tuple(url for name in hosts for url in (f"https://{name}", f"http://{name.replace(':80/', '/')}"))


def _is_ip(host: str) -> bool:
    """Whether a host of a canonical URL, with its port and a slash, is an IP address (URL Standard, 3.5)."""
    return host.startswith("[") or host.partition("/")[0].partition(":")[0].rpartition(".")[2].isdigit()


def with_addresses(urls: Iterable[str], domains: Iterable[str]) -> list[str]:
    """``urls``, and all addresses of the domains whose first addresses are ``domains``: what a scope is made from."""
    return list(dict.fromkeys([*urls, *(url for first in domains for url in addresses(first))]))


def addresses_around(url: str, position: int) -> tuple[str, ...]:
    """The addresses of the domain that has ``url`` at this ``position``."""
    host = url.partition("://")[2]
    return addresses(f"https://{host.removeprefix('www.') if position > 1 else host}")


def is_silent(copy: RobotsCopy) -> bool:
    """Whether a site has given no answer in HTTP, of whatever status, to the request for its robots.txt."""
    return copy.action in _SILENT and copy.status in _UNANSWERED
