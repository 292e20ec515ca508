"""The ``Allow`` and ``Disallow`` lines of one reading, compiled for deciding many URLs.

Both readings come down to the same thing: rules in an order, of which the first that matches decides. The 1996 draft
(3.2.2) has them in file order; RFC 9309 (2.2.2) by falling length, ``Allow`` first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from crawler.model import Reading
from crawler.robots.paths import Pattern, Tail, draft_form, draft_pattern, rfc_form, rfc_pattern, rfc_query_form
from crawler.robots.text import ALLOW, DISALLOW, Line


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a URL may be fetched, and the line of robots.txt that says so.

    ``line`` is None and ``text`` empty where no rule decided. ``reading`` is the one asked for; but a refusal of the
    strict reading names the reading that refused.
    """

    allowed: bool
    line: int | None
    text: str
    reading: Reading


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules in order of precedence, as (literal start, what follows it, line)."""

    ordered: tuple[tuple[str, Tail | None, Line], ...]
    starts: tuple[str, ...]  # the literal starts alone: most paths are free, and one call shows it
    asked: Reading  # the reading asked for
    own: Reading  # the reading whose rules these are
    form: Callable[[str], str]
    other_form: Callable[[str], str | None] | None = None

    def decide(self, path: str) -> Verdict:
        """The verdict on a path with its query, as :func:`crawler.url.split` gives it."""
        first = last = len(self.ordered)
        if last:
            form = self.form(path)
            if form.startswith(self.starts):
                first = self._first(form, last)
            other = self.other_form(path) if self.other_form is not None else None
            if other is not None:
                first = self._first(other, first)
        if first == last:
            return Verdict(True, None, "", self.asked)
        line = self.ordered[first][2]
        allowed = line.field == ALLOW
        return Verdict(allowed, line.number, line.text, self.asked if allowed else self.own)

    def _first(self, form: str, before: int) -> int:
        """The index of the first rule that matches, ``before`` where none does sooner."""
        for index, (start, tail, _) in enumerate(self.ordered):
            if index >= before:
                break
            if form.startswith(start) and (tail is None or tail.matches(form)):
                return index
        return before


def draft_rules(members: Iterable[Line], implied: Line | None, asked: Reading) -> Rules:
    """Rules of the draft reading; ``implied`` is the ``Host`` line that adds a ``Disallow: /`` at the end."""
    compiled = [
        (draft_pattern(path), line)
        for line in members
        if line.field == ALLOW or line.field == DISALLOW
        for path in _draft_paths(line)
    ]
    if implied is not None:
        text = f"{implied.text} (another host is the main one: Disallow: / is implied)"
        compiled.append((draft_pattern("/"), Line(implied.number, DISALLOW, "/", text)))
    return Rules(*_ordered(compiled), asked, Reading.DRAFT1996, draft_form)


def rfc_rules(lines: Iterable[Line], asked: Reading) -> Rules:
    """Rules of the RFC 9309 reading from ``Allow`` and ``Disallow`` lines."""
    compiled = [(rfc_pattern(line.value), line) for line in lines if line.value]
    if len(compiled) > 1:
        compiled.sort(key=lambda rule: (-rule[0].octets, rule[1].field))  # "allow" sorts before "disallow"
    return Rules(*_ordered(compiled), asked, Reading.RFC9309, rfc_form, rfc_query_form)


_Ordered = tuple[tuple[tuple[str, Tail | None, Line], ...], tuple[str, ...]]


def _ordered(compiled: list[tuple[Pattern, Line]]) -> _Ordered:
    ordered = tuple((pattern.prefix, pattern.tail, line) for pattern, line in compiled)
    return ordered, tuple({start for start, _, _ in ordered})


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
