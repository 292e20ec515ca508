"""The bodies of pages: in the database, or at a location outside of it (:mod:`crawler.store.outside_bodies`)."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Iterable, Mapping
from functools import partial

from crawler.errors import StoreError, UsageError
from crawler.gunzip import BROKEN
from crawler.model import Body
from crawler.store.bodies import decompress, stored_form
from crawler.store.keys import numbers_from, url_number
from crawler.store.location import absolute, db_argument
from crawler.store.outside_bodies import OutsideBodies
from crawler.store.rows import Swept
from crawler.store.sql.section import StoreSection, are_idle
from crawler.store.statements import Queries
from crawler.url import split

_LOG = logging.getLogger("crawler.store")

_OBJECTS_AT_ONCE = 1000
_EMPTIED_AT_ONCE = 500


async def find_url(read: Queries, url: str) -> int | None:
    """The number of a URL, or ``None`` if the store does not know it."""
    site, path = split(url)
    known = await read.fetch_one("site_number", site=site)
    if known is None:
        return None
    numbers = json.dumps(numbers_from(url_number(known.id, path, known.key)))
    return next((int(row.id) for row in await read.fetch("known_urls", numbers=numbers) if row.path == path), None)


class Bodies(StoreSection):
    """The bodies of pages, in the database or at a location outside of it."""

    _outside: OutsideBodies | None = None  # None: all bodies are in the database
    _patience_s = 0.0

    async def open(self, patience_s: float) -> None:
        """Find the location of the bodies. A worker waits ``patience_s`` seconds for an object store that is away."""
        self._patience_s = patience_s
        for row in await self._read.fetch("body_location"):
            self._outside = OutsideBodies(row.location, row.store_id, patience_s)

    @property
    def away_s(self) -> float | None:
        """For how long the location has not answered, in seconds; ``None`` if it answers, or if there is none."""
        return None if self._outside is None else self._outside.away_s

    def give_up(self) -> None:
        """Wait for the location no longer."""
        if self._outside is not None:
            self._outside.give_up()

    @property
    def location(self) -> str | None:
        """The folder or ``s3://bucket/prefix`` of the bodies outside the database; ``None``: there is none."""
        return None if self._outside is None else self._outside.location

    async def keep_in(self, location: str) -> None:
        """From now on keep bodies at ``location``, a folder or ``s3://bucket/prefix``; "" leaves the location as it is.

        Bodies that are in the database stay there. Raises :class:`crawler.errors.UsageError` if this store has another
        location, and :class:`crawler.errors.StoreError` if the location cannot be used or is not the one that it was.
        """
        location = absolute(location)
        if self._outside is not None:
            if location not in ("", self._outside.location):
                raise UsageError(
                    f"the bodies of {self._name} are in {self._outside.location}; leave the setting out",
                    key="store.bodies",
                    value=location,
                )
            await self._outside.require_registered()
        elif location:
            outside = OutsideBodies(location, secrets.token_hex(16), self._patience_s)
            await outside.register(self._name)
            row = {"location": location, "store_id": outside.store_id}
            await self._transact(lambda: self._sql.insert("body_location", [row]))
            self._outside = outside

    async def of_page(self, url: str, version: int | None = None) -> bytes | None:
        """The decompressed body of a page, by default of its newest version; ``None`` if there is none."""
        number = await find_url(self._read, url)
        row = await self._read.fetch_one("body_of", url_id=number, version=version)
        return None if row is None else (await self.get([row.body_id])).get(row.body_id)

    async def get(self, numbers: Iterable[int]) -> dict[int, bytes]:
        """The decompressed bodies with these numbers (``pages_by_id.body_id``). A number without a body is left out."""
        rows = await self._read.fetch("bodies", numbers=json.dumps(list(numbers)))
        stored = {row.sha256: row.data for row in rows}
        if outside := [sha256 for sha256, data in stored.items() if data is None]:
            assert self._outside is not None, "open has found their location"
            stored |= await self._outside.get(outside)
        return await asyncio.to_thread(lambda: {row.id: self._decoded(row.sha256, stored[row.sha256]) for row in rows})

    def _decoded(self, sha256: bytes, stored: bytes) -> bytes:
        try:
            return decompress(stored)
        except BROKEN as error:
            raise StoreError(f"{self._name}: the body {sha256.hex()} cannot be decoded: {error}") from None

    async def empty(self) -> None:
        """Keep the hashes of bodies alone: a dataset has their contents. In steps, because each is undone in memory."""
        whole = await self._read.fetch_one("whole_bodies")
        for first in range(whole.first or 0, (whole.last or -1) + 1, _EMPTIED_AT_ONCE):
            last = first + _EMPTIED_AT_ONCE - 1
            await self._transact(partial(self._sql.execute, "empty_bodies", first=first, last=last))

    async def stored(self, bodies: Mapping[bytes, Body]) -> dict[bytes, bytes]:
        """The stored forms of bodies. If they are kept outside, they are durable there when this returns."""
        stored = await asyncio.to_thread(lambda: {sha256: stored_form(body) for sha256, body in bodies.items()})
        if self._outside is not None:
            await self._outside.put(stored)
        return stored

    @property
    def are_outside(self) -> bool:
        """Whether the bodies of new pages are kept outside the database."""
        return self._outside is not None

    async def sweep(self) -> Swept:
        """Delete the bodies at the location that no page names, such as those of a commit that a crash prevented.

        :meth:`Runs.recover` goes before it. Raises :class:`crawler.errors.UsageError` if there is no such location, if
        another store keeps bodies there, and if a crawl is at work.
        """
        if self._outside is None:
            raise UsageError(f"{self._name}: all bodies are in the store, nothing is kept outside")
        await self._outside.require_registered()
        if others := await self._outside.others():
            raise UsageError(
                f"{self._outside.location}: other stores keep their bodies here too, and may name what this one does "
                f"not ({', '.join(others[:3])}); if they are gone, delete these objects and sweep again"
            )
        seen, unfinished = 0, list[str]()
        async for hashes, incomplete in self._outside.listed():
            unfinished += incomplete
            seen += len(hashes)
            if hashes:
                rows = await self._read.fetch("outside_between", first=hashes[0], last=hashes[-1])
                unnamed = sorted(set(hashes).difference(row.sha256 for row in rows))
                unnamed_rows = [{"sha256": sha256} for sha256 in unnamed]
                await self._transact(partial(self._sql.insert, "object_to_delete", unnamed_rows, known="kept"))
        deleted = await self._delete_batches(self._outside)
        async with self._writing():
            if deleted is None or not await are_idle(self._sql):
                why = "a crawl is at work, and nothing is deleted meanwhile; wait for its end"
                raise UsageError(f"{self._name}: {why}")
            await self._outside.delete_unfinished(unfinished)
        return Swept(seen - deleted, deleted, len(unfinished))

    async def delete_dropped(self) -> None:
        """Delete the objects of bodies that were dropped. What cannot be deleted now is left to the next run."""
        try:
            await self._delete_dropped()
        except StoreError as error:
            _LOG.warning("%s: some bodies are not deleted yet: %s", self._name, error)

    async def require_dropped_deleted(self) -> None:
        """As :meth:`delete_dropped`; raises :class:`UsageError` if other stores prevent it."""
        if others := await self._delete_dropped():
            raise UsageError(
                f"{self.location}: the store has forgotten, but the bodies are still here, because other stores "
                f"keep theirs here too ({', '.join(others[:3])}); if they are gone, delete these objects, and "
                f"`crawler store clean{db_argument(self._name)}` deletes the bodies"
            )

    async def _delete_dropped(self) -> list[str]:
        """Delete the objects of bodies that were dropped. Returns the other stores that prevent it."""
        if self._outside is None or not await self._read.fetch("objects_to_delete", limit=1):
            return []
        if others := await self._outside.others():
            return others
        await self._delete_batches(self._outside)
        return []

    async def _delete_batches(self, outside: OutsideBodies) -> int | None:
        """Delete objects that no body names, and return how many; ``None`` if a worker is at work."""
        deleted = 0
        while True:
            async with self._writing():
                if not await are_idle(self._sql):
                    return None
                rows = await self._sql.fetch("objects_to_delete", limit=_OBJECTS_AT_ONCE)
                if not rows:
                    return deleted
                unnamed = [row.sha256 for row in rows if not row.is_named]
                await outside.delete(unnamed)
                await self._sql.execute("objects_deleted", last=rows[-1].sha256)
            deleted += len(unnamed)
