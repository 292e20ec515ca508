"""The directives in the response headers of a document: X-Robots-Tag and the canonical URL of the Link header."""

from __future__ import annotations

import re
from dataclasses import replace

from crawler.model import Headers, PageFacts, Reading, header, header_values
from crawler.page.directives import directives, header_tags
from crawler.page.preferences import preferences_of
from crawler.page.targets import rel_words
from crawler.url import NotCrawlable, canonicalise

_LINK = re.compile(r"<([^<>]*)>((?:\s*;\s*[^\s;,=<>\"]+(?:\s*=\s*(?:\"(?:[^\"\\]|\\.)*\"|[^\s;,\"]*))?)*)", re.DOTALL)
_PARAMETER = re.compile(r";\s*([^\s;,=\"]+)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|([^\s;,\"]*))", re.DOTALL)


def header_facts(headers: Headers, *, url: str, token: str, reading: Reading, now: float) -> PageFacts:
    """Read the headers alone: all that is known of a body that is not HTML.

    ``url`` is the canonical URL of the document, ``token`` the crawler's product token, ``now`` in epoch seconds.
    """
    tags = tuple(header_tags(headers, token))
    said = directives(tags, reading=reading, now=now)
    content_type = (header(headers, "content-type") or "").strip().lower()
    return PageFacts(
        index=said.index,
        follow=said.follow,
        archive=said.archive,
        until=said.until,
        snippet_chars=said.snippet_chars,
        canonical_url=canonical_in_headers(headers, url),
        base_url=url,
        directives=said.evidence,
        preferences=preferences_of(headers, tags, url=url, content_type=content_type),
    )


def unread_page(why: str, *, url: str, headers: Headers, token: str, reading: Reading, now: float) -> PageFacts:
    """The facts of a page that could not be parsed, with the reason ``why`` in the note.

    The page counts as NOINDEX and NOFOLLOW, because it may contain these directives.
    """
    known = header_facts(headers, url=url, token=token, reading=reading, now=now)
    return replace(known, index=False, follow=False, is_read=False, note=f"not parsed: {why}")


def canonical_in_headers(headers: Headers, url: str) -> str | None:
    """The first valid ``Link: <…>; rel="canonical"`` (RFC 8288, 3; RFC 6596), resolved against ``url``."""
    for value in header_values(headers, "link"):
        for target, parameters in _LINK.findall(value):
            given: dict[str, str] = {}
            for name, quoted, single, bare in _PARAMETER.findall(parameters):
                given.setdefault(name.lower(), quoted or single or bare)
            # A link with an anchor parameter is about another resource (RFC 8288, 3.2).
            if "anchor" in given or "canonical" not in rel_words(given.get("rel", "")):
                continue
            try:
                return canonicalise(target, url)
            except NotCrawlable:
                continue
    return None
