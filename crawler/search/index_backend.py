"""The database side of building the index: a connection of its own, and the SQL in which the databases differ.

The tables of the index (``search_page``, ``search_text``, ``search_anchors``, ``search_state``) stand in the schema of
the store, and only this package reads and writes them. The crawl is read through views.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from crawler.search.stems import stemmed_languages
from crawler.store.statements import Database, load_statements

#: The version of the index. Increase it when the same page would be indexed differently: the index is then rebuilt.
VERSION = 6
#: How many linking pages a linking site counts as, in the popularity of a page.
SITE_WEIGHT = 10

SQL = load_statements("crawler.search")


class PageFigures(NamedTuple):
    """The figures of a page that change without a change of its content.

    ``in_links`` counts the pages that link to it, ``in_sites`` the other sites of these pages; ``fetched_at`` is in
    seconds since the epoch.
    """

    in_links: int
    in_sites: int
    depth: int
    fetched_at: float
    url_id: int


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A page as it is indexed.

    ``texts`` are title, anchors, description, keywords, headings and body, each on one line. ``anchors`` has the
    anchors one a line. ``language`` is the one that the page states, or empty.
    """

    figures: PageFigures
    digest: int
    site_id: int
    language: str
    anchors: str
    texts: tuple[str, ...]

    @property
    def url_id(self) -> int:
        return self.figures.url_id


class Inbound(NamedTuple):
    """The links to a page: the anchors, one a line, and the numbers of linking pages and of other sites."""

    url_id: int
    anchors: str
    in_links: int
    in_sites: int


class IndexBackend(ABC):
    """One index. A :meth:`transaction` is committed whole or not at all."""

    BEGIN: ClassVar[str] = "BEGIN"
    #: The statements of the database. Those for many rows have positional parameters, in the order of the columns.
    SQL: ClassVar[Mapping[str, str]]

    def __init__(self, db: Database) -> None:
        self._db = db
        self._is_changed = False  # since the words were listed

    @asynccontextmanager
    async def transaction(self, begin: str = "BEGIN") -> AsyncIterator[None]:
        """A transaction; if an exception leaves it, closing the connection rolls it back."""
        await self._db.execute(begin)
        yield
        await self._db.execute("COMMIT")

    async def begin(self) -> None:
        """Mark the index as under construction. Empty it first if it has another version, or is half stale."""
        async with self.transaction(self.BEGIN):
            state = await self.query(SQL["index_version"])
            self._is_changed = not state or not state[0]["complete"]  # a process may have ended before it listed them
            if not state or state[0]["version"] != VERSION or await self._is_stale():
                await self._empty()
            await self._db.execute(SQL["forget_state"])
            await self._db.execute(SQL["begin_state"].format(version=VERSION))

    async def clear(self) -> bool:
        """Empty the index, and forget that there is one; returns whether there was one."""
        async with self.transaction(self.BEGIN):
            there = bool(await self.query(SQL["index_version"]))
            await self._empty()
            await self._db.execute(SQL["forget_state"])
        return there

    async def put(self, entries: Sequence[IndexEntry], figures: Sequence[PageFigures]) -> None:
        """Replace the entries of pages, and set the figures of others, in one transaction."""
        rows = await self._rows(entries)
        async with self.transaction(self.BEGIN):
            await self._insert(entries, rows)
            self._is_changed = self._is_changed or bool(entries)
            await self._db.executemany(
                self.SQL["insert_anchors"], [(entry.url_id, entry.anchors) for entry in entries if entry.anchors]
            )
            await self._db.executemany(self.SQL["set_figures"], figures)

    async def end(self) -> int:
        """Remove the entries of pages that are no longer chosen, and mark the index as complete.

        Returns how many entries were removed.
        """
        async with self.transaction(self.BEGIN):
            removed = await self.query(SQL["remove_unchosen"])
            if removed or self._is_changed:
                await self._list_words()
            await self._db.execute(SQL["remove_unchosen_anchors"])
            await self._set_places()
            pages = {row["language"]: row["pages"] for row in await self.query(SQL["pages_by_language"])}
            languages = " ".join(stemmed_languages(pages))
            await self._db.execute(SQL["end_state"].format(site_weight=SITE_WEIGHT, languages=languages))
        return len(removed)

    async def query(self, sql: str, parameters: Mapping[str, object] | None = None) -> list[Any]:
        """The rows of a query; each row maps column names to values."""
        return list(await self._db.execute_fetchall(sql, parameters or {}))

    async def add_inbound(self, rows: Iterable[Inbound]) -> None:
        """Add rows to the temporary table ``inbound``."""
        await self._db.executemany(self.SQL["insert_inbound"], rows)

    @abstractmethod
    async def script(self, sql: str) -> None:
        """Execute several statements without parameters."""

    @abstractmethod
    def batches(self, sql: str) -> AsyncIterator[list[Any]]:
        """The rows of a query in batches. Call it within a transaction."""

    @abstractmethod
    async def _is_stale(self) -> bool: ...

    @abstractmethod
    async def _empty(self) -> None: ...

    @abstractmethod
    async def _rows(self, entries: Sequence[IndexEntry]) -> Sequence[Any]:
        """The entries of the index for each page, computed before the transaction begins."""

    @abstractmethod
    async def _insert(self, entries: Sequence[IndexEntry], rows: Sequence[Any]) -> None: ...

    @abstractmethod
    async def _list_words(self) -> None:
        """List the words of the index, for suggestions of spellings and for prefixes."""

    @abstractmethod
    async def _set_places(self) -> None:
        """Order the pages by the links to them, for queries that match too many."""
