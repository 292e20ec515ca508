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
from typing import NamedTuple

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from crawler.fetch.own_network import NAT64_NAME, nat64_prefixes
from crawler.url import literal_address

#: What the system has found holds for so many seconds, and is kept for so many names.
CACHE_S = 300.0
CACHE_NAMES = 10_000
FAILURE_CACHE_S = 5.0
_NAT64_LOOKUP_S = 3.0
_NAT64_EVERY_S = 300.0


def address_for(host: str, overrides: Sequence[tuple[str, str]]) -> str | None:
    """The address in the first (pattern, address) pair that matches a name; ``None`` if no pair does."""
    name = host.lower().rstrip(".")
    return next((address for pattern, address in overrides if _matches(pattern, name)), None)


class _Found(NamedTuple):
    """The answer of the system's resolver for a name: addresses, or an error. It is used ``until`` then (loop time)."""

    until: float
    results: tuple[ResolveResult, ...] = ()
    error: OSError | None = None

    @property
    def first(self) -> str:
        """The first address in text; empty if there is none."""
        return self.results[0]["host"] if self.results else ""


class Resolver(AbstractResolver):
    """The resolver of the connector. ``overrides`` are the (pattern, address) pairs of the setting ``fetch.resolve``.

    It keeps what the system has found: :data:`CACHE_NAMES` names for :data:`CACHE_S`, and names without an address for
    :data:`FAILURE_CACHE_S`. The order of a name's addresses stays the same meanwhile, so the first of them is the one
    that requests go to (:meth:`cached`), as long as connections to it succeed. :attr:`nat64` has the prefixes of
    the network's NAT64, as far as they are known. A look-up of the system that takes longer than ``timeout_s`` has
    failed.
    """

    def __init__(self, overrides: Sequence[tuple[str, str]], timeout_s: float = 120.0) -> None:
        self._overrides = tuple(overrides)
        self._timeout_s = timeout_s
        self._system = aiohttp.DefaultResolver()
        self._found: dict[str, _Found] = {}  # by host
        self._looking: dict[str, asyncio.Task[_Found]] = {}
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
        found = self._kept(host) or await self._look_up(host)
        if found.error is not None:
            raise OSError(*found.error.args)
        return [_with_port(result, port) for result in found.results]

    def is_limited(self, host: str) -> bool:
        """Whether requests to ``host`` count at their addresses; not if ``fetch.resolve`` says where they go."""
        return not self._overrides or literal_address(host) is not None or address_for(host, self._overrides) is None

    def cached(self, host: str) -> str | None:
        """The address that the next request to ``host`` goes to, in text; ``None`` if it must be looked up.

        It is empty for an address that the operator has chosen (``fetch.resolve``), and for a name without an address.
        """
        if not self.is_limited(host):
            return ""
        if literal_address(host) is not None:
            return host
        found = self._kept(host)
        return None if found is None else found.first

    def prefer(self, host: str, address: str) -> None:
        """Let the next requests to ``host`` go to ``address``, one of its addresses: those before it do not answer."""
        if (found := self._kept(host)) is not None:
            results = sorted(found.results, key=lambda result: result["host"] != address)
            self._found[host] = found._replace(results=tuple(results))

    async def look_up(self, host: str) -> str:
        """As :meth:`cached`, looked up if necessary."""
        address = self.cached(host)
        return (await self._look_up(host)).first if address is None else address

    def _kept(self, host: str) -> _Found | None:
        found = self._found.get(host)
        return found if found is not None and asyncio.get_running_loop().time() < found.until else None

    async def _look_up(self, host: str) -> _Found:
        """The answer of the system's resolver. One look-up serves all waiting tasks, even if one is cancelled."""
        task = self._looking.get(host)
        if task is None:
            task = self._looking[host] = asyncio.create_task(self._ask_system(host))
        return await asyncio.shield(task)

    async def _ask_system(self, host: str) -> _Found:
        now = asyncio.get_running_loop().time
        try:
            async with asyncio.timeout(self._timeout_s):
                results = await self._system.resolve(host, 0, socket.AF_UNSPEC)
            found = _Found(now() + CACHE_S, tuple(results))
        except UnicodeError:
            found = _Found(now() + FAILURE_CACHE_S, error=OSError(None, "not a name that DNS can hold"))
        except TimeoutError:
            failed = OSError(None, f"no answer to the look-up within {self._timeout_s:g} s")
            found = _Found(now() + FAILURE_CACHE_S, error=failed)
        except OSError as error:
            found = _Found(now() + FAILURE_CACHE_S, error=error)
        finally:
            del self._looking[host]
        self._found.pop(host, None)  # the oldest is first
        self._found[host] = found
        if len(self._found) > CACHE_NAMES:
            del self._found[next(iter(self._found))]
        return found

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
        for task in self._looking.values():
            task.cancel()
        await self._system.close()


def _matches(pattern: str, name: str) -> bool:
    return name.endswith(pattern[1:]) if pattern.startswith("*") else name == pattern


def _with_port(result: ResolveResult, port: int) -> ResolveResult:
    result = result.copy()
    result["port"] = port
    return result


def _result(host: str, address: str, port: int) -> ResolveResult:
    return ResolveResult(
        hostname=host,
        host=address,
        port=port,
        family=socket.AF_INET6 if ":" in address else socket.AF_INET,
        proto=0,
        flags=socket.AI_NUMERICHOST,
    )
