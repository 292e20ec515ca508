"""What an HTML page and its headers say of it, read from the tree that lexbor builds.

Sources: ``docs/protocols.md``, section 3; the robots FAQ of 1998 for the META names.

Where the documents are silent:

* ``<a href="#x">`` is a place in the page, not a link. All links to one target are one
  :class:`~crawler.model.Link`: the first that may be followed, else the first. Its anchor text is the
  first among them all that is not empty.
* ``nofollow`` alone keeps a link from being followed; ``ugc`` and ``sponsored`` only say who wrote it.
* The canonical URL is the first valid ``rel=canonical`` in the page, else in the Link header, else META
  URL: a tag was written for this page, a header is often set for a whole directory.
* Bytes outside ASCII in a query are sent as UTF-8, whatever the page is written in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from crawler.model import Headers, PageFacts, Reading, header_values
from crawler.page.directives import directives, x_robots_tag
from crawler.page.links import collapse
from crawler.page.tags import Said, heard, parsed
from crawler.page.targets import canonical_in_headers, resolve
from crawler.reasons import NOT_PARSED
from crawler.url import NotCrawlable, canonicalise

MAX_META_CHARS = 4_000
_DOCUMENT_STATES = ("STATIC", "DYNAMIC")


def header_facts(headers: Headers, *, url: str, token: str, reading: Reading, now: float) -> PageFacts:
    """What the headers alone say: all there is of a body that is not HTML. ``now`` in epoch seconds."""
    said = directives(x_robots_tag(header_values(headers, "x-robots-tag"), token), reading=reading, now=now)
    return PageFacts(
        index=said.index,
        follow=said.follow,
        archive=said.archive,
        until=said.until,
        canonical_url=canonical_in_headers(headers, url),
        base_url=url,
        directives=said.evidence,
    )


def unread_page(why: str, *, url: str, headers: Headers, token: str, reading: Reading, now: float) -> PageFacts:
    """What is known of a page that could not be parsed: it counts as NOINDEX, NOFOLLOW, for it may ask that."""
    known = header_facts(headers, url=url, token=token, reading=reading, now=now)
    return replace(known, index=False, follow=False, note=f"{NOT_PARSED}: {why}")


def read_page(
    body: bytes,
    *,
    url: str,
    headers: Headers,
    charset: str | None,
    token: str,
    reading: Reading,
    now: float,
    hash_text: bool = False,
) -> PageFacts:
    """Read an HTML page; never raises for what the page holds.

    ``url`` is the canonical URL it was fetched from, ``charset`` that of its Content-Type header,
    ``token`` our product token, ``now`` in epoch seconds. A hostile page may take minutes: ask
    :func:`crawler.page.guard.is_light` first, and read what is not light where it can be killed.
    """
    said = heard(parsed(body, charset), hash_text=hash_text)
    return meant(said, url=url, headers=headers, token=token, reading=reading, now=now)


def meant(page: Said, *, url: str, headers: Headers, token: str, reading: Reading, now: float) -> PageFacts:
    """What follows from what a page says, and its headers; the arguments are those of :func:`read_page`."""
    tags = (*x_robots_tag(header_values(headers, "x-robots-tag"), token), *_robots_tags(page, token))
    said = directives(tags, reading=reading, now=now)
    base = _canonical_or_none(page.base, url) or url
    links, other_schemes, note = resolve(page.links, base) if said.follow else ((), {}, "")
    meta_url = _first_canonical(_metas_named(page, "url"), None)
    return PageFacts(
        index=said.index,
        follow=said.follow,
        archive=said.archive,
        until=said.until,
        title=page.title if said.index else None,
        description=_first_meta(page, "description") if said.index else None,
        keywords=_first_meta(page, "keywords") if said.index else None,
        document_state=_document_state(page),
        canonical_url=_first_canonical(page.canonicals, base) or canonical_in_headers(headers, url) or meta_url,
        meta_url=meta_url,
        base_url=base,
        charset=page.encoding,
        links=links,
        other_schemes=other_schemes,
        directives=said.evidence,
        note=note or page.note,
        text_sha256=page.text_sha256 if said.index else None,
        feeds=tuple(filter(None, (_canonical_or_none(feed, base) for feed in page.feeds))) if said.follow else (),
    )


def _metas_named(page: Said, name: str) -> Iterator[str]:
    return (content for key, content in page.metas if key == name)


def _first_meta(page: Said, name: str) -> str | None:
    """The first META of this name that says anything, on one line."""
    lines = (collapse(content, MAX_META_CHARS) for content in _metas_named(page, name))
    return next(filter(None, lines), None)


def _robots_tags(page: Said, token: str) -> Iterator[tuple[str, str]]:
    names = ("robots", token.lower() or "robots")
    return ((f"META {key}", content) for key, content in page.metas if key in names)


def _document_state(page: Said) -> str | None:
    states = (content.strip().upper() for content in _metas_named(page, "document-state"))
    return next((state for state in states if state in _DOCUMENT_STATES), None)


def _canonical_or_none(target: str | None, base: str | None) -> str | None:
    if target is None:
        return None
    try:
        return canonicalise(target, base)
    except NotCrawlable:
        return None


def _first_canonical(targets: Iterable[str], base: str | None) -> str | None:
    return next(filter(None, (_canonical_or_none(target, base) for target in targets)), None)
