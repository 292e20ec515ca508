"""What a page will cost the HTML parser, weighed tag by tag.

A sketch of the parser's stack of open elements (HTML Standard, 13.2.4.2) that stays as deep as the
real one or deeper: a start tag counts wherever it stands, even in a comment or a script, while an
end tag counts only outside them, and only where something of its name is open within reach.
"""

from __future__ import annotations

import re

#: Left open, these are opened again in the next block (13.2.4.3). ``<a>`` is not here: the next ``<a>`` closes it.
FORMATTING = frozenset(b"b big code em font i nobr s small strike strong tt u".split())

#: Steps that the parser may search through its stack, at 2 to 10 ns each.
MAX_STEPS = 150_000_000
#: As in :mod:`crawler.page.guard`: elements that may be opened again.
MAX_REOPENED = 1_000_000
#: Comparisons of attributes of one tag with each other, at 2 ns each.
MAX_COMPARED = 300_000_000

_VOID = frozenset(
    b"area base basefont bgsound br col embed frame hr img input link meta param source track wbr".split()
)
# End tags inside these do not reach out of them.
_WALLS = frozenset(b"table object applet marquee template svg math select button".split())
_CELLS = frozenset((b"td", b"th", b"caption"))
_ROWS = frozenset((b"tr", b"tbody", b"thead", b"tfoot"))
_DRAWINGS = (b"svg", b"math")
# Formatting elements opened inside these end with them.
_MARKERS = _CELLS | frozenset(b"object applet marquee template".split())
# Before these an open <p> is closed; their end tags close whatever is open inside them.
_BLOCKS = frozenset(
    b"address article aside blockquote center dd details dir div dl dt fieldset figcaption figure footer header hgroup "
    b"main menu nav ol p pre section summary ul".split()
)
# All that others may leave open between the start and the end of an inline element.
_INLINE = FORMATTING | frozenset(b"a abbr cite dfn kbd label q samp span sub sup var".split())
_CLOSED_BY = {b"dd": (b"dd", b"dt"), b"dt": (b"dd", b"dt"), b"li": (b"li",), b"tr": (b"tr",), b"option": (b"option",)}
# How far an end tag is looked for.
_REACH = 32

_WS = rb"[ \t\n\r\f]"
_ATTRIBUTE = (
    rb"[^ \t\n\r\f/>][^ \t\n\r\f/>=]*+"
    rb"(?:" + _WS + rb"*+=" + _WS + rb"*+(?:\"[^\"]*+\"|'[^']*+'|[^ \t\n\r\f>\"'][^ \t\n\r\f>]*+)?+)?+"
)
_ATTRIBUTES = rb"(?:[ \t\n\r\f/]++|" + _ATTRIBUTE + rb")*+"
_TOKEN = re.compile(
    rb"(<!--(?:-?>|.*?--!?>|.*)|<!\[CDATA\[(?:.*?\]\]>|.*)"
    rb"|<(script|style|textarea|title|xmp|iframe|noembed|noframes)(?=[ \t\n\r\f/>])" + _ATTRIBUTES + rb">"
    rb"(?:.*?</\2(?=[ \t\n\r\f/>])|.*))"
    rb"|<(/?)([a-z][^ \t\n\r\f/>]*+)(" + _ATTRIBUTES + rb")>",
    re.IGNORECASE | re.DOTALL,
)
_START = re.compile(rb"<[a-zA-Z]")
_ATTRIBUTE_START = re.compile(rb"[ \t\n\r\f/\"'][^ \t\n\r\f/\"'>]")
_LONG = 1_000


def weigh(page: bytes) -> str | None:
    """Why the page would cost too much, in words; ``None`` where it would not. Linear in the page."""
    stack = _Stack()
    steps = reopened = compared = gathered = 0
    for skipped, _, slash, name, attributes in _TOKEN.findall(page):
        if skipped:
            stack.depth += len(_START.findall(skipped, 1))
            compared += _compared_in(skipped)
        elif slash:
            stack.close(name.lower())
        else:
            name = name.lower()
            stack.open(name, attributes)
            if name in (b"html", b"body"):  # the attributes of all of these gather on one element
                gathered += len(_ATTRIBUTE_START.findall(attributes))
                compared += gathered**2
            elif len(attributes) > _LONG:
                compared += len(_ATTRIBUTE_START.findall(attributes)) ** 2
        left_open = stack.wall.formatting.count
        reopened += left_open
        steps += stack.depth + left_open
        if steps > MAX_STEPS:
            return "its elements are nested too deeply"
        if reopened > MAX_REOPENED:
            return "too many formatting elements are left open"
        if compared > MAX_COMPARED:
            return "a tag has too many attributes"
    return None


