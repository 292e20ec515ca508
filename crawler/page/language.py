"""The language that a page states."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser

_SUBTAG = re.compile(r"[a-z]{2,3}(?![a-z0-9])")


def primary_subtag(tag: str) -> str | None:
    """The primary language subtag of a tag (RFC 5646, 2.2.1), in lower case; ``None`` if it has none."""
    match = _SUBTAG.match(tag.strip().lower())
    return None if match is None else match.group()


def language_of(page: LexborHTMLParser) -> str | None:
    """The primary subtag of the language that a parsed page states; ``None`` if it states none.

    The language is that of ``<html lang>``, else of its ``xml:lang``, else of ``<meta http-equiv=content-language>``
    (HTML Standard, 3.2.6.1).
    """
    root = page.root
    said = [] if root is None else [root.attributes.get("lang"), root.attributes.get("xml:lang")]
    metas = [node.attributes for node in page.css("meta[http-equiv][content]")]
    said += [meta["content"] for meta in metas if (meta["http-equiv"] or "").strip().lower() == "content-language"]
    return next((subtag for tag in said if tag and (subtag := primary_subtag(tag))), None)
