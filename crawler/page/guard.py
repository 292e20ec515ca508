"""What stands before the HTML parser: can this page tie it up?

Tree construction (HTML Standard, 13.2.6) is quadratic in nesting, in the attributes of one tag (those of
every ``<html>`` and ``<body>`` gather on one), in different names, in formatting elements (``<b>``, ``<font>``
…) left open, which are opened again in every later block, and in comments between cells of a table that
text was put before. :func:`is_light` takes counts at the speed of C that bound them all from above, whatever
a page may hide in comments, quotes or scripts. Of real documentation pages more than nine in ten are light;
what is not is read where it can be killed.
"""

from __future__ import annotations

import re

#: Start tags that may all be nested, and the tags that may search them all: 1.2 ns for each pair.
MAX_TAGS = 8_000
MAX_SEARCHED = 64_000_000
#: Formatting elements times start tags: so many may be opened again, at 0.2 µs and 360 bytes each.
MAX_REOPENED = 600_000
#: A smaller page has no room for more attributes than take the parser a tenth of a second.
FREE_BYTES = 25_000
#: A larger one has no room for more different names, or copied text.
MAX_BYTES = 400_000
#: A tag longer than two blocks fills one that has no ``>``; so many are room for 7,000 attributes …
BLOCK_BYTES = 512
MAX_BLOCKS_WITHOUT_END = 48
#: … unless the ``>`` stands in a quoted value.
MAX_QUOTED_ENDS = 8
#: Tags whose attributes gather on one element.
MAX_ROOTS = 8

_FORMATTING = re.compile(rb"<[bcefinstu](?:|ig|ode|m|ont|obr|mall|trike|trong|t)[ \t\n\r\f/]", re.IGNORECASE)
_PLAIN_FORMATTING = 3 * 13  # of each of the 13 names, three without attributes are kept open at most
_ROOT = re.compile(rb"<(?:html|body)[ \t\n\r\f/]", re.IGNORECASE)
# Looked for in what is left of the page when all else is deleted, which is three times faster than in the page.
_QUOTED_END = re.compile(rb"=(?:\"[^\">]*+>|'[^'>]*+>)")
_ALL_ELSE = bytes(set(range(256)).difference(b"=\"'>"))


def is_light(page: bytes) -> bool:
    """Whether parsing ``page`` takes a tenth of a second at the most, by any one of these ways. The event loop may be
    held up for more than twice that, but the machine has other things to do."""
    if len(page) > MAX_BYTES:
        return False
    tags = page.count(b"<")
    if tags * tags > 4 * MAX_REOPENED:  # fewer are too few for any of it
        starts = tags - page.count(b"</")
        if starts > MAX_TAGS or starts * tags > MAX_SEARCHED:
            return False
        if starts * starts > 4 * MAX_REOPENED and not _few_reopened(page, starts):
            return False
    return len(page) <= FREE_BYTES or _few_attributes(page)


def _few_reopened(page: bytes, starts: int) -> bool:
    """Whether formatting elements with attributes are few. Without any, three of a name are kept open at most."""
    return (_PLAIN_FORMATTING + len(_FORMATTING.findall(page))) * starts <= MAX_REOPENED


def _few_attributes(page: bytes) -> bool:
    """Whether no element can have many."""
    find = page.find
    without_end = sum(find(b">", start, start + BLOCK_BYTES) < 0 for start in range(0, len(page), BLOCK_BYTES))
    return (
        without_end <= MAX_BLOCKS_WITHOUT_END
        and len(_QUOTED_END.findall(page.translate(None, _ALL_ELSE))) <= MAX_QUOTED_ENDS
        and len(_ROOT.findall(page)) <= MAX_ROOTS
    )