def _compared_in(skipped: bytes) -> int:
    """The same for a comment or script, should the parser see tags in it after all."""
    total = 0
    for piece in skipped.split(b">"):
        start = _START.search(piece) if len(piece) > _LONG else None
        if start:
            total += len(_ATTRIBUTE_START.findall(piece, start.end())) ** 2
    return total


class _Formatting:
    """The formatting elements that are open, or would be opened again."""

    __slots__ = ("attributes", "count")

    def __init__(self) -> None:
        self.attributes: dict[bytes, list[bytes]] = {}  # by name
        self.count = 0

    def open(self, name: bytes, attributes: bytes) -> None:
        alike = self.attributes.setdefault(name, [])
        if alike.count(attributes) < 3:  # the parser forgets the fourth ("Noah's Ark", 13.2.4.3)
            alike.append(attributes)
            self.count += 1

    def close(self, name: bytes) -> None:
        alike = self.attributes.get(name)
        if alike:
            alike.pop()
            self.count -= 1


class _Wall:
    """The elements that are open since the last one that end tags do not reach across."""

    __slots__ = ("formatting", "name", "names")

    def __init__(self, name: bytes, formatting: _Formatting) -> None:
        self.name = name
        self.names: list[bytes] = []
        self.formatting = formatting


class _Stack:
    __slots__ = ("depth", "wall", "walls")

    def __init__(self) -> None:
        self.wall = _Wall(b"", _Formatting())
        self.walls = [self.wall]
        self.depth = 0

    def open(self, name: bytes, attributes: bytes) -> None:
        if name in _VOID:
            return
        names = self.wall.names
        if name in _INLINE:
            if name in FORMATTING:
                self.wall.formatting.open(name, attributes)
        elif name in _WALLS:
            self._push_wall(name)
            return
        elif name in _CELLS or name in _ROWS:
            self._open_in_table(name)
            return
        else:
            closed = _CLOSED_BY.get(name, ())
            if names and names[-1] == b"p" and (name in _BLOCKS or name == b"li"):
                self._pop(1)
            if names and names[-1] in closed:
                self._pop(1)
        if self.wall.name in _DRAWINGS and (name in _BLOCKS or name in _INLINE):
            self.wall.name = b"left"  # such a tag ends the drawing, and its end tag then means nothing
        names.append(name)
        self.depth += 1

    def close(self, name: bytes) -> None:
        names = self.wall.names
        if names and names[-1] == name:
            self._pop(1)
        elif name in _WALLS or name in _CELLS:
            self._close_wall(name)
            return
        else:
            reached = self._reach(name)
            if not reached:
                return
            self._pop(reached)
        if name in FORMATTING:
            self.wall.formatting.close(name)

    def _reach(self, name: bytes) -> int:
        """How many elements an end tag closes; 0 where that is not certain."""
        block = name in _BLOCKS or (name in _ROWS and self.wall.name == b"table")
        for count, above in enumerate(reversed(self.wall.names[-_REACH:]), 1):
            if above == name:
                return count
            if not block and above not in _INLINE and not (name == b"li" and above == b"p"):
                return 0
        return 0

    def _open_in_table(self, name: bytes) -> None:
        """Cells and rows exist only in a table; elsewhere the parser passes over their tags."""
        if self.wall.name in _CELLS and name != b"caption":
            self._pop_wall()
        if self.wall.name != b"table":
            return
        if name in _CELLS:
            self._push_wall(name)
            return
        names = self.wall.names
        if names and names[-1] in _CLOSED_BY.get(name, ()):
            self._pop(1)
        names.append(name)
        self.depth += 1

    def _push_wall(self, name: bytes) -> None:
        self.wall = _Wall(name, _Formatting() if name in _MARKERS else self.wall.formatting)
        self.walls.append(self.wall)
        self.depth += 1

    def _close_wall(self, name: bytes) -> None:
        if name == b"table" and self.wall.name in _CELLS:
            self._pop_wall()
        if self.wall.name == name:
            self._pop_wall()

    def _pop_wall(self) -> None:
        wall = self.walls.pop()
        self.depth -= len(wall.names) + 1
        self.wall = self.walls[-1]

    def _pop(self, count: int) -> None:
        del self.wall.names[-count:]
        self.depth -= count
