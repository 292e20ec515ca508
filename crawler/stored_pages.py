"""Pages and links in the Python API: from a running crawl, and from the store one by one."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crawler.errors import StatementError, UsageError
from crawler.frontier.decide import Outcome
from crawler.model import Link
from crawler.page.charset import in_utf8, sniffed
from crawler.page.directives import asked_of
from crawler.store.statements import UserSql, load_statements

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

    from crawler.store.sections import Store

_SQL = load_statements("crawler", "stored_pages.sql")
_ABOUT = ("title", "description", "keywords", "canonical_url", "charset")
#: The fields of a page that are columns of the view.
_AS_STORED = ("url", "status", "content_type", "fetched_at", "depth", *_ABOUT)


@dataclass(frozen=True, slots=True)
class Page:
    """A page as it was fetched and committed. ``body`` is ``None`` for a NOINDEX page.

    ``links`` are in document order if the page comes from a running crawl, and in no order if it comes from the store.
    ``charset`` is the name of the encoding in the Encoding Standard, as the crawler found it; ``None`` if the document
    is no HTML and its Content-Type names none. ``headers`` are the response headers that the store keeps
    (``store.headers``, ETag and Last-Modified), by lower-case name.
    """

    url: str
    status: int
    content_type: str
    fetched_at: float
    depth: int
    title: str | None
    description: str | None
    keywords: str | None
    canonical_url: str | None
    noindex: bool
    nofollow: bool
    links: tuple[Link, ...]
    body: bytes | None
    charset: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, hash=False)
    _tree: LexborHTMLParser | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def text(self) -> str:
        """The document, decoded; "" without a body. Without ``charset`` the encoding is guessed from the bytes.

        Bytes that are not valid in the encoding become U+FFFD.
        """
        return self._utf8().decode("utf-8", "replace")

    def select(self, css: str) -> list[LexborNode]:
        """The elements that the CSS selector ``css`` matches, in document order, as nodes of selectolax.

        ``node.text()``, ``node.attributes`` and ``node.css(…)`` read a node. The first call parses the document in
        this process, without the limits on time and memory that parser processes have. Raises :class:`UsageError` for
        a selector that selectolax cannot read.
        """
        from selectolax.lexbor import LexborHTMLParser, SelectolaxError

        if self._tree is None:
            object.__setattr__(self, "_tree", LexborHTMLParser(self._utf8()))
        assert self._tree is not None
        try:
            return self._tree.css(css)
        except (SelectolaxError, ValueError, TypeError) as error:
            raise UsageError(f"select(): not a CSS selector: {css!r:.100} ({error})") from None

    def _utf8(self) -> bytes:
        body = self.body or b""
        return in_utf8(body, self.charset or sniffed(body, None)[0])


@dataclass(frozen=True, slots=True)
class PageLink:
    """A link between two URLs; ``follow`` says whether the crawl may follow it."""

    source: str
    target: str
    anchor: str
    rel: str
    follow: bool


def page_of(outcome: Outcome) -> Page:
    """The page that a visit fetched."""
    page = outcome.page
    assert page is not None
    facts = page.facts
    return Page(
        url=outcome.queued.url,
        status=page.status,
        content_type=page.content_type,
        fetched_at=page.fetched_at,
        depth=outcome.queued.depth,
        title=facts.title,
        description=facts.description,
        keywords=facts.keywords,
        canonical_url=facts.canonical_url,
        noindex=not facts.index,
        nofollow=not facts.follow,
        links=facts.links,
        body=None if page.body is None else page.body.decoded(),
        charset=facts.charset,
        headers=_headers(page.answer.headers, page.etag, page.last_modified),
    )


async def stored_pages(store: Store, where: str | None, now: float) -> AsyncGenerator[Page, None]:
    """The pages in the store, one in memory at a time. ``where`` is one SQL condition on the columns of ``pages``.

    Pages whose ``unavailable_after`` is not later than ``now`` (seconds since the epoch) are omitted. Raises
    :class:`UsageError` if the database rejects the condition.
    """
    try:
        async with aclosing(store.rows(UserSql(_SQL["pages"].format(where=where or "TRUE")))) as rows:
            async for row in rows:
                if asked_of(row.directives).until > now:
                    yield await _page(store, row)
    except StatementError as error:
        if where:
            raise UsageError(f"where = {where!r}: {error.__cause__}") from None
        raise


async def _page(store: Store, row: Any) -> Page:
    async with aclosing(_links(store, "links_from", row.url_id)) as found:
        links = tuple([Link(link.target, link.anchor, link.rel, link.follow) async for link in found])
    return Page(
        **{name: getattr(row, name) for name in _AS_STORED},
        noindex=bool(row.noindex),
        nofollow=bool(row.nofollow),
        links=links,
        body=None if row.body_sha256 is None else await store.bodies.of_page(row.url),
        headers=_headers(row.headers, row.etag, row.last_modified),
    )


def _headers(kept: str | None, etag: str | None, last_modified: str | None) -> dict[str, str]:
    """The response headers that the store keeps of a page: ``kept`` is a JSON object, the others have columns."""
    headers: dict[str, str] = json.loads(kept) if kept else {}
    validators = (("etag", etag), ("last-modified", last_modified))
    return headers | {name: value for name, value in validators if value is not None}


async def stored_links(store: Store, url: str) -> AsyncGenerator[PageLink, None]:
    """The links from a canonical URL, then those of other pages to it; none if the URL is not known."""
    number = await store.find(url)
    if number is not None:
        for statement in ("links_from", "links_to"):
            async with aclosing(_links(store, statement, number)) as links:
                async for link in links:
                    yield link


async def _links(store: Store, statement: str, number: int) -> AsyncGenerator[PageLink, None]:
    async with aclosing(store.rows(_SQL[statement], {"number": number})) as rows:
        async for row in rows:
            yield PageLink(row.source, row.target, row.anchor, row.rel, bool(row.follow))
