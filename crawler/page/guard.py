"""What stands before the HTML parser: is this page cheap enough to be parsed?

The tree construction that the HTML Standard prescribes (13.2.6) is quadratic, and lexbor, which
follows it, cannot be interrupted. Four things make it so:

* nesting: a start tag may search the whole stack of open elements, and so may an end tag;
* attributes: each is compared with all others of its tag;
* formatting elements (``<b>``, ``<font>`` …) left open: each is compared with all others, and
* each is opened again in the next block: 100 kB of ``<p><font size=1>x<p><font size=2>x…`` make a
  tree of 4 GB.

:func:`objection` looks in two steps. First come counts at the speed of C that are upper bounds
whatever a page may hide in comments, quotes or scripts; nearly every page passes them. The rest is
weighed tag by tag (:mod:`crawler.page.nesting`). Both are linear. The limits let the worst page
found cost the parser about a second; an ordinary page stays a hundred times below them.
"""

from __future__ import annotations

import re

from crawler.page.nesting import weigh

#: With no more tags and no more bytes than these there is nothing to look for.
FREE_TAGS = 2_000
FREE_BYTES = 65_536
#: So many tags may all be nested.
NESTED_TAGS = 24_000
#: Elements that may be opened again, at 360 bytes and 0.5 µs each.
REOPENED = 1_000_000
#: Where two aligned blocks lack a ``>``, the page may be one tag.
BLOCK_BYTES = 4_096
#: Quoted values with a ``>`` in them: with many, one tag may span many blocks.
HIDDEN_ENDS = 8

# The standard's parser keeps up to three open formatting elements of the same name and attributes ("Noah's Ark").
_ALIKE = 3
# Most tags are turned down at their first letter: this search is most of what an ordinary page pays.
_GATHERING = re.compile(
    rb"<[bcefhinstuBCEFHINSTU](?:|[tmTM]|(?i:ig|ode|ont|obr|mall|trike|trong|tml|ody))(?=[ \t\n\r\f/>])[^>]*"
)
_PLAIN = re.compile(
    rb"<[a-z]+(?:\s++[a-z:_-]+(?:=(?:\"[^\"<>]{0,500}+\"|'[^'<>]{0,500}+'|[^\s\"'<>=`]{1,500}+))?){0,20}+\s*+/?",
    re.IGNORECASE,
)
# Looked for in what is left of the page when all else is deleted, which is three times faster than in the page.
_HIDDEN_END = re.compile(rb"=(?:\"[^\">]*+>|'[^'>]*+>)")
_ALL_ELSE = bytes(set(range(256)).difference(b"=\"'>"))


def objection(page: bytes) -> str | None:
    """Why this page, in UTF-8, is not given to the parser, in words; ``None`` where it may be."""
    tags = page.count(b"<")
    if tags <= FREE_TAGS and len(page) <= FREE_BYTES:
        return None
    if tags <= NESTED_TAGS and _closes_formatting(page, tags) and _has_short_tags(page):
        return None
    return weigh(page)


def _closes_formatting(page: bytes, tags: int) -> bool:
    """Whether few formatting elements can be open at once: few different ones are ever opened.

    The tags that are counted are only read to their first ``>``, so they must be plain enough to end there.
    """
    kinds = set(_GATHERING.findall(page))
    return _ALIKE * len(kinds) * tags <= REOPENED and all(map(_PLAIN.fullmatch, kinds))


def _has_short_tags(page: bytes) -> bool:
    """Whether no tag can have many attributes; asked only where there is room for too many."""
    if len(page) <= FREE_BYTES:
        return True
    for start in range(0, len(page) - BLOCK_BYTES, BLOCK_BYTES):
        if page.find(b">", start, start + BLOCK_BYTES) < 0:
            return False
    return len(_HIDDEN_END.findall(page.translate(None, _ALL_ELSE))) <= HIDDEN_ENDS
