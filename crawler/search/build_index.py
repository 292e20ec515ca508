"""Builds the search index from the text of every page, once for each content, and only for pages that changed.

Each batch of pages is one transaction: a crash loses at most one batch, and the next call continues there. The same
store always gives the same index. A search meanwhile finds the pages of the batches that are done.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xxhash

from crawler.formatting import many
from crawler.search.deduplicate import SQL, plan
from crawler.search.index_file import (
    INDEX,
    Entry,
    Figures,
    NoIndex,
    WritableIndex,
    crawl_of,
    index_path,
    open_index,
    writing_index,
)
from crawler.store.computed import Computed
from crawler.texts.kept import StoredDocument, texts_of
from crawler.texts.reader import ReadsTexts

if TYPE_CHECKING:
    from crawler.store.sections import Store

_BATCH = 500
_MAX_BATCH_BYTES = 16_000_000  # of the documents in memory
_STATE_S = 10.0

#: Called with how many pages have been processed, and how many there are.
OnProgress = Callable[[int, int], None]

#: The columns that an entry is made of, besides the figures and the anchors.
_digested = itemgetter("title", "description", "keywords", "body_id", "charset", "content_type")


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

    def __str__(self) -> str:
        unread = f"; the text of {many(self.unread, 'page')} was too costly to read" if self.unread else ""
        return f"{many(self.pages, 'page')} in the index: {self.changed:,} read, {self.removed:,} removed{unread}"


async def build_index(
    db: str, store: Store, texts: ReadsTexts, on_progress: OnProgress = lambda done, total: None
) -> IndexSummary:
    """Bring the index of the store at ``db`` (a path or URL) up to date.

    The caller holds ``store``, the same one, open for writing; ``texts`` reads the texts that it does not keep yet.

    A cancellation stops it at once and keeps the committed batches. Raises :class:`crawler.errors.StoreError` if the
    store or the file of the index fails, and :class:`crawler.errors.StoreInUse` if another process writes that file.
    """
    last_request = await store.last_request()
    async with writing_index(await index_path(store, db)) as index:
        await index.begin(await crawl_of(store))
        built = await _bring_up_to_date(store, index, texts, on_progress)
        await index.end(last_request)
    await store.results.cover(Computed.INDEX, last_request)
    await store.results.drop_old_texts()
    return built


async def take_out(db: str, store: Store, texts: ReadsTexts) -> tuple[Path, bool | None]:
    """Take out of the index what the store at ``db`` has no more: pages, and the anchors of their links.

    As :func:`build_index`, but no page is added. Returns the file of the index and whether nothing of it is left there:
    ``None`` if there is no index here; a search that is under way may hold the log of the file.
    """
    path = await index_path(store, db)
    if not path.exists():
        return path, None
    async with writing_index(path) as index:
        await index.begin(await crawl_of(store))
        await _bring_up_to_date(store, index, texts, adds=False)
        async with index.transaction():
            await index.settle()
        return path, await index.erase()


async def _bring_up_to_date(
    store: Store,
    index: WritableIndex,
    texts: ReadsTexts,
    on_progress: OnProgress = lambda done, total: None,
    *,
    adds: bool = True,
) -> IndexSummary:
    """Take out the pages that are not to be in the index, and write those that changed, and with ``adds`` new ones."""
    total = await plan(store, index, adds=adds)
    removed = await index.remove_unchosen()
    after, done, changed, unread = -1, 0, 0, 0
    while batch := await _next_batch(store, index, after):
        documents = [StoredDocument.of(entry.row) for entry in batch.changed]
        read = await texts_of(store, texts, documents)
        pages = zip(batch.changed, documents, strict=True)
        entries = [(entry, read[document]) for entry, document in pages if document in read]
        await index.put(entries, batch.replaced, batch.figures)
        after, done, changed = batch.last_url_id, done + batch.size, changed + len(entries)
        unread += sum(bool(text.note) for _, text in entries)
        on_progress(done, total)
    return IndexSummary(total, changed, removed, unread)


async def is_complete(db: str, store: Store) -> bool:
    """Whether there is an index of this version and this crawl, and its last build was not interrupted."""
    try:
        async with open_index(await index_path(store, db), _STATE_S) as index:
            is_whole = index.state["complete"] and not index.state["under_way"]
            return bool(is_whole and index.state["crawl"] == await crawl_of(store))
    except NoIndex:
        return False


class _Batch:
    """The first of the planned pages: as many as fit into memory with their documents, at least one."""

    def __init__(self, planned: Iterable[Any], contents: Mapping[int, Any], known: Mapping[int, Any]) -> None:
        self.changed: list[Entry] = []
        self.replaced: list[int] = []  # the rows of these pages
        self.figures: dict[int, Figures] = {}  # of pages whose content is that of the index
        self.last_url_id, self.size, size_bytes = -1, 0, 0
        for links in planned:
            number = links["url_id"]
            if (row := contents.get(number)) is not None:  # else it is none since the plan was made
                indexed = known.get(number)
                digest = _digest([*_digested(row), links["anchors"]])
                links_to = (links["in_links"], links["in_sites"])
                figures = Figures(*links_to, row["depth"], row["fetched_at"], row["pagerank"], row["cluster_id"])
                if indexed is None or digest != indexed["digest"]:
                    size_bytes += row["body_bytes"]
                    if self.changed and size_bytes > _MAX_BATCH_BYTES:
                        break
                    self.changed.append(Entry(row, links["anchors"], figures, digest))
                    self.replaced += [indexed["row_id"]] if indexed else []
                elif figures != tuple(indexed[name] for name in Figures._fields):
                    self.figures[number] = figures
            self.last_url_id, self.size = number, self.size + 1


async def _next_batch(store: Store, index: WritableIndex, after: int) -> _Batch | None:
    planned = await index.query(INDEX["next_chosen"], {"after": after, "limit": _BATCH})
    if not planned:
        return None
    numbers = ", ".join(str(row["url_id"]) for row in planned)
    contents = await store.query(SQL["contents"].format(numbers=numbers))
    known = await index.query(INDEX["known"].format(numbers=numbers))
    return _Batch(planned, {row["url_id"]: row for row in contents}, {row["url_id"]: row for row in known})


def _digest(values: Sequence[Any]) -> int:
    """64 bits of a hash of everything that an entry is made of, as a signed number."""
    return xxhash.xxh3_64_intdigest(json.dumps(values).encode()) - (1 << 63)
