"""Reads an HTML page and its headers.

Sources: ``docs/protocols.md``, section 3; the robots FAQ of 1998 for the META names.

Decisions where the documents are silent:

* ``<a href="#x">`` names a place in the page and is no link. All links to one target are one
  :class:`~crawler.model.Link`: the first that may be followed, else the first. Its anchor text is the first among them
  all that is not empty.
* Only ``nofollow`` keeps a link from being followed; ``ugc`` and ``sponsored`` tell who wrote it.
* The canonical URL is the first valid ``rel=canonical`` in the page, else in the Link header, else META URL. A tag was
  written for this page; a header is often set for a whole directory.
* Characters outside ASCII in the query of a link are sent in the encoding of the page (URL Standard, 4.4).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import sha256

from crawler.model import Headers, PageFacts, Reading, Resource
from crawler.page.charset import in_encoding
from crawler.page.directives import directives, header_tags
from crawler.page.headers import canonical_in_headers, declared_language, is_xhtml, licences_in_headers, telling
from crawler.page.links import collapse
from crawler.page.preferences import preferences_of
from crawler.page.tags import Said, read_tags
from crawler.page.targets import resolve
from crawler.page.walls import MAX_WALL_LINKS, wall_in_body
from crawler.url import NotCrawlable, canonicalise, host_of

MAX_META_CHARS = 4_000
#: Pairs of kind and host that are kept of a page's resources.
MAX_RESOURCE_HOSTS = 500
_DOCUMENT_STATES = ("STATIC", "DYNAMIC")


def read_page(
    body: bytes,
    *,
    url: str,
    headers: Headers,
    charset: str | None,
    token: str,
    reading: Reading,
    now: float,
    resources: bool = False,
    shingles: bool = False,
) -> PageFacts:
    """Read an HTML page; never raises for what the page holds.

    ``url`` is the canonical URL the page was fetched from, ``charset`` that of its Content-Type header, ``token`` the
    crawler's product token, ``now`` in epoch seconds. ``resources`` asks for the hosts of its resources, ``shingles``
    for those of its text.
    A hostile page can take minutes and gigabytes: outside of tests, call this in a process whose time and memory are
    bounded (:mod:`crawler.engine.parser_process`).
    """
    page = read_tags(body, charset, is_xml=is_xhtml(headers), resources=resources, shingles=shingles)
    headers = telling(headers)
    tags = (*header_tags(headers, token), *_robots_tags(page, token))
    said = directives(tags, reading=reading, now=now)
    base = _canonical_or_none(page.base, url) or url
    canonicals = [in_encoding(target, page.encoding) for target in page.canonicals]
    feeds = [in_encoding(target, page.encoding) for target in page.feeds]
    links, other_schemes, note = resolve(page.links, base, page.encoding) if said.follow else ((), {}, "")
    meta_url = _first_canonical(_metas_named(page, "url"), None)
    licences = licences_in_headers(headers)
    licences += [("link", in_encoding(target, page.encoding)) for target in page.licences]
    wall = wall_in_body(body) if len(page.links) <= MAX_WALL_LINKS else None
    return PageFacts(
        index=said.index,
        follow=said.follow,
        archive=said.archive,
        until=said.until,
        snippet_chars=said.snippet_chars,
        title=page.title if said.index else None,
        description=_first_meta(page, "description") if said.index else None,
        keywords=_first_meta(page, "keywords") if said.index else None,
        document_state=_document_state(page),
        canonical_url=_first_canonical(canonicals, base) or canonical_in_headers(headers, url) or meta_url,
        meta_url=meta_url,
        refresh_url=_refresh_url(page, url, base) if said.follow else None,
        base_url=base,
        charset=page.encoding,
        links=links,
        other_schemes=other_schemes,
        directives=said.evidence,
        wall="" if wall is None else str(wall),
        note=note or page.note,
        body_sha256=sha256(body).digest(),
        body_bytes=len(body),
        text_sha256=page.text_sha256 if said.index else None,
        shingles=page.shingles if said.index else b"",
        language=(page.language or declared_language(headers)) if said.index else None,
        resources=_resources(page, base) if said.index else (),
        feeds=tuple(filter(None, (_canonical_or_none(feed, base) for feed in feeds))) if said.follow else (),
        inline_licence=page.inline_licence,
        preferences=preferences_of(headers, tags, page.metas, licences, url=base),
    )


def _resources(page: Said, base: str) -> tuple[Resource, ...]:
    """The hosts of the resources, each kind and host once, in a fixed order. Resources without a host do not count."""
    hosts: Counter[tuple[str, str]] = Counter()
    for (kind, target), count in page.resources.items():
        url = _canonical_or_none(target, base)
        if url is not None:
            hosts[kind, host_of(url)] += count
    found = sorted(hosts.items())[:MAX_RESOURCE_HOSTS]
    return tuple(Resource(kind, host, count) for (kind, host), count in found)


def _refresh_url(page: Said, url: str, base: str) -> str | None:
    """The canonical URL to which an instant refresh leads; ``None`` if it is the page itself."""
    target = _canonical_or_none(page.refresh and in_encoding(page.refresh, page.encoding), base)
    return None if target == url else target


def _metas_named(page: Said, name: str) -> Iterator[str]:
    return (content for key, content in page.metas if key == name)


def _first_meta(page: Said, name: str) -> str | None:
    """The first META of this name that is not empty, on one line."""
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
