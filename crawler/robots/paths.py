"""Whether a path written in robots.txt matches the path of a URL, in either reading.

A pattern is compiled once per file and a URL's path brought into the same form once per verdict, so that what is
left to do for the common pattern, a plain prefix, is to compare it. Nothing backtracks: a pattern costs at most its own
length times the path's.

Sources: the 1996 draft, 3.2.2; RFC 9309, 2.2.2 and 2.2.3; ``docs/protocols.md``, section 1, "Matching".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_HALF_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_NOT_ASCII = re.compile(r"[\x80-\xff]")

# An encoded slash equals only itself. It needs a character that no octet can be: "%252F" decodes to "%2F" too.
_ENCODED_SLASH = "\u0100"

_DRAFT_OCTETS = [chr(octet) for octet in range(256)]
_DRAFT_OCTETS[ord("/")] = _ENCODED_SLASH


def _rfc_octets(kept: str) -> list[str]:
    """What each escape becomes: ASCII is decoded but for ``kept``; anything else stays, in upper case."""
    return [chr(o) if o < 128 and chr(o) not in kept else f"%{o:02X}" for o in range(256)]


_RFC_PATH_OCTETS = _rfc_octets("%/?")
_RFC_QUERY_OCTETS = _rfc_octets("%")


class Tail(NamedTuple):
    """What follows the first literal piece of a pattern with ``*`` or ``$``."""

    start: int  # where in the path the tail begins: the length of the first piece
    pieces: tuple[str, ...]  # each to be found after the one before it
    end: str | None  # what the path must end in, after the pieces; None where there is no "$"
    starred: bool  # a "*" precedes ``end``
    longest: int  # the length of the longest of ``pieces``

    def matches(self, form: str) -> bool:
        """Whether the rest of ``form``, whose start is known to match, matches too.

        Taking the leftmost place for every piece is enough, and so each octet is passed only once.
        """
        if self.end is not None and not form.endswith(self.end):
            return False
        at = self.start
        for piece in self.pieces:
            found = form.find(piece, at)
            if found < 0:
                return False
            at = found + len(piece)
        if self.end is None:
            return True
        if not self.starred:
            return len(form) == at
        return len(form) - len(self.end) >= at


class Pattern(NamedTuple):
    """A compiled path: a plain prefix where ``tail`` is None. ``octets`` is its length, for the longest match."""

    prefix: str
    tail: Tail | None
    octets: int

    def matches(self, form: str) -> bool:
        """Whether it matches a path in the form of its reading."""
        return form.startswith(self.prefix) and (self.tail is None or self.tail.matches(form))


def draft_form(path: str) -> str:
    """``path`` as the 1996 draft, 3.2.2, compares it: every ``%xx`` decoded, except the slash."""
    if "%" not in path and path.isascii():
        return path
    octets = path.encode("utf-8", "surrogateescape").decode("latin-1")
    return _ESCAPE.sub(lambda escape: _DRAFT_OCTETS[int(escape[1], 16)], octets)


def draft_pattern(value: str) -> Pattern:
    """Compile a path for the draft reading: a prefix in which ``*`` and ``$`` are literal octets."""
    form = draft_form(value)
    return Pattern(form, None, len(form))


def rfc_form(path: str) -> str:
    """``path`` as RFC 9309, 2.2.2, compares it: octets outside US-ASCII encoded, ASCII octets not.

    The RFC would rather encode the reserved characters on both sides; decoding them on both is the same comparison,
    and counts an octet as one in the longest match. Encoded, ``/`` and ``?`` stay apart from their plain selves, as
    in RFC 3986, 2.2.
    """
    if "%" not in path and path.isascii():
        return path
    return _rfc_form(path, _RFC_PATH_OCTETS)


def rfc_query_form(path: str) -> str | None:
    """A second form to compare where the query has an encoded ``/`` or ``?``: there they separate nothing.

    RFC 9309, 2.2.2, its table: ``?baz=http://foo.bar`` and ``?baz=http%3A%2F%2Ffoo.bar`` match. None where there is
    nothing of the kind.
    """
    if "%" not in path or "?" not in path:
        return None
    head, _, query = path.partition("?")
    form = f"{rfc_form(head)}?{_rfc_form(query, _RFC_QUERY_OCTETS)}"
    return form if form != rfc_form(path) else None


def has_half_escape(value: str) -> bool:
    """Whether a path has a ``%`` that begins no escape: who writes ``/*%`` means the text of a URL, not its octets."""
    return "%" in value and _HALF_ESCAPE.search(value) is not None


def rfc_written_form(path: str) -> str | None:
    """``path`` as it is written, escapes in upper case, to compare half escapes with; None where it has no escape."""
    return _ESCAPE.sub(lambda escape: escape[0].upper(), path) if "%" in path else None


def rfc_pattern(value: str) -> Pattern:
    """Compile a path for RFC 9309, 2.2.3: ``*`` is any octets, ``$`` at the end is the end of the URL."""
    anchored = value.endswith("$")
    unescaped = "%" not in value and value.isascii()
    if unescaped and not anchored and "*" not in value:
        return Pattern(value, None, len(value))
    raw = value.removesuffix("$").split("*")
    pieces = raw if unescaped else _rfc_pieces(raw)
    octets = sum(map(len, pieces)) + len(pieces) - 1 + anchored
    first, *rest = pieces
    end = rest.pop() if anchored and rest else "" if anchored else None
    if end is None and not any(rest):
        return Pattern(first, None, octets)
    rest = list(filter(None, rest))
    longest = max(map(len, rest), default=0)
    return Pattern(first, Tail(len(first), tuple(rest), end, len(pieces) > 1, longest), octets)


def _rfc_pieces(raw: Sequence[str]) -> list[str]:
    """The literal pieces in RFC form; from the first ``?`` on they are known to stand in the query."""
    forms = []
    in_query = False
    for piece in raw:
        if in_query:
            forms.append(_rfc_form(piece, _RFC_QUERY_OCTETS))
        else:
            head, mark, query = piece.partition("?")
            in_query = bool(mark)
            forms.append(rfc_form(head) + mark + _rfc_form(query, _RFC_QUERY_OCTETS))
    return forms


def _rfc_form(path: str, octets: list[str]) -> str:
    if not path.isascii():
        raw = path.encode("utf-8", "surrogateescape").decode("latin-1")
        path = _NOT_ASCII.sub(lambda octet: f"%{ord(octet[0]):02X}", raw)
    return _ESCAPE.sub(lambda escape: octets[int(escape[1], 16)], path) if "%" in path else path
