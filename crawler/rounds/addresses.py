"""The addresses that a task may ask: in a round, one task asks an address."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from crawler.engine.gate import AddressBook, AddressTaken
from crawler.engine.workbench import exempt_networks, is_exempt, network_of
from crawler.frontier.politeness import PolitenessSettings

#: Acquires a network for the task; returns whether the task is the one that has it.
Acquire = Callable[[str], Awaitable[bool]]


class OwnAddresses:
    """The address book of one task, over that of its process.

    Invariant: an address with a limit is returned only when the task has acquired its network. So ``per_address`` of
    the one task that has the network holds for the whole crawl, whatever was known when the round was planned.
    """

    def __init__(self, book: AddressBook, settings: PolitenessSettings, acquire: Acquire, taken_until: float) -> None:
        self._book = book
        self._exempt = exempt_networks(settings)
        self._acquire = acquire
        self._taken_until = taken_until
        self._asked: dict[str, asyncio.Task[bool]] = {}  # by network

    def is_limited(self, host: str) -> bool:
        return self._book.is_limited(host)

    def cached(self, host: str) -> str | None:
        """The address of a host, if it was looked up and the task has it."""
        address = self._book.cached(host)
        return address if not address or self._is_own(address) else None

    async def look_up(self, host: str) -> str:
        """The address of a host, acquired. Raises :class:`AddressTaken` if another task has it."""
        address = self._book.cached(host)
        if address is None:
            address = await self._book.look_up(host)
        if not address or self._is_own(address):
            return address
        network = network_of(address)
        if network not in self._asked:
            self._asked[network] = asyncio.ensure_future(self._acquire(network))
        if not await asyncio.shield(self._asked[network]):
            raise AddressTaken(network, self._taken_until)
        return address

    def refused(self, host: str, address: str) -> bool:
        return self._book.refused(host, address)

    def look_ups(self) -> str:
        return self._book.look_ups()

    def _is_own(self, address: str) -> bool:
        network = network_of(address)
        asked = self._asked.get(network)
        if asked is not None:
            return asked.done() and not asked.cancelled() and asked.exception() is None and asked.result()
        return is_exempt(network, self._exempt)
