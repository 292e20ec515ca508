"""The file of a search index, beside the store: a SQLite database with FTS5, whatever database the store is.

A search opens the file, reads one state of it, and closes it (:func:`open_index`). One process at a time changes it
(:func:`writing_index`); in SQLite's write-ahead log, neither waits for the other.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

import aiosqlite

from crawler.errors import Action, StoreInUse, UsageError
from crawler.page.texts import MainText
from crawler.private_files import make_private
from crawler.search.document import Document, packed, unpacked
from crawler.search.stems import stemmed_languages
from crawler.search.tokenizer import TOKENIZER
from crawler.settings.stored import stored_settings
from crawler.store.computed import REFRESH
from crawler.store.location import db_argument, is_url
from crawler.store.sqlite.connection import interrupting, lock_store, read_errors, read_only_uri, split_script
from crawler.store.statements import load_statements, read_sql

if TYPE_CHECKING:
    from crawler.store.sections import Store

#: The version of the index. Increase it when the same page would be indexed differently: the index is then rebuilt.
VERSION = 8
#: How many linking pages a linking site counts as, in the popularity of a page.
SITE_WEIGHT = 10
INDEX = load_statements("crawler.search", "index.sql")
_SQL = load_statements("crawler.search")

_DEFAULT_NAME = "crawl"
_UNFIT = re.compile(r"[^\w.-]+")  # in the name of a file
_ROWS_AT_ONCE = 5_000
_STEPS_BETWEEN_CHECKS = 100_000  # instructions of SQLite's virtual machine, about a millisecond


class NoIndex(UsageError):
    """The store has no search index."""


async def index_path(store: Store, db: str) -> Path:
    """The file of the index of a store, the one at ``db``: that of the setting ``search.file``, else the default."""
    settings = await stored_settings(store)
    return Path(settings.search.file) if settings and settings.search.file else default_path(db)


def default_path(db: str) -> Path:
    """The file of an index without the setting: beside a SQLite file, else in the folder for the state of the user."""
    if not is_url(db):
        path = Path(db).resolve()
        return path.with_name(f"{path.name}.search")
    parts = urlsplit(db)
    query = parse_qs(parts.query)
    host = parts.netloc.rpartition("@")[2] or "-".join(query.get("host", []))
    name = unquote(parts.path).strip("/") or (query.get("dbname") or query.get("database") or [_DEFAULT_NAME])[-1]
    state = os.environ.get("XDG_STATE_HOME", "")  # a relative path is ignored, as its specification says
    folder = Path(state) if state.startswith("/") else Path.home() / ".local" / "state"
    return folder / "crawler" / f"{_UNFIT.sub('_', '-'.join(filter(None, (unquote(host), name))))}.search"


async def crawl_of(store: Store) -> str:
    """What tells the crawl of a store from others: the beginning of its first run."""
    (row,) = await store.query(_SQL["crawl"])
    return str(row["begun"])


class Figures(NamedTuple):
    """The figures of a page that change without a change of its content.

    ``in_links`` counts the pages that link to it, ``in_sites`` the other sites of these pages; ``fetched_at`` is in
    seconds since the epoch. ``cluster_id`` is that of its near-duplicates.
    """

    in_links: int
    in_sites: int
    depth: int
    fetched_at: float
    pagerank: float | None
    cluster_id: int | None


class Entry(NamedTuple):
    """A page to be indexed: its row of the statement ``contents``, and the anchors of the links to it.

    ``digest`` is that of everything that its row in the index is made of.
    """

    row: Any
    anchors: str
    figures: Figures
    digest: int


class Index:
    """The file of an index, open to be searched."""

    def __init__(self, db: aiosqlite.Connection, path: Path) -> None:
        self._db, self.path = db, path
        self.state: Any = None

    async def read_state(self) -> None:
        """Read the row ``state``; ``None`` if there is no index of this version."""
        ((version,),) = await self.query(INDEX["version"])
        self.state = next(iter(await self.query(INDEX["state"])), None) if version == VERSION else None

    async def query(self, sql: str, parameters: Mapping[str, object] | None = None) -> list[Any]:
        """The rows of a query; each row maps column names to values."""
        async with read_errors(self.path):
            return list(await self._db.execute_fetchall(sql, parameters or {}))

    async def documents(self, rows: Iterable[int]) -> dict[int, Document]:
        """The documents of rows, by number."""
        found = await self.query(INDEX["documents"].format(rows=", ".join(map(str, rows))))
        return await asyncio.to_thread(lambda: {row["row_id"]: unpacked(row["texts"]) for row in found})


@asynccontextmanager
async def open_index(path: Path, seconds: float) -> AsyncIterator[Index]:
    """The index in a file, to be searched within a time. All queries inside see the same state of it.

    Raises :class:`NoIndex` if there is no index of this version. A query after that time raises
    :class:`crawler.errors.QueryInterrupted`.
    """
    if not path.exists():
        raise NoIndex(f"{path}: no such search index")
    async with read_errors(path):
        db = await aiosqlite.connect(read_only_uri(path), uri=True, isolation_level=None)
    try:
        db.row_factory = aiosqlite.Row
        index = Index(db, path)
        await index.query("BEGIN")
        await index.read_state()
        if not index.state:
            raise NoIndex(f"{path}: no search index of this version")
        async with interrupting(db, seconds):
            yield index
    finally:
        await asyncio.shield(db.close())


def no_index(error: NoIndex, db: str) -> NoIndex:
    """The message for a user of the store at ``db``."""
    return NoIndex(f"{error}; ", Action(f"{REFRESH}{db_argument(db)}", "crawl.index()"), " builds it")


class WritableIndex(Index):
    """The file of an index, open to be changed. A method is one transaction unless it says otherwise."""

    async def begin(self, crawl: str) -> None:
        """Begin to bring the index up to date with a crawl. Empties an index of another version or another crawl."""
        async with self.transaction():
            await self.read_state()
            if not self.state or self.state["crawl"] != crawl:
                await self._make_anew()
            self._is_changed = not self.state or bool(self.state["under_way"])  # since the words were listed
            await self.query(INDEX["begin_state"], {"crawl": crawl})

    async def _make_anew(self) -> None:
        for is_virtual in (True, False):
            for row in await self.query(INDEX["tables"]):
                if bool(row["is_virtual"]) is is_virtual:
                    await self.query(INDEX["drop_table"].format(name=row["name"]))
        for statement in split_script(read_sql("crawler.search", "schema.sql").format(tokenizer=TOKENIZER)):
            await self.query(statement)
        await self.query(INDEX["set_hash_size"])
        await self.query(INDEX["set_version"].format(version=VERSION))

    async def put(
        self, entries: Sequence[tuple[Entry, MainText]], replaced: Collection[int], figures: Mapping[int, Figures]
    ) -> None:
        """Add pages with texts in place of the rows ``replaced``, and set the figures of other pages, by number."""
        documents = [Document.of(entry.row, entry.anchors, text) for entry, text in entries]
        made = await asyncio.to_thread(lambda: [(document.columns(), packed(document)) for document in documents])
        async with self.transaction():
            await self._take_out(replaced)
            (highest,) = await self.query(INDEX["highest_row"])
            rows = list(enumerate(zip(entries, made, strict=True), (highest["row_id"] or 0) + 1))
            await self.many("insert_text", [(row, *columns) for row, (_, (columns, _)) in rows])
            await self.many("insert_head", [(row, *columns[:-1]) for row, (_, (columns, _)) in rows])
            await self.many("insert_document", [(row, texts) for row, (_, (_, texts)) in rows])
            pages = [
                (row, e.digest, e.row["site_id"], text.language or "", *e.figures, e.row["url_id"])
                for row, ((e, text), _) in rows
            ]
            await self.many("insert_page", pages)
            await self.many("insert_site", sorted({(e.row["site_id"], e.row["site"]) for e, _ in entries}))
            await self.many("set_figures", [(*values, number) for number, values in figures.items()])
            self._is_changed = self._is_changed or bool(entries)

    async def remove_unchosen(self) -> int:
        """Take out the pages that the plan does not choose, some at a time; returns how many."""
        rows = [row["row_id"] for row in await self.query(INDEX["unchosen"])]
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            async with self.transaction():
                await self._take_out(rows[start : start + _ROWS_AT_ONCE])
        self._is_changed = self._is_changed or bool(rows)
        return len(rows)

    async def _take_out(self, rows: Collection[int]) -> None:
        """FTS5 finds the words to take out in the old texts of the row."""
        for row, document in (await self.documents(rows)).items():
            columns = await asyncio.to_thread(document.columns)
            await self.many("delete_text", [(row, *columns)])
            await self.many("delete_head", [(row, *columns[:-1])])
        for statement in ("delete_document", "delete_page"):
            await self.many(statement, [(row,) for row in rows])

    async def end(self, last_request: int) -> None:
        """Mark the index as complete; it covers the crawl up to a request."""
        async with self.transaction():
            await self.settle()
            pages = {row["language"]: row["pages"] for row in await self.query(INDEX["pages_by_language"])}
            values = {"last_request": last_request, "languages": " ".join(stemmed_languages(pages))}
            await self.query(INDEX["end_state"].format(site_weight=SITE_WEIGHT), values)

    async def settle(self) -> None:
        """List the words anew if they have changed, and order the pages. Call it within a transaction."""
        if self._is_changed:
            for name in ("make_vocabulary", "delete_words", "insert_words", "drop_empty_sites"):
                await self.query(INDEX[name])
            self._is_changed = False
        await self.query(INDEX["set_places"].format(site_weight=SITE_WEIGHT))

    async def erase(self) -> bool:
        """Leave nothing in the file of what was taken out; several transactions.

        Returns whether the log of the file could be emptied: a search may hold it.
        """
        for name in ("merge_texts", "merge_heads"):
            async with self.transaction():
                await self.query(INDEX[name])
        ((is_busy, *_),) = await self.query(INDEX["empty_log"])
        return not is_busy

    async def script(self, name: str) -> None:
        """Execute several statements without parameters."""
        for statement in split_script(f"{INDEX[name]};"):
            await self.query(statement)

    async def many(self, name: str, rows: Iterable[Sequence[object]]) -> None:
        """Execute a statement for each row of parameters."""
        async with read_errors(self.path):
            await self._db.executemany(INDEX[name], rows)

    async def batches(self, sql: str) -> AsyncIterator[list[Any]]:
        """The rows of a query in batches. Call it within a transaction."""
        cursor = await self._db.execute(sql)
        while batch := list(await cursor.fetchmany(_ROWS_AT_ONCE)):
            yield batch

    @asynccontextmanager
    async def transaction(self, begin: str = "BEGIN IMMEDIATE") -> AsyncIterator[None]:
        """A transaction; if an exception leaves it, closing the connection rolls it back."""
        await self.query(begin)
        yield
        await self.query("COMMIT")


@asynccontextmanager
async def writing_index(path: Path) -> AsyncIterator[WritableIndex]:
    """The index in a file, which is made if there is none, to be changed.

    An exception, or a cancellation, interrupts the statement that is running. Raises :class:`StoreInUse` if another
    process changes it, and :class:`UsageError` if no file can be made there.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{path}: the search index cannot be made there: {error.strerror}; set `search.file` to another place in "
            "the configuration of the crawl"
        ) from None
    try:
        lock = lock_store(path)
    except StoreInUse:
        raise StoreInUse(f"{path}: another command writes this search index; wait for it, or stop it") from None
    stop = threading.Event()
    try:
        make_private(path)
        async with read_errors(path):
            db = await aiosqlite.connect(path, isolation_level=None)
        try:
            db.row_factory = aiosqlite.Row
            await db.set_progress_handler(stop.is_set, _STEPS_BETWEEN_CHECKS)
            index = WritableIndex(db, path)
            await index.script("settings")
            yield index
        finally:
            stop.set()
            await asyncio.shield(db.close())
    finally:
        lock.release()
