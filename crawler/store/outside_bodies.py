"""The bodies of a store that are kept outside its database.

The table ``body`` has a row for each body, whose ``data`` is NULL here. The object is durable before the row is
committed. A crash between the two leaves an object that no row names; the sweep deletes it. A row is deleted, and the
deletion committed, before its object is deleted. Objects are deleted only while no worker is at work, so none is about
to be named.

Several stores can keep their bodies in one location, such as a store and its copy. Each has an object
``stores/ID`` there, and no object is deleted while another store has one. Without that object the location may be an
empty folder at which nothing is mounted.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

from crawler.errors import StoreError
from crawler.store.body_store import open_body_store
from crawler.store.reconnect_policy import ReconnectPolicy

_BODY = re.compile(r"[0-9a-f]{2}/([0-9a-f]{64})(\.[0-9a-f]+\.part)?")
_STORES = "stores"


class OutsideBodies:
    """The bodies at ``location`` of the store that is known there as ``store_id``.

    A worker waits ``patience_s`` seconds for an object store that does not answer.
    """

    def __init__(self, location: str, store_id: str, patience_s: float) -> None:
        self.location = location
        self.store_id = store_id
        self._registration = f"{_STORES}/{store_id}"
        self._objects = open_body_store(location)
        self._policy = ReconnectPolicy(location, patience_s, "object store")

    @property
    def away_s(self) -> float | None:
        """For how long the object store has not answered, in seconds; ``None`` if it answers."""
        return self._policy.away_s

    def give_up(self) -> None:
        """Wait for the object store no longer."""
        self._policy.give_up()

    async def register(self, name: str) -> None:
        """Note at the location that the store called ``name`` keeps its bodies there."""
        await self._objects.put({self._registration: name.encode()})

    async def require_registered(self) -> None:
        """Raise :class:`StoreError` if the location does not know this store."""
        if await self._objects.get(self._registration) is None:
            raise StoreError(
                f"{self.location}: this is not the place where the store put its bodies ({self._registration} "
                "is missing); mount the folder, or put the bodies back, and run the same command again"
            )

    async def put(self, bodies: Mapping[bytes, bytes]) -> None:
        """Write bodies in their stored form, by SHA-256. Retries while the object store may come back."""
        objects = {_name(sha256): data for sha256, data in bodies.items()}
        await self._policy.retry(lambda: self._objects.put(objects), waits=lambda: True)

    async def get(self, hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """Bodies in their stored form, by SHA-256. Raises :class:`StoreError` if one is missing."""
        wanted = list(hashes)
        found = await asyncio.gather(*(self._objects.get(_name(sha256)) for sha256 in wanted))
        for sha256, data in zip(wanted, found, strict=True):
            if data is None:
                raise StoreError(f"{self.location}: the body {_name(sha256)} is missing")
        return {sha256: data for sha256, data in zip(wanted, found, strict=True) if data is not None}

    async def listed(self) -> AsyncIterator[tuple[list[bytes], list[str]]]:
        """The hashes of the bodies at the location, in order and some at a time, and the names of unfinished objects.

        Objects with other names belong to somebody else.
        """
        async for names in self._objects.names():
            known = [match for match in map(_BODY.fullmatch, names) if match]
            yield (
                [bytes.fromhex(match[1]) for match in known if not match[2]],
                [match[0] for match in known if match[2]],
            )

    async def others(self) -> list[str]:
        """The objects of other stores that keep bodies at the location."""
        found = [name async for names in self._objects.names(_STORES) for name in names]
        return [name for name in found if name != self._registration]

    async def delete(self, hashes: Iterable[bytes]) -> None:
        """Delete bodies."""
        await self._objects.delete([_name(sha256) for sha256 in hashes])

    async def delete_unfinished(self, names: Sequence[str]) -> None:
        """Delete what interrupted writes left; see :meth:`listed`."""
        await self._objects.delete(names)


def _name(sha256: bytes) -> str:
    digits = sha256.hex()
    return f"{digits[:2]}/{digits}"
