"""Resolves names to addresses: by the setting ``fetch.resolve``, then by the system's resolver.

The system's resolver is the default of aiohttp: c-ares if ``aiodns`` is installed (it is a dependency of this project),
otherwise ``getaddrinfo`` in threads. c-ares reads /etc/hosts and /etc/resolv.conf as the system does. A crawl meets
many dead names. While a lookup waits for its timeout, c-ares needs a timer only, but ``getaddrinfo`` occupies one of
the few threads of the pool.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import IPv6Network

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from crawler.fetch.own_network import NAT64_NAME, nat64_prefixes

_NAT64_LOOKUP_S = 3.0
_NAT64_EVERY_S = 300.0


def address_for(host: str, overrides: Sequence[tuple[str, str]]) -> str | None:
    """The address in the first (pattern, address) pair that matches a name; ``None`` if no pair does."""
    name = host.lower().rstrip(".")
    return next((address for pattern, address in overrides if _matches(pattern, name)), None)


class Resolver(AbstractResolver):
    """The resolver of the connector. ``overrides`` are the (pattern, address) pairs of the setting ``fetch.resolve``.

    The connector caches the results, and bounds their number and age. :attr:`nat64` has the prefixes of the network's
    NAT64, as far as they are known.
    """

    def __init__(self, overrides: Sequence[tuple[str, str]]) -> None:
        self._overrides = tuple(overrides)
        self._system = aiohttp.DefaultResolver()
        self.nat64: frozenset[IPv6Network] = frozenset()
        self._nat64_until = 0.0
        self._nat64_lock = asyncio.Lock()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses of ``host``. Raises :class:`OSError` with the reason if there are none."""
        address = address_for(host, self._overrides)
        if address is not None:
            return [_result(host, address, port)]
        try:
            return await self._system.resolve(host, port, family)
        except UnicodeError:
            raise OSError(None, "not a name that DNS can hold") from None

    async def learn_nat64(self) -> None:
        """Look :attr:`nat64` up, at most every five minutes. If the look-up fails, there are no prefixes.

        To be called before a connection to a public IPv6 address.
        """
        now = asyncio.get_running_loop().time
        async with self._nat64_lock:
            if now() < self._nat64_until:
                return
            try:
                async with asyncio.timeout(_NAT64_LOOKUP_S):
                    found = await self._system.resolve(NAT64_NAME, 0, socket.AF_INET6)
                self.nat64 = nat64_prefixes(result["host"] for result in found)
            except OSError:
                self.nat64 = frozenset()
            self._nat64_until = now() + _NAT64_EVERY_S

    async def close(self) -> None:
        await self._system.close()


def _matches(pattern: str, name: str) -> bool:
    return name.endswith(pattern[1:]) if pattern.startswith("*") else name == pattern


def _result(host: str, address: str, port: int) -> ResolveResult:
    return ResolveResult(
        hostname=host,
        host=address,
        port=port,
        family=socket.AF_INET6 if ":" in address else socket.AF_INET,
        proto=0,
        flags=socket.AI_NUMERICHOST,
    )
