"""Searches the index: the matching pages, best first, each with an excerpt in which the words are marked.

The score of a page has three factors. The first is the BM25 of its text; title and anchors weigh most. The second
raises the score of popular pages by up to half, with the saturation ``x / (x + k)`` that Craswell, Robertson, Zaragoza
and Taylor use for evidence that does not depend on the query ("Relevance weighting for query independent evidence",
SIGIR 2005). The popularity ``x`` is relative to the average page: the PageRank, if ``crawler rank`` was run, else the
numbers of linking pages and sites that the index counted. The third raises the best pages by these two whose title
contains little besides the words of the query. BM25 cannot see that, because it considers the length of the whole page
only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from crawler.errors import Action, Argument, UsageError
from crawler.page.directives import asked_of
from crawler.search import postgres_text_search
from crawler.search.anchors import matching_anchors
from crawler.search.excerpt import Marked, mark, within
from crawler.search.index_backend import SITE_WEIGHT, SQL
from crawler.search.page_text import page_text
from crawler.search.query import Query, parse_query
from crawler.store.location import db_argument
from crawler.store.protocols import StoreReader
from crawler.store.statements import load_statements

#: The weights of title, anchors, description, keywords, headings, body.
WEIGHTS = (50.0, 20.0, 5.0, 2.0, 5.0, 1.0)
#: By how much popularity raises a score at most, and the popularity (the average page has 1) that raises it by half
#: that.
POPULARITY_SHARE = 0.5
POPULARITY_HALF = 1.0
#: By how much a title raises the score if it contains only words of the query.
TITLE_SHARE = 1.0
#: How many of the best pages by text and popularity are compared by their titles.
CANDIDATES = 200
_TEXTS_IN_MEMORY = 20

_MATCHING_SQLITE = load_statements("crawler.search", "sqlite.sql")["matching"]
_MATCHING_POSTGRES = load_statements("crawler.search", "postgres.sql")["matching"]


@dataclass(frozen=True, slots=True)
class _Dialect:
    """How a database is searched: the definition of the table ``matching``, and the value of ``:match``."""

    matching: str
    with_all: Callable[[Query], str]
    with_some: Callable[[Query], str | None]


_DIALECTS = {
    "sqlite": _Dialect(_MATCHING_SQLITE.format(weights=", ".join(map(str, WEIGHTS))), Query.with_all, Query.with_some),
    "postgres": _Dialect(
        _MATCHING_POSTGRES.format(heaviest=postgres_text_search.HEAVIEST),
        postgres_text_search.with_all,
        postgres_text_search.with_some,
    ),
}


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A page that was found.

    ``score`` compares the hits of one search. ``pagerank`` is ``None`` if ``crawler rank`` was not run. ``in_links``
    counts the pages that link to it, ``in_sites`` the other sites of these pages. ``all_words`` says whether it
    contains all words and phrases of the query. If neither title nor excerpt shows a match, ``anchor`` is the anchor of
    a link to it that does.
    """

    url: str
    site: str
    title: Marked
    excerpt: Marked
    score: float
    all_words: bool
    fetched_at: float
    in_links: int
    in_sites: int
    pagerank: float | None
    anchor: Marked | None = None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The best hits, and how many pages contain all words. ``note`` says if the index is incomplete or out of date."""

    total: int
    hits: tuple[SearchHit, ...]
    note: str


async def search(
    store: StoreReader, words: str, *, now: float, limit: int = 10, site: str | None = None
) -> SearchResult:
    """Search for ``words`` (see :mod:`crawler.search.query`) on all sites, or on ``site`` and the sites below it.

    Pages with all words come first. If these are fewer than ``limit``, pages with some of the words follow. Pages whose
    ``unavailable_after`` is not later than ``now`` (seconds since the epoch) are omitted. Raises :class:`UsageError`
    for a query without words, an unknown site, or a store without an index.
    """
    query = parse_query(words)
    note = await _state(store)
    host = None if site is None else await _known_site(store, site)
    dialect = _DIALECTS[store.dialect]
    total, best = await _find(store, query, dialect.with_all(query), host, limit, now)
    hits = await _hits(store, query, best, all_words=True)
    some = dialect.with_some(query)
    if len(hits) < limit and some is not None:
        _, more = await _find(store, query, some, host, limit, now)
        known = {hit.url for hit in hits}
        rest = [row for row in more if row["url"] not in known][: limit - len(hits)]
        hits += await _hits(store, query, rest, all_words=False)
    return SearchResult(total, tuple(hits), note)


async def _find(
    store: StoreReader, query: Query, match: str, host: str | None, limit: int, now: float
) -> tuple[int, list[dict[str, Any]]]:
    """How many pages match, and the rows of the best of them with their final ``score``."""
    sql = SQL["find"].format(
        matching=_DIALECTS[store.dialect].matching,
        site_weight=SITE_WEIGHT,
        popularity_share=POPULARITY_SHARE,
        popularity_half=POPULARITY_HALF,
    )
    found = await store.query(sql, {"match": match, "host": host, "limit": max(limit, CANDIDATES)})
    rows = [row for row in found if asked_of(row["directives"]).until > now]
    titles = await asyncio.to_thread(mark, query.with_any(), [(row["title"] or "", "") for row in rows])
    for row, (title, _) in zip(rows, titles, strict=True):
        row["score"] *= 1 + TITLE_SHARE * title.share()
    best = sorted(rows, key=lambda row: (-row["score"], row["url_id"]))[:limit]
    return rows[0]["total"] - (len(found) - len(rows)) if rows else 0, best


async def _state(store: StoreReader) -> str:
    """A note for the user on the state of the index. Raises :class:`UsageError` if there is none."""
    rows = await store.query(SQL["index_state"])
    if not rows:
        command = f"crawler index{db_argument(store.name)}"
        raise UsageError("this store has no search index yet; ", Action(command, "crawl.index()"), " builds it")
    if not rows[0]["complete"]:
        return f"the index is not complete; `crawler index{db_argument(store.name)}` completes it"
    if rows[0]["is_behind"]:
        return f"the crawl has continued since the index was built; `crawler index{db_argument(store.name)}` updates it"
    return ""


async def _known_site(store: StoreReader, site: str) -> str:
    """The host in ``example.org``, ``example.org:8080`` or ``https://example.org``, as the statements compare it."""
    readable = site.encode(errors="replace").decode()
    host = (readable.partition("://")[2] or readable).partition("/")[0].lower()
    if not host or not await store.query(SQL["known_site"], {"host": host}):
        status = f"`crawler status{db_argument(store.name)}`"
        raise UsageError(Argument("site", site[:200]), f": the crawl knows no such site; {status} lists them")
    return host


