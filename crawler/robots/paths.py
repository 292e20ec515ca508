"""Match a path written in robots.txt with the path of a URL, in either reading.

A pattern is compiled once a file, and a URL's path is converted to the same form once a verdict. A plain prefix, the
common pattern, then takes one comparison. Matching never backtracks: a pattern costs at most its length times the
path's length.

Sources: the 1996 draft, 3.2.2; RFC 9309, 2.2.2 and 2.2.3; ``docs/protocols.md``, section 1, "Matching".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_HALF_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_NOT_ASCII = re.compile(r"[\x80-\xff]")

# An encoded slash equals only itself. A character outside the octets stands for it: "%252F" also decodes to "%2F".
_ENCODED_SLASH = "\u0100"

_DRAFT_OCTETS = [chr(octet) for octet in range(256)]
_DRAFT_OCTETS[ord("/")] = _ENCODED_SLASH


def _rfc_octets(kept: str) -> list[str]:
    """The replacement of each escape: ASCII except ``kept`` is decoded; other octets stay escaped, in upper case."""
    return [chr(o) if o < 128 and chr(o) not in kept else f"%{o:02X}" for o in range(256)]


_RFC_PATH_OCTETS = _rfc_octets("%/?")
_RFC_QUERY_OCTETS = _rfc_octets("%")


class Form(StrEnum):
    """The form in which the rules of a reading compare paths."""

    DRAFT = "draft"
    RFC = "rfc"

    def of(self, path: str) -> str:
        """``path`` in this form."""
        return draft_form(path) if self is Form.DRAFT else rfc_form(path)


class Tail(NamedTuple):
    """The part of a pattern with ``*`` or ``$`` that follows its first literal piece."""

    start: int  # the position in the path at which the tail begins: the length of the first piece
    pieces: tuple[str, ...]  # each must occur after the one before it
    end: str | None  # the path must end in it, after the pieces; None without "$"
    starred: bool  # a "*" precedes ``end``
    longest: int  # the length of the longest of ``pieces``

    def matches(self, form: str) -> bool:
        """Whether the rest of ``form`` matches. The caller has compared its start.

        The leftmost position of each piece suffices, so the search passes each octet once.
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
    """A compiled path: a plain prefix if ``tail`` is None. ``octets`` is its length, for the longest match."""

    prefix: str
    tail: Tail | None
    octets: int

    def matches(self, form: str) -> bool:
        """Whether the pattern matches a path in the form of its reading."""
        return form.startswith(self.prefix) and (self.tail is None or self.tail.matches(form))


def draft_form(path: str) -> str:
    """``path`` in the form that the 1996 draft compares (3.2.2): every ``%xx`` is decoded, except the slash."""
    if "%" not in path and path.isascii():
        return path
    octets = path.encode("utf-8", "surrogateescape").decode("latin-1")
    return _ESCAPE.sub(lambda escape: _DRAFT_OCTETS[int(escape[1], 16)], octets)


def draft_pattern(value: str) -> Pattern:
    """Compile a path for the draft reading: a prefix. ``*`` and ``$`` are literal octets in it."""
    form = draft_form(value)
    return Pattern(form, None, len(form))


def rfc_form(path: str) -> str:
    """``path`` in the form that RFC 9309 compares (2.2.2): octets outside US-ASCII encoded, ASCII octets decoded.

    The RFC encodes reserved characters on both sides. Decoding them on both sides gives the same comparison, and
    each counts as one octet in the longest match. Encoded ``/`` and ``?`` stay distinct from the plain characters
    (RFC 3986, 2.2).
    """
    if "%" not in path and path.isascii():
        return path
    return _rfc_form(path, _RFC_PATH_OCTETS)


def rfc_query_form(path: str) -> str | None:
    """A second form for a path with an encoded ``/`` or ``?`` in its query; None for other paths.

    In a query these characters separate nothing: by the table of RFC 9309, 2.2.2, ``?baz=http://foo.bar`` and
    ``?baz=http%3A%2F%2Ffoo.bar`` match.
    """
    if "%" not in path or "?" not in path:
        return None
    head, _, query = path.partition("?")
    form = f"{rfc_form(head)}?{_rfc_form(query, _RFC_QUERY_OCTETS)}"
    return form if form != rfc_form(path) else None


def has_half_escape(value: str) -> bool:
    """Whether a path has a ``%`` that begins no escape: ``/*%`` means the text of a URL, not its octets."""
    return "%" in value and _HALF_ESCAPE.search(value) is not None


def rfc_written_form(path: str) -> str | None:
    """``path`` as written, with escapes in upper case, for comparing half escapes; None if it has no escape."""
    return _ESCAPE.sub(lambda escape: escape[0].upper(), path) if "%" in path else None


def draft_wildcard_pattern(value: str) -> Pattern:
    """Compile a path in the form of the draft reading, with ``*`` and a final ``$`` as in RFC 9309, 2.2.3."""
    anchored = value.endswith("$")
    return _wildcards(list(map(draft_form, value.removesuffix("$").split("*"))), anchored)


def rfc_pattern(value: str) -> Pattern:
    """Compile a path for RFC 9309, 2.2.3: ``*`` matches any octets, a final ``$`` matches the end of the URL."""
    anchored = value.endswith("$")
    unescaped = "%" not in value and value.isascii()
    if unescaped and not anchored and "*" not in value:
        return Pattern(value, None, len(value))
    raw = value.removesuffix("$").split("*")
    return _wildcards(raw if unescaped else _rfc_pieces(raw), anchored)


def _wildcards(pieces: Sequence[str], anchored: bool) -> Pattern:
    """The pattern of literal pieces with a ``*`` between each two, and a ``$`` behind them if ``anchored``."""
    octets = sum(map(len, pieces)) + len(pieces) - 1 + anchored
    first, *rest = pieces
    end = rest.pop() if anchored and rest else "" if anchored else None
    if end is None and not any(rest):
        return Pattern(first, None, octets)
    rest = list(filter(None, rest))
    longest = max(map(len, rest), default=0)
    return Pattern(first, Tail(len(first), tuple(rest), end, len(pieces) > 1, longest), octets)


def _rfc_pieces(raw: Sequence[str]) -> list[str]:
    """The literal pieces in RFC form. Pieces after the first ``?`` take the form of a query."""
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
