"""The ``Allow`` and ``Disallow`` lines of one reading, compiled to decide many URLs.

In both readings the first matching rule of an ordered list decides. The 1996 draft (3.2.2) orders rules as in the
file; RFC 9309 (2.2.2) by descending length, ``Allow`` first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from crawler.model import Reading
from crawler.robots.fields import ALLOW, DISALLOW, RULES
from crawler.robots.matching import PatternIndex, TooCostly, index_of
from crawler.robots.paths import (
    Form,
    Pattern,
    draft_pattern,
    draft_wildcard_pattern,
    has_half_escape,
    rfc_pattern,
    rfc_query_form,
    rfc_written_form,
)
from crawler.robots.text import Line


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a URL may be fetched, and the line of robots.txt that decided.

    ``line`` is None and ``text`` empty if no rule decided; ``text`` is printable and bounded. ``reading`` is the
    reading asked for; a refusal by strict names the reading that refused.
    """

    allowed: bool
    line: int | None
    text: str
    reading: Reading


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules in order of precedence."""

    lines: tuple[Line, ...]
    patterns: PatternIndex  # of these lines
    asked: Reading  # the reading asked for
    own: Reading  # the reading whose rules these are
    form: Form
    has_half_escapes: bool = False  # then a path may also match as it is written

    def decide(self, path: str) -> Verdict:
        """Decide a path with its query, as :func:`crawler.url.split` returns it.

        If comparing the rules with the path exceeds the bound on work, the path is closed: one of the rules not
        compared might forbid it.
        """
        first = last = len(self.lines)
        if last:
            try:
                first = self.patterns.first(self.form.of(path), last)
                if self.form is Form.RFC and "%" in path:
                    for other in (rfc_query_form(path), rfc_written_form(path) if self.has_half_escapes else None):
                        first = first if other is None else self.patterns.first(other, first)
            except TooCostly as stopped:
                line = self.lines[stopped.index]
                text = f"{line.shown} (too many rules from here on for a URL of this length: closed)"
                return Verdict(False, line.number, text, self.own)
        if first == last:
            return Verdict(True, None, "", self.asked)
        line = self.lines[first]
        allowed = line.field == ALLOW
        return Verdict(allowed, line.number, line.shown, self.asked if allowed else self.own)


def draft_rules(
    members: Iterable[Line], implied: Line | None, asked: Reading, own: Reading = Reading.DRAFT1996
) -> Rules:
    """Rules of the draft reading. ``implied`` is the ``Host`` line that adds ``Disallow: /`` at the end.

    In ``strict``, ``*`` and a final ``$`` of an ``Allow`` line are wildcards, as its author meant them. ``own`` is the
    reading that a refusal names.
    """
    opening = draft_wildcard_pattern if asked is Reading.STRICT else draft_pattern
    compiled = [
        ((opening if line.field == ALLOW else draft_pattern)(path), line)
        for line in members
        if line.field in RULES
        for path in _draft_paths(line)
    ]
    if implied is not None:
        text = f"{implied.shown} (another host is the main one: Disallow: / is implied)"
        compiled.append((draft_pattern("/"), Line(implied.number, DISALLOW, "/", text)))
    return Rules(*_indexed(compiled), asked, own, Form.DRAFT)


def rfc_rules(lines: Iterable[Line], asked: Reading, own: Reading = Reading.RFC9309) -> Rules:
    """Rules of the RFC 9309 reading from ``Allow`` and ``Disallow`` lines. ``own``: as for :func:`draft_rules`."""
    compiled = [(rfc_pattern(line.value), line) for line in lines if line.value]
    if len(compiled) > 1:
        compiled.sort(key=lambda rule: (-rule[0].octets, rule[1].field))  # "allow" sorts before "disallow"
    half_escapes = any(has_half_escape(line.value) for _, line in compiled)
    return Rules(*_indexed(compiled), asked, own, Form.RFC, half_escapes)


_MANY = 10_000
_Indexed = tuple[tuple[Line, ...], PatternIndex]


def _indexed(compiled: list[tuple[Pattern, Line]]) -> _Indexed:
    if len(compiled) >= _MANY:  # of equal patterns the first decides, so a file of copies needs no memory
        first: dict[Pattern, Line] = {}
        for pattern, line in compiled:
            first.setdefault(pattern, line)
        compiled = list(first.items())
    return tuple(line for _, line in compiled), index_of(pattern for pattern, _ in compiled)


def _draft_paths(line: Line) -> Sequence[str]:
    """The paths of a rule; none if the value is empty. A ``Disallow`` may list several ('Revisited', 1996).

    The value is a list only if every part starts with a slash; else it is one path that contains a blank.
    """
    value = line.value
    if line.field == DISALLOW and (" " in value or "\t" in value):
        parts = [part for part in value.replace("\t", " ").split(" ") if part]
        if all(part.startswith("/") for part in parts):
            return parts
    return (value,) if value else ()
