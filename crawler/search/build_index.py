"""Builds the search index from the text of every page, once for each content, and only for pages that changed.

Each batch of pages is one transaction: a crash loses at most one batch, and the next call continues there. The same
store always gives the same index.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xxhash

from crawler.page.main_text import clean
from crawler.page.texts import MainText
from crawler.search.deduplicate import plan
from crawler.search.index_backend import SQL, VERSION, IndexBackend, IndexEntry, PageFigures
from crawler.store.location import is_url
from crawler.texts.kept import StoredDocument, texts_of
from crawler.texts.reader import ReadsTexts

if TYPE_CHECKING:
    from crawler.store.sections import Store

_BATCH = 500
_MAX_BATCH_BYTES = 16_000_000  # of the documents in memory

#: Called with how many pages have been processed, and how many there are.
OnProgress = Callable[[int, int], None]

_indexed = itemgetter("indexed_in_links", "indexed_in_sites", "indexed_depth", "indexed_fetched_at")

#: The columns that an entry is made of, besides the figures.
_digested = itemgetter("title", "description", "keywords", "body_id", "charset", "content_type", "anchors")


@dataclass(frozen=True, slots=True)
class IndexSummary:
    """The result of building the index: the number of its pages, of those added or replaced, and of those removed.

    ``unread`` counts those of the pages added or replaced whose text was beyond the bounds; they are found by title,
    anchors and description.
    """

    pages: int
    changed: int
    removed: int
    unread: int = 0


async def build_index(
    db: str, store: Store, texts: ReadsTexts, on_progress: OnProgress = lambda done, total: None
) -> IndexSummary:
    """Bring the index of the store at ``db`` (a path or URL) up to date.

    The caller holds ``store``, the same one, open for writing; ``texts`` reads the texts that it does not keep yet.

    A cancellation stops it at once and keeps the committed batches. Raises :class:`crawler.errors.StoreError` if the
    store fails.
    """
    async with _index_of(db) as index:
        await index.begin()
        total = await plan(index)
        after, done, changed, unread = -1, 0, 0, 0
        while rows := await index.query(SQL["next_pages"], {"after": after, "limit": _BATCH}):
            batch = _Batch(rows)
            read = await texts_of(store, texts, (page.document for page in batch.changed))
            entries = await asyncio.to_thread(_entries, batch.changed, read)
            await index.put(entries, batch.figures)
            after, done, changed = batch.last_url_id, done + batch.size, changed + len(entries)
            unread += sum(bool(read[page.document].note) for page in batch.changed if page.document in read)
            on_progress(done, total)
        removed = await index.end()
        await store.results.drop_old_texts()
        return IndexSummary(total, changed, removed, unread)


async def is_complete(store: Store) -> bool:
    """Whether there is an index of this version, and its last build was not interrupted."""
    rows = await store.query(SQL["index_version"])
    return bool(rows) and rows[0]["version"] == VERSION and bool(rows[0]["complete"])


async def empty_index(db: str) -> bool:
    """Take all words out of the index of the store at ``db``; returns whether there was an index.

    The caller holds the store open for writing. The words of a page cannot be taken out alone: the index keeps no
    texts, and the entries of other pages hold the anchors of its links.
    """
    async with _index_of(db) as index:
        return await index.clear()


def _index_of(db: str) -> AbstractAsyncContextManager[IndexBackend]:
    if is_url(db):
        from crawler.search.postgres_index import postgres_index

        return postgres_index(db)
    from crawler.search.sqlite_index import sqlite_index

    return sqlite_index(Path(db))


@dataclass(frozen=True, slots=True)
class _ChangedPage:
    """A row of ``next_pages`` whose page differs from its entry in the index, and its new digest."""

    row: Any
    digest: int

    @property
    def document(self) -> StoredDocument:
        return StoredDocument.of(self.row)


class _Batch:
    """The first of ``rows`` (of ``next_pages``): as many as fit into memory with their documents, at least one."""

    def __init__(self, rows: Iterable[Any]) -> None:
        self.changed: list[_ChangedPage] = []
        self.figures: list[PageFigures] = []  # of pages whose content is that of the index
        self.last_url_id, self.size, size_bytes = -1, 0, 0
        for row in rows:
            digest = _digest(_digested(row))
            figures = _figures(row)
            if digest != row["indexed_digest"]:
                size_bytes += row["body_bytes"]
                if self.changed and size_bytes > _MAX_BATCH_BYTES:
                    break
                self.changed.append(_ChangedPage(row, digest))
            elif figures[:-1] != _indexed(row):
                self.figures.append(figures)
            self.last_url_id, self.size = row["url_id"], self.size + 1


def _entries(changed: Sequence[_ChangedPage], texts: Mapping[StoredDocument, MainText]) -> list[IndexEntry]:
    return [_entry(page, texts[page.document]) for page in changed if page.document in texts]


def _entry(page: _ChangedPage, text: MainText) -> IndexEntry:
    row = page.row
    short = [clean(row[name] or "") for name in ("title", "anchors", "description", "keywords")]
    texts = (*short, text.headings, text.text)
    return IndexEntry(_figures(row), page.digest, row["site_id"], text.language or "", row["anchors"], texts)


def _figures(row: Any) -> PageFigures:
    return PageFigures(row["in_links"], row["in_sites"], row["depth"], row["fetched_at"], row["url_id"])


def _digest(values: Sequence[Any]) -> int:
    """64 bits of a hash of everything that an entry is made of, as a signed number."""
    return xxhash.xxh3_64_intdigest(json.dumps(values).encode()) - (1 << 63)
