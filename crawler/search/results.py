"""Searching: the pages that match, best first, each with an excerpt in which the words are marked.

A page's score has three factors. That of its text is BM25, where what the page and others call it weighs most. It is
raised by up to half for popular pages, with the saturation that Craswell, Robertson, Zaragoza and Taylor use for what
does not depend on the query ("Relevance weighting for query independent evidence", SIGIR 2005): ``x / (x + k)``.
Popularity ``x`` is in units of the average page: the PageRank that ``crawler rank`` has left, or else the numbers of
linking pages and sites that the index counted. Of the best pages by these two, those whose title says little else than
what is asked for move up: BM25 does not see it, as it reckons with the length of the whole page alone.
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
from crawler.search.excerpt import Marked, mark
from crawler.search.index_backend import SITE_COUNTS
from crawler.search.page_text import page_text
from crawler.search.query import Query, parse_query
from crawler.store.protocols import Store
from crawler.store.sqlite.connection import decompress

#: Of title, anchors, description, keywords, headings, body.
WEIGHTS = (50.0, 20.0, 5.0, 2.0, 5.0, 1.0)
#: By how much popularity can raise a score, and how popular (1: as the average page) a page is to get half of that.
POPULARITY_SHARE = 0.5
POPULARITY_HALF = 1.0
#: By how much a title can raise it that has no other words than those asked for.
TITLE_SHARE = 1.0
#: So many of the best by text and popularity are compared by their titles.
CANDIDATES = 200
_READ_AT_ONCE = 20  # pages whose text is in memory

# Whether a site is that of ?2 (a host, with or without port) or below it; every one if there is no ?2.
_ON_SITE = (
    "(CAST(?2 AS TEXT) IS NULL OR instr({0} || ':', '://' || ?2 || ':') > 0 OR instr({0} || ':', '.' || ?2 || ':') > 0)"
)

_FTS5 = f"""
matching AS MATERIALIZED (
  SELECT rowid AS row_id, -bm25(search_text, {", ".join(map(str, WEIGHTS))}) AS text_score
  FROM search_text WHERE search_text MATCH ?1),
found AS (SELECT url_id, text_score FROM matching JOIN search_page USING (row_id))"""

_FIND = f"""
WITH {{found}},
average AS MATERIALIZED (SELECT (SELECT count(*) FROM rank) AS ranked, mean_inbound FROM search_state),
scored AS (
  SELECT s.url_id, text_score, s.in_links, s.in_sites, r.pagerank,
    CASE WHEN ranked > 0 THEN coalesce(r.pagerank * ranked, 0)
         WHEN mean_inbound > 0 THEN (s.in_links + {SITE_COUNTS} * s.in_sites) / mean_inbound
         ELSE 0 END AS x
  FROM found f JOIN search_page s USING (url_id) CROSS JOIN average LEFT JOIN rank r ON r.url_id = s.url_id)
SELECT c.url_id, s.name || u.path AS url, s.name AS site, p.title, p.description, p.fetched_at,
  p.body_id, p.charset, p.content_type, p.directives, c.in_links, c.in_sites, c.pagerank,
  text_score * (1 + {POPULARITY_SHARE} * x / (x + {POPULARITY_HALF})) AS score, count(*) OVER () AS total
FROM scored c JOIN page p ON p.url_id = c.url_id AND p.noindex = 0 AND p.body_id IS NOT NULL
JOIN url u ON u.id = c.url_id JOIN site s ON s.id = c.url_id >> 39
LEFT JOIN revisit v ON v.url_id = u.id
WHERE {_ON_SITE.format("s.name")}
  AND CASE u.state WHEN 'queued' THEN coalesce(v.state, 'fetched') ELSE u.state END = 'fetched'
