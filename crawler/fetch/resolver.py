"""Resolves names to addresses: by the setting ``fetch.resolve``, then by :mod:`crawler.fetch.name_servers`.

It keeps the answers, and counts the look-ups.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Callable, Sequence
from ipaddress import IPv6Network
from typing import NamedTuple

from aiohttp.abc import AbstractResolver, ResolveResult

from crawler.fetch.name_servers import HostAddresses, LookUpFailed, NameServers
from crawler.fetch.open_files import LOOK_AGAIN_S
from crawler.fetch.own_network import NAT64_NAME, nat64_prefixes
from crawler.reasons import ErrorKind
from crawler.shortages import refused_file
from crawler.url import address_for, literal_address

_LOG = logging.getLogger("crawler.fetch")

#: Addresses are used for as long as their TTL says, within these bounds in seconds.
LEAST_TTL_S = 60.0
MOST_TTL_S = 3600.0
#: Names without an address are asked again after this many seconds. :mod:`crawler.fetch.name_servers` answers by itself
#: as long as the SOA record of the zone permits.
FAILURE_S = 30.0
#: The number of names that are kept. Each takes about 0.33 kB. A crawl that works on more of them within the TTL of
#: their addresses looks a name up again.
CACHE_NAMES = 50_000
_NAT64_LOOKUP_S = 3.0
_NAT64_EVERY_S = 300.0

#: The outcomes of look-ups that do not fail; others have the code of their failure (:data:`crawler.reasons.DNS_KINDS`).
FOUND = "found"
CACHED = "cached"  # the answer was known: nothing was asked


class _Found(NamedTuple):
    """The answer of the system for a name: addresses, or a failure. It is used ``until`` then (loop time)."""

    until: float
    addresses: tuple[str, ...] = ()  # those that have refused connections are last
    refused: frozenset[str] = frozenset()
    failed: LookUpFailed | None = None

    @property
    def first(self) -> str:
        """The first address in text; empty if there is none."""
        return self.addresses[0] if self.addresses else ""


class Resolver(AbstractResolver):
    """The resolver of the connector. ``overrides`` are the (pattern, address) pairs of the setting ``fetch.resolve``.

    It keeps what the system has found for its TTL, and failures for :data:`FAILURE_S`, of :data:`CACHE_NAMES` names.
    The order of a name's addresses stays the same meanwhile, so the first of them is the one that requests go to
    (:meth:`cached`), as long as connections to it succeed. :attr:`nat64` has the prefixes of the network's NAT64, as
    far as they are known. A look-up that takes longer than ``timeout_s`` has failed. :meth:`look_ups` counts them.
    If the system permits no file for a look-up, ``make_room`` is called to close one: the name has not failed.
    """

    def __init__(
        self,
        overrides: Sequence[tuple[str, str]],
        timeout_s: float = 120.0,
        system: NameServers | None = None,
        make_room: Callable[[], object] = lambda: None,
    ) -> None:
        self._overrides = tuple(overrides)
        self._timeout_s = timeout_s
        self._system = system or NameServers()
        self._make_room = make_room
        self._found: dict[str, _Found] = {}  # by host
        self._looking: dict[str, asyncio.Task[_Found]] = {}
        self._counts: dict[str, list[float]] = {}  # by outcome, the number of look-ups, and their seconds
        self.nat64: frozenset[IPv6Network] = frozenset()
        self._nat64_until = 0.0
        self._nat64_lock = asyncio.Lock()
        self._now = asyncio.get_running_loop().time

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses of ``host``. Raises :class:`LookUpFailed` if there are none."""
        address = address_for(host, self._overrides)
        if address is not None:
            return [numeric(host, address, port)]
        found = self._kept(host) or await self._look_up(host)
        if found.failed is not None:
            raise LookUpFailed(found.failed.kind, found.failed.sentence)
        return [numeric(host, text, port) for text in found.addresses]

    def is_limited(self, host: str) -> bool:
        """Whether requests to ``host`` count at their addresses; not if ``fetch.resolve`` says where they go."""
        return not self._overrides or literal_address(host) is not None or address_for(host, self._overrides) is None

    def cached(self, host: str) -> str | None:
        """The address that the next request to a limited ``host`` goes to, in text; ``None`` if it must be looked up.

        It is empty for a name without an address.
        """
        if literal_address(host) is not None:
            return host
        found = self._kept(host)
        if found is None:
            return None
        self._count(CACHED)
        return found.first

    def refused(self, host: str, address: str) -> bool:
        """No connection to ``address`` was possible: the next requests to ``host`` go to another one.

        False if there is none that has not refused since the host was looked up. Then all may be tried again.
        """
        found = self._kept(host)
        if found is None:
            return False
        refused = found.refused | {address}
        has_other = not refused.issuperset(found.addresses)
        addresses = tuple(sorted(found.addresses, key=lambda text: text in refused))
        self._found[host] = found._replace(addresses=addresses, refused=refused if has_other else frozenset())
        return has_other

    async def look_up(self, host: str) -> str:
        """As :meth:`cached`, looked up if necessary."""
        address = self.cached(host)
        return (await self._look_up(host)).first if address is None else address

    def look_ups(self) -> str:
        """The number of look-ups and their seconds, by outcome: ``{"cached": [5, 0.0], "found": [2, 0.031]}``."""
        return json.dumps({outcome: [n, round(took_s, 3)] for outcome, (n, took_s) in self._counts.items()})

    def _count(self, outcome: str, took_s: float = 0.0) -> None:
        counts = self._counts.setdefault(outcome, [0, 0.0])
        counts[0] += 1
        counts[1] += took_s

    def _kept(self, host: str) -> _Found | None:
        found = self._found.get(host)
        return found if found is not None and self._now() < found.until else None

    async def _look_up(self, host: str) -> _Found:
        """The answer of the system's resolver. One look-up serves all waiting tasks, even if one is cancelled."""
        task = self._looking.get(host)
        if task is None:
            task = self._looking[host] = asyncio.create_task(self._ask_system(host))
        return await asyncio.shield(task)

    async def _ask_system(self, host: str) -> _Found:
        began_at = self._now()
        try:
            answer = await self._answer(host)
            found = _Found(self._now() + min(max(answer.ttl_s, LEAST_TTL_S), MOST_TTL_S), answer.texts)
        except TimeoutError:
            silent = f"no name server answered for {host} within {self._timeout_s:g} s"
            found = _Found(self._now() + FAILURE_S, failed=LookUpFailed(ErrorKind.DNS_TIMEOUT, silent))
        except LookUpFailed as failed:
            found = _Found(self._now() + FAILURE_S, failed=failed.with_traceback(None))
        finally:
            del self._looking[host]
        self._count(FOUND if found.failed is None else found.failed.kind.value, self._now() - began_at)
        self._found.pop(host, None)  # the oldest is first
        self._found[host] = found
        if len(self._found) > CACHE_NAMES:
            del self._found[next(iter(self._found))]
        return found

    async def _answer(self, host: str) -> HostAddresses:
        """The answer of the system. A look-up that had no file for its socket is made again until it has one.

        Raises :class:`LookUpFailed` and :class:`TimeoutError`.
        """
        is_waiting = False
        while True:
            try:
                async with asyncio.timeout(self._timeout_s):
                    return await self._system.addresses(host)
            except (LookUpFailed, TimeoutError) as failed:
                is_answer = isinstance(failed, LookUpFailed) and failed.kind in (ErrorKind.DNS, ErrorKind.DNS_NO_NAME)
                refused = None if is_answer else refused_file()
                if refused is None:
                    raise
            if not is_waiting:
                _LOG.warning("waits: the system permits no look-up of a name (%s)", refused.strerror)
            is_waiting = True
            self._make_room()
            await asyncio.sleep(LOOK_AGAIN_S)

    async def learn_nat64(self) -> None:
        """Look :attr:`nat64` up, at most every five minutes. If the look-up fails, there are no prefixes.

        To be called before a connection to a public IPv6 address.
        """
        async with self._nat64_lock:
            if self._now() < self._nat64_until:
                return
            try:
                async with asyncio.timeout(_NAT64_LOOKUP_S):
                    found = await self._system.addresses(NAT64_NAME, socket.AF_INET6)
                self.nat64 = nat64_prefixes(found.texts)
            except OSError:
                self.nat64 = frozenset()
            self._nat64_until = self._now() + _NAT64_EVERY_S

    async def close(self) -> None:
        for task in self._looking.values():
            task.cancel()
        await self._system.close()


def numeric(host: str, address: str, port: int) -> ResolveResult:
    """The form in which the connector wants an ``address`` of ``host``."""
    return ResolveResult(
        hostname=host,
        host=address,
        port=port,
        family=socket.AF_INET6 if ":" in address else socket.AF_INET,
        proto=0,
        flags=socket.AI_NUMERICHOST,
    )
