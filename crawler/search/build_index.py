"""Building the search index: the text of every page, once for each content, and only of what changed since.

A batch of pages is one transaction, so a crash loses one batch at most and the next call goes on where it ended. The
same store gives the same index.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xxhash

from crawler.search.deduplicate import plan
from crawler.search.index_backend import IndexBackend, IndexEntry
from crawler.search.page_text import clean, page_text
from crawler.store.location import is_url
from crawler.store.sqlite.connection import decompress

_BATCH = 500
_BATCH_BYTES = 16_000_000  # of documents that are read at once

#: Told how many pages have been looked at, of how many.
OnProgress = Callable[[int, int], None]

_NEXT = """
SELECT c.id, p.title, p.description, p.keywords, p.body_id, p.charset, p.content_type,
  coalesce(i.anchors, ''), coalesce(i.in_links, 0), coalesce(i.in_sites, 0), s.digest, s.in_links, s.in_sites,
  p.body_bytes
FROM chosen c JOIN page p ON p.url_id = c.id AND p.noindex = 0 AND p.body_id IS NOT NULL
LEFT JOIN inbound i ON i.id = c.id LEFT JOIN search_page s ON s.url_id = c.id
WHERE c.id > ? ORDER BY c.id LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class IndexSummary:
    """What building an index did: ``pages`` are in it, of which so many are new or changed; so many were taken out."""

    pages: int
    changed: int
    removed: int


async def build_index(db: str, on_progress: OnProgress = lambda done, total: None) -> IndexSummary:
    """Bring the index of the store at ``db`` (a path or URL) up to date; the caller has it open to write.

    Raises :class:`crawler.errors.StoreError` where the store fails. When it is cancelled, it stops at once and keeps
    the batches that were committed.
    """
    async with _place(db) as place:
        await place.begin()
        total = await plan(place)
        after, done, changed = -1, 0, 0
        while rows := await place.query(_NEXT, (after, _BATCH)):
            batch = _Batch(rows)
            entries = await _read(place, batch.changed)
            await place.put(entries, batch.links)
            after, done, changed = batch.last, done + batch.size, changed + len(entries)
            on_progress(done, total)
        return IndexSummary(total, changed, await place.end())


def _place(db: str) -> AbstractAsyncContextManager[IndexBackend]:
    if is_url(db):
        from crawler.search.postgres_index import postgres_index

        return postgres_index(db)
    from crawler.search.sqlite_index import sqlite_index

    return sqlite_index(Path(db))


@dataclass(frozen=True, slots=True)
class _Changed:
    """A page that is not in the index as it is now: all that it is made of."""

    url_id: int
    digest: int
    in_links: int
    in_sites: int
    said: Sequence[Any]  # from title to anchors, as in _NEXT


class _Batch:
    """The first rows of :data:`_NEXT`, as many as may be read at once, one at least."""

    def __init__(self, rows: Iterable[Any]) -> None:
        self.changed: list[_Changed] = []
        self.links: list[tuple[int, int, int]] = []  # of pages of which nothing else is new
        self.last, self.size, read = -1, 0, 0
        for url_id, *said, in_links, in_sites, digest, links_before, sites_before, body_bytes in rows:
            now = _digest(said)
            if now != digest:
                read += body_bytes
                if self.changed and read > _BATCH_BYTES:
                    break
                self.changed.append(_Changed(url_id, now, in_links, in_sites, said))
            elif (in_links, in_sites) != (links_before, sites_before):
                self.links.append((in_links, in_sites, url_id))
            self.last, self.size = url_id, self.size + 1


async def _read(place: IndexBackend, changed: Sequence[_Changed]) -> list[IndexEntry]:
    numbers = json.dumps([page.said[3] for page in changed])
    bodies: dict[int, bytes] = {row[0]: row[1] for row in await place.query(place.BODIES, (numbers,))}
    return await asyncio.to_thread(
        lambda: [_entry(page, bodies[page.said[3]]) for page in changed if page.said[3] in bodies]
    )


def _entry(page: _Changed, body: bytes) -> IndexEntry:
    title, description, keywords, _, charset, content_type, anchors = page.said
    text = page_text(decompress(body), charset, content_type)
    short = [clean(text or "") for text in (title, anchors, description, keywords)]
    return IndexEntry(page.url_id, page.digest, page.in_links, page.in_sites, (*short, text.headings, text.text))


def _digest(said: list[Any]) -> int:
    """64 bits of all that the row of a page is made of; databases' numbers have a sign."""
    return xxhash.xxh3_64_intdigest(json.dumps(said).encode()) - (1 << 63)
