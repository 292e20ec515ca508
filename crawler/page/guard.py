"""What stands before the HTML parser: can this page tie it up?

Tree construction (HTML Standard, 13.2.6) is quadratic in nesting, in the attributes of one tag, and in
formatting elements (``<b>``, ``<font>`` …) left open, which are opened again in every later block.
:func:`is_light` takes counts at the speed of C that bound all three from above, whatever a page may hide
in comments, quotes or scripts. Of real documentation pages more than nine in ten are light; what is not is
read where it can be killed.
"""

from __future__ import annotations

import re

#: Start tags that may all be nested: at this many the parser takes 0.25 s.
MAX_TAGS = 10_000
#: Formatting elements times start tags: so many may be opened again, at 0.5 µs and 360 bytes each.
MAX_REOPENED = 1_000_000
#: Attributes of one tag: at this many the parser takes 0.25 s.
MAX_ATTRIBUTES = 10_000
#: A tag that holds more of them, at two bytes each, fills one of these blocks and has no ``>`` there …
BLOCK_BYTES = 8_192

_FORMATTING = re.compile(rb"<[bcefinstu](?:|ig|ode|m|ont|obr|mall|trike|trong|t)[ \t\n\r\f/]", re.IGNORECASE)
_PLAIN_FORMATTING = 3 * 13  # of each of the 13 names, three without attributes are kept open at most


def is_light(page: bytes) -> bool:
    """Whether parsing ``page`` takes a quarter of a second at the very most."""
    tags = page.count(b"<") - page.count(b"</")
    if tags > MAX_TAGS or b"\0" in page:  # a NUL: UTF-16, or no text at all
        return False
    if tags * tags > 4 * MAX_REOPENED and not _few_reopened(page, tags):
        return False
    return _few_attributes(page)


def _few_reopened(page: bytes, tags: int) -> bool:
    """Whether formatting elements with attributes are few. Without any, three of a name are kept open at most."""
    return (_PLAIN_FORMATTING + len(_FORMATTING.findall(page))) * tags <= MAX_REOPENED


def _few_attributes(page: bytes) -> bool:
    """Whether no tag has many. … unless the ``>`` stands in a quoted value, which takes a ``=`` each."""
    if page.count(b"=") > MAX_ATTRIBUTES:
        return False
    blocks = range(0, len(page) - BLOCK_BYTES, BLOCK_BYTES)
    return all(page.find(b">", start, start + BLOCK_BYTES) >= 0 for start in blocks)