async def _hits(
    store: StoreReader, query: Query, rows: Sequence[dict[str, Any]], *, all_words: bool
) -> list[SearchHit]:
    hits: list[SearchHit] = []
    for start in range(0, len(rows), _TEXTS_IN_MEMORY):
        batch = rows[start : start + _TEXTS_IN_MEMORY]
        bodies = await store.bodies(row["body_id"] for row in batch)
        texts = [bodies[row["body_id"]] for row in batch]
        marked = await asyncio.to_thread(_marked_texts, query.with_any(), batch, texts)
        hits += [
            SearchHit(title=title, excerpt=excerpt, all_words=all_words, **{name: row[name] for name in _COPIED})
            for row, (title, excerpt) in zip(batch, marked, strict=True)
        ]
    return await _with_anchors(store, query, rows, hits)


async def _with_anchors(
    store: StoreReader, query: Query, rows: Sequence[dict[str, Any]], hits: list[SearchHit]
) -> list[SearchHit]:
    """The hits; those without a mark in title and excerpt with the anchor that matched."""
    bare = [row["url_id"] for row, hit in zip(rows, hits, strict=True) if not hit.title.marks + hit.excerpt.marks]
    if not bare:
        return hits
    anchors = await matching_anchors(store, query.with_any(), bare)
    return [replace(hit, anchor=anchors.get(row["url_id"])) for row, hit in zip(rows, hits, strict=True)]


_COPIED = ("url", "site", "score", "fetched_at", "in_links", "in_sites", "pagerank")


def _marked_texts(match: str, rows: Sequence[dict[str, Any]], bodies: Sequence[bytes]) -> list[tuple[Marked, Marked]]:
    """The title and an excerpt of each page, from its text or description; else the beginning of the text.

    NOSNIPPET and ``max-snippet`` of the page bound the excerpt; the title is no part of it.
    """
    texts = [page_text(body, row["charset"], row["content_type"]).text for row, body in zip(rows, bodies, strict=True)]
    titles = [row["title"] or "" for row in rows]
    from_text = mark(match, list(zip(titles, texts, strict=True)))
    from_description = mark(match, [("", row["description"] or "") for row in rows])
    limits = [asked_of(row["directives"]).snippet_chars for row in rows]
    return [
        (title, within(said if said.marks and not excerpt.marks else excerpt, limit))
        for (title, excerpt), (_, said), limit in zip(from_text, from_description, limits, strict=True)
    ]
