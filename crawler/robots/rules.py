"""The ``Allow`` and ``Disallow`` lines of one reading, compiled for deciding many URLs.

Both readings come down to the same thing: rules in an order, of which the first that matches decides. The 1996 draft
(3.2.2) has them in file order; RFC 9309 (2.2.2) by falling length, ``Allow`` first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from crawler.model import Reading
from crawler.robots.matching import PatternIndex, TooCostly, index_of
from crawler.robots.paths import (
    Pattern,
    draft_form,
    draft_pattern,
    has_half_escape,
    rfc_form,
    rfc_pattern,
    rfc_query_form,
    rfc_written_form,
)
from crawler.robots.text import ALLOW, DISALLOW, Line


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a URL may be fetched, and the line of robots.txt that says so.

    ``line`` is None and ``text`` empty where no rule decided; a text is printable and bounded. ``reading`` is the one
    asked for; but a refusal of the strict reading names the reading that refused.
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
    form: Callable[[str], str]
    other_forms: tuple[Callable[[str], str | None], ...] = ()  # in which a path may match as well

    def decide(self, path: str) -> Verdict:
        """The verdict on a path with its query, as :func:`crawler.url.split` gives it.

        Where the rules are too many to be compared with so long a path, it may not be fetched: one of those not
        compared might forbid it.
        """
        first = last = len(self.lines)
        if last:
            try:
                first = self.patterns.first(self.form(path), last)
                for other_form in self.other_forms:
                    if (other := other_form(path)) is not None:
                        first = self.patterns.first(other, first)
            except TooCostly as stopped:
                line = self.lines[stopped.index]
                text = f"{line.shown} (from here on too many rules for so long a URL: closed)"
                return Verdict(False, line.number, text, self.own)
        if first == last:
            return Verdict(True, None, "", self.asked)
        line = self.lines[first]
        allowed = line.field == ALLOW
        return Verdict(allowed, line.number, line.shown, self.asked if allowed else self.own)


def draft_rules(members: Iterable[Line], implied: Line | None, asked: Reading) -> Rules:
    """Rules of the draft reading; ``implied`` is the ``Host`` line that adds a ``Disallow: /`` at the end."""
    compiled = [
        (draft_pattern(path), line)
        for line in members
        if line.field == ALLOW or line.field == DISALLOW
        for path in _draft_paths(line)
    ]
    if implied is not None:
        text = f"{implied.shown} (another host is the main one: Disallow: / is implied)"
        compiled.append((draft_pattern("/"), Line(implied.number, DISALLOW, "/", text)))
    return Rules(*_indexed(compiled), asked, Reading.DRAFT1996, draft_form)


def rfc_rules(lines: Iterable[Line], asked: Reading) -> Rules:
    """Rules of the RFC 9309 reading from ``Allow`` and ``Disallow`` lines."""
    compiled = [(rfc_pattern(line.value), line) for line in lines if line.value]
    if len(compiled) > 1:
        compiled.sort(key=lambda rule: (-rule[0].octets, rule[1].field))  # "allow" sorts before "disallow"
    half_escapes = any(has_half_escape(line.value) for _, line in compiled)
    others = (rfc_query_form, rfc_written_form) if half_escapes else (rfc_query_form,)
    return Rules(*_indexed(compiled), asked, Reading.RFC9309, rfc_form, others)


_Indexed = tuple[tuple[Line, ...], PatternIndex]


def _indexed(compiled: list[tuple[Pattern, Line]]) -> _Indexed:
    return tuple(line for _, line in compiled), index_of(pattern for pattern, _ in compiled)


def _draft_paths(line: Line) -> Sequence[str]:
    """The paths of a rule; none where it is empty. A ``Disallow`` may list several ('Revisited', 1996).

    It is a list only where every part starts with a slash; else it is one path with a blank in it.
    """
    value = line.value
    if line.field == DISALLOW and (" " in value or "\t" in value):
        parts = [part for part in value.replace("\t", " ").split(" ") if part]
        if all(part.startswith("/") for part in parts):
            return parts
    return (value,) if value else ()
