"""Searches the index: the matching pages, best first, each with an excerpt in which the words are marked.

The score of a page has three factors. The first is the BM25 of its text; title and anchors weigh most. The second
raises the score of popular pages by up to half, with the saturation ``x / (x + k)`` that Craswell, Robertson, Zaragoza
and Taylor use for evidence that does not depend on the query ("Relevance weighting for query independent evidence",
SIGIR 2005). The popularity ``x`` is relative to the average page: the PageRank, if ``crawler rank`` was run, else the
numbers of linking pages and sites that the index counted. The third raises the best pages by these two whose title
contains little besides the words of the query. BM25 cannot see that, because it considers the length of the whole page
only. Of pages in several languages, those in the language of the best ones come first.

BM25 costs about 2 µs for each page that matches, and a search reads all places of its words in the index several
times. So if more than ``BROAD`` pages match, the search reads the small index of the heads of pages instead, which has
the fields where words weigh most: title, anchors, headings. If very few pages have the words there, the pages with the
most links are ranked, too.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from crawler.clock import monotonic_s
from crawler.errors import Action, Argument, QueryInterrupted, UsageError
from crawler.page.directives import asked_of
from crawler.page.texts import MainText
from crawler.search import postgres_text_search
from crawler.search.anchors import matching_anchors
from crawler.search.excerpt import Marked, mark, within
from crawler.search.forms import with_forms
from crawler.search.index_backend import SITE_WEIGHT, SQL
from crawler.search.prefixes import without_wide_prefixes
from crawler.search.query import Phrase, Query, parse_query
from crawler.search.signs import known_with_signs
from crawler.search.spelling import suggestion
from crawler.store.computed import behind_sentence
from crawler.store.location import db_argument
from crawler.store.statements import load_statements
from crawler.texts.kept import kept_texts
from crawler.url import NotCrawlable, canonicalise

if TYPE_CHECKING:
    from crawler.store.sections import Store

#: The weights of title, anchors, description, keywords, headings, body.
WEIGHTS = (50.0, 20.0, 5.0, 2.0, 5.0, 1.0)
#: By how much popularity raises a score at most, and the popularity (the average page has 1) that raises it by half
#: that.
POPULARITY_SHARE = 0.5
POPULARITY_HALF = 1.0
#: By how much a title raises the score if it contains only words of the query.
TITLE_SHARE = 1.0
#: By what the score of a page is multiplied that states another language than most of the best pages do, by their
#: scores, and how many these are.
OTHER_LANGUAGE, BEST = 0.5, 50
#: How many of the best pages by text and popularity are compared by their titles.
CANDIDATES = 200
#: If more pages match, those are ranked that have the words in the fields of FIELDS, the first ones that few enough
#: have, and with them so many of the pages with the most links if fewer than CANDIDATES have them there.
BROAD = 5_000
#: A query whose words so few pages have may be misspelt.
FEW = 2
#: How long a search may take in seconds. A hundred times as long as nearly all take.
MOST_S = 5.0
FIELDS = ("title anchors description keywords headings", "title anchors", "title")
_TEXTS_IN_MEMORY = 20
_MOST_VALUES = 12  # of a facet
_ALL = 1 << 60
_NONE = '""'  # an FTS5 expression that matches no page
_ELLIPSIS = "…"
_IN_FRAGMENTS = "!$&'()*+,;=:@/?-._~%"  # RFC 3986, 3.5; a percent sign may begin an escape that the page wrote


#: The value of ``:match`` for a query, with the words in these fields (empty: in any), and whether words in a row are
#: to raise the score; ``None`` if it would match no page.
_Expression = Callable[[Query, str, bool], str | None]


@dataclass(frozen=True, slots=True)
class _Dialect:
    """How a database is searched: the definition of the table ``matching``, and the value of ``:match``.

    ``facets`` reads the table ``facet`` as JSON. ``count`` counts matches; a database without it ranks all pages that
    match. ``matching`` and ``count`` are given for each table of the index. ``rows_of_site`` bounds the rows of a site.
    ``knows`` has a row if a page matches the value of ``match`` for a phrase.
    """

    matching: Mapping[str, str]
    facets: str
    with_all: _Expression
    with_some: _Expression
    knows: str
    match: Callable[[Phrase], str | None]
    count: Mapping[str, str] | None = None
    rows_of_site: str | None = None


def _dialects() -> dict[str, _Dialect]:
    sqlite = load_statements("crawler.search", "sqlite.sql")
    postgres = load_statements("crawler.search", "postgres.sql")
    parts = {"filters": SQL["filters"], "wanted": SQL["wanted"]}
    weights = {"search_text": WEIGHTS, "search_head": WEIGHTS[:-1]}
    return {
        "sqlite": _Dialect(
            {
                table: sqlite["matching"].format(table=table, weights=", ".join(map(str, of_table)), **parts)
                for table, of_table in weights.items()
            },
            sqlite["facets"],
            Query.with_all,
            Query.with_some,
            sqlite["knows"],
            str,
            {table: sqlite["count"].format(table=table, **parts) for table in weights},
            sqlite["rows_of_site"].format(**parts),
        ),
        "postgres": _Dialect(
            {"search_text": postgres["matching"].format(heaviest=postgres_text_search.HEAVIEST, **parts)},
            postgres["facets"],
            lambda query, fields, in_a_row: postgres_text_search.with_all(query),
            lambda query, fields, in_a_row: postgres_text_search.with_some(query),
            postgres["knows"],
            postgres_text_search.tsquery,
        ),
    }


_DIALECTS = _dialects()


@dataclass(frozen=True, slots=True)
class Filters:
    """Which pages are searched; ``None`` is any.

    ``site`` is a host (with or without port) and the hosts below it, ``language`` a primary subtag (BCP 47) that the
    page states, ``depth`` the exact distance from the seeds, and ``since`` the earliest time of the fetch, in seconds
    since the epoch. ``similar_to`` is the URL of a page whose near-duplicates are searched, itself included.
    """

    site: str | None = None
    language: str | None = None
    depth: int | None = None
    since: float | None = None
    similar_to: str | None = None


@dataclass(frozen=True, slots=True)
class SearchSection:
    """The section of a page that the excerpt is from: its heading, and the address that leads there."""

    heading: str
    url: str


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A page that was found.

    ``score`` compares the hits of one search. ``pagerank`` is ``None`` if ``crawler rank`` was not run. ``in_links``
    counts the pages that link to it, ``in_sites`` the other sites of these pages. ``all_words`` says whether it
    contains all words and phrases of the query. If neither title nor excerpt shows a match, ``anchor`` is the anchor of
    a link to it that does. ``section`` is ``None`` if the excerpt shows no match, or the page names no element near the
    heading. ``language`` is empty if the page states none. ``similar`` counts its near-duplicates, which are not shown
    unless they are asked for.
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
    language: str
    depth: int
    anchor: Marked | None = None
    section: SearchSection | None = None
    similar: int = 0


@dataclass(frozen=True, slots=True)
class Facet:
    """A value by which the pages found can be narrowed, and how many of them have it.

    ``facet`` is ``site``, ``language``, ``depth`` or ``since``; a value of ``since`` is ``day``, ``week``, ``month`` or
    ``year``.
    """

    facet: str
    value: str
    pages: int


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The best hits, and how many pages contain all words.

    If more than 5,000 pages match, ``total`` is 5,000, ``is_more`` is true, and only ``ranked`` of them were compared:
    those with the words in title, anchors or headings, or those with the most links. ``some`` counts the pages that
    contain only some of the words, if they were searched for. ``note`` says if the index is incomplete, or what of the
    index, the ranks and the near-duplicates is older than the crawl.
    ``facets`` are those of the ranked pages, if asked for. ``excluded`` are the words that no page may have.

    ``suggestion`` is the query in another spelling, if no page has all words. If pages have all words of the
    suggestion, and few or none those of the query, the hits are those of the suggestion. Then ``as_typed`` is a query
    that searches for the words as they were typed.
    """

    total: int
    is_more: bool
    hits: tuple[SearchHit, ...]
    note: str
    ranked: int = 0
    some: int = 0
    facets: tuple[Facet, ...] = ()
    suggestion: str | None = None
    as_typed: str | None = None
    excluded: tuple[str, ...] = ()


