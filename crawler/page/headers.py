"""What the response headers of a document state: X-Robots-Tag, the canonical URL of Link, the language."""

from __future__ import annotations

import re
from collections.abc import Collection

import msgspec
from msgspec.structs import replace

from crawler.model import Headers, PageFacts, Reading, header, header_values
from crawler.page.directives import SITE_TAG, directives, header_tags
from crawler.page.preferences import PREFERENCE_HEADERS, preferences_of
from crawler.page.targets import rel_words
from crawler.terminal_text import printable
from crawler.url import NotCrawlable, canonicalise

#: Characters that are kept of the value of one header.
MAX_HEADER_CHARS = 8_000
# Set-Cookie, and the lines of robots.txt that the crawler adds to the headers of an answer.
_NEVER_KEPT = frozenset(("set-cookie", "set-cookie2", SITE_TAG.lower()))
#: The headers that this module, :mod:`crawler.page.directives` and :mod:`crawler.page.preferences` look for.
_DIRECTING = frozenset(("x-robots-tag", "robots-tag", SITE_TAG.lower(), *PREFERENCE_HEADERS))
_TELLING = _DIRECTING | {"content-language", "link"}
#: The content type of HTML in the syntax of XML.
XHTML = "application/xhtml+xml"
#: The content types of HTML; a document without a type counts as HTML.
HTML_TYPES = ("", "text/html", XHTML)
#: The content type of licences of RSL.
LICENCE_TYPE = "application/rsl+xml"
#: The content type of PDF files.
PDF = "application/pdf"
#: An element without content, as XML writes it; the elements left out have none in HTML either.
_EMPTY_ELEMENT = re.compile(
    rb"<(?!(?:area|base|br|col|embed|frame|hr|img|input|link|meta|param|source|track|wbr)[\s/])"
    rb"([A-Za-z][^\s<>/\"']*+)((?:[^<>\"'/]|/(?!>)|\"[^\"<]*+\"|'[^'<]*+')*+)/>"
)
_JSON = msgspec.json.Encoder(order="sorted")
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,8}")
_LINK = re.compile(r"<([^<>]*)>((?:\s*;\s*[^\s;,=<>\"]+(?:\s*=\s*(?:\"(?:[^\"\\]|\\.)*\"|[^\s;,\"]*))?)*)", re.DOTALL)
_PARAMETER = re.compile(r";\s*([^\s;,=\"]+)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|([^\s;,\"]*))", re.DOTALL)


def telling(headers: Headers) -> Headers:
    """Those headers that say something about a document, besides its type. Most answers have none."""
    return tuple([field for field in headers if field[0].lower() in _TELLING])


def is_xhtml(headers: Headers) -> bool:
    """Whether the document was sent in the syntax of XML."""
    return (header(headers, "content-type") or "").partition(";")[0].strip().lower() == XHTML


def as_html(utf8: bytes) -> bytes:
    """An XHTML page with end tags for its empty elements: to an HTML parser, ``<title/>`` contains all that follows."""
    return _EMPTY_ELEMENT.sub(rb"<\1\2></\1>", utf8)


def direct(headers: Headers) -> bool:
    """Whether a header may state a directive or a preference about use."""
    return not _DIRECTING.isdisjoint([name.lower() for name, _ in headers])


def language_tag(text: str | None) -> str | None:
    """The text if it is a language tag in form (RFC 5646, 2.1), else ``None``."""
    tag = (text or "").strip()
    return tag if _LANGUAGE.fullmatch(tag) else None


def declared_language(headers: Headers) -> str | None:
    """The language of ``Content-Language``; ``None`` if it names none or several (HTML Standard, 3.2.6.1)."""
    return language_tag(", ".join(header_values(headers, "content-language")))


def kept_headers(headers: Headers, names: Collection[str]) -> str | None:
    """The headers with these lower-case names as a JSON object, ``None`` if there is none; ``*`` stands for all.

    Repeated fields are joined by commas (RFC 9110, 5.3). ``Set-Cookie`` is never kept: it names a session.
    """
    kept: dict[str, str] = {}
    for as_sent, value in headers:
        name = as_sent.lower()
        if name in _NEVER_KEPT or not (name in names or "*" in names):
            continue
        joined = f"{kept[name]}, {value}" if name in kept else value
        kept[name] = printable(joined)[:MAX_HEADER_CHARS]
    return _JSON.encode(kept).decode() if kept else None


def header_facts(headers: Headers, *, url: str, token: str, reading: Reading, now: float) -> PageFacts:
    """Read the headers alone: all that is known of a body that is not HTML.

    ``url`` is the canonical URL of the document, ``token`` the crawler's product token, ``now`` in epoch seconds.
    """
    content_type = (header(headers, "content-type") or "").strip().lower()
    headers = telling(headers)
    tags = tuple(header_tags(headers, token))
    said = directives(tags, reading=reading, now=now)
    return PageFacts(
        index=said.index,
        follow=said.follow,
        archive=said.archive,
        until=said.until,
        snippet_chars=said.snippet_chars,
        canonical_url=canonical_in_headers(headers, url),
        base_url=url,
        directives=said.evidence,
        language=declared_language(headers) if said.index else None,
        preferences=preferences_of(
            headers, tags, licences=licences_in_headers(headers), url=url, content_type=content_type
        ),
    )


def unread_page(why: str, *, url: str, headers: Headers, token: str, reading: Reading, now: float) -> PageFacts:
    """The facts of a page that could not be parsed, with the reason ``why`` in the note.

    The page counts as NOINDEX and NOFOLLOW, because it may contain these directives.
    """
    known = header_facts(headers, url=url, token=token, reading=reading, now=now)
    return replace(known, index=False, follow=False, is_read=False, note=f"not parsed: {why}")


def canonical_in_headers(headers: Headers, url: str) -> str | None:
    """The first valid ``Link: <…>; rel="canonical"`` (RFC 8288, 3; RFC 6596), resolved against ``url``."""
    for target in links_with_rel(headers, "canonical"):
        try:
            return canonicalise(target, url)
        except NotCrawlable:
            continue
    return None


def licences_in_headers(headers: Headers) -> list[tuple[str, str]]:
    """The licences of RSL that Link fields name, each with the name of its source."""
    return [("header", target) for target in links_with_rel(headers, "license", LICENCE_TYPE)]


def links_with_rel(headers: Headers, rel: str, media_type: str = "") -> list[str]:
    """The targets of the Link fields with this relation, and with this type if one is given (RFC 8288, 3)."""
    targets = []
    for value in header_values(headers, "link"):
        for target, parameters in _LINK.findall(value):
            given: dict[str, str] = {}
            for name, quoted, single, bare in _PARAMETER.findall(parameters):
                given.setdefault(name.lower(), quoted or single or bare)
            # A link with an anchor parameter is about another resource (RFC 8288, 3.2).
            is_wanted = not media_type or given.get("type", "").strip().lower() == media_type
            if is_wanted and "anchor" not in given and rel in rel_words(given.get("rel", "")):
                targets.append(target)
    return targets
