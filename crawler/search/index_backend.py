"""Where an index is built: a connection of its own to the store, with the SQL in which its two kinds differ."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from crawler.store.sqlite.connection import Database

#: Another number wherever the same page would be indexed otherwise: the index is then built anew.
VERSION = 1
#: What a link from another site counts besides, in linking pages.
SITE_COUNTS = 10


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A page for the index. ``texts`` are title, anchors, description, keywords, headings and body, on a line each."""

    url_id: int
    digest: int
    in_links: int
    in_sites: int
    texts: tuple[str, ...]


class IndexBackend(ABC):
    """One index. What is done within :meth:`transaction` is done whole or not at all."""

    BEGIN: ClassVar[str] = "BEGIN"
    SET_LINKS: ClassVar[str]
    INSERT_INBOUND: ClassVar[str]
    BODIES: ClassVar[str]

    def __init__(self, db: Database) -> None:
        self._db = db

    @asynccontextmanager
    async def transaction(self, begin: str = "BEGIN") -> AsyncIterator[None]:
        """What goes wrong inside it rolls it back when the connection is closed."""
        await self._db.execute(begin)
        yield
        await self._db.execute("COMMIT")

    async def begin(self) -> None:
        """Note that building is under way, and empty an index of another version, or one of which half is stale."""
        async with self.transaction(self.BEGIN):
            state = await self.query("SELECT version FROM search_state")
            if not state or state[0][0] != VERSION or await self._is_stale():
                await self._empty()
            await self._db.execute("DELETE FROM search_state")
            await self._db.execute(
                f"INSERT INTO search_state SELECT 1, {VERSION}, coalesce(max(id), 0), 0, 0 FROM request"
            )

    async def put(self, entries: Sequence[IndexEntry], links: Sequence[tuple[int, int, int]]) -> None:
        """Index pages anew, and set for others how many pages and sites link to them: ``(in_links, in_sites, id)``."""
        rows = await self._rows(entries)
        async with self.transaction(self.BEGIN):
            await self._insert(entries, rows)
            await self._db.executemany(self.SET_LINKS, links)

    async def end(self) -> int:
        """Take out what is no longer to be found, and note that the index is whole; how many were taken out."""
        async with self.transaction(self.BEGIN):
            removed = await self.query(
                "DELETE FROM search_page WHERE NOT EXISTS (SELECT 1 FROM chosen WHERE id = url_id) RETURNING url_id"
            )
            await self._db.execute(
                "UPDATE search_state SET complete = 1, mean_inbound = "
                f"(SELECT coalesce(avg(in_links + {SITE_COUNTS} * in_sites), 0) FROM search_page)"
            )
        return len(removed)

    async def query(self, sql: str, parameters: Sequence[object] = ()) -> list[Any]:
        return list(await self._db.execute_fetchall(sql, parameters))

    async def add_inbound(self, rows: Iterable[tuple[int, str, int, int]]) -> None:
        await self._db.executemany(self.INSERT_INBOUND, rows)

    @abstractmethod
    async def script(self, sql: str) -> None:
        """Carry out statements of which none has parameters."""

    @abstractmethod
    def batches(self, sql: str) -> AsyncIterator[list[Any]]:
        """The rows of a query, some at a time, within a transaction."""

    @abstractmethod
    async def _is_stale(self) -> bool: ...

    @abstractmethod
    async def _empty(self) -> None: ...

    @abstractmethod
    async def _rows(self, entries: Sequence[IndexEntry]) -> Sequence[Any]:
        """What the index takes of each page, made before the transaction begins."""

    @abstractmethod
    async def _insert(self, entries: Sequence[IndexEntry], rows: Sequence[Any]) -> None: ...