class NoIndex(UsageError):
    """The store has no search index."""


class TookTooLong(UsageError):
    """A search was interrupted."""


async def search(
    store: Store,
    words: str,
    *,
    now: float,
    limit: int = 10,
    offset: int = 0,
    filters: Filters | None = None,
    facets: bool = False,
) -> SearchResult:
    """Search for ``words`` (see :mod:`crawler.search.query`) among the pages that pass ``filters``.

    Pages with all words come first. If these are fewer than ``limit``, pages with some of the words follow. ``offset``
    is how many of the best hits are left out. Pages whose ``unavailable_after`` is not later than ``now`` (seconds
    since the epoch) are omitted. Raises :class:`UsageError` for a query without words or an unknown site,
    :class:`NoIndex` for a store without an index, and :class:`TookTooLong` after :data:`MOST_S`.
    """
    try:
        async with store.deadline(MOST_S):
            until = monotonic_s() + MOST_S
            return await _search(store, words, now, limit, offset, filters or Filters(), facets, until)
    except QueryInterrupted:
        raise TookTooLong(f"the search took longer than {MOST_S:g} s; use more words, or rarer ones") from None


async def _search(
    store: Store, words: str, now: float, limit: int, offset: int, filters: Filters, facets: bool, until: float
) -> SearchResult:
    found = await _answer(store, words, now, limit, offset, filters, facets, until)
    if found.is_more or found.total > FEW:
        return found
    meant = await suggestion(store, words, few=found.total > 0)
    if meant is None:
        return found
    corrected = await _answer(store, meant.words, now, limit, offset, filters, facets, until)
    if corrected.total > found.total:
        return replace(corrected, suggestion=meant.words, as_typed=meant.as_typed)
    return found if found.total else replace(found, suggestion=meant.words)


