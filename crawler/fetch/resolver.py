"""Resolves names to addresses: by the setting ``fetch.resolve``, then by the system's resolver.

The system's resolver is the default of aiohttp: c-ares if ``aiodns`` is installed (it is a dependency of this project),
otherwise ``getaddrinfo`` in threads. c-ares reads /etc/hosts and /etc/resolv.conf as the system does. A crawl meets
many dead names. While a lookup waits for its timeout, c-ares needs a timer only, but ``getaddrinfo`` occupies one of
the few threads of the pool.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult


def address_for(host: str, overrides: Sequence[tuple[str, str]]) -> str | None:
    """The address in the first (pattern, address) pair that matches a name; ``None`` if no pair does."""
    name = host.lower().rstrip(".")
    return next((address for pattern, address in overrides if _matches(pattern, name)), None)


class Resolver(AbstractResolver):
    """The resolver of the connector. ``overrides`` are the (pattern, address) pairs of the setting ``fetch.resolve``.

    The connector caches the results, and bounds their number and age.
    """

    def __init__(self, overrides: Sequence[tuple[str, str]]) -> None:
        self._overrides = tuple(overrides)
        self._system = aiohttp.DefaultResolver()

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
