"""Searches the index: the matching pages, best first, each with an excerpt in which the words are marked.

The score of a page has four factors. The first is the BM25 of its text; title and anchors weigh most. The second is the
share of the words that the page has, the rarer ones with more weight: pages with all words and pages with some are one
list. The third raises the score of popular pages that have all words by up to a quarter, with the saturation
``x / (x + k)`` that Craswell, Robertson, Zaragoza and Taylor use for evidence that does not depend on the query
("Relevance weighting for query independent evidence", SIGIR 2005). The popularity ``x`` is relative to the average
page: the PageRank, if ``crawler rank`` was run, else the numbers of linking pages and sites that the index counted. The
fourth raises the best pages by these whose title contains little besides the words of the query, and whose title and
path contain many of the words (:mod:`crawler.search.names`). BM25 cannot see that, because it considers the length of
the whole page only. Of pages in several languages, those in the language of the best
ones come first.

BM25 costs about 2 µs for each page that matches, and a search reads all places of its words in the index several
times. So if more than ``BROAD`` pages match, the search reads the small index of the heads of pages instead, which has
the fields where words weigh most: title, anchors, headings. If very few pages have the words there, the pages with the
most links are ranked, too.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from crawler.errors import Argument, QueryInterrupted, UsageError
from crawler.page.directives import asked_of
from crawler.search.document import Document
from crawler.search.excerpt import EXCERPT_CHARS, Marked, mark, matching_anchors, within
from crawler.search.index_file import INDEX, SITE_WEIGHT, Index, NoIndex, crawl_of, index_path, no_index, open_index
from crawler.search.names import Named
from crawler.search.query import Phrase, Query, parse_query
from crawler.search.tokenizer import tokenize
from crawler.search.vocabulary import Vocabulary
from crawler.store.computed import REFRESH, Computed, behind_sentence
from crawler.store.location import db_argument
from crawler.store.statements import load_statements
from crawler.url import NotCrawlable, canonicalise

if TYPE_CHECKING:
    from crawler.store.sections import Store

SQL = load_statements("crawler.search")

#: The weights of title, anchors, headings, body.
WEIGHTS = (50.0, 20.0, 5.0, 1.0)
#: By how much popularity raises a score at most, and the popularity (the average page has 1) that raises it by half
#: that.
POPULARITY_SHARE = 0.25
POPULARITY_HALF = 1.0
#: By how much a title raises the score if it contains only words of the query, and by how much the names of a page do
#: if they have all words of the query.
TITLE_SHARE, NAMED_SHARE = 1.0, 1.0
#: By what the score of a page is multiplied that states another language than most of the best pages do, by their
#: scores.
OTHER_LANGUAGE = 0.5
#: How many of the best pages by text and popularity are compared by their titles and languages.
CANDIDATES = 50
#: If more pages match, those are ranked that have the words in the fields of FIELDS, the first ones that few enough
#: have, and with them so many of the pages with the most links if fewer than CANDIDATES have them there.
BROAD = 2_000
FIELDS = ("title anchors headings", "title")
#: A query whose words so few pages have may be misspelt.
FEW = 2
#: How long a search may take in seconds. A hundred times as long as nearly all take.
MOST_S = 5.0
_TEXTS_IN_MEMORY = 20
_MOST_VALUES = 12  # of a facet
_ALL = 1 << 60
_NONE = '""'  # an FTS5 expression that matches no page
_ELLIPSIS = "…"
_IN_FRAGMENTS = "!$&'()*+,;=:@/?-._~%"  # RFC 3986, 3.5; a percent sign may begin an escape that the page wrote


_HAS_NOT = "m.row_id NOT IN (SELECT rowid FROM search_text WHERE search_text MATCH :word_{})"
_FILTERS = ("host", "cluster", "language", "depth", "since")
_PARTS = {"filters": INDEX["filters"], "wanted": INDEX["wanted"]}
#: The weights of the columns of each table.
_WEIGHTS = {"search_text": WEIGHTS, "search_head": WEIGHTS[:-1]}


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

    If more than 2,000 pages match, ``total`` is 2,000, ``is_more`` is true, and only ``ranked`` of them were compared:
    those with the words in title, anchors or headings, or those with the most links. ``some`` counts the pages that
    contain only some of the words, and were compared. ``note`` says if the index is incomplete, or what of the
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


class UnknownFilter(UsageError):
    """A filter names a site or a page that is not known."""


class TookTooLong(UsageError):
    """A search was interrupted."""


async def search(
    store: Store,
    db: str,
    words: str,
    *,
    now: float,
    limit: int = 10,
    offset: int = 0,
    filters: Filters | None = None,
    facets: bool = False,
) -> SearchResult:
    """Search for ``words`` (see :mod:`crawler.search.query`) among the pages that pass ``filters``.

    ``store`` is the one at ``db``. ``offset`` is how many of the best hits are left out. Pages whose
    ``unavailable_after`` is not later than ``now`` (seconds since the epoch) are omitted. Raises :class:`UsageError`
    for a query without words or an unknown site, :class:`NoIndex` for a store without an index, and
    :class:`TookTooLong` after :data:`MOST_S`.
    """
    parse_query(words)  # a mistake is told before the state of the index
    try:
        async with open_index(await index_path(store, db), MOST_S) as index, store.deadline(MOST_S):
            note = await _state(store, index)
            wanted = filters or Filters()
            values = await _values(store, index, wanted) | {"now": now}
            vocabulary = Vocabulary(index, wanted.language)
            found = await _Search(store, index, vocabulary, values, offset, offset + limit, facets).corrected(words)
            return replace(found, note=note)
    except NoIndex as error:
        raise no_index(error, db) from None
    except QueryInterrupted:
        raise TookTooLong(f"the search took longer than {MOST_S:g} s; use more words, or rarer ones") from None


@dataclass(frozen=True, slots=True)
class _Ranking:
    """Which pages are ranked: those of ``table`` that match and are among the first ``place`` in the order of links.

    The pages that match ``head`` by title, anchors or headings are ranked in any place. The search stops at ``most``.
    A page loses the shares ``weights`` of its score for those of the expressions ``words`` that it does not match.
    """

    table: str
    match: str
    place: int = _ALL
    head: str = _NONE
    most: int = _ALL
    weights: tuple[float, ...] = ()
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Search:
    """What is searched. ``values`` are the time and the filters; the hits ``first`` to ``last`` are wanted."""

    store: Store
    index: Index
    vocabulary: Vocabulary
    values: dict[str, Any]
    first: int
    last: int
    facets: bool

    async def corrected(self, words: str) -> SearchResult:
        found = await self._answer(words)
        if found.is_more or found.total > FEW:
            return found
        meant = await self.vocabulary.suggestion(words, few=found.total > 0)
        if meant is None:
            return found
        corrected = await self._answer(meant.words)
        if corrected.total > found.total:
            return replace(corrected, suggestion=meant.words, as_typed=meant.as_typed)
        return found if found.total else replace(found, suggestion=meant.words)

    async def _answer(self, words: str) -> SearchResult:
        """The result for these words, in this spelling."""
        typed = await self.vocabulary.query(words)
        query = await self.vocabulary.without_wide_prefixes(typed)
        weights, counts, common = await self._weights(query)
        found, is_broad = await self._found(query, _with_some(query, counts, weights[len(query.phrases) :], common))
        rows = await self._known(found)
        candidates = rows[:CANDIDATES]
        named = Named((*((phrase,) for phrase in query.phrases), *query.words), weights)
        for row in candidates:
            title = row["title"] or ""
            row["score"] *= 1 + TITLE_SHARE * named.share_of_title(title) + NAMED_SHARE * named.share(title, row["url"])
        shown: dict[int, dict[str, Any]] = {}
        for row in _in_one_language(candidates) + rows[CANDIDATES:]:
            shown.setdefault(self._shown_as(row), row)
        total = found[0]["total"] - (len(found) - len(rows)) if found else 0
        hidden = sum(row["share"] == 1 for row in found) - sum(row["share"] == 1 for row in rows)
        ranked = found[0]["whole"] - hidden if found else 0
        facets = json.loads(found[0]["facets"]) if found and self.facets else []
        return SearchResult(
            total=BROAD if is_broad else ranked,
            is_more=is_broad,
            hits=tuple(await _hits(self.index, typed, list(shown.values())[self.first : self.last])),
            note="",
            ranked=ranked,
            some=total - ranked,
            facets=tuple(Facet(*values) for values in facets if values[-1]),
            excluded=tuple(phrase.text + "*" * phrase.is_prefix for phrase in query.excluded),
        )

    def _shown_as(self, row: dict[str, Any]) -> int:
        """What a page is shown as: a number that is the same for the near-duplicates of which one is shown."""
        number = row["cluster_id" if self.values["cluster"] is None else "url_id"]
        assert isinstance(number, int)
        return number

    async def _found(self, query: Query, some: _Ranking | None) -> tuple[list[dict[str, Any]], bool]:
        """The best pages: with some words, or else with all; and whether so many match that not all were compared."""
        if some:
            return await self._rank(some), False
        # To count phrases takes about as long as to rank the pages. To count words takes much less.
        if query.phrases or await self._count("search_text", query.with_all("", False)) <= BROAD:
            found = await self._rank(_Ranking("search_text", query.with_all(), most=BROAD + 1))
            if not found or found[0]["total"] <= BROAD:
                return found, False
        return await self._rank(await self._narrowed(query)), True

    async def _weights(self, query: Query) -> tuple[list[float], list[int], set[Phrase]]:
        """How rare the phrases and words are (the idf of BM25), and on how many pages each word is at most.

        And the forms that more than half of the pages have: BM25 in FTS5 adds nothing for them, in as much time.
        """
        pages = self.index.state["pages"]
        each = (*((phrase,) for phrase in query.phrases), *query.words)
        having = {form: await self.vocabulary.pages_with(form) for form in {form for forms in each for form in forms}}
        counts = [min(pages, sum(having[form] for form in set(forms))) for forms in each]
        idf = [math.log(1 + (pages - n + 0.5) / (n + 0.5)) for n in counts]
        single = {form: n for form, n in having.items() if not form.is_prefix and len(tokenize(form.text)) == 1}
        common = {form for form, n in single.items() if 2 * n > pages}
        return idf, counts[len(query.phrases) :], common

    async def _rank(self, ranking: _Ranking) -> list[dict[str, Any]]:
        """The best of the pages to rank, with the number of all of them (up to one more than ``BROAD``)."""
        sql = INDEX["find"].format(
            table=ranking.table,
            weights=", ".join(map(str, _WEIGHTS[ranking.table])),
            facet=INDEX["facet"].format(most=_MOST_VALUES),
            facets=INDEX["facets"] if self.facets else "NULL",
            site_weight=SITE_WEIGHT,
            popularity_share=POPULARITY_SHARE,
            popularity_half=POPULARITY_HALF,
            share=" - ".join(["1", *(f"{w:.6f} * ({_HAS_NOT.format(k)})" for k, w in enumerate(ranking.weights))]),
            **_PARTS,
        )
        words = {f"word_{number}": expression for number, expression in enumerate(ranking.words)}
        values = words | {"match": ranking.match, "place": ranking.place, "head": ranking.head, "most": ranking.most}
        limit = max(self.last, CANDIDATES)
        while True:
            rows = await self.index.query(sql, {**values, **self.values, "limit": limit})
            found = [dict(row) for row in rows]
            if len(found) < limit or len(set(map(self._shown_as, found))) >= self.last:
                return found
            limit *= 4  # most of the best pages are near-duplicates that are not shown

    async def _known(self, found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The rows whose pages may be shown now, with what the crawl knows of them now."""
        numbers = ", ".join(str(row["url_id"]) for row in found)
        pages = await self.store.query(SQL["pages"].format(numbers=numbers)) if numbers else []
        known = {page["url_id"]: page for page in pages if asked_of(page["directives"]).until > self.values["now"]}
        return [row | known[row["url_id"]] for row in found if row["url_id"] in known]

    async def _narrowed(self, query: Query) -> _Ranking:
        """The most promising pages, if more than ``BROAD`` match."""
        # The words that no page may have are looked for in the whole page.
        table = "search_text" if query.excluded else "search_head"
        wider = _Ranking("search_text", query.with_all("", False), place=BROAD)
        for fields in FIELDS:
            match = query.with_all(fields, False)
            pages = await self._count(table, match)
            if pages < max(CANDIDATES, self.last):
                return replace(wider, head=match)
            if pages <= BROAD:
                return _Ranking(table, query.with_all(fields))
            wider = _Ranking(table, match, place=BROAD)
        return wider

    async def _count(self, table: str, match: str) -> int:
        """How many pages match, up to one more than ``BROAD``."""
        name = "count_any" if all(self.values[name] is None for name in _FILTERS) else "count"
        sql = INDEX[name].format(table=table, **_PARTS)
        (row,) = await self.index.query(sql, {"match": match, "most": BROAD + 1, **self.values})
        return int(row["n"])


