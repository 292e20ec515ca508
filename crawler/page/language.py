"""The language that a page states."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser

from crawler.page.charset import to_utf8

_HEAD_BYTES = 16_384  # the tags are at the beginning, and so little is parsed fast
_SUBTAG = re.compile(r"[a-z]{2,3}(?![a-z0-9])")


def language(body: bytes, charset: str | None) -> str | None:
    """The primary subtag (BCP 47) of the language that a page states; ``None`` if it states none.

    The language is that of ``<html lang>``, else of its ``xml:lang``, else of ``<meta http-equiv=content-language>``
    (HTML Standard, 3.2.6.1). ``charset`` is the one in the Content-Type header.
    """
    return language_of(LexborHTMLParser(to_utf8(body[:_HEAD_BYTES], charset)[1]))


def language_of(page: LexborHTMLParser) -> str | None:
    """The same of a parsed page."""
    root = page.root
    said = [] if root is None else [root.attributes.get("lang"), root.attributes.get("xml:lang")]
    metas = [node.attributes for node in page.css("meta[http-equiv][content]")]
    said += [meta["content"] for meta in metas if (meta["http-equiv"] or "").strip().lower() == "content-language"]
    found = (_SUBTAG.match(tag.strip().lower()) for tag in said if tag)
    return next((match.group() for match in found if match), None)