async def _answer(
    store: Store, words: str, now: float, limit: int, offset: int, filters: Filters, facets: bool, until: float
) -> SearchResult:
    """The result for these words, in this spelling."""
    parse_query(words)  # a mistake is told before the state of the index
    note = await _state(store)
    dialect = _DIALECTS[store.dialect]
    query = parse_query(words, await known_with_signs(store, words, dialect.knows, dialect.match))
    query = await with_forms(store, query, filters.language)
    searched = await without_wide_prefixes(store, query)
    search = _Search(store, searched, await _values(store, filters), now, offset + limit, until)
    found = await search.find(dialect.with_all, facets=facets)
    hits = await _hits(store, query, found.best[offset:], until, all_words=True)
    more = 0
    if len(hits) < limit and not found.is_more and dialect.with_some(query, "", True) is not None:
        others = await search.find(dialect.with_some)
        known = set(map(search.shown_as, found.best))
        rest = [row for row in others.best if search.shown_as(row) not in known]
        more = max(others.ranked - found.ranked, len(rest))
        start = max(0, offset - len(found.best))
        hits += await _hits(store, query, rest[start : start + limit - len(hits)], until, all_words=False)
    excluded = tuple(phrase.text + "*" * phrase.is_prefix for phrase in query.excluded)
    return SearchResult(
        found.total, found.is_more, tuple(hits), note, found.ranked, more, found.facets, excluded=excluded
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """The best pages that match an expression, with their final ``score``; see :class:`SearchResult`."""

    ranked: int
    is_more: bool
    best: list[dict[str, Any]]
    facets: tuple[Facet, ...]

    @property
    def total(self) -> int:
        return BROAD if self.is_more else self.ranked


@dataclass(frozen=True, slots=True)
class _Ranking:
    """Which pages are ranked: those of ``table`` that match and are among the first ``place`` in the order of links.

    The pages that match ``head`` by title, anchors or headings are ranked in any place. The search stops at ``most``.
    """

    table: str
    match: str
    place: int = _ALL
    head: str = _NONE
    most: int = _ALL


@dataclass(frozen=True, slots=True)
class _Search:
    """The statements of one search. ``values`` are those of the filters, ``depth`` is how many hits are wanted.

    The search ends ``until``, in seconds of :func:`crawler.clock.monotonic_s`.
    """

    store: Store
    query: Query
    values: dict[str, object]
    now: float
    depth: int
    until: float

    @property
    def _dialect(self) -> _Dialect:
        return _DIALECTS[self.store.dialect]

    def shown_as(self, row: dict[str, Any]) -> int:
        """What a page is shown as: a number that is the same for the near-duplicates of which one is shown."""
        number = row["cluster_id" if self.values["cluster"] is None else "url_id"]
        assert isinstance(number, int)
        return number

    @property
    def _counts(self) -> bool:
        return self._dialect.count is not None

    async def find(self, expression: _Expression, *, facets: bool = False) -> _Found:
        """The best pages that match."""
        ranking = _Ranking("search_text", expression(self.query, "", True) or "", most=BROAD + 1)
        found: list[dict[str, Any]] = []
        # To count phrases takes about as long as to rank the pages. To count words takes much less.
        is_broad = not self.query.phrases and await self._count(ranking, expression(self.query, "", False)) > BROAD
        if not is_broad:
            found = await self._rank(ranking, facets)
            is_broad = self._counts and bool(found) and found[0]["total"] > BROAD
        if is_broad:
            found = await self._rank(await self._narrowed(expression), facets)
        rows = [row for row in found if row["is_page"] and asked_of(row["directives"]).until > self.now]
        candidates = rows[:CANDIDATES]
        titles = [(row["title"] or "", "") for row in candidates]
        marked = await asyncio.to_thread(mark, self.query.with_any(), titles, self.until)
        for row, (title, _) in zip(candidates, marked, strict=True):
            row["score"] *= 1 + TITLE_SHARE * title.share()
        best = _in_one_language(candidates) + rows[CANDIDATES:]
        first_of: dict[int, dict[str, Any]] = {}
        for row in best:
            first_of.setdefault(self.shown_as(row), row)
        ranked = found[0]["total"] - (len(found) - len(rows)) if found else 0
        best = list(first_of.values())
        counted = json.loads(found[0]["facets"]) if found and facets else []
        shown = tuple(Facet(*values) for values in counted if values[-1])
        return _Found(ranked, is_broad, best[: self.depth], shown)

    async def _rank(self, ranking: _Ranking, facets: bool) -> list[dict[str, Any]]:
        """The best of the pages to rank, with the number of all of them (up to one more than ``BROAD``)."""
        sql = SQL["find"].format(
            matching=self._dialect.matching[ranking.table],
            facet=SQL["facet"].format(most=_MOST_VALUES),
            facets=self._dialect.facets if facets else "NULL",
            wanted=SQL["wanted"],
            site_weight=SITE_WEIGHT,
            popularity_share=POPULARITY_SHARE,
            popularity_half=POPULARITY_HALF,
        )
        values = {"match": ranking.match, "place": ranking.place, "head": ranking.head, "most": ranking.most}
        limit = max(self.depth, CANDIDATES)
        while True:
            found = await self.store.query(sql, {**values, **self.values, "now": self.now, "limit": limit})
            if len(found) < limit or len(set(map(self.shown_as, found))) >= self.depth:
                return found
            limit *= 4  # most of the best pages are near-duplicates that are not shown

    async def _narrowed(self, expression: _Expression) -> _Ranking:
        """The most promising pages, if more than ``BROAD`` match."""
        # The words that no page may have are looked for in the whole page.
        table = "search_text" if self.query.excluded else "search_head"
        fewest = max(CANDIDATES, self.depth)
        ranking = _Ranking("search_text", expression(self.query, "", False) or "")
        for fields in FIELDS:
            narrower = _Ranking("search_head", expression(self.query, fields, True) or "")
            match = expression(self.query, fields, False) or _NONE
            pages = await self._count(narrower, match)
            if pages <= BROAD and self.query.excluded:
                pages = await self._count(replace(narrower, table=table), match)
            if pages < fewest:
                return replace(ranking, place=BROAD, head=match)
            ranking = replace(narrower, table=table)
            if pages <= BROAD:
                return ranking
        return replace(ranking, place=BROAD)

    async def _count(self, ranking: _Ranking, match: str | None) -> int:
        """How many pages match, up to one more than ``BROAD``; 0 if the database ranks all pages that match."""
        if self._dialect.count is None:
            return 0
        values = {"match": match, "place": ranking.place, "most": BROAD + 1, **self.values}
        (row,) = await self.store.query(self._dialect.count[ranking.table], values)
        return int(row["n"])


def _in_one_language(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows in the order of their scores, after lowering those of pages in another language than the best ones."""
    scores = Counter[str]()
    for row in sorted(rows, key=_best_first)[:BEST]:
        scores[row["language"]] += row["score"]
    del scores[""]
    for row in rows if scores else ():
        if row["language"] not in ("", max(scores, key=lambda language: scores[language])):
            row["score"] *= OTHER_LANGUAGE
    return sorted(rows, key=_best_first)


def _best_first(row: dict[str, Any]) -> tuple[float, int]:
    return -row["score"], row["url_id"]


async def _state(store: Store) -> str:
    """A note for the user if results may be out of date. Raises :class:`NoIndex` if there is no index."""
    rows = await store.query(SQL["index_state"])
    if not rows:
        command = f"crawler index{db_argument(store.name)}"
        emptied = "or forgetting pages has emptied it"
        raise NoIndex(
            f"this store has no search index yet, {emptied}; ", Action(command, "crawl.index()"), " builds it"
        )
    if not rows[0]["complete"]:
        return f"the index is not complete; `crawler index{db_argument(store.name)}` completes it"
    return behind_sentence(await store.computed(), store.name)


async def _values(store: Store, filters: Filters) -> dict[str, object]:
    """The parameters of the filters. Raises :class:`UsageError` for an unknown site."""
    host = None if filters.site is None else await _known_site(store, filters.site)
    values: dict[str, object] = {"language": filters.language, "depth": filters.depth, "since": filters.since}
    values |= {"host": host, "first_row": 0, "last_row": _ALL}
    if host is not None and (rows_of_site := _DIALECTS[store.dialect].rows_of_site):
        (rows,) = await store.query(rows_of_site, {"host": host})
        values |= rows
    values["cluster"] = None if filters.similar_to is None else await _known_cluster(store, filters.similar_to)
    return values


async def _known_cluster(store: Store, url: str) -> int:
    """The cluster of a page. Raises :class:`UsageError` if the page has no near-duplicates."""
    try:
        rows = await store.query(SQL["cluster"], {"url_id": await store.find(canonicalise(url))})
    except NotCrawlable:
        rows = []
    if not rows:
        raise UsageError(Argument("similar_to", url[:200]), ": the store knows no near-duplicates of this page")
    return int(rows[0]["cluster_id"])


async def _known_site(store: Store, site: str) -> str:
    """The host in ``example.org``, ``example.org:8080`` or ``https://example.org``, as the statements compare it."""
    readable = site.encode(errors="replace").decode()
    host = (readable.partition("://")[2] or readable).partition("/")[0].lower()
    if not host or not await store.query(SQL["known_site"], {"host": host}):
        status = f"`crawler status{db_argument(store.name)}`"
        raise UsageError(Argument("site", site[:200]), f": the crawl knows no such site; {status} lists them")
    return host


async def _hits(
    store: Store, query: Query, rows: Sequence[dict[str, Any]], until: float, *, all_words: bool
) -> list[SearchHit]:
    hits: list[SearchHit] = []
    for start in range(0, len(rows), _TEXTS_IN_MEMORY):
        batch = rows[start : start + _TEXTS_IN_MEMORY]
        kept = await kept_texts(store, (row["body_id"] for row in batch))
        pages = [kept.get(row["body_id"], _NO_TEXT) for row in batch]
        shown = await asyncio.to_thread(_shown_texts, query.with_any(), batch, pages, until)
        hits += [
            SearchHit(**parts, all_words=all_words, **{name: row[name] for name in _COPIED})
            for row, parts in zip(batch, shown, strict=True)
        ]
    return await _with_anchors(store, query, rows, hits)


async def _with_anchors(
    store: Store, query: Query, rows: Sequence[dict[str, Any]], hits: list[SearchHit]
) -> list[SearchHit]:
    """The hits; those without a mark in title and excerpt with the anchor that matched."""
    bare = [row["url_id"] for row, hit in zip(rows, hits, strict=True) if not hit.title.marks + hit.excerpt.marks]
    if not bare:
        return hits
    anchors = await matching_anchors(store, query.with_any(), bare)
    return [replace(hit, anchor=anchors.get(row["url_id"])) for row, hit in zip(rows, hits, strict=True)]


_COPIED = ("url", "site", "score", "fetched_at", "in_links", "in_sites", "pagerank", "language", "depth", "similar")


_NO_TEXT = MainText("", "")  # of a page that changed since the index was built


def _shown_texts(
    match: str, rows: Sequence[dict[str, Any]], pages: Sequence[MainText], until: float
) -> list[dict[str, Any]]:
    """The title, an excerpt and its section of each page: from its text or description; else the beginning of the text.

    NOSNIPPET and ``max-snippet`` of the page bound the excerpt; the title is no part of it.
    """
    from_text = mark(match, [(row["title"] or "", page.text) for row, page in zip(rows, pages, strict=True)], until)
    from_description = mark(match, [("", row["description"] or "") for row in rows], until)
    shown = []
    for row, page, (title, excerpt), (_, said) in zip(rows, pages, from_text, from_description, strict=True):
        limit = asked_of(row["directives"]).snippet_chars
        is_said = bool(said.marks and not excerpt.marks)
        section = None if is_said or not limit else _section(row["url"], page, excerpt)
        shown.append({"title": title, "excerpt": within(said if is_said else excerpt, limit), "section": section})
    return shown


def _section(url: str, page: MainText, excerpt: Marked) -> SearchSection | None:
    """The section of the first match in an excerpt of the text of a page."""
    if not excerpt.marks:
        return None
    start = page.text.find(excerpt.text.strip(_ELLIPSIS))
    first = excerpt.marks[0][0] - (len(excerpt.text) - len(excerpt.text.lstrip(_ELLIPSIS)))
    above = [section for section in page.sections if section.start <= start + first] if start >= 0 else []
    named = next((section for section in reversed(above) if section.anchor), None)
    if named is None:
        return None
    return SearchSection(named.heading, f"{url}#{quote(named.anchor, safe=_IN_FRAGMENTS)}")