def _with_some(query: Query, counts: Sequence[int], idf: Sequence[float], common: set[Phrase]) -> _Ranking | None:
    """The ranking of the pages with some words, at most ``BROAD``: they have one of the rarest words.

    ``None`` if the query has one word, or if each of its words is on more pages than that.
    """
    if len(counts) < 2:
        return None
    selecting, most = set[int](), 0
    for number in sorted(range(len(counts)), key=counts.__getitem__):
        most += counts[number]
        if most > BROAD:
            break
        selecting.add(number)
    if not selecting:
        return None
    order = sorted(selecting)
    return _Ranking(
        "search_text",
        query.with_some(order, common),
        weights=tuple(each / sum(idf) for each in idf),
        words=tuple(query.with_word(number, order) for number in range(len(counts))),
    )


def _in_one_language(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows in the order of their scores, after lowering those of pages in another language than most of them."""
    scores = Counter[str]()
    for row in rows:
        scores[row["language"]] += row["score"]
    del scores[""]
    for row in rows if scores else ():
        if row["language"] not in ("", max(scores, key=lambda language: scores[language])):
            row["score"] *= OTHER_LANGUAGE
    return sorted(rows, key=lambda row: (-row["score"], row["url_id"]))


async def _state(store: Store, index: Index) -> str:
    """A note for the user if results may be out of date. Raises :class:`NoIndex` for the index of another crawl."""
    state = index.state
    if state["crawl"] != await crawl_of(store):
        raise NoIndex(f"{index.path}: the search index of another crawl than that of {store.name}")
    if not state["complete"]:
        return f"the index is not complete; `{REFRESH}{db_argument(store.name)}` completes it"
    computed = await store.computed()
    computed[Computed.INDEX] = computed.get(Computed.INDEX, True) or bool(
        await store.query(SQL["is_behind"], {"last_request": state["last_request"]})
    )
    return behind_sentence(computed, store.name)


async def _values(store: Store, index: Index, filters: Filters) -> dict[str, Any]:
    """The parameters of the filters. Raises :class:`UsageError` for an unknown site or page."""
    host = None if filters.site is None else await _known_site(store, filters.site)
    cluster = None if filters.similar_to is None else await _known_cluster(store, index, filters.similar_to)
    values = {"host": host, "cluster": cluster, "first_row": 0, "last_row": _ALL}
    if host is not None:
        (rows,) = await index.query(INDEX["rows_of_site"].format(**_PARTS), {"host": host})
        values |= dict(rows)
    return values | {"language": filters.language, "depth": filters.depth, "since": filters.since}


async def _known_cluster(store: Store, index: Index, url: str) -> int:
    """The cluster of a page. Raises :class:`UnknownFilter` if the page has no near-duplicates."""
    try:
        rows = await index.query(INDEX["cluster"], {"url_id": await store.find(canonicalise(url))})
    except NotCrawlable:
        rows = []
    if not rows:
        raise UnknownFilter(Argument("similar_to", url[:200]), ": the index knows no near-duplicates of this page")
    return int(rows[0]["cluster_id"])


async def _known_site(store: Store, site: str) -> str:
    """The host in ``example.org``, ``example.org:8080`` or ``https://example.org``, as the statements compare it."""
    readable = site.encode(errors="replace").decode()
    host = (readable.partition("://")[2] or readable).partition("/")[0].lower()
    if not host or not await store.query(SQL["known_site"], {"host": host}):
        status = f"`crawler status{db_argument(store.name)}`"
        raise UnknownFilter(Argument("site", site[:200]), f": the crawl knows no such site; {status} lists them")
    return host


async def _hits(index: Index, query: Query, rows: Sequence[dict[str, Any]]) -> list[SearchHit]:
    hits: list[SearchHit] = []
    for start in range(0, len(rows), _TEXTS_IN_MEMORY):
        batch = rows[start : start + _TEXTS_IN_MEMORY]
        documents = await index.documents(row["row_id"] for row in batch)
        pages = [documents[row["row_id"]] for row in batch]
        hits += await asyncio.to_thread(_shown, query.with_any(), batch, pages)
    return hits


_COPIED = ("url", "site", "score", "fetched_at", "in_links", "in_sites", "pagerank", "language", "depth", "similar")


def _shown(match: str, rows: Sequence[dict[str, Any]], pages: Sequence[Document]) -> list[SearchHit]:
    """The pages with an excerpt and its section: from the text or the description; else the beginning of the text.

    A page without a match in either has the anchor of a link to it that matches, if there is one. NOSNIPPET and
    ``max-snippet`` of the page bound the excerpt; the title is no part of it.
    """
    texts = [(row["title"] or "", page.text) for row, page in zip(rows, pages, strict=True)]
    marked = mark(match, texts + [(row["description"] or "", "") for row in rows])
    hits, bare = list[SearchHit](), dict[int, str]()
    for n, (row, page) in enumerate(zip(rows, pages, strict=True)):
        (title, excerpt), (said, _) = marked[n], marked[len(rows) + n]
        limit = min(asked_of(row["directives"]).snippet_chars, EXCERPT_CHARS)
        is_said = bool(said.marks and not excerpt.marks)
        section = None if is_said or not limit else _section(row["url"], page, excerpt)
        best, copied = within(said if is_said else excerpt, limit), {name: row[name] for name in _COPIED}
        hits.append(SearchHit(title=title, excerpt=best, section=section, all_words=row["share"] == 1, **copied))
        if not title.marks and not best.marks:
            bare[n] = page.anchors
    anchors = matching_anchors(match, bare) if bare else {}
    return [replace(hit, anchor=anchors.get(n)) for n, hit in enumerate(hits)]


def _section(url: str, page: Document, excerpt: Marked) -> SearchSection | None:
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