ORDER BY score DESC, c.url_id LIMIT ?3
"""


@dataclass(frozen=True, slots=True)
class _Dialect:
    """One kind of store: the table ``found`` of pages that match ?1, with their ``text_score``, and what ?1 is."""

    found: str
    with_all: Callable[[Query], str]
    with_some: Callable[[Query], str | None]


_DIALECTS = {
    "sqlite": _Dialect(_FTS5, Query.with_all, Query.with_some),
    "postgres": _Dialect(postgres_text_search.FOUND, postgres_text_search.with_all, postgres_text_search.with_some),
}


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A page that was found. ``score`` compares hits of one search; ``pagerank`` is ``None`` where none is known.

    ``in_links`` pages link to it, ``in_sites`` other sites; ``all_words`` says whether it has all that was asked for.
    Where neither title nor excerpt shows any of that, ``anchor`` is what a link to it says, if it was found by that.
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
    """The best hits, and how many pages have all the words; ``note`` says if the index is behind the crawl."""

    total: int
    hits: tuple[SearchHit, ...]
    note: str


async def search(store: Store, words: str, *, now: float, limit: int = 10, site: str | None = None) -> SearchResult:
    """Search for ``words`` (see :mod:`crawler.search.query`) on all sites, or on ``site`` and those below it.

    Pages with all the words come first; if these are fewer than ``limit``, pages with some of them follow. Pages that
    asked to be shown until ``now`` at most (``unavailable_after``; in seconds since the epoch) are not among them.
    Raises :class:`UsageError` for a query without words, an unknown site, or a store without index.
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
    store: Store, query: Query, match: str, host: str | None, limit: int, now: float
) -> tuple[int, list[dict[str, Any]]]:
    """How many pages match, and rows of :data:`_FIND` for the best of them, with the ``score`` that counts."""
    sql = _FIND.replace("{found}", _DIALECTS[store.dialect].found)
    found = await store.query(sql, (match, host, max(limit, CANDIDATES)))
    rows = [row for row in found if asked_of(row["directives"]).until > now]
    titles = await asyncio.to_thread(mark, query.with_any(), [(row["title"] or "", "") for row in rows])
    for row, (title, _) in zip(rows, titles, strict=True):
        row["score"] *= 1 + TITLE_SHARE * title.share()
    best = sorted(rows, key=lambda row: (-row["score"], row["url_id"]))[:limit]
    return rows[0]["total"] - (len(found) - len(rows)) if rows else 0, best


async def _state(store: Store) -> str:
    rows = await store.query(
        "SELECT complete, last_request < (SELECT max(id) FROM request) AS behind FROM search_state"
    )
    if not rows:
        raise UsageError("this store has no search index yet; ", Action("crawler index", "crawl.index()"), " builds it")
    if not rows[0]["complete"]:
        return "the index is not complete; `crawler index` goes on with it"
    return (
        "the crawl went on since the index was built; `crawler index` takes in what is new" if rows[0]["behind"] else ""
    )


async def _known_site(store: Store, site: str) -> str:
    """``example.org``, ``example.org:8080`` or ``https://example.org``, as the query compares it."""
    readable = site.encode(errors="replace").decode()
    host = (readable.partition("://")[2] or readable).partition("/")[0].lower()
    rows = await store.query(f"SELECT 1 FROM site WHERE {_ON_SITE.format('name').replace('?2', '?1')} LIMIT 1", (host,))
    if not host or not rows:
        raise UsageError(Argument("site", site[:200]), ": the crawl knows no such site; `crawler status` lists them")
    return host


async def _hits(store: Store, query: Query, rows: Sequence[dict[str, Any]], *, all_words: bool) -> list[SearchHit]:
    hits: list[SearchHit] = []
    for start in range(0, len(rows), _READ_AT_ONCE):
        batch = rows[start : start + _READ_AT_ONCE]
        bodies = [await store.query("SELECT data FROM body WHERE id = ?", (row["body_id"],)) for row in batch]
        marked = await asyncio.to_thread(_show, query.with_any(), batch, [body[0]["data"] for body in bodies])
        hits += [
            SearchHit(title=title, excerpt=excerpt, all_words=all_words, **{name: row[name] for name in _AS_THEY_ARE})
            for row, (title, excerpt) in zip(batch, marked, strict=True)
        ]
    return await _with_anchors(store, query, rows, hits)


async def _with_anchors(
    store: Store, query: Query, rows: Sequence[dict[str, Any]], hits: list[SearchHit]
) -> list[SearchHit]:
    """The hits, where nothing is marked with the anchor that they were found by."""
    bare = [row["url_id"] for row, hit in zip(rows, hits, strict=True) if not hit.title.marks + hit.excerpt.marks]
    if not bare:
        return hits
    anchors = await matching_anchors(store, query.with_any(), bare)
    return [replace(hit, anchor=anchors.get(row["url_id"])) for row, hit in zip(rows, hits, strict=True)]


_AS_THEY_ARE = ("url", "site", "score", "fetched_at", "in_links", "in_sites", "pagerank")


def _show(match: str, rows: Sequence[dict[str, Any]], bodies: Sequence[bytes]) -> list[tuple[Marked, Marked]]:
    """Title and excerpt: where the words stand in the text, or else in the description, or else how the text begins."""
    texts = [
        page_text(decompress(body), row["charset"], row["content_type"]).text
        for row, body in zip(rows, bodies, strict=True)
    ]
    titles = [row["title"] or "" for row in rows]
    from_text = mark(match, list(zip(titles, texts, strict=True)))
    from_description = mark(match, [("", row["description"] or "") for row in rows])
    return [
        (title, said if said.marks and not excerpt.marks else excerpt)
        for (title, excerpt), (_, said) in zip(from_text, from_description, strict=True)
    ]
