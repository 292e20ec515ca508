"""A store with pages as a crawl leaves them, to index and to search."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crawler.frontier.decide import Outcome, Queued
from crawler.frontier.offers import Offer
from crawler.model import Link
from crawler.search.build_index import IndexSummary, OnProgress, build_index
from crawler.search.index_file import index_path, open_index
from crawler.search.results import Filters, SearchResult, search
from crawler.store.keys import render_keys
from crawler.store.location import is_url
from crawler.store.postgres.store import PostgresStore
from crawler.store.sqlite.store import SqliteStore
from tests.contract.visits import NOW, Harness, fetched, redirected
from tests.reading import TextsInProcess
from tests.records import replace


@dataclass(frozen=True, slots=True)
class Said:
    """The contents of a page; ``links`` leads from URLs to anchor texts."""

    text: str = ""
    title: str | None = None
    links: dict[str, str] = field(default_factory=dict)
    description: str | None = None
    keywords: str | None = None
    canonical: str | None = None
    noindex: bool = False
    nofollow: Iterable[str] = ()  # of the links


class Crawled:
    """One store, and the commands on it."""

    def __init__(self, db: str, harness: Harness) -> None:
        self.db, self.harness, self.texts = db, harness, TextsInProcess()

    async def indexed(self, pages: Mapping[str, Said | str]) -> None:
        """Fetch these pages, and index them."""
        await self.visit(pages)
        await self.index()

    async def visit(self, pages: Mapping[str, Said | str]) -> None:
        """Fetch these pages; a text is where a URL redirects to. Other URLs that they lead to wait."""
        await self.harness.seed(*pages)
        waiting = set(pages)
        while waiting:
            for claim in await self.harness.claim():
                outcomes = [self._outcome(queued, pages[queued.url]) for queued in claim.urls if queued.url in waiting]
                waiting -= {outcome.queued.url for outcome in outcomes}
                await self.harness.finish(claim, *outcomes)

    def _outcome(self, queued: Queued, said: Said | str) -> Outcome:
        if isinstance(said, str):
            return redirected(queued, said)
        links = [Link(url, text, "", url not in said.nofollow) for url, text in said.links.items()]
        body = None if said.noindex else said.text.encode()
        outcome = fetched(
            queued, links, body=body, title=said.title, description=said.description, keywords=said.keywords,
            canonical_url=said.canonical, index=not said.noindex,
        )  # fmt: skip
        if said.canonical is None:
            return outcome
        offer = Offer(said.canonical, queued.depth)
        return replace(outcome, target=said.canonical, offers=(*outcome.offers, offer))

    async def change(self, sql: str, *parameters: object) -> None:
        """Change the store as a crawl might have."""
        async with self.harness.store._writing():
            await self.harness.store._db.execute(render_keys(sql), parameters)

    async def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in await self.harness.store.query(sql)]

    async def of_index(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query on the index."""
        async with open_index(await index_path(self.harness.store, self.db), 60) as index:
            return [tuple(row) for row in await index.query(sql)]

    async def change_index(self, sql: str) -> None:
        with closing(sqlite3.connect(await index_path(self.harness.store, self.db))) as db, db:
            db.execute(sql)

    async def index(self, on_progress: OnProgress = lambda done, total: None) -> IndexSummary:
        return await build_index(self.db, self.harness.store, self.texts, on_progress)

    async def search(self, words: str, *, limit: int = 10, site: str | None = None, now: float = NOW) -> SearchResult:
        return await search(self.harness.store, self.db, words, now=now, limit=limit, filters=Filters(site))

    async def urls(self, words: str, *, limit: int = 10, site: str | None = None) -> list[str]:
        """Of the pages with all the words, best first."""
        found = await self.search(words, limit=limit, site=site)
        return [hit.url for hit in found.hits if hit.all_words]


@asynccontextmanager
async def crawled(db: str) -> AsyncIterator[Crawled]:
    """A store at ``db``, a path or URL, in its first run."""
    harness = Harness(lambda: PostgresStore.open(db) if is_url(db) else SqliteStore.open(Path(db)))
    await harness.reopen()
    try:
        yield Crawled(db, harness)
    finally:
        await harness.close()
