"""Pages and links as Python sees them: from a crawl under way, and out of the store one by one."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from crawler.errors import StoreError, UsageError
from crawler.frontier.decide import Outcome
from crawler.model import Link
from crawler.page.directives import asked_of
from crawler.store.protocols import Store

_PAGES = """
  SELECT url_id, url, status, content_type, fetched_at, depth, title, description, keywords, canonical_url, noindex,
         nofollow, body_sha256 IS NOT NULL, directives
  FROM pages"""
_LINKS = """
  SELECT v.source, v.target, v.anchor, v.rel, l.follow
  FROM link l JOIN links v ON v.source_id = l.source AND v.target_id = l.target"""


@dataclass(frozen=True, slots=True)
class Page:
    """A page as it was fetched and committed. ``body`` is ``None`` for a NOINDEX page.

    ``links`` are in the order of the document where the page comes from a crawl, and in none where from the store.
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


@dataclass(frozen=True, slots=True)
class PageLink:
    """A link between two URLs; ``follow`` says whether the crawl may follow it."""

    source: str
    target: str
    anchor: str
    rel: str
    follow: bool


def page_of(outcome: Outcome) -> Page:
    """What a visit brought."""
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
    )


async def stored_pages(store: Store, where: str | None, now: float) -> AsyncGenerator[Page, None]:
    """The pages in the store, one in memory at a time. ``where`` is one SQL condition on the columns of ``pages``.

    Those that asked to be shown until ``now`` (``unavailable_after``, in seconds since the epoch) at most are left out.
    Raises :class:`UsageError` for a condition that the view cannot be asked.
    """
    try:
        async with aclosing(store.rows(_PAGES + (f" WHERE (\n{where}\n)" if where else ""))) as rows:
            async for row in rows:
                if asked_of(row[-1]).until <= now:
                    continue
                number, url, status, kind, at, depth, *said, noindex, nofollow, kept, _ = row
                async with aclosing(_links(store, "l.source = ?", number)) as found:
                    links = tuple([Link(link.target, link.anchor, link.rel, link.follow) async for link in found])
                body = await store.body(url) if kept else None
                title, description, keywords, main = said
                texts = (title, description, keywords, main)
                yield Page(url, status, kind, at, depth, *texts, bool(noindex), bool(nofollow), links, body)
    except StoreError as error:
        if where and getattr(error.__cause__, "sqlite_errorname", "") == "SQLITE_ERROR":
            raise UsageError(f"where = {where!r}: {error.__cause__}") from None
        raise


async def stored_links(store: Store, url: str) -> AsyncGenerator[PageLink, None]:
    """The links from a canonical URL, then those of other pages to it; none for one that is not known."""
    number = await store.find(url)
    if number is not None:
        for condition in ("l.source = ?", "l.target = ? AND l.source <> l.target"):
            async with aclosing(_links(store, condition, number)) as links:
                async for link in links:
                    yield link


async def _links(store: Store, condition: str, number: int) -> AsyncGenerator[PageLink, None]:
    async with aclosing(store.rows(f"{_LINKS} WHERE {condition}", (number,))) as rows:
        async for source, target, anchor, rel, follow in rows:
            yield PageLink(source, target, anchor, rel, bool(follow))
