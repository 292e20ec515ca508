"""Building the search index: the text of every page, once for each content, and only of what changed since.

A batch of pages is one transaction, so a crash loses one batch at most and the next call goes on where it ended. The
same store gives the same index.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xxhash

from crawler.errors import UsageError
from crawler.search.fold import plan
from crawler.search.text import clean, page_text, parted
from crawler.store.connection import decompress, reading
from crawler.store.location import is_url, shown

#: Another number wherever the same page would be indexed otherwise: the index is then built anew.
VERSION = 1
#: What a link from another site counts besides, in linking pages.
SITE_COUNTS = 10
_BATCH = 500
_BATCH_CHARS = 10_000_000
_STEPS_BETWEEN_LOOKS = 100_000  # of SQLite's machine, about a millisecond

#: Told how many pages have been looked at, of how many.
OnProgress = Callable[[int, int], None]

_NEXT = """
SELECT c.id, p.title, p.description, p.keywords, p.body_id, p.charset, p.content_type,
  coalesce(i.anchors, ''), coalesce(i.in_links, 0), coalesce(i.in_sites, 0), s.digest, s.in_links, s.in_sites
FROM chosen c JOIN page p ON p.url_id = c.id
LEFT JOIN inbound i ON i.id = c.id LEFT JOIN search_page s ON s.url_id = c.id
WHERE c.id > ? ORDER BY c.id LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class Built:
    """What building an index did: ``pages`` are in it, of which so many are new or changed; so many were taken out."""

    pages: int
    changed: int
    removed: int


def require_file(db: str) -> None:
    """Raise :class:`UsageError` where there can be no index: it is SQLite's own, FTS5."""
    if is_url(db):
        raise UsageError(
            f"--db {shown(db)}: the search index is one of SQLite files; "
            f"`crawler store copy {shown(db)} crawl.db` makes one of this store"
        )


async def build_index(path: Path, on_progress: OnProgress = lambda done, total: None) -> Built:
    """Bring the index of the store at ``path`` up to date; the caller has it open to write.

    Raises :class:`crawler.errors.StoreError` where the store fails. When it is cancelled, it stops at once and keeps
    the batches that were committed.
    """
    stop = threading.Event()
    work = asyncio.create_task(asyncio.to_thread(_build, path, on_progress, stop))
    try:
        async with reading(path):
            return await asyncio.shield(work)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.gather(work, return_exceptions=True)
        raise


def _build(path: Path, on_progress: OnProgress, stop: threading.Event) -> Built:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.set_progress_handler(stop.is_set, _STEPS_BETWEEN_LOOKS)  # then SQLite gives up with "interrupted"
        db.executescript("PRAGMA busy_timeout = 10000; PRAGMA synchronous = NORMAL; PRAGMA temp_store = FILE;")
        with _transaction(db):
            _begin(db)
        total = plan(db)
        writer = _Writer(db)
        after, done = -1, 0
        while rows := db.execute(_NEXT, (after, _BATCH)).fetchall():
            with _transaction(db):
                taken = writer.take(rows)
            after, done = rows[taken - 1][0], done + taken
            on_progress(done, total)
        with _transaction(db):
            removed = _end(db)
        return Built(total, writer.changed, removed)


def _begin(db: sqlite3.Connection) -> None:
    """Note that building is under way, and empty an index of another version, or one of which half is stale."""
    state = db.execute("SELECT version FROM search_state").fetchone()
    (live,) = db.execute("SELECT count(*) FROM search_page").fetchone()
    if state is None or state[0] != VERSION or _highest_row(db) > 2 * live:
        db.execute("INSERT INTO search_text (search_text) VALUES ('delete-all')")
        db.execute("DELETE FROM search_page")
    db.execute("INSERT INTO search_text (search_text, rank) VALUES ('hashsize', 33554432)")  # few, large segments
    db.execute("INSERT OR REPLACE INTO search_state SELECT 1, ?, coalesce(max(id), 0), 0, 0 FROM request", (VERSION,))


def _end(db: sqlite3.Connection) -> int:
    """Take out what is no longer to be found, and note that the index is whole; how many were taken out."""
    removed = db.execute("DELETE FROM search_page WHERE url_id NOT IN (SELECT id FROM chosen)").rowcount
    db.execute(
        "UPDATE search_state SET complete = 1, "
        "mean_inbound = (SELECT coalesce(avg(in_links + ? * in_sites), 0) FROM search_page)",
        (SITE_COUNTS,),
    )
    return removed


class _Writer:
    """Puts pages into the index; ``changed`` counts those that were not in it as they are."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._row_id = _highest_row(db)
        self.changed = 0

    def take(self, rows: list[tuple[Any, ...]]) -> int:
        """Take in rows of :data:`_NEXT` until there is enough for one transaction; how many."""
        chars = 0
        for number, (url_id, *said, in_links, in_sites, digest, links_before, sites_before) in enumerate(rows, 1):
            now = _digest(said)
            if now != digest:
                chars += self._add(said)
                self._db.execute(
                    "INSERT OR REPLACE INTO search_page VALUES (?, ?, ?, ?, ?)",
                    (self._row_id, url_id, now, in_links, in_sites),
                )
            elif (in_links, in_sites) != (links_before, sites_before):
                self._db.execute(
                    "UPDATE search_page SET in_links = ?, in_sites = ? WHERE url_id = ?", (in_links, in_sites, url_id)
                )
            if chars >= _BATCH_CHARS:
                return number
        return len(rows)

    def _add(self, said: list[Any]) -> int:
        """Index one page under the next number; how many characters that were."""
        title, description, keywords, body_id, charset, content_type, anchors = said
        (data,) = self._db.execute("SELECT data FROM body WHERE id = ?", (body_id,)).fetchone()
        page = page_text(decompress(data), charset, content_type)
        short = [clean(text or "") for text in (title, anchors, description, keywords)]
        texts = [parted(text) for text in (*short, page.headings, page.text)]
        self._row_id += 1
        self.changed += 1
        self._db.execute(
            "INSERT INTO search_text (rowid, title, anchors, description, keywords, headings, body) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (self._row_id, *texts),
        )
        return sum(map(len, texts))


def _digest(said: list[Any]) -> int:
    """64 bits of all that the row of a page is made of; SQLite's numbers have a sign."""
    return xxhash.xxh3_64_intdigest(json.dumps(said).encode()) - (1 << 63)


def _highest_row(db: sqlite3.Connection) -> int:
    row = db.execute("SELECT rowid FROM search_text ORDER BY rowid DESC LIMIT 1").fetchone()
    return 0 if row is None else int(row[0])


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    """One transaction; what goes wrong inside it rolls it back when the connection is closed."""
    db.execute("BEGIN IMMEDIATE")
    yield
    db.execute("COMMIT")
